"""Tests of answers as plain Python."""

from __future__ import annotations

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.errors import Status
from invoker.protocols.toolbridge.client.answers import Health, Histogram, batch_in, health_in, metric_in


def test_health_has_names() -> None:
    """A number that has none stays one."""
    sent = pb.HealthCheckResponse(status="SERVING", dependencies={"llm": "NOT_SERVING"})
    sent.dependencies["later"] = 7
    assert health_in(sent) == Health("SERVING", {"llm": "NOT_SERVING", "later": "7"})
    assert not health_in(pb.HealthCheckResponse()).is_serving


def test_metrics_have_four_forms() -> None:
    """Numbers, text and histograms."""
    assert metric_in(pb.MetricValue(integer_value=2)) == 2
    assert metric_in(pb.MetricValue(double_value=0.5)) == 0.5
    assert metric_in(pb.MetricValue(string_value="x")) == "x"
    buckets = [pb.Bucket(upper_bound=1, count=1), pb.Bucket(upper_bound=float("inf"), count=2)]
    sent = pb.MetricValue(histogram=pb.MetricHistogram(buckets=buckets, count=2, sum=5))
    assert metric_in(sent) == Histogram(((1.0, 1), (float("inf"), 2)), 2, 5.0)


def test_errors_of_a_batch_name_their_tools() -> None:
    """By the index, which is all that the wire has."""
    told = pb.ErrorInfo(type="TimeoutError", message="too long")
    sent = pb.BatchToolCallResponse(results=[pb.ToolCallResult(index=3, error=told)])
    [item] = batch_in({3: "slow"}, sent).items
    assert item.error is not None
    assert (item.error.tool, item.error.status) == ("slow", Status.DEADLINE_EXCEEDED)
