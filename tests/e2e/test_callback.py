"""Two real servers: the tools of one call the tools of the other, which is its host (T-169 to T-172)."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest

from invoker import Context, function
from invoker._pb.dspex import bridge_pb2 as pb
from tests.conftest import SLOW
from tests.serving import Served, serving
from tests.transports.bridge import packed, unpacked

ENV = {"INVOKER_PROTOCOLS": "toolbridge"}


@function
def shout(text: str) -> str:
    return text.upper()


@function
def words(n: int) -> Iterator[str]:
    yield from (f"w{one}" for one in range(n))


@function
def relay(text: str, ctx: Context) -> str:
    """It has a local tool of the same name, so the prefix says whose is meant."""
    return str(ctx.call("callback:shout", text)) + str(ctx.call("shout", text))


@function
def relay_words(n: int, ctx: Context) -> list[str]:
    return [str(ctx.call("callback:shout", one)) for one in ctx.stream("callback:words", n)]


@function
async def arelay(text: str, ctx: Context) -> str:
    return str(await ctx.call("callback:relay_once", text))


@function
def relay_once(text: str) -> str:
    return f"<{text}>"


@pytest.fixture(scope="module")
def host() -> Iterator[Served]:
    with serving("tests.e2e.test_callback", env=ENV) as one:
        yield one


def rpc(served: Served, name: str, request: object, answer: type) -> object:
    with grpc.insecure_channel(served.grpc) as channel:
        call = channel.unary_unary(
            f"/dspex.bridge.SnakepitBridge/{name}",
            request_serializer=type(request).SerializeToString,  # type: ignore[attr-defined]
            response_deserializer=answer.FromString,  # type: ignore[attr-defined]
        )
        return call(request, timeout=5 * SLOW)


@pytest.mark.parametrize("transport", ["fast", "aio"])
def test_T172_tools_of_two_servers_call_each_other(host: Served, transport: str) -> None:
    """The one that calls back stops cleanly afterwards, with the session and its channel still there."""
    with serving("tests.e2e.test_callback", "--grpc-driver", transport, env=ENV) as served:
        begun = pb.InitializeSessionRequest(session_id=transport)
        assert rpc(host, "InitializeSession", begun, pb.InitializeSessionResponse).success  # type: ignore[attr-defined]
        begun.callback_address = host.grpc
        made = rpc(served, "InitializeSession", begun, pb.InitializeSessionResponse)
        assert made.success, made  # type: ignore[attr-defined]
        assert made.tool_count == 12  # type: ignore[attr-defined]
        for tool, value, result in (
            ("relay", "a", "AA"), ("relay_words", 3, ["W0", "W1", "W2"]), ("arelay", "b", "<b>"),
        ):  # fmt: skip
            request = pb.ToolCallRequest(session_id=transport, tool_id=tool, args=[packed(value)])
            answer = rpc(served, "ExecuteTool", request, pb.ToolCallResponse)
            assert answer.success, answer  # type: ignore[attr-defined]
            assert unpacked(answer.result) == result  # type: ignore[attr-defined]
