"""A round's invocation on a real driver, with functions that behave and that do not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from invoker.core.steps import Close
from invoker.errors import InvocationError, Status, StatusError
from invoker.execution.loop.sessions import SessionReactor
from invoker.message import Headers, Message
from invoker.protocols.federated import aggregating as ours
from invoker.protocols.federated.aggregating import (
    AHEAD,
    Abandon,
    AggregatingSession,
    Begin,
    Enough,
    Report,
)
from invoker.tensors.checkpoint import CHECKPOINT
from tests.execution import memory
from tests.execution.loopcalls import until
from tests.execution.memory import driver_of


@pytest.fixture(autouse=True)
def _closed_drivers() -> Iterator[None]:
    yield
    while memory.drivers:
        memory.drivers.pop().threads.close()


class Round:
    """Writes down what the session tells."""

    def __init__(self) -> None:
        self.order: list[int] = []
        self.over: list[tuple[bytes | None, InvocationError | None]] = []

    def taken(self, ordinal: int) -> None:
        self.order.append(ordinal)

    def finished(self, checkpoint: bytes | None, error: InvocationError | None) -> None:
        self.over.append((checkpoint, error))


class Nobody:
    """The wire of a conversation without a peer."""

    is_gone = False
    headers: tuple[tuple[str, str], ...] = ()

    def accepted(self) -> None: ...
    def ask(self) -> None: ...
    def write(self, frame: Any) -> bool:
        raise AssertionError(f"nobody reads {frame}")

    async def room(self) -> None:
        raise AssertionError("nobody writes")


def running(round_: Round, *functions: Any, model: bytes | None = None) -> SessionReactor:
    session = AggregatingSession(round_, functions[0].__name__, model, Headers({"task": "t"}))
    closed: list[Close] = []
    driver = driver_of(*functions)
    return SessionReactor(session, Nobody(), driver, closed.append, window=AHEAD, fetch=None)  # type: ignore[arg-type]


def report(ordinal: int, size: int = 1) -> Report:
    message = Message(b"%d" % ordinal * size, media_type=CHECKPOINT, headers=Headers({"ordinal": str(ordinal)}))
    return Report(ordinal, message)


def joined(updates: Iterator[bytes], model: bytes) -> bytes:
    return model + b":" + b",".join(updates)


async def later(updates: AsyncIterator[bytes]) -> bytes:
    return b",".join([one async for one in updates])


def headed(updates: Iterator[Message[bytes]]) -> bytes:
    return b",".join(one.headers["ordinal"].encode() for one in updates)


@pytest.mark.parametrize(
    ("function", "model", "result"),
    [(joined, b"m", b"m:0,1,2"), (later, None, b"0,1,2"), (headed, None, b"0,1,2")],
)
async def test_F079_a_round_is_one_invocation_over_its_reports_in_order(function, model, result):
    """The function gets the updates in the order of acceptance, the model, and gives the next checkpoint."""
    round_ = Round()
    reactor = running(round_, function, model=model)
    reactor.arrived(Begin())
    for ordinal in range(3):
        reactor.arrived(report(ordinal))
    assert round_.order == [0, 1, 2], round_.over
    assert not round_.over
    reactor.arrived(Enough())
    await until(lambda: round_.over)
    assert round_.over == [(result, None)]


@pytest.mark.parametrize("function", [joined, later])
async def test_F081_all_reports_are_fed_in_the_end(function):
    """Two hundred of them, in order, to a function in a thread and to one on the loop."""
    round_ = Round()
    reactor = running(round_, function, model=b"m" if function is joined else None)
    reactor.arrived(Begin())
    for ordinal in range(200):
        reactor.arrived(report(ordinal))
    reactor.arrived(Enough())
    checkpoint, error = await ended(round_)
    assert error is None
    assert checkpoint is not None
    assert checkpoint.removeprefix(b"m:").split(b",") == [b"%d" % one for one in range(200)]
    assert round_.order == list(range(200))


async def first(updates: AsyncIterator[bytes]) -> bytes:
    async for one in updates:
        return one
    raise AssertionError("there was no report")


def none(updates: Iterator[bytes]) -> Iterator[bytes]:
    for _ in updates:
        pass
    yield from ()


def twice(updates: Iterator[bytes]) -> Iterator[bytes]:
    yield from updates


def broken(updates: Iterator[bytes]) -> bytes:
    next(updates)
    next(updates)
    raise ValueError("no good")


async def ended(round_: Round) -> tuple[bytes | None, InvocationError | None]:
    """How it ended; it is told once."""
    await until(lambda: round_.over)
    assert len(round_.over) == 1
    return round_.over[0]


@pytest.mark.parametrize(
    ("function", "said"), [(broken, "no good"), (none, "gave no checkpoint"), (twice, "gave a second checkpoint")]
)
async def test_F082_a_round_fails_without_exactly_one_checkpoint(function, said, caplog):
    """A function that raises at its second report, gives nothing, or gives two."""
    round_ = Round()
    reactor = running(round_, function)
    for word in (Begin(), report(0), report(1), Enough()):
        reactor.arrived(word)
    checkpoint, error = await ended(round_)
    assert checkpoint is None
    assert said in str(error)
    assert (said in caplog.text) == (said != "no good")  # F-140: what the function says may tell of an update


async def test_F082_a_round_that_is_abandoned_ends_its_function():
    """Also if it reads on; the round hears the end once, and words that come later do nothing."""
    round_ = Round()
    reactor = running(round_, later)
    given_up = StatusError(Status.ABORTED, "too late")
    for word in (Begin(), report(0), Abandon(given_up), report(1), Enough(), Abandon(given_up)):
        reactor.arrived(word)
    assert await ended(round_) == (None, given_up)
    assert round_.order == [0]


async def test_F084_a_function_may_end_early():
    """It gives its checkpoint after one report; what comes after is not fed."""
    round_ = Round()
    reactor = running(round_, first)
    for word in (Begin(), report(0)):
        reactor.arrived(word)
    assert await ended(round_) == (b"0", None)
    reactor.arrived(report(1))
    assert round_.order == [0]


async def test_F079_a_function_that_cannot_be_opened_fails_the_round():
    """Nobody serves it; the round hears so."""
    round_ = Round()
    session = AggregatingSession(round_, "nobody", None, Headers({}))
    reactor = SessionReactor(session, Nobody(), driver_of(later), [].append, window=AHEAD, fetch=None)  # type: ignore[arg-type]
    reactor.arrived(Begin())
    _, error = await ended(round_)
    assert "nobody" in str(error)


async def test_F081_a_slow_function_is_fed_sixteen_reports_ahead():
    """The seventeenth is taken when half of them are read, and their bytes are what the session holds."""
    may_read, read = asyncio.Event(), []

    async def slow(updates: AsyncIterator[bytes]) -> bytes:
        async for one in updates:
            read.append(one)
            if len(read) == 9:
                may_read.clear()
            await may_read.wait()
        return b"done"

    round_ = Round()
    reactor = running(round_, slow)
    reactor.arrived(Begin())
    for ordinal in range(40):
        reactor.arrived(report(ordinal))
    await until(lambda: read)
    assert round_.order == list(range(AHEAD))
    assert reactor.session.held == sum(len(b"%d" % one) for one in range(AHEAD, 40))
    may_read.set()
    await until(lambda: len(read) == 9)
    await until(lambda: len(round_.order) > AHEAD)
    assert len(round_.order) <= 9 + AHEAD
    may_read.set()
    reactor.arrived(Enough())
    await until(lambda: len(read) > 9 and (may_read.set() or round_.over))
    assert round_.over == [(b"done", None)]
    assert read == [b"%d" % one for one in range(40)]


async def test_F081_large_reports_are_bounded_by_their_bytes(monkeypatch):
    """Only so many are fed as fit; the next one when the function waits for it, whatever its size."""
    monkeypatch.setattr(ours, "AHEAD_BYTES", 1000)
    may_read, read = asyncio.Semaphore(0), []

    async def slow(updates: AsyncIterator[bytes]) -> bytes:
        async for one in updates:
            read.append(len(one))
            await may_read.acquire()
        return b"done"

    round_ = Round()
    reactor = running(round_, slow)
    reactor.arrived(Begin())
    for ordinal, size in enumerate((400, 400, 400, 5000, 10)):
        reactor.arrived(report(ordinal, size))
    await until(lambda: read == [400])
    assert round_.order == [0, 1]
    assert reactor.session.held == 5410
    may_read.release()
    may_read.release()
    await until(lambda: read == [400, 400, 400])
    assert round_.order == [0, 1, 2]
    may_read.release()
    await until(lambda: read[3:] == [5000])
    assert round_.order == [0, 1, 2, 3]
    reactor.arrived(Enough())
    may_read.release()
    may_read.release()
    assert await ended(round_) == (b"done", None)
    assert reactor.session.held == 0


async def test_a_session_that_is_ended_from_outside_tells_its_round():
    """As when the process holds too much, or stops."""
    round_ = Round()
    reactor = running(round_, later)
    for word in (Begin(), report(0)):
        reactor.arrived(word)
    reactor.fail(StatusError(Status.RESOURCE_EXHAUSTED, "too much"))
    checkpoint, error = await ended(round_)
    assert checkpoint is None
    assert "ended from outside" in str(error)


def test_a_round_that_has_not_begun_can_be_abandoned():
    """Nothing is opened; the conversation closes."""
    round_ = Round()
    session = AggregatingSession(round_, "f", None, Headers({}))
    assert session.half_close() == (Close(),)
    assert session.receive(Begin()) == ()
    assert len(round_.over) == 1
