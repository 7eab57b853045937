"""One call of every kind, on every wire, with a large value each way: `CALLS` by name.

A call is given an `End`: how the function ends, by the first byte of what it is sent, and whether the caller stays.
"""

from __future__ import annotations

import http.client
import itertools
import socket
import struct
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import grpc
import numpy as np
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, StreamEnded, StreamReset

from invoker._pb.dspex import bridge_pb2
from tests.attack.runner import Victim
from tests.attack.sockets import framed, handshake
from tests.conftest import SLOW
from tests.protocols.graphpipe.asking import ask
from tests.transports.bridge import packed
from tests.transports.evergreen import PATH as SESSION
from tests.transports.evergreen import act, frame, leaf
from tests.transports.riff import PATH as INVOKE
from tests.transports.riff import data, start

Call: TypeAlias = Callable[[Victim, str, bytes], None]
"""Calls a function with a payload; one that begins with a w is taken back."""

SIZE = 2 << 20
ENDS = {"well": b"g", "failing": b"f", "taken back": b"w", "unread": b"u"}
BRIDGE = "dspex.bridge.SnakepitBridge"
_NUMBERS = itertools.count()

_PATIENCE_S = 20.0 * SLOW
_LEAVE_S = 0.15
_OPTIONS = [
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
]


def varint(number: int) -> bytes:
    """A number of protobuf."""
    made = b""
    while number > 127:
        made += bytes([number & 127 | 128])
        number >>= 7
    return made + bytes([number])


def _field(data: bytes) -> bytes:
    """A message whose first field are these bytes."""
    return b"\x0a" + varint(len(data)) + data


def _is_left(payload: bytes) -> bool:
    return payload[:1] in b"wu"


def _is_unread(payload: bytes) -> bool:
    """Whether to let a moment pass without a look at the response."""
    if payload[:1] == b"u":
        time.sleep(_LEAVE_S)
    return payload[:1] == b"u"


def _grpc(path: str, messages: list[bytes], victim: Victim, payload: bytes, function: str = "") -> None:
    """A call with these messages; metadata name the function for riff."""
    with grpc.insecure_channel(victim.grpc, _OPTIONS) as channel:
        metadata = (("invoker-function", function),) if function else ()
        timeout_s = _LEAVE_S if _is_left(payload) else _PATIENCE_S
        call: Any = channel.stream_stream(path)(iter(messages), metadata=metadata, timeout=timeout_s)
        try:
            if _is_unread(payload):
                call.cancel()
            for _ in call:
                if _is_left(payload):
                    call.cancel()
        except grpc.RpcError as error:
            _judge(payload, error)


def _riff(victim: Victim, function: str, payload: bytes) -> None:
    _grpc(INVOKE, [start(), data(payload)], victim, payload, function)


def _typed(victim: Victim, function: str, payload: bytes) -> None:
    _grpc(f"/{_service(victim)}/{_method(function)}", [_field(payload)], victim, payload)


def _service(victim: Victim) -> str:
    """The typed service of the victim's module."""
    module = victim.process.args[0]
    return f"{module}.{module.rpartition('.')[2].title().replace('_', '')}Service"


def _method(function: str) -> str:
    return function.capitalize()


def _evergreen(victim: Victim, function: str, payload: bytes) -> None:
    name = "items" if function.endswith("es") else "data"
    half = len(payload) // 2
    messages = [
        frame(leaf("a", payload[:half], more=True, media_type="application/octet-stream")),
        frame(leaf("a", payload[half:], 1)),
        frame(act(function, {name: "a"}, {"output": "b"})),
    ]
    _grpc(SESSION, messages, victim, payload)


_REQUESTS: dict[str, Any] = {"ExecuteTool": bridge_pb2.ToolCallRequest, "StreamTool": bridge_pb2.ToolStreamRequest}


