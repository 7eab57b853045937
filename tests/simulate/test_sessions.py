"""Random schedules of Evergreen sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from invoker.core.steps import Wants
from invoker.core.streams import InputStream
from invoker.execution.loop.sessions import SessionReactor
from invoker.protocols.evergreen.session import EvergreenSession
from tests.simulate.sessions import simulate_session
from tests.simulate.verdict import Violation

KEPT = Path(__file__).with_name("kept_session_seeds.txt")


@pytest.mark.timeout(40)
def test_no_schedule_breaks_an_invariant():
    """Nothing lost or doubled, order in each node, one ending, nothing held or stalled, in all endings.

    `python -m tools simulate`, a part of `make check`, runs 3,000 seeds.
    """
    seen = {simulate_session(seed) for seed in range(300)}
    assert {"OK", "UNKNOWN", "CANCELLED", "INVALID_ARGUMENT", "FAILED_PRECONDITION", "UNAVAILABLE"} <= seen


def test_seeds_that_failed_once_pass():
    """A failing seed is kept."""
    for line in KEPT.read_text().splitlines():
        if line and not line.startswith("#"):
            simulate_session(int(line))


def test_a_seed_decides_everything():
    """The same seed takes the same steps."""
    first: list[str] = []
    second: list[str] = []
    simulate_session(5, say=first.append)
    simulate_session(5, say=second.append)
    assert first
    assert first == second


def many() -> None:
    for seed in range(500):
        simulate_session(seed)


def test_a_message_that_is_lost_is_found(monkeypatch):
    """An output lacks what it should have been made of."""
    feed = InputStream.feed

    def drops(stream: InputStream, message: object) -> None:
        feed(stream, message)
        if stream.fed % 3 == 0 and stream.queue:
            stream.queue.pop()

    monkeypatch.setattr(InputStream, "feed", drops)
    with pytest.raises(Violation, match="seed"):
        many()


def test_a_reader_that_is_forgotten_is_found(monkeypatch):
    """Nobody tells the session that a function has caught up, so everything waits."""
    deliver = EvergreenSession.deliver

    def deaf(session: EvergreenSession, event: object) -> object:
        return () if type(event) is Wants else deliver(session, event)

    monkeypatch.setattr(EvergreenSession, "deliver", deaf)
    with pytest.raises(Violation, match=r"Stuck|does not end"):
        many()


def test_a_session_that_keeps_its_nodes_is_found(monkeypatch):
    """What is stored is given back however it ends."""
    monkeypatch.setattr(EvergreenSession, "release", lambda _: None)
    with pytest.raises(Violation, match="seed"):
        many()


def test_a_loop_that_is_kept_busy_is_found(monkeypatch):
    """Looking again for what a look has told is no end of it."""
    look = SessionReactor._look

    def again(reactor: SessionReactor) -> None:
        look(reactor)
        if reactor.is_paused:
            reactor.resume()

    monkeypatch.setattr(SessionReactor, "_look", again)
    with pytest.raises(Violation, match="busy"):
        many()
