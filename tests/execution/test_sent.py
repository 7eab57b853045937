"""What functions send by their context, over each driver: in the wire's own thread, by a hop, and on the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from invoker import Context, function
from invoker.errors import EncodeError, FunctionError, Status, StopInvocation
from tests.execution.loopcalls import FakeCall
from tests.execution.memory import driver_of
from tests.execution.runs import Run, directly, in_thread, sync_drivers
from tests.execution.wires import LIMIT_S, Call, direct_driver


@function(outputs=("a", "b"))
def only_sends(xs: Iterator[int], ctx: Context) -> None:
    for x in xs:
        ctx.outputs["a"].send(x)
        ctx.outputs[1].send(x * 10)
    ctx.outputs["a"].end()
    ctx.outputs["a"].end()
    ctx.outputs["b"].send("last")


@function(outputs=("a", "b"))
def maps(x: int, ctx: Context) -> None:
    ctx.outputs["a"].send(x)
    ctx.outputs["b"].send(-x)


@function(outputs=("a", "b"))
def yields_too(xs: Iterator[int], ctx: Context) -> Iterator[int]:
    for x in xs:
        ctx.outputs["b"].send(x * 10)
        yield x


def pair(xs: Iterator[int], ctx: Context) -> tuple[Iterator[int], Iterator[int]]:
    def first() -> Iterator[int]:
        for x in xs:
            ctx.outputs["out1"].send(x * 10)
            yield x

    return first(), iter(())


def second_sends(xs: Iterator[int], ctx: Context) -> tuple[Iterator[int], Iterator[int]]:
    done = threading.Event()

    def first() -> Iterator[int]:
        assert done.wait(LIMIT_S)
        yield from ()

    def second() -> Iterator[int]:
        for x in xs:
            ctx.outputs[0].send(x * 10)
            yield x
        ctx.outputs[0].end()
        with pytest.raises(EncodeError, match="given a value after its end"):
            ctx.outputs[0].send(0)
        done.set()

    return first(), second()


@function(outputs=("a", "b"))
async def async_sends(xs: AsyncIterator[int], ctx: Context) -> None:
    async for x in xs:
        await ctx.outputs["a"].send(x)
        await ctx.outputs[1].send(x * 10)
    await ctx.outputs["a"].end()
    await ctx.outputs["b"].send("last")


@function(outputs=("a", "b"))
async def async_maps(x: int, ctx: Context) -> None:
    await ctx.outputs["a"].send(x)
    await ctx.outputs["b"].send(-x)


@sync_drivers
def test_E126_a_function_may_send_to_its_outputs_by_name_and_number(run: Run):
    """What it does not end is ended when it returns; nothing but what is sent leaves."""
    assert run(only_sends, b"1", b"2") == (
        [(0, b"1"), (0, b"2"), (1, b"10"), (1, b"20"), (1, b'"last"')],
        None,
    )
    assert run(maps, b"1", b"2") == ([(0, b"1"), (0, b"2"), (1, b"-1"), (1, b"-2")], None)


@pytest.mark.parametrize("fn", [async_sends, async_maps])
def test_E126_an_async_function_awaits_what_it_sends(fn: Any):
    """On the loop, without a thread."""
    last = [(1, b'"last"')] if fn is async_sends else []
    factor = 10 if fn is async_sends else -1
    sent = [(0, b"1"), (0, b"2"), *((1, b"%d" % (x * factor)) for x in (1, 2)), *last]
    assert in_thread(fn, b"1", b"2") == (sent, None)


@sync_drivers
@pytest.mark.parametrize("fn", [yields_too, pair])
def test_E126_a_generator_may_send_besides_what_it_yields(run: Run, fn: Any):
    """Also one of several generators, each in a thread of its own."""
    assert run(fn, b"1", b"2") == ([(0, b"1"), (0, b"2"), (1, b"10"), (1, b"20")], None)


@sync_drivers
def test_E126_a_generator_that_is_not_the_first_may_send_and_end_too(run: Run):
    """Its thread is none that called the function; what it sends leaves on the output that it names."""
    assert run(second_sends, b"1", b"2") == ([(0, b"10"), (0, b"20"), (1, b"1"), (1, b"2")], None)


@sync_drivers
def test_an_error_of_a_generator_that_is_not_the_first_ends_both(run: Run):
    """A value that no codec takes is its own fault, and fails where it is sent."""

    def broken(xs: Iterator[int], ctx: Context) -> tuple[Iterator[int], Iterator[int]]:
        def second() -> Iterator[int]:
            ctx.outputs[0].send(object())
            yield 1

        return iter(xs), second()

    sent, error = run(broken)
    assert sent == []
    assert isinstance(error, EncodeError)


@sync_drivers
def test_E130_sending_after_the_end_fails_in_the_function(run: Run):
    """It may catch it; otherwise it is its error. So is an output that it does not have."""
    seen: list[EncodeError] = []

    @function(outputs=("a", "b"))
    def late(xs: Iterator[int], ctx: Context) -> None:
        ctx.outputs["a"].end()
        try:
            ctx.outputs["a"].send(1)
        except EncodeError as error:
            seen.append(error)
        ctx.outputs["c"].send(1)

    sent, error = run(late)
    assert sent == []
    assert "given a value after its end" in seen[0].detail
    assert isinstance(error, FunctionError)
    assert "'c'; outputs are: 0 'a', 1 'b'" in error.detail


@sync_drivers
def test_R136_a_value_that_no_codec_takes_fails_where_it_is_sent(run: Run):
    """As if it had been yielded."""

    @function(outputs=("a", "b"))
    def odd(xs: Iterator[int], ctx: Context) -> None:
        ctx.outputs["a"].send(1)
        ctx.outputs["a"].send(object())

    sent, error = run(odd)
    assert sent == [(0, b"1")]
    assert isinstance(error, EncodeError)


def test_a_direct_function_sends_from_its_own_thread_only():
    """Its wire has one thread; another would write into the middle of what that one does."""
    seen: list[str] = []

    @function(outputs=("a", "b"))
    def spread(xs: Iterator[int], ctx: Context) -> None:
        def other() -> None:
            try:
                ctx.outputs["a"].send(1)
            except EncodeError as error:
                seen.append(error.detail)
            try:
                ctx.outputs["a"].end()
            except EncodeError as error:
                seen.append(error.detail)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join(LIMIT_S)

    assert directly(spread) == ([], None)
    assert len(seen) == 2
    assert all("only from the thread that runs it" in one for one in seen)


async def test_an_awaitable_of_a_sync_function_does_not_send():
    """It runs on the loop, which would wait for itself."""

    @function(outputs=("a", "b"))
    def mixed(x: int, ctx: Context) -> Any:
        async def answer() -> int:
            ctx.outputs["b"].send(x)
            return x

        ctx.outputs["b"].send(0)
        return answer()

    peer = FakeCall(driver_of(mixed)).start("application/json", "application/json").data(b"1").half_close()
    error = await peer.end()
    assert isinstance(error, FunctionError)
    assert "from its own thread" in error.detail
    await peer.driver.left(LIMIT_S)
    peer.driver.threads.close()


def test_R115_a_peer_that_is_gone_stops_who_sends():
    """``except Exception`` cannot make light of it, on the direct wire."""
    seen: list[type[BaseException]] = []
    began = threading.Event()

    @function(outputs=("a", "b"))
    def endless(xs: Iterator[int], ctx: Context) -> None:
        try:
            while True:
                try:
                    ctx.outputs["a"].send(1)
                    began.set()
                except Exception as error:
                    seen.append(type(error))
        except BaseException as error:
            seen.append(type(error))
            raise

    call = Call(direct_driver(endless)).start("application/json", "application/json")
    assert began.wait(LIMIT_S)
    error = call.cancel().end()
    assert error is None or error.status is Status.CANCELLED
    assert seen == [StopInvocation]
    assert call.driver.engine.counters.finished == {Status.CANCELLED: 1}


def test_R115_a_peer_that_is_gone_stops_a_generator_that_is_not_the_first():
    """Also where it sends; ``except Exception`` cannot make light of it."""
    seen: list[type[BaseException]] = []
    began = threading.Event()

    def endless(xs: Iterator[int], ctx: Context) -> tuple[Iterator[int], Iterator[int]]:
        def second() -> Iterator[int]:
            try:
                while True:
                    try:
                        ctx.outputs[0].send(1)
                        began.set()
                    except Exception as error:
                        seen.append(type(error))
            except BaseException as error:
                seen.append(type(error))
                raise
            yield 1

        return iter(xs), second()

    call = Call(direct_driver(endless)).start("application/json", "application/json")
    assert began.wait(LIMIT_S)
    error = call.cancel().end()
    assert error is not None
    assert error.status is Status.CANCELLED
    assert seen == [StopInvocation]
    assert call.driver.threads.busy == 0


async def test_R127_who_sends_waits_while_the_peer_is_slow():
    """Neither a thread nor a coroutine runs ahead of the wire."""
    made: dict[str, int] = {}

    @function(outputs=("a", "b"))
    def flood(xs: Iterator[int], ctx: Context) -> None:
        for number in range(500):
            ctx.outputs["a"].send(number)
            made["sync"] = number

    @function(outputs=("a", "b"))
    async def aflood(xs: AsyncIterator[int], ctx: Context) -> None:
        for number in range(500):
            await ctx.outputs["a"].send(number)
            made["async"] = number

    for name, fn in (("sync", flood), ("async", aflood)):
        peer = FakeCall(driver_of(fn))
        peer.is_full = True
        peer.start("application/json", "application/json")
        await asyncio.sleep(0.05)
        assert made.get(name, 0) < 100
        peer.take()
        assert await asyncio.wait_for(peer.half_close().end(), LIMIT_S) is None
        assert len(peer.payloads(0)) == 500
        await peer.driver.left(LIMIT_S)
        peer.driver.threads.close()


@sync_drivers
def test_a_context_that_outlives_its_invocation_sends_no_more(run: Run):
    """The wire may serve somebody else by then."""
    kept: list[Context] = []

    @function(outputs=("a", "b"))
    def keep(xs: Iterator[int], ctx: Context) -> None:
        kept.append(ctx)
        kept.append(ctx.outputs["a"])  # type: ignore[arg-type]

    assert run(keep) == ([], None)
    with pytest.raises((EncodeError, StopInvocation), match=r"is over|nothing is invoked"):
        kept[1].send(1)  # type: ignore[attr-defined]
    assert (kept[0].run, kept[0].cancelled) == (None, True)
