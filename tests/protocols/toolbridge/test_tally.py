"""What tool calls come to: by minute, by tool, by session."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

from invoker.errors import Cancelled, InvocationError
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.tally import BOUNDS_MS, Histogram, Tally, outcome_of


class Clock:
    """Tests say what time it is."""

    def __init__(self) -> None:
        self.now = 600_000.0

    def __call__(self) -> float:
        return self.now


def call(
    tool: str | None = "m:f", error: InvocationError | None = None, *, took_s: float = 0.002, via: str = "execute",
    session: str = "s1", is_tagged: bool = True,
) -> Any:  # fmt: skip
    """What stands in for a tool call that has ended."""
    return SimpleNamespace(
        tool=None if tool is None else SimpleNamespace(id=tool),
        error=error, took_s=took_s, via=via, session=SimpleNamespace(id=session, is_tagged=is_tagged),
    )  # fmt: skip


def a_tally(clock: Clock | None = None, **more: Any) -> Tally:
    """An empty one that knows the session s1."""
    return Tally(nullcontext(), lambda: ("s1",), clock=clock or Clock(), **more)


def test_T156_a_duration_counts_in_the_first_bucket_that_holds_it() -> None:
    """A bound belongs to its bucket; cumulative counts end with all."""
    histogram = Histogram()
    for took_ms in (0.2, 1, 1.1, 30_000, 30_001):
        histogram.add(took_ms)
    assert histogram.counts[:2] == [2, 1]
    assert histogram.counts[-2:] == [1, 1]
    assert histogram.cumulative == [2, *[3] * (len(BOUNDS_MS) - 2), 4, 5]
    assert histogram.sum_ms == 0.2 + 1 + 1.1 + 30_000 + 30_001


def test_T155_calls_count_by_tool_and_outcome() -> None:
    """A name that is no tool's is not made one; a cancel is told by its class."""
    tally = a_tally()
    refused = BridgeError(Kind.VALIDATION, "no")
    for one in (call(), call(), call(error=refused), call("m:g", Cancelled("gone")), call(None, refused)):
        tally(one)
    total = tally.total()
    assert total.outcomes == {
        ("m:f", "ok"): 2, ("m:f", "ValidationError"): 1, ("m:g", "Cancelled"): 1, ("unknown", "ValidationError"): 1,
    }  # fmt: skip
    assert sum(total.durations["m:f"].counts) == 3
    assert outcome_of(call()) == "ok"


def test_T155_batch_items_and_refusals_by_rate_are_counted() -> None:
    """Not those by another limit."""
    tally = a_tally()
    for code in ("rate_limit", "global_rate_limit", "concurrency"):
        tally(call(error=BridgeError(Kind.EXHAUSTED, "full", code=code), via="batch"))
    assert tally.total().counts == {"batch.items": 3, "rate_limited": 2}


def test_T157_minutes_are_kept_for_an_hour_and_their_sums_for_ever() -> None:
    """What is older is in the total alone."""
    clock = Clock()
    tally, first = a_tally(clock), int(clock.now) // 60
    for _ in range(70):
        tally(call())
        clock.now += 60
    assert tally.total().outcomes["m:f", "ok"] == 70
    assert tally.between(None, None).outcomes["m:f", "ok"] == 59  # and an empty minute
    assert tally.between(first + 65, first + 67).outcomes["m:f", "ok"] == 3
    assert not tally.between(first, first + 5).outcomes
    assert len(tally._ring) == 60


def test_T157_a_clock_that_is_set_back_loses_nothing() -> None:
    """It counts on in the latest minute."""
    clock = Clock()
    tally = a_tally(clock)
    tally(call())
    clock.now -= 600
    tally(call())
    assert tally.total().outcomes["m:f", "ok"] == 2


def test_T158_sessions_without_telemetry_are_in_the_totals_alone() -> None:
    """Those with it are forgotten when they are gone, at the next minute."""
    clock, known = Clock(), ["s1", "s2"]
    tally = Tally(nullcontext(), lambda: known, clock=clock)
    tally(call(error=BridgeError(Kind.INTERNAL, "x")))
    tally(call(session="s2"))
    tally(call(session="s3", is_tagged=False))
    assert tally.total().sessions == {("s1", True): 1, ("s2", False): 1}
    known.remove("s2")
    clock.now += 60
    assert tally.total().sessions == {("s1", True): 1}
    assert sum(tally.total().outcomes.values()) == 3


def test_T155_what_others_count_is_taken_over_as_it_grows() -> None:
    """In the minute in which somebody looks."""
    clock, sums = Clock(), {"sessions.created": 2}
    tally = a_tally(clock, sampled=lambda: sums)
    assert tally.total().counts["sessions.created"] == 2
    clock.now += 60
    sums["sessions.created"] = 5
    assert tally.total().counts["sessions.created"] == 5
    assert tally.between(tally.now, tally.now).counts["sessions.created"] == 3
