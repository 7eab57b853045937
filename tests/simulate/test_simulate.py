"""Random schedules through the pure core."""

from __future__ import annotations

from pathlib import Path

import pytest

from invoker.core.invocation import Invocation
from invoker.core.streams import InputStream
from tests.simulate.verdict import Violation
from tests.simulate.world import simulate

KEPT = Path(__file__).with_name("kept_seeds.txt")


@pytest.mark.timeout(20)
def test_no_schedule_breaks_an_invariant():
    """Order, nothing lost or doubled, one ending, the budget, nothing left alive, in every kind of ending.

    `make simulate`, a part of `make check`, runs 3,000 seeds.
    """
    seen: set[str] = set()
    for seed in range(500):
        seen |= set(simulate(seed).statuses())
    assert {"OK", "UNKNOWN", "CANCELLED", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "UNAVAILABLE"} <= seen


def test_seeds_that_failed_once_pass():
    """A failing seed is kept."""
    for line in KEPT.read_text().splitlines():
        if line and not line.startswith("#"):
            simulate(int(line))


def test_a_seed_decides_everything():
    """The same seed takes the same steps."""
    first: list[str] = []
    second: list[str] = []
    simulate(11, say=first.append)
    simulate(11, say=second.append)
    assert first
    assert first == second


def many(seeds: int) -> None:
    for seed in range(seeds):
        simulate(seed)


def drops(stream: InputStream, message: object) -> None:
    """Loses every third message."""
    whole(stream, message)
    if stream.fed % 3 == 0 and stream.queue:
        stream.queue.pop()


def reorders(stream: InputStream, message: object) -> None:
    """Swaps the last two messages."""
    whole(stream, message)
    if len(stream.queue) > 1:
        stream.queue[-1], stream.queue[-2] = stream.queue[-2], stream.queue[-1]


whole = InputStream.feed


@pytest.mark.timeout(20)
@pytest.mark.parametrize("fault", [drops, reorders])
def test_a_fault_of_the_streams_is_found(monkeypatch, fault):
    """What is lost or out of order breaks an invariant, and the seed is named."""
    monkeypatch.setattr(InputStream, "feed", fault)
    with pytest.raises(Violation, match="seed"):
        many(500)


@pytest.mark.timeout(20)
def test_a_second_ending_is_found(monkeypatch):
    """An invocation that can finish twice breaks an invariant."""
    finish = Invocation.finish

    def twice(invocation: Invocation, error: object) -> bool:
        finish(invocation, error)
        return True

    monkeypatch.setattr(Invocation, "finish", twice)
    with pytest.raises(Violation, match="seed"):
        many(1000)
