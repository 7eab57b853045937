"""What bounds the invocations of a function: errors, time limits, places and windows."""

from __future__ import annotations

import time

import pytest

from invoker.author.decorator import function
from invoker.author.prepare import prepare_function
from invoker.author.spec import Bounds
from invoker.codecs import builtin
from invoker.core import limits
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.limits import Limiter, LimitReached, TimedOut, limit_of
from invoker.core.steps import Open
from invoker.errors import Cancelled, Overloaded, ProtocolViolation, Status


class Clock:
    """Tests say what time it is."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def refused(limiter: Limiter, bounds: Bounds, name: str = "f", party: str = "") -> LimitReached:
    """The error of one call too many."""
    with pytest.raises(LimitReached) as caught:
        limiter.enter(name, bounds, party)
    return caught.value


def test_T054_the_error_of_a_timeout_tells_which_limit_and_its_value() -> None:
    """The bridge fills its details from the attributes, the other protocols send the text."""
    error = TimedOut(1.5, is_functions=True)
    assert (error.status, error.timeout_s, error.is_functions) == (Status.DEADLINE_EXCEEDED, 1.5, True)
    assert str(error).endswith("the invocation took longer than the 1.5 s that its function allows")
    assert "was asked for" in str(TimedOut(2, is_functions=False))


@pytest.mark.parametrize(
    ("functions", "callers", "expected"),
    [(None, None, None), (2.0, None, (2.0, True)), (None, 3.0, (3.0, False)), (2.0, 3.0, (2.0, True)),
     (2.0, 1.0, (1.0, False)), (2.0, 2.0, (2.0, True))],
)  # fmt: skip
def test_T054_the_shorter_of_two_limits_counts(functions, callers, expected) -> None:  # type: ignore[no-untyped-def]
    """And its owner is told."""
    before = time.monotonic()
    limit = limit_of(Bounds(functions), callers)
    if expected is None:
        assert limit is None
        return
    assert limit is not None
    assert (limit.timeout_s, limit.is_functions) == expected
    assert before + expected[0] <= limit.ends_at <= time.monotonic() + expected[0]


def test_T014_a_limit_can_be_reached_at_once_with_another_error() -> None:
    """The first of several counts."""
    limit = limit_of(None, 60)
    assert limit is not None
    assert isinstance(limit.error, TimedOut)
    limit.stop(Cancelled("first"))
    limit.stop(Cancelled("second"))
    assert (limit.ends_at, limit.error.detail) == (0.0, "first")


def test_T058_one_call_more_than_there_are_places_fails_at_once() -> None:
    """Of all parties together; a place that is left can be taken again."""
    limiter, bounds = Limiter(), Bounds(max_calls=2)
    assert limiter.enter("f", bounds, "a")
    assert limiter.enter("f", bounds, "b")
    error = refused(limiter, bounds, party="c")
    assert (error.status, error.code, error.scope) == (Status.RESOURCE_EXHAUSTED, "concurrency", "function")
    assert (error.limit, error.retry_after_s) == (2, None)
    assert "'f' has reached its limit of calls at once: 2 calls of it run" in str(error)
    assert limiter.enter("g", bounds, "a")
    limiter.leave("f")
    assert limiter.taken("f") == 1
    assert limiter.enter("f", bounds, "c")


def test_T059_a_window_of_60_seconds_slides() -> None:
    """N calls pass, N+1 fails, and passes when the oldest is 60 s old; another party or function has its own window."""
    clock = Clock()
    limiter, bounds = Limiter(clock=clock), Bounds(calls_per_minute=2)
    assert not limiter.enter("f", bounds, "a")
    clock.now += 10
    limiter.enter("f", bounds, "a")
    clock.now += 49.75
    error = refused(limiter, bounds, party="a")
    assert (error.code, error.scope, error.limit, error.retry_after_s) == ("rate_limit", "party", 2, 0.25)
    assert "'f' may be called 2 times within 60 s; the next call is allowed in 0.2 s" in str(error)
    limiter.enter("f", bounds, "b")
    limiter.enter("g", bounds, "a")
    clock.now += 0.25
    limiter.enter("f", bounds, "a")
    assert refused(limiter, bounds, party="a").retry_after_s == 10


def test_T060_the_limit_of_the_process_is_checked_first_and_nothing_is_used_up_by_a_refusal() -> None:
    """Neither a place nor a call of another window."""
    clock = Clock()
    limiter, bounds = Limiter(2, clock), Bounds(max_calls=1, calls_per_minute=1)
    limiter.enter("f", bounds, "a")
    limiter.leave("f")
    assert refused(limiter, bounds, party="a").code == "rate_limit"
    assert limiter.taken("f") == 0
    limiter.enter("g", Bounds(), "")
    error = refused(limiter, bounds, party="a")
    assert (error.code, error.scope, error.limit) == ("global_rate_limit", "process", 2)
    assert refused(limiter, bounds, party="new").code == "global_rate_limit"
    clock.now += 60
    limiter.enter("f", bounds, "new")


def test_T059_windows_that_nobody_needs_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of which no call is left, and of too many the one that was used longest ago."""
    clock = Clock()
    limiter, bounds = Limiter(clock=clock), Bounds(calls_per_minute=1)
    for n in range(100):
        limiter.enter("f", bounds, str(n))
    clock.now += 60
    limiter.enter("f", bounds, "new")
    assert len(limiter._windows) == 1
    monkeypatch.setattr(limits, "MOST_WINDOWS", 3)
    for n in range(10):
        limiter.enter("f", bounds, str(n))
    assert [party for _, party in limiter._windows] == ["7", "8", "9"]
    assert refused(limiter, bounds, party="7").code == "rate_limit"
    assert len(limiter._windows) == 3


