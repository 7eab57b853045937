"""A round's invocation on a real driver, with functions that behave and that do not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from invoker.core.steps import Close
from invoker.drive.loop.sessions import SessionReactor
from invoker.errors import InvocationError
from invoker.message import Headers, Message
from invoker.protocols.federated.aggregating import (
    AHEAD,
    CHECKPOINT,
    AggregatingSession,
    Begin,
    Enough,
    Report,
)
from tests.drive import memory
from tests.drive.looplines import until
from tests.drive.memory import driver_of


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
