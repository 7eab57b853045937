"""What all sync bodies do: their endings, their threads, and what is left of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from invoker import Context
from invoker.context import RUNNING
from invoker.core.steps import Open
from invoker.errors import Cancelled, DeadlineExceeded, InvocationError, Overloaded, StopInvocation
from invoker.execution.bodies.pool import Threads
from invoker.execution.bodies.runner import production_failed
from invoker.execution.bodies.thread import ThreadRunner
from tests.execution.memory import driver_of
from tests.execution.runs import Run, sync_drivers
from tests.execution.wires import LIMIT_S


@sync_drivers
def test_every_thread_of_a_body_knows_whose_code_it_runs(run: Run):
    """What it prints and logs is the invocation's."""
    seen: list[Context | None] = []

    def look(ctx: Context) -> tuple[Iterator[int], Iterator[int]]:
        def each() -> Iterator[int]:
            seen.extend((RUNNING.get(), ctx))
            yield from ()

        return each(), each()

    assert run(look) == ([], None)
    assert len(seen) == 4
    assert all(one is seen[0] is not None for one in seen)


def pair(xs: Iterator[int]) -> tuple[Iterator[int], Iterator[int]]:
    return iter(xs), iter(())


class Host:
    """A conversation that only waits."""

    is_paused = hears_waits = False

    def emitted(self, *_: Any) -> None:
        return None

    def finished(self, *_: Any) -> None:
        return None


@pytest.fixture
async def body() -> AsyncIterator[ThreadRunner]:
    """A body that has not been started, with an output that nobody reads."""
    driver = driver_of(pair)
    invocation = driver.engine.open(Open("a", accepts=("*/*", "*/*"), unwanted=(1,)))
    host: Any = Host()
    yield ThreadRunner(invocation, host, threads=driver.threads, grace_s=LIMIT_S, on_left=lambda _: None)
    invocation.finish(None)
    driver.engine.close(invocation)
    driver.threads.close()


async def test_the_first_error_of_a_body_counts(body: ThreadRunner, caplog: pytest.LogCaptureFixture):
    """The others are logged, unless they are that error again."""
    caplog.set_level("INFO", "invoker.execution.bodies.sync")
    body.raised(ValueError("first"), production_failed)
    assert body.failure is not None
    assert "first" in body.failure.detail
    again = RuntimeError("made of it")
    again.__cause__ = body.failure
    body.raised(again, production_failed)
    assert not caplog.records
    body.raised(ValueError("second"), production_failed)
    assert "first" in body.failure.detail
    assert [one.message for one in caplog.records] == ["a function raised after its invocation had ended"]


@pytest.mark.parametrize("is_ending", [True, False])
async def test_an_error_that_is_not_the_ending_holds_nothing(
    body: ThreadRunner, monkeypatch: pytest.MonkeyPatch, is_ending: bool
):
    """The frames of its traceback know the body, which knows it. What is the ending is logged with its frames."""

    def end(_: ThreadRunner, error: InvocationError) -> None:
        body.invocation.finish(error if is_ending else DeadlineExceeded("the deadline has passed"))

    monkeypatch.setattr(ThreadRunner, "break_off", end)
    try:
        raise Cancelled("the peer is gone")
    except Cancelled as error:
        body.raised(error, production_failed)
    assert isinstance(body.failure, Cancelled)
    assert (body.failure.__traceback__ is not None) == is_ending


async def test_an_error_after_the_end_is_only_logged(body: ThreadRunner, caplog: pytest.LogCaptureFixture):
    """The peer has heard of the end already."""
    caplog.set_level("INFO", "invoker.execution.bodies.sync")
    body.finish(None)
    body.raised(ValueError("late"), production_failed)
    assert body.failure is None
    assert len(caplog.records) == 1


async def test_who_sends_after_an_error_is_stopped(body: ThreadRunner):
    """Also where nobody reads what it sends, so that an endless loop ends."""
    assert body.is_over() is False
    await asyncio.to_thread(body.send, 1, object())
    body.raised(ValueError("first"), production_failed)
    assert body.is_over() is True
    for index in (0, 1):
        with pytest.raises(StopInvocation):
            await asyncio.to_thread(body.send, index, 1)


async def test_who_sends_after_the_end_is_stopped(body: ThreadRunner):
    """Although no error was raised, and nothing has told it to stop."""
    body.finish(None)
    with pytest.raises(StopInvocation):
        await asyncio.to_thread(body.send, 0, 1)


@sync_drivers
def test_iterators_for_which_there_is_no_thread_are_closed(run: Run, monkeypatch: pytest.MonkeyPatch):
    """They may hold something although they have never been asked for a value."""
    closed: list[int] = []

    class Held:
        def __init__(self, number: int) -> None:
            self.number = number

        def __iter__(self) -> Held:
            return self

        def __next__(self) -> int:
            raise StopIteration

        def close(self) -> None:
            closed.append(self.number)

    def three() -> tuple[Iterator[int], Iterator[int], Iterator[int]]:
        monkeypatch.setattr(Threads, "start", refuse)
        return Held(0), Held(1), Held(2)

    def refuse(*_: Any) -> None:
        raise Overloaded("no thread")

    sent, error = run(three, outputs=3)
    assert sent == []
    assert isinstance(error, Overloaded)
    assert sorted(closed) == [0, 1, 2]
