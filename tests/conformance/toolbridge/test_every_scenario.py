"""No tool bridge scenario passes with every server: each fails with one that refuses all, or is mute, or says yes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

from invoker._pb.dspex import bridge_pb2 as pb
from invoker_conformance import Scenario, select
from invoker_conformance.runner import Verdict, run
from invoker_conformance.target import Target, parse_addresses
from invoker_conformance.toolbridge.values import pack

SERVICE = pb.DESCRIPTOR.services_by_name["SnakepitBridge"]
TOLD = pb.ErrorInfo(type="InternalError", message="refused")
TOLD.timestamp.GetCurrentTime()


class Refusing:
    """Sessions and the tool ``marks`` are there; all else is refused."""

    async def answer(self, method: Any, request: Any, context: Any) -> Any:
        kind = getattr(pb, method.output_type.name)
        if method.name == "InitializeSession":
            return kind(success=True)
        if method.name == "ExecuteTool" and request.tool_id == "marks":
            return kind(success=True, result=pack(0), metrics={}, request_id=request.request_id)
        if "error" in kind.DESCRIPTOR.fields_by_name and "content" not in kind.DESCRIPTOR.oneofs_by_name:
            made = kind(error=TOLD)
            if method.name == "ExecuteTool":
                made.request_id = request.request_id
            return made
        trailers = (("dspex-error-bin", TOLD.SerializeToString()),)
        return await context.abort(grpc.StatusCode.INTERNAL, "refused", trailers)


class Mute(Refusing):
    """Sessions and the tool ``marks`` are there; all else has no answer."""

    async def answer(self, method: Any, request: Any, context: Any) -> Any:
        is_probe = method.name == "ExecuteTool" and "no_tool_of_the_suite_has_this" in request.kwargs
        is_mark = method.name == "ExecuteTool" and request.tool_id == "marks"
        if not (method.name == "InitializeSession" or is_probe or is_mark):
            await asyncio.Event().wait()
        return await super().answer(method, request, context)


class Agreeing(Refusing):
    """All succeeds, and gives nothing."""

    async def answer(self, method: Any, request: Any, context: Any) -> Any:
        if method.name == "ExecuteTool":
            return pb.ToolCallResponse(success=True, result=pack(0), metrics={}, request_id=request.request_id)
        made = getattr(pb, method.output_type.name)()
        if hasattr(made, "success"):
            made.success = True
        return made


@asynccontextmanager
async def serving(peer: Refusing) -> AsyncIterator[str]:
    def handler(method: Any) -> grpc.RpcMethodHandler:
        async def unary(request: Any, context: Any) -> Any:
            return await peer.answer(method, request, context)

        async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
            yield await peer.answer(method, request, context)

        make: Any = (
            grpc.unary_stream_rpc_method_handler if method.server_streaming else grpc.unary_unary_rpc_method_handler
        )
        return make(
            stream if method.server_streaming else unary,
            request_deserializer=getattr(pb, method.input_type.name).FromString,
            response_serializer=getattr(pb, method.output_type.name).SerializeToString,
        )

    server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
    handlers = {method.name: handler(method) for method in SERVICE.methods}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE.full_name, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


async def unmoved(scenarios: list[Scenario], peer: Refusing) -> list[Scenario]:
    """Those of these scenarios that do not fail with such a server."""
    async with serving(peer) as address:
        target = Target(parse_addresses([address]), parse_addresses([]), timeout_s=0.2, message_bytes=1 << 20)
        try:
            outcomes = await run(target, scenarios)
        finally:
            await target.close()
    return [outcome.scenario for outcome in outcomes if outcome.verdict is not Verdict.FAIL]


@pytest.mark.timeout(60)
async def test_every_scenario_fails_with_a_server_that_does_nothing() -> None:
    """Neither one answer to everything nor silence passes for any of them."""
    left = await unmoved(select(protocol="toolbridge"), Refusing())
    assert len(left) < 10, [each.name for each in left]
    left = await unmoved(left, Mute())
    assert not await unmoved(left, Agreeing())
