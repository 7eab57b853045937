"""R-170 at each gRPC transport: when a refusal of a StartFrame is told, to a client on bare frames."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from unittest.mock import patch

import pytest

from invoker import Context
from invoker.execution import driver
from tests.conftest import SLOW
from tests.transports.rawpeer import RawPeer
from tests.transports.riff import KINDS, PATH, Riff, data, eventually, form, start

INVALID_ARGUMENT, UNKNOWN, UNAVAILABLE = "3", "2", "14"


class Calls:
    """A function in both forms, whose calls are counted."""

    def __init__(self) -> None:
        self.count = 0

    def of(self, kind: str) -> Callable[..., Any]:
        """The form that makes a transport of this kind what it is."""

        def gen(xs: Iterator[bytes], context: Context) -> Iterator[bytes]:
            self.count += 1
            yield from xs

        async def agen(xs: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
            self.count += 1
            async for x in xs:
                yield x

        return form(kind, gen, agen)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal waits as long as it takes, so that what is told was not told because time has passed."""
    monkeypatch.setattr("invoker.protocols.riff.session._PATIENCE_S", 3600)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("does", ["sends", "half-closes"])
@pytest.mark.parametrize(
    ("refused", "status"), [(start("text/zglorbf"), INVALID_ARGUMENT), (start(names=("a", "b")), UNKNOWN)]
)
def test_R170_a_refusal_waits_for_what_the_caller_sends_next(kind, refused, status, does):
    """As riff's HTTP adapter does: a StartFrame, the body a little later, a half-close, and only then it reads."""
    calls = Calls()
    with Riff(kind, calls.of(kind)) as riff, RawPeer(riff.port) as peer:
        stream = peer.call(PATH, refused)
        assert eventually(lambda: riff.driver.waiting)
        assert not peer.has_heard(stream, within_s=0.2)
        assert riff.driver.threads.busy == 0
        if does == "sends":
            peer.send(stream, data(b"123456789"))
        else:
            peer.half_close(stream)
        assert peer.await_status(stream) == status
        assert eventually(lambda: not riff.driver.waiting)
    assert calls.count == 0


def test_R170_a_caller_that_sends_nothing_is_told_after_a_second(kind):
    """It need not wait for ever."""
    with Riff(kind, Calls().of(kind)) as riff, RawPeer(riff.port) as peer:
        began = time.monotonic()
        assert peer.await_status(peer.call(PATH, start("text/zglorbf"))) == INVALID_ARGUMENT
        assert 0.9 < time.monotonic() - began < 1 + 2 * SLOW


@pytest.mark.usefixtures("patient")
def test_R170_a_caller_that_leaves_is_waited_for_no_more(kind):
    """Its refusal is dropped with the call."""
    with Riff(kind, Calls().of(kind)) as riff, RawPeer(riff.port) as peer:
        stream = peer.call(PATH, start("text/zglorbf"))
        assert eventually(lambda: riff.driver.waiting)
        peer.cancel(stream)
        assert eventually(lambda: not riff.driver.waiting, within_s=0.5 * SLOW)


@pytest.mark.usefixtures("patient")
def test_R170_refusals_that_wait_are_bounded(kind):
    """One more than may wait is told at once."""
    with (
        patch.object(driver, "_MOST_WAITING", 2),
        Riff(kind, Calls().of(kind)) as riff,
        RawPeer(riff.port) as peer,
    ):
        for _ in range(2):
            peer.call(PATH, start("text/zglorbf"))
        assert eventually(lambda: len(riff.driver.waiting) == 2)
        assert peer.await_status(peer.call(PATH, start("text/zglorbf"))) == INVALID_ARGUMENT


@pytest.mark.usefixtures("patient")
def test_R170_a_drain_is_told_at_once(kind):
    """The caller may try elsewhere."""
    with Riff(kind, Calls().of(kind)) as riff, RawPeer(riff.port) as peer:
        riff.driver.engine.is_draining = True
        assert peer.await_status(peer.call(PATH, start())) == UNAVAILABLE