def _tool(rpc: str, victim: Victim, function: str, payload: bytes, request_id: str = "") -> None:
    """A call in a session of its own; with a request id, results are kept."""
    with grpc.insecure_channel(victim.grpc, _OPTIONS) as channel:
        config = bridge_pb2.SessionConfig(enable_caching=bool(request_id))
        begin = bridge_pb2.InitializeSessionRequest(session_id=f"s{next(_NUMBERS)}", config=config)
        path = f"/{BRIDGE}"
        unary: Any = channel.unary_unary
        unary(f"{path}/InitializeSession")(begin.SerializeToString(), timeout=_PATIENCE_S)
        request = _REQUESTS[rpc](session_id=begin.session_id, tool_id=function, args=[packed(payload)])
        if request_id:
            request.request_id = request_id
        timeout_s = _LEAVE_S if _is_left(payload) else _PATIENCE_S
        try:
            call = channel.unary_stream(f"{path}/{rpc}")(request.SerializeToString(), timeout=timeout_s)
            if _is_unread(payload):
                call.cancel()
            list(call)
        except grpc.RpcError as error:
            _judge(payload, error)
        end = bridge_pb2.CleanupSessionRequest(session_id=begin.session_id, force=True)
        unary(f"{path}/CleanupSession")(end.SerializeToString(), timeout=_PATIENCE_S)


def _judge(payload: bytes, error: Exception) -> None:
    """An error is right only for a call that was to end with one."""
    if payload[:1] == b"g":
        raise AssertionError(f"the call failed: {error!r}") from None


def _http(
    path: str,
    media_type: str,
    accept: str,
    encode: Callable[[bytes], bytes],
    victim: Victim,
    function: str,
    payload: bytes,
) -> None:
    connection = http.client.HTTPConnection(*victim.http_host, timeout=_LEAVE_S if _is_left(payload) else _PATIENCE_S)
    try:
        headers = {"Content-Type": media_type, "Accept": accept, "Invoker-Function": function}
        connection.request(
            "POST", path.format(function, method=f"{_service(victim)}/{_method(function)}"), encode(payload), headers
        )
        if _is_unread(payload):
            return
        response = connection.getresponse()
        body = response.read()
        if payload[:1] == b"g":
            assert response.status == 200, (path, function, response.status, body[:300])
            assert len(body) >= len(payload), (path, function, body[:300])
    except OSError:
        assert payload[:1] != b"g"
    except http.client.IncompleteRead:
        assert payload[:1] != b"g"
    finally:
        connection.close()


def _as_it_is(payload: bytes) -> bytes:
    return payload


def _envelope(payload: bytes) -> bytes:
    message = _field(payload)
    return struct.pack(">BI", 0, len(message)) + message


def _h2(victim: Victim, function: str, payload: bytes) -> None:
    """A request of HTTP/2, taken back by RST_STREAM."""
    with socket.create_connection(victim.http_host, timeout=_LEAVE_S if _is_left(payload) else _PATIENCE_S) as sock:
        h2 = H2Connection(H2Configuration(client_side=True))
        h2.initiate_connection()
        fields = [(":method", "POST"), (":path", f"/{function}"), (":scheme", "http"), (":authority", "localhost")]
        h2.send_headers(
            1,
            [
                *fields,
                ("content-type", "application/octet-stream"),
                ("accept", "application/x-ndjson" if function.endswith("es") else "*/*"),
            ],
        )
        sent, is_over = 0, False
        try:
            while not is_over:
                while sent < len(payload) and (
                    room := min(h2.local_flow_control_window(1), h2.max_outbound_frame_size, len(payload) - sent)
                ):
                    h2.send_data(1, payload[sent : sent + room], end_stream=sent + room == len(payload))
                    sent += room
                sock.sendall(h2.data_to_send())
                if sent == len(payload) and _is_unread(payload):
                    raise TimeoutError
                received = sock.recv(65536)
                assert received or payload[:1] != b"g"
                for event in h2.receive_data(received):
                    if isinstance(event, DataReceived) and event.flow_controlled_length:
                        h2.acknowledge_received_data(event.flow_controlled_length, 1)
                    is_over |= isinstance(event, StreamEnded | StreamReset)
                is_over |= not received
        except TimeoutError:
            h2.reset_stream(1, 8)
            sock.sendall(h2.data_to_send())
            with socket.create_connection(victim.http_host):
                return


