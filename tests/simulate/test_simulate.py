"""Random schedules through the core and its drivers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from invoker.core.invocation import Invocation
from invoker.core.steps import Close, Feed
from invoker.core.streams import InputStream
from invoker.execution.bodies.loop import LoopRunner
from invoker.execution.thread.direct import DirectConversation
from invoker.execution.thread.single import Single
from invoker.execution.whole import Whole
from tests.simulate.scene import draw_scene
from tests.simulate.verdict import Violation
from tests.simulate.world import simulate

KEPT = Path(__file__).with_name("kept_seeds.txt")


@pytest.mark.timeout(20)
def test_no_schedule_breaks_an_invariant():
    """Order, nothing lost or doubled, one ending, the budget, nothing left alive; and every driver tells the same.

    `python -m tools simulate`, a part of `make check`, runs 3,000 seeds.
    """
    seen: set[str] = set()
    for seed in range(300):
        seen |= set(simulate(seed))
    assert {"OK", "UNKNOWN", "CANCELLED", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "UNAVAILABLE"} <= seen


def test_seeds_that_failed_once_pass():
    """A failing seed is kept."""
    for line in KEPT.read_text().splitlines():
        if line and not line.startswith("#"):
            simulate(int(line))


def test_a_seed_decides_everything():
    """The same seed takes the same steps; of real threads, which several outputs have, it does not decide the turns."""
    alone = [seed for seed in range(100) if all(one.case.outputs < 2 for one in draw_scene(seed).plans)]
    for seed in alone[:20]:
        first: list[str] = []
        second: list[str] = []
        simulate(seed, say=first.append)
        simulate(seed, say=second.append)
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


@pytest.mark.timeout(20)
def test_a_driver_that_tells_another_ending_is_found(monkeypatch):
    """A direct conversation that takes the end of its function for the end of the call, whatever came of it."""
    run = DirectConversation.run

    def well(conversation: DirectConversation) -> Close:
        run(conversation)
        return Close()

    monkeypatch.setattr(DirectConversation, "run", well)
    with pytest.raises(Violation, match="seed"):
        many(1000)


@pytest.mark.timeout(20)
def test_replies_that_differ_between_drivers_are_found(monkeypatch):
    """Only the threads' driver loses a value that a function gives right behind another."""
    send_all = Single.send_all

    def loses(body: Single, index: int, values: Iterator[object]) -> None:
        send_all(body, index, itertools.islice(values, 3))

    monkeypatch.setattr(Single, "send_all", loses)
    with pytest.raises(Violation, match="seed"):
        many(1000)


@pytest.mark.timeout(20)
def test_a_log_line_that_differs_between_drivers_is_found(monkeypatch):
    """Only the loop's driver forgets to count what it was sent."""
    feed = LoopRunner.feed

    def silent(runner: LoopRunner, step: Feed) -> None:
        feed(runner, step)
        for stream in runner.invocation.inputs:
            stream.fed_bytes = 0

    monkeypatch.setattr(LoopRunner, "feed", silent)
    with pytest.raises(Violation, match="lines of"):
        many(1000)


@pytest.mark.timeout(20)
def test_a_whole_conversation_that_forgets_a_frame_is_found(monkeypatch):
    """Only the driver of whole conversations loses what it kept."""
    run = Whole.run

    def forgets(whole: Whole, frames: list[bytes]) -> Close:
        close = run(whole, frames)
        whole.sent[3:4] = []
        return close

    monkeypatch.setattr(Whole, "run", forgets)
    with pytest.raises(Violation, match="seed"):
        many(1000)
