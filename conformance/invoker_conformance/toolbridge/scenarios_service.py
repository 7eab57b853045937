"""Health and metrics: docs/reference/tool-bridge.md 2.9."""

from __future__ import annotations

import math
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from invoker._pb.dspex import bridge_pb2 as pb
from invoker_conformance.scenario import scenario
from invoker_conformance.toolbridge.host import Host

_SERVICES = ("", "dspex.bridge.SnakepitBridge", "tools", "sessions", "variables", "agents")
_BOUNDS = [1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, math.inf]


async def _metrics(host: Host, *names: str, **fields: Any) -> dict[str, pb.MetricValue]:
    request = pb.GetMetricsRequest(metric_names=names, **fields)
    return dict((await host.needs("GetMetrics", request, pb.MetricsResponse)).metrics)


@scenario("TT-69", "T-150", "T-151", "T-152", function="add")
async def health(host: Host) -> None:
    """Each service of the bridge is SERVING; an unknown one is NOT_FOUND."""
    for service in _SERVICES:
        answer = await host.needs("HealthCheck", pb.HealthCheckRequest(service=service), pb.HealthCheckResponse)
        if answer.status != pb.HealthCheckResponse.SERVING:
            raise host.failure(str(answer), "SERVING")
    request = pb.HealthCheckRequest(service="nothing")
    await host.refuses("HealthCheck", request, pb.HealthCheckResponse, status="NOT_FOUND")


@scenario("T-154", "T-155", function=("add", "raising"))
async def metrics_by_name(host: Host) -> None:
    """All metrics come, or the requested ones; unknown names are left out."""
    async with host.session(enable_telemetry=True) as session:
        tool = (await session.tool("add")).tool_id
        other = (await session.tool("raising")).tool_id
        before = (await _metrics(host)).get(f"tool.{tool}.calls", pb.MetricValue()).integer_value
        await session.value("add", 1)
        await session.fails("InternalError", "", "raising", "x")
        every = await _metrics(host)
        wanted = {"sessions.active", "sessions.created", f"tool.{tool}.calls", f"tool.{tool}.duration_ms"}
        wanted |= {f"tool.{tool}.active", f"tool.{other}.errors.InternalError"}
        if missing := wanted - set(every):
            raise host.failure(f"no {sorted(missing)} among {len(every)} metrics", "all of them, after a call")
        if every[f"tool.{tool}.calls"].integer_value != before + 1 or every["sessions.active"].integer_value < 1:
            raise host.failure(str(every[f"tool.{tool}.calls"]), f"{before + 1} calls, and an active session")
        if (met := set(await _metrics(host, "sessions.active", "nothing"))) != {"sessions.active"}:
            raise host.failure(str(met), "sessions.active alone")


@scenario("TT-70", "T-156", function="add")
async def histograms(host: Host) -> None:
    """A histogram has cumulative buckets with ascending bounds; the last is infinite and has the whole count."""
    async with host.session() as session:
        name = f"tool.{(await session.tool('add')).tool_id}.duration_ms"
        for _ in range(3):
            await session.value("add", 1)
        met = (await _metrics(host, name))[name].histogram
    bounds = [one.upper_bound for one in met.buckets]
    counts = [one.count for one in met.buckets]
    if bounds != _BOUNDS or counts != sorted(counts) or not counts or counts[-1] != met.count or met.count < 3:
        raise host.failure(f"bounds {bounds}, counts {counts}, count {met.count}", f"the bounds {_BOUNDS}, cumulative")
    if met.sum < 0 or met.sum > met.count * 30_000:
        raise host.failure(f"the sum {met.sum}", "a sum in milliseconds, up to 30 s for each call")


@scenario("TT-71", "T-157", function="add")
async def metrics_of_a_time(host: Host) -> None:
    """A start after the end is refused; a time before the kept metrics has zeros."""
    request = pb.GetMetricsRequest(start_time=Timestamp(seconds=2000), end_time=Timestamp(seconds=1000))
    await host.refuses("GetMetrics", request, pb.MetricsResponse, "ValidationError")
    async with host.session() as session:
        name = f"tool.{(await session.tool('add')).tool_id}.calls"
        await session.value("add", 1)
    old = await _metrics(host, name, start_time=Timestamp(seconds=1000), end_time=Timestamp(seconds=2000))
    if old.get(name, pb.MetricValue()).integer_value:
        raise host.failure(str(old), "no calls in 1970")