def _websocket(victim: Victim, function: str, payload: bytes) -> None:
    timeout_s = _LEAVE_S if _is_left(payload) else _PATIENCE_S
    with socket.create_connection(victim.http_host, timeout=timeout_s) as sock:
        sock.sendall(handshake(f"/{function}/ws"))
        sock.sendall(framed(0x82, payload) + framed(0x81, b'{"end":true}'))
        got = b""
        if _is_unread(payload):
            return
        try:
            while b'{"end": true}' not in got and b'{"end":true}' not in got and (more := sock.recv(1 << 20)):
                got += more
            assert payload[:1] != b"g" or len(got) > len(payload), got[:500]
        except OSError as error:
            _judge(payload, error)


def _tensor(transport: str, victim: Victim, function: str, payload: bytes) -> None:
    values = np.zeros(len(payload) // 8)
    values[0] = payload[0]
    body = ask(values) if function.endswith("tensor") else ask([payload])  # the socket serves the first function
    if transport == "http":
        _http(f"/graphpipe/{function}", _OCTETS, "*/*", lambda _: body, victim, "", payload)
        return
    timeout_s = _LEAVE_S if _is_left(payload) else _PATIENCE_S
    host, _, port = victim.process.wait_for("graphpipe=").partition("graphpipe=")[2].split()[0].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=timeout_s) as sock:
        try:
            sock.sendall(struct.pack("<I", len(body)) + body)
            if not _is_unread(payload):
                sock.recv(1 << 20)
        except OSError as error:
            _judge(payload, error)


_OCTETS = "application/octet-stream"
_PROTO = "application/proto"
_LINES = "application/x-ndjson"
_UNARY = ("echo", "aecho", "iecho")
_STREAMS = ("echoes", "aechoes", "iechoes")
_BOTH = (*_UNARY, *_STREAMS)

_WIRES: dict[str, tuple[Call, tuple[str, ...]]] = {
    "riff": (_riff, _BOTH),
    "typed": (_typed, _BOTH),
    "evergreen": (_evergreen, _BOTH),
    "ExecuteTool": (partial(_tool, "ExecuteTool"), _UNARY),
    "request id": (partial(_tool, "ExecuteTool", request_id="r"), _UNARY),
    "StreamTool": (partial(_tool, "StreamTool"), _BOTH[:4]),
    "http": (partial(_http, "/", _OCTETS, "*/*", _as_it_is), _UNARY),
    "path": (partial(_http, "/{0}", _OCTETS, "*/*", _as_it_is), _UNARY),
    "sse": (partial(_http, "/{0}", _OCTETS, "text/event-stream", _as_it_is), _BOTH),
    "ndjson": (partial(_http, "/{0}", _OCTETS, _LINES, _as_it_is), _BOTH),
    "multipart": (partial(_http, "/{0}", _OCTETS, "multipart/mixed", _as_it_is), _BOTH),
    "connect": (partial(_http, "/{method}", _PROTO, "*/*", _field), _UNARY),
    "connect stream": (
        partial(_http, "/{method}", "application/connect+proto", "*/*", _envelope),
        _STREAMS,
    ),
    "grpc-web": (partial(_http, "/{method}", "application/grpc-web+proto", "*/*", _envelope), _BOTH),
    "http/2": (_h2, _BOTH),
    "websocket": (_websocket, _BOTH),
    "graphpipe": (partial(_tensor, "http"), ("tensor", "atensor")),
    "graphpipe tcp": (partial(_tensor, "tcp"), ("echo",)),
}

CALLS: dict[tuple[str, str], Call] = {(wire, one): call for wire, (call, names) in _WIRES.items() for one in names}
