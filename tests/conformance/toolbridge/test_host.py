"""The tools of a scenario, against servers that do little."""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc
import pytest

from invoker._pb.dspex import bridge_pb2 as pb
from invoker_conformance import Failure, NotProvided
from invoker_conformance.target import Target, Unreachable, parse_addresses
from invoker_conformance.toolbridge.host import Host, Refused
from tests.conformance.toolbridge.test_every_scenario import Mute, Refusing, serving


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    async with serving(Refusing()) as address:
        target = Target(parse_addresses([address]), parse_addresses([]), timeout_s=1, message_bytes=1000)
        yield Host(target, "add")
        await target.close()


async def test_a_refusal_is_read(host: Host) -> None:
    """Its status, and what the trailer says."""
    request = pb.GetSessionInfoRequest()
    with pytest.raises(Refused) as caught:
        await host.ask("GetSessionInfo", request, pb.SessionInfo)
    assert caught.value.code is grpc.StatusCode.INTERNAL
    assert caught.value.error is not None
    await host.refuses("GetSessionInfo", request, pb.SessionInfo, "InternalError")
    with pytest.raises(Failure, match="expected NOT_FOUND"):
        await host.refuses("GetSessionInfo", request, pb.SessionInfo, "SessionExpired", "unknown")
    with pytest.raises(Failure, match="expected an answer"):
        await host.needs("GetSessionInfo", request, pb.SessionInfo)


async def test_marks_and_tools_are_asked_for(host: Host) -> None:
    """What is refused otherwise than by ToolNotFound is there."""
    assert await host.mark("x") == 0
    assert await host.provides("add")


async def test_what_hangs_is_a_failure() -> None:
    """After the limit of a wait."""
    async with serving(Mute()) as address:
        target = Target(parse_addresses([address]), parse_addresses([]), timeout_s=0.1, message_bytes=1000)
        with pytest.raises(Failure, match="no end of HealthCheck"):
            await Host(target, "add").ask("HealthCheck", pb.HealthCheckRequest(), pb.HealthCheckResponse)
        await target.close()


async def test_where_nobody_is_and_where_nothing_is() -> None:
    """No server at all, and a server without the service."""
    target = Target(parse_addresses(["127.0.0.1:1"]), parse_addresses([]), timeout_s=1, message_bytes=1000)
    with pytest.raises(Unreachable):
        await Host(target, "add").ask("HealthCheck", pb.HealthCheckRequest(), pb.HealthCheckResponse)
    await target.close()
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    target = Target(parse_addresses([f"127.0.0.1:{port}"]), parse_addresses([]), timeout_s=1, message_bytes=1000)
    host = Host(target, "add")
    assert not await host.provides("add")
    with pytest.raises(NotProvided):
        await host.needs("HealthCheck", pb.HealthCheckRequest(), pb.HealthCheckResponse)
    await target.close()
    await server.stop(None)
