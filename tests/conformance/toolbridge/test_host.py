"""The tools of a scenario, against servers that do little."""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc
import pytest

from invoker._pb.dspex import bridge_pb2 as pb
from invoker_conformance import NotProvided
from invoker_conformance.target import Target, Unreachable, parse_addresses
from invoker_conformance.toolbridge.host import Host
from tests.conformance.toolbridge.test_every_scenario import Refusing, serving


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    async with serving(Refusing()) as address:
        target = Target(parse_addresses([address]), parse_addresses([]), timeout_s=1, message_bytes=1000)
        yield Host(target, "add")
        await target.close()


async def test_marks_and_tools_are_asked_for(host: Host) -> None:
    """What is refused otherwise than by ToolNotFound is there."""
    assert await host.mark("x") == 0
    assert await host.provides("add")


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
