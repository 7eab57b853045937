"""GetMetrics: names, histograms, times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.core.steps import Close, Send
from invoker.errors import Status
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.metrics import GetMetrics
from invoker.protocols.toolbridge.tally import Tally
from tests.protocols.toolbridge.hosts import new_host_sessions
from tests.protocols.toolbridge.test_tally import Clock, a_tally, call


def asked(tally: Tally, gauges: Mapping[str, int] | None = None, *names: str, **times: int) -> Any:
    """The metrics of a response, or the error that the rpc ended with."""
    request = pb.GetMetricsRequest(metric_names=names)
    for name, seconds in times.items():
        getattr(request, name).seconds = seconds
    session = GetMetrics(new_host_sessions(), tally=tally, gauges=lambda: gauges or {})
    *sent, close = session.receive(request.SerializeToString())
    assert isinstance(close, Close)
    if close.error is not None:
        return close.error
    (send,) = sent
    assert isinstance(send, Send)
    return pb.MetricsResponse.FromString(send.frame).metrics


def test_T154_T155_all_metrics_by_name() -> None:
    """Counters that nothing was counted for are there as well."""
    tally = a_tally()
    for one in (call(), call(error=BridgeError(Kind.TIMEOUT, "late")), call("m:g", via="batch")):
        tally(one)
    made = asked(tally, {"sessions.active": 2, "tool.m:f.active": 1, "tool.m:f.zombies": 0})
    assert {name: value.integer_value for name, value in made.items() if not value.HasField("histogram")} == {
        "sessions.created": 0, "sessions.expired": 0, "stream.chunks": 0, "batch.items": 1, "cache.hits": 0,
        "rate_limited": 0, "grpc.messages_too_large": 0, "tool.m:f.calls": 2, "tool.m:f.errors.TimeoutError": 1,
        "tool.m:g.calls": 1, "session.s1.calls": 3, "session.s1.errors": 1, "sessions.active": 2,
        "tool.m:f.active": 1, "tool.m:f.zombies": 0,
    }  # fmt: skip
    assert {name for name, value in made.items() if value.HasField("histogram")} == {
        "tool.m:f.duration_ms", "tool.m:g.duration_ms",
    }  # fmt: skip


def test_T154_names_are_exact_and_unknown_ones_are_left_out() -> None:
    """Nothing is said of these."""
    tally = a_tally()
    tally(call())
    assert set(asked(tally, None, "tool.m:f.calls", "tool.m:f", "nope")) == {"tool.m:f.calls"}


def test_T156_buckets_are_cumulative_and_the_last_has_no_bound() -> None:
    """After three calls."""
    tally = a_tally()
    for took_s in (0.0005, 0.2, 40.0):
        tally(call(took_s=took_s))
    told = asked(tally)["tool.m:f.duration_ms"].histogram
    bounds = [one.upper_bound for one in told.buckets]
    assert bounds == [1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, float("inf")]
    assert [one.count for one in told.buckets] == [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3]
    assert (told.count, told.sum) == (3, 0.5 + 200 + 40_000)


def test_T157_a_time_selects_whole_minutes() -> None:
    """A time outside of the last hour gives zeros for all that has a name."""
    clock = Clock()
    tally = a_tally(clock)
    tally(call())
    clock.now += 60
    tally(call())
    tally(call())
    at, gauges = int(clock.now), {"sessions.active": 4}
    assert asked(tally, gauges, start_time=at)["tool.m:f.calls"].integer_value == 2
    assert asked(tally, gauges, end_time=at - 60)["tool.m:f.calls"].integer_value == 1
    assert asked(tally, gauges, start_time=at - 61, end_time=at + 59)["tool.m:f.calls"].integer_value == 3
    now = asked(tally, gauges, start_time=at - 60, end_time=at)
    assert now["sessions.active"].integer_value == 4
    past = asked(tally, gauges, start_time=at - 9000, end_time=at - 8000)
    assert past["tool.m:f.calls"].integer_value == past["sessions.active"].integer_value == 0
    assert past["tool.m:f.duration_ms"].histogram.count == 0
    assert past["tool.m:f.duration_ms"].HasField("histogram")


def test_T157_a_start_behind_the_end_is_refused() -> None:
    """By the status of the rpc, which has no field for an error."""
    error = asked(a_tally(), None, start_time=2000, end_time=1000)
    assert error.status == Status.INVALID_ARGUMENT
    assert "start_time (2000 s) is later than end_time (1000 s)" in str(error)


def test_T154_ten_thousand_names_are_the_most() -> None:
    """Whoever wants more asks for all."""
    names = [f"n{number}" for number in range(10_001)]
    assert asked(a_tally(), None, *names).status == Status.INVALID_ARGUMENT
    assert not asked(a_tally(), None, *names[1:])
