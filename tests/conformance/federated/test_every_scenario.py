"""No federated scenario passes with every server: each fails with one that refuses all, is mute, or accepts all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

from invoker._pb.federated import federated_api_pb2 as pb
from invoker_conformance import Scenario, select
from invoker_conformance.federated.device import Device
from invoker_conformance.runner import Verdict, run
from invoker_conformance.target import Target, parse_addresses


class Refusing:
    """All populations are there; whatever is asked for is refused."""

    async def talk(self, asked: AsyncIterator[pb.ClientStreamMessage], context: Any) -> AsyncIterator[Any]:
        async for _ in asked:
            await context.abort(grpc.StatusCode.INTERNAL, "refused")
        yield pb.ServerStreamMessage()


class Mute(Refusing):
    """It knows the populations, and says nothing."""

    async def talk(self, asked: AsyncIterator[pb.ClientStreamMessage], context: Any) -> AsyncIterator[Any]:
        async for one in asked:
            request = one.eligibility_eval_checkin_request
            if request.population_name and not request.HasField("protocol_options_request"):
                return
            await asyncio.Event().wait()
        yield pb.ServerStreamMessage()


class Agreeing(Refusing):
    """It accepts everybody, into the same round, and thanks for everything."""

    async def talk(self, asked: AsyncIterator[pb.ClientStreamMessage], context: Any) -> AsyncIterator[Any]:
        async for one in asked:
            message = pb.ServerStreamMessage()
            if one.HasField("checkin_request"):
                info = message.checkin_response.acceptance_info
                info.execution_phase_id, info.task_name, info.init_checkpoint = "one", "sum", b"0"
            elif one.HasField("eligibility_eval_checkin_request"):
                message.eligibility_eval_checkin_response.no_eligibility_eval_configured.SetInParent()
            else:
                message.report_response.SetInParent()
            yield message


@asynccontextmanager
async def serving(peer: Refusing) -> AsyncIterator[str]:
    """A server of this kind; where it is."""
    handler = grpc.stream_stream_rpc_method_handler(
        peer.talk,
        request_deserializer=pb.ClientStreamMessage.FromString,
        response_serializer=pb.ServerStreamMessage.SerializeToString,
    )
    service, name = Device.path.strip("/").split("/")
    server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {name: handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


async def unmoved(scenarios: list[Scenario], peer: Refusing) -> list[Scenario]:
    """Those of these scenarios that do not fail with such a server."""
    async with serving(peer) as address:
        target = Target(parse_addresses([address]), parse_addresses([]), timeout_s=0.1, message_bytes=1 << 20)
        try:
            outcomes = await run(target, scenarios)
        finally:
            await target.close()
    return [outcome.scenario for outcome in outcomes if outcome.verdict is not Verdict.FAIL]


@pytest.mark.timeout(90)
async def test_every_scenario_fails_with_a_server_that_does_nothing() -> None:
    """Neither one answer to everything nor silence nor praise passes for any of them."""
    left = await unmoved(select(protocol="federated"), Refusing())
    assert len(left) < 10, [each.name for each in left]
    left = await unmoved(left, Mute())
    assert not await unmoved(left, Agreeing())
