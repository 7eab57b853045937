"""grpc.health.v1, and reflection of a whole server."""

from __future__ import annotations

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from invoker.cli.main import build
from invoker.protocols.riff.wire import SERVICE
from invoker.server.endpoints.statuses import Health
from invoker.settings import Config

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture
async def served():
    """A server whose readiness the test decides, and a channel to it."""
    ready = [True]

    async def is_ready():
        return ready[0]

    server = grpc.aio.server()
    health = Health((SERVICE,), is_ready)
    health.add_to(server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield ready, health, channel
    await server.stop(None)


async def test_R015_check_and_list_follow_readiness(served):
    """The process and its service are SERVING until they are not; an unknown service is NOT_FOUND."""
    ready, _, channel = served
    stub = health_pb2_grpc.HealthStub(channel)
    for service in ("", SERVICE):
        assert (await stub.Check(health_pb2.HealthCheckRequest(service=service))).status == SERVING
    ready[0] = False
    assert (await stub.Check(health_pb2.HealthCheckRequest(service=SERVICE))).status == NOT_SERVING
    if hasattr(health_pb2, "HealthListRequest"):  # older releases of grpcio-health-checking do not know List
        listed = await stub.List(health_pb2.HealthListRequest())
        assert {name: one.status for name, one in listed.statuses.items()} == {"": NOT_SERVING, SERVICE: NOT_SERVING}
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Check(health_pb2.HealthCheckRequest(service="nope"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_R015_watchers_hear_of_a_change(served):
    """Watch streams each new status."""
    ready, health, channel = served
    call = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(service=SERVICE))
    assert (await call.read()).status == SERVING
    ready[0] = False
    assert await health.refresh() is False
    assert (await call.read()).status == NOT_SERVING
    call.cancel()


async def test_E001_health_and_reflection_know_both_services_of_a_server():
    """Callers need no proto file for sessions either."""
    server = build(Config(host="127.0.0.1", grpc_port=0, http=False), "functions.square:square")
    await server.start()
    service = "evergreen.v2.EvergreenService"
    async with grpc.aio.insecure_channel(server.grpc_address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        assert (await health.Check(health_pb2.HealthCheckRequest(service=service))).status == SERVING
        call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
        await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        assert {SERVICE, service} <= {one.name for one in (await call.read()).list_services_response.service}
        await call.write(reflection_pb2.ServerReflectionRequest(file_containing_symbol=service))
        assert (await call.read()).file_descriptor_response.file_descriptor_proto
        await call.done_writing()
    await server.stop(drain_s=0)