@function(timeout_s=5, max_calls=1, calls_per_minute=3)
def bounded(x: int) -> int:
    """A function with limits."""
    return x


@function
def free(x: int) -> int:
    """A function without."""
    return x


def engine_of(**more: int) -> Engine:
    """An engine of both."""
    catalog = Catalog([prepare_function(one).function for one in (bounded, free)])
    return Engine(catalog, builtin(entry_points=False), **more)  # type: ignore[arg-type]  # ints alone


def test_T054_the_engine_gives_an_invocation_its_limit_and_tells_its_context() -> None:
    """The deadline of the context is what comes first."""
    engine = engine_of()
    invocation = engine.open(Open("a", "bounded"))
    assert invocation.limit is not None
    assert (invocation.limit.timeout_s, invocation.limit.is_functions) == (5, True)
    assert invocation.context.deadline == invocation.limit.ends_at
    near = engine.open(Open("b", "free", timeout_s=60), deadline=time.monotonic() + 1)
    assert near.limit is not None
    assert near.context.deadline is not None
    assert near.context.deadline < near.limit.ends_at
    plain = engine.open(Open("c", "free"))
    assert (plain.limit, plain.context.deadline, plain.has_place) == (None, None, False)


def test_T058_a_place_is_free_when_user_code_has_left_and_not_at_the_ending() -> None:
    """Once, however often that is told."""
    engine = engine_of()
    invocation = engine.open(Open("a", "bounded"))
    invocation.finish(None)
    engine.close(invocation)
    with pytest.raises(LimitReached, match="1 call of it runs"):
        engine.open(Open("b", "bounded"))
    assert engine.counters.refused == 1
    engine.left(invocation)
    engine.left(invocation)
    assert engine.limiter.taken("bounded") == 0
    assert engine.open(Open("c", "bounded")).has_place


def test_T051_a_call_that_is_refused_for_another_reason_uses_nothing_up() -> None:
    """Neither a place, nor a call of the minute."""
    engine = engine_of(max_invocations=1)
    for _ in range(5):
        with pytest.raises(ProtocolViolation):
            engine.open(Open("a", "bounded", accepts=("*/*", "*/*")))
    other = engine.open(Open("b", "free"))
    for _ in range(5):
        with pytest.raises(Overloaded):
            engine.open(Open("c", "bounded"))
    engine.close(other)
    assert engine.open(Open("d", "bounded")).has_place


def test_T060_a_limit_of_the_process_counts_functions_without_bounds() -> None:
    """Whoever calls them."""
    engine = engine_of()
    engine.limit_calls(1)
    engine.close(engine.open(Open("a", "free", party="a")))
    with pytest.raises(LimitReached, match="all functions together may be called once within 60 s"):
        engine.open(Open("b", "free", party="b"))
