"""`invoker.execution.loop.unary`: an async function that was sent whole, as one task of the loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from invoker.context import RUNNING
from invoker.core.steps import Open
from invoker.core.unary import UnaryCall, UnaryInvocation
from invoker.errors import (
    Cancelled,
    DeadlineExceeded,
    DecodeError,
    EncodeError,
    FunctionError,
    InvocationError,
    Overloaded,
    Status,
    StopInvocation,
)
from invoker.execution.bodies.turns import LARGE_BYTES
from invoker.execution.driver import Driver
from invoker.execution.loop.unary import UnaryTask
from invoker.message import Message, Output
from tests.execution.memory import driver_of
from tests.transports.served import until

JSON = "application/json"

SECOND = FunctionError("a second value")


class One:
    """One call, which begins at once.

    Attributes:
        answers: What its peer was told.
    """

    def __init__(
        self,
        driver: Driver,
        *payloads: bytes,
        timeout_s: float | None = None,
        deadline: float | None = None,
        **more: Any,
    ) -> None:
        self.driver = driver
        self.answers: list[tuple[bytes | None, InvocationError | None]] = []
        call = UnaryCall(Open("k", protocol="p"), [Message(one, {}, JSON) for one in payloads or (b"3",)])
        engine = driver.engine
        invocation = engine.open(call.open, deadline=deadline, plan=engine.plan(call.open), messages=call.messages)
        assert isinstance(invocation, UnaryInvocation)
        self.invocation = invocation
        for name, value in more.items():
            setattr(self.invocation, name, value)
        self.task = UnaryTask(driver, self.invocation, call.messages, self._answered, lambda: SECOND)
        self.task.start(timeout_s)

    def _answered(self, message: Message[bytes] | None, error: InvocationError | None) -> None:
        assert self.invocation.is_finished
        assert self.invocation.id not in self.driver.engine.running  # its line is written before the peer knows
        self.answers.append((None if message is None else message.payload, error))

    async def left(self) -> None:
        """Wait until the function has returned, and check that nothing is left of the call."""
        assert await self.driver.left(5)
        assert not self.driver.conversations
        assert not self.driver._lingering
        assert self.invocation.context.run is None
        assert self.invocation.end is None
        assert self.task._messages == []


async def answered(function: Callable[..., Any], *payloads: bytes) -> tuple[bytes | None, Any]:
    one = One(driver_of(function), *payloads)
    await one.left()
    (answer,) = one.answers
    return answer


async def test_it_calls_the_function_in_a_task_of_its_own() -> None:
    """Which has its name, and a context of its own (R-012)."""
    seen: list[Any] = []

    async def noted(a: int, b: int) -> int:
        task = asyncio.current_task()
        assert task is not None
        seen.append((task.get_name(), RUNNING.get()))
        return a - b

    one = One(driver_of(noted), b"30", b"4")
    assert one.driver.conversations == {one.task}
    assert one.driver.leaving == {one.task: one.invocation}
    await one.left()
    assert one.answers == [(b"26", None)]
    assert seen == [("body i1", one.invocation.context)]
    assert (one.invocation.frames_in, one.invocation.frames_out) == (2, 1)
    assert RUNNING.get() is None


@pytest.mark.parametrize(
    ("raised", "text"),
    [
        (ValueError("boom"), "ValueError: boom"),
        (StopIteration("s"), "RuntimeError: coroutine raised StopIteration"),
        (StopAsyncIteration("s"), "RuntimeError: async generator raised StopAsyncIteration"),
        (SystemExit(3), "SystemExit"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (asyncio.CancelledError("own"), "CancelledError"),
    ],
)
async def test_R123_whatever_it_raises_ends_this_call_only(raised: BaseException, text: str) -> None:
    """With the error of a function that failed, in the words of every async function."""

    async def fails(x: int) -> int:
        raise raised

    message, error = await answered(fails)
    assert (message, type(error)) == (None, FunctionError)
    assert text in str(error)


async def test_R123_a_stop_of_the_functions_own_making_ends_the_call() -> None:
    """It gave no value, and its peer is told."""

    async def stops(x: int) -> int:
        raise StopInvocation

    assert await answered(stops) == (None, None)


@pytest.mark.parametrize("is_large", [False, True])
async def test_a_value_that_nobody_reads_is_dropped(is_large: bool) -> None:
    """The function ends normally."""

    async def elsewhere(x: int) -> Any:
        return Output("unlisted", x)

    driver = driver_of(elsewhere)
    if is_large:
        driver.threads.turns.known.add("elsewhere")
    one = One(driver, drops_unlisted=True)
    await one.left()
    assert one.answers == [(None, None)]
    assert driver.engine.counters.finished == {Status.OK: 1}


async def test_what_cannot_be_decoded_or_encoded_is_an_error() -> None:
    """The function is not called with the first; short and long ones."""
    calls: list[int] = []

    async def strange(x: Any) -> Any:
        calls.append(1)
        return object()

    for payload in (b"{", b'"' + b"a" * 100, b'"' + b"a" * 3_000_000):
        assert type((await answered(strange, payload))[1]) is DecodeError
    assert calls == []
    assert type((await answered(strange))[1]) is EncodeError


async def test_a_large_value_is_given_in_a_turn_of_its_own() -> None:
    """The function is remembered for it."""

    async def large(x: int) -> dict[str, str]:
        return {"a": "a" * x}

    driver = driver_of(large)
    for _ in range(2):
        one = One(driver, b"%d" % LARGE_BYTES)
        await one.left()
        ((payload, error),) = one.answers
        assert payload is not None
        assert (len(payload), error) == (LARGE_BYTES + 8, None)
        assert driver.threads.turns.known == {"large"}

    async def listed(x: int) -> list[int]:
        return list(range(x))

    payload, _ = await answered(listed, b"20000")
    assert payload is not None
    assert payload.endswith(b",19999]")


class Waiting:
    """A function that waits, and says how it went."""

    def __init__(self, *, stubborn: int = 0) -> None:
        self.begun, self.seen = asyncio.Event(), list[str]()
        self.stubborn = stubborn

    async def waits(self, x: int) -> int:
        self.begun.set()
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.seen.append("cancelled")
                if len(self.seen) > self.stubborn:
                    raise


async def test_R115_a_peer_that_leaves_cancels_it() -> None:
    """Its request is told, so that it lets go of the call."""
    waiting = Waiting()
    one = One(driver_of(waiting.waits))
    await waiting.begun.wait()
    one.task.gone()
    assert not one.driver.conversations
    assert one.driver.leaving
    await one.left()
    ((message, error),) = one.answers
    assert (message, type(error), waiting.seen) == (None, Cancelled, ["cancelled"])
    one.task.gone()
    one.task.fail(Overloaded())
    assert len(one.answers) == 1


async def test_R115_a_peer_that_leaves_after_the_deadline_has_left_because_of_it() -> None:
    """The log says so."""
    waiting = Waiting()
    one = One(driver_of(waiting.waits), deadline=time.monotonic())
    await waiting.begun.wait()
    one.task.gone()
    await one.left()
    assert type(one.answers[0][1]) is DeadlineExceeded


async def test_what_has_not_begun_is_not_called() -> None:
    """Its task ends by itself."""
    waiting = Waiting()
    one = One(driver_of(waiting.waits))
    one.task.gone()
    await one.left()
    assert not waiting.begun.is_set()
    assert type(one.answers[0][1]) is Cancelled


async def test_a_time_limit_answers_and_cancels() -> None:
    """Its timer is not left behind when the function is faster."""
    waiting = Waiting()
    one = One(driver_of(waiting.waits), timeout_s=0.01)
    await until(lambda: bool(one.answers))
    assert type(one.answers[0][1]) is DeadlineExceeded
    await one.left()
    assert waiting.seen == ["cancelled"]

    async def square(x: int) -> int:
        return x * x

    other = One(driver_of(square), timeout_s=60)
    await other.left()
    assert other.answers == [(b"9", None)]
    assert other.task._timer is not None
    assert other.task._timer.cancelled()


async def test_an_invocation_that_is_stopped_says_why() -> None:
    """From any thread."""
    waiting = Waiting()
    one = One(driver_of(waiting.waits))
    await waiting.begun.wait()
    reason = Overloaded("too much")
    await asyncio.to_thread(one.invocation.stop, reason)
    await one.left()
    assert one.answers == [(None, reason)]


async def test_a_function_that_ignores_its_cancel_is_cancelled_again(caplog: pytest.LogCaptureFixture) -> None:
    """After the grace; one that returns meanwhile is left alone."""
    waiting, meek = Waiting(stubborn=1), Waiting()
    one, other = (One(driver_of(each.waits, grace_s=0.02)) for each in (waiting, meek))
    await waiting.begun.wait()
    await meek.begun.wait()
    one.task.gone()
    other.task.gone()
    await one.left()
    await other.left()
    await asyncio.sleep(0.05)
    assert (waiting.seen, meek.seen) == (["cancelled"] * 2, ["cancelled"])
    told = [record for record in caplog.records if "cancelled again" in record.getMessage()]
    assert [(each.invocation, each.function) for each in told] == [("i1", "waits")]  # type: ignore[attr-defined]


async def test_a_drain_waits_for_it() -> None:
    """Until its limit, when it is cut."""
    waiting = Waiting()
    driver = driver_of(waiting.waits)
    one = One(driver)
    await waiting.begun.wait()
    draining = asyncio.create_task(driver.drain(0.05))
    await asyncio.sleep(0)
    assert not draining.done()
    assert await draining is False
    assert one.answers[0][1] is not None
    assert one.answers[0][1].status is Status.UNAVAILABLE
    await one.left()


async def test_R134_an_invocation_that_lingers_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """Once."""
    waiting = Waiting()
    one = One(driver_of(waiting.waits, lingering_s=0.02))
    await asyncio.sleep(0.08)
    one.task.gone()
    await one.left()
    assert sum("goes on although" in record.getMessage() for record in caplog.records) == 1


async def test_everything_of_its_request_has_come() -> None:
    """So it takes what comes, and wants nothing."""
    waiting = Waiting()
    one = One(driver_of(waiting.waits))
    assert one.task.arrived(None)
    one.task.gone()
    await one.left()
