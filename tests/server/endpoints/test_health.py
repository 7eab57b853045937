"""`endpoints.health`: health and reflection on the gRPC transport; their words: test_statuses.py."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from invoker.server.endpoints.health import HealthService
from tests.attach.around import around

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


async def opened(service: HealthService) -> tuple[grpc.aio.Server, grpc.aio.Channel]:
    server = grpc.aio.server()
    service.add_servicers(server, ("a.B",))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    return server, grpc.aio.insecure_channel(f"127.0.0.1:{port}")


@pytest.mark.parametrize("is_told", [False, True])
async def test_R015_watchers_hear_of_a_change(monkeypatch: pytest.MonkeyPatch, is_told: bool) -> None:
    """At once if the service is told that there may be one, and with the next pulse if not."""
    monkeypatch.setattr("invoker.server.endpoints.health._PULSE_S", 3600.0 if is_told else 0.01)
    ready = [True]

    async def is_ready() -> bool:
        return ready[0]

    service = HealthService(replace(around(), is_ready=is_ready))
    await service.refresh()  # before there is a transport, nobody is told
    server, channel = await opened(service)
    call = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(service="a.B"))
    assert (await call.read()).status == SERVING
    ready[0] = False
    if is_told:
        await service.refresh()
    assert (await call.read()).status == NOT_SERVING
    call.cancel()
    await channel.close()
    await server.stop(None)
    await service.stop(1)
    await asyncio.wait([task for task in asyncio.all_tasks() if task.get_name() == "health"])


@pytest.mark.parametrize("is_on", [True, False])
async def test_R015_reflection_is_there_unless_it_is_switched_off(is_on: bool) -> None:
    """`--no-reflection`."""
    service = HealthService(around(reflection=is_on))
    server, channel = await opened(service)
    call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
    if is_on:
        await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        assert "a.B" in {one.name for one in (await call.read()).list_services_response.service}
    else:  # nothing is written: a client that writes late hides the status that came before (grpc#36066)
        assert await call.code() is grpc.StatusCode.UNIMPLEMENTED
    await channel.close()
    await server.stop(None)
    await service.stop(1)
