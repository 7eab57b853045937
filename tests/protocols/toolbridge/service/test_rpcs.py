"""The rpcs of the tool bridge at each transport."""

from __future__ import annotations

import grpc
import pytest

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.protocols.toolbridge.service.bridge import Bridge
from invoker.protocols.toolbridge.service.rpcs import ROWS, SERVICE, Row, methods_of, unbuilt, with_host_sessions
from invoker.protocols.toolbridge.sessions import GetSessionInfo
from invoker.protocols.toolbridge.settings import BridgeSettings
from invoker.transports.grpc.methods import CallMethod
from tests.attach.around import around
from tests.transports.bridge import TRANSPORTS, Bridged, error_of
from tests.transports.riff import form

UNIMPLEMENTED = grpc.StatusCode.UNIMPLEMENTED


def square(x: int) -> int:
    return x * x


async def asquare(x: int) -> int:
    return x * x


def test_there_is_a_row_for_each_rpc():
    """The published service has fifteen."""
    published = pb.DESCRIPTOR.services_by_name["SnakepitBridge"]
    assert [one.name for one in ROWS] == [one.name for one in published.methods]
    assert len(ROWS) == 15


def test_only_calls_of_one_invocation_may_get_a_thread():
    """All others run on the loop."""
    bridge = Bridge(around(square), BridgeSettings())
    methods = methods_of(bridge)
    assert {one.name for one in methods if isinstance(one, CallMethod)} == {"ExecuteTool"}
    assert {one.service for one in methods} == {SERVICE} == {"dspex.bridge.SnakepitBridge"}


def test_T001_capabilities_are_what_is_served():
    """An rpc that nobody serves is not promised."""
    bridge = Bridge(around(square), BridgeSettings())
    rows = (
        unbuilt("StreamTool"),
        Row("BatchExecuteTools", with_host_sessions(GetSessionInfo)),
        Row("ExecuteTool", with_host_sessions(GetSessionInfo)),
    )
    methods_of(bridge, rows)
    assert bridge.host_sessions.capabilities == ("batch",)
    methods_of(bridge)
    assert set(bridge.host_sessions.capabilities) <= {
        "streaming",
        "batch",
        "variables",
        "watch",
        "agents",
        "metrics",
        "callback",
    }


@pytest.mark.parametrize("kind", TRANSPORTS)
@pytest.mark.parametrize("path", ["/snakepit.bridge.BridgeService/Ping", f"/{SERVICE}/Ping"])
def test_T178_a_client_of_another_service_hears_that_it_is_not_served(kind, path):
    """And the server goes on."""
    with Bridged(kind, form(kind, square, asquare)) as served:
        with pytest.raises(grpc.RpcError) as caught:
            served.channel.unary_unary(path)(b"", timeout=20)
        assert caught.value.code() is UNIMPLEMENTED
        assert served.call(b"5").half_close().rest() == [b"25"]


@pytest.mark.parametrize("kind", TRANSPORTS)
@pytest.mark.parametrize("name", [one.name for one in ROWS])
def test_T063_a_request_above_our_limit_is_refused(kind, name):
    """Where the transport lets it in."""
    with Bridged(kind, form(kind, square, asquare), settings=BridgeSettings(message_bytes=100)) as served:
        with pytest.raises(grpc.RpcError) as caught:
            served.channel.unary_stream(f"/{SERVICE}/{name}")(b"x" * 101, timeout=20).__next__()
        code, info = error_of(caught.value)
        if code is not UNIMPLEMENTED:
            assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert info.type == "ResourceExhausted"
