"""Numbers that take long to read, on every wire that the attacks of `tests.attack.values` leave out.

python -m tests.attack.wires [NAME ...] [--seconds 5] [--tree DIR]
"""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import quote_plus

import grpc
from google.protobuf import any_pb2

from invoker._pb.dspex import bridge_pb2
from tests.attack.callers import BRIDGE
from tests.attack.runner import Figures, Victim, main
from tests.attack.sockets import framed, handshake
from tests.attack.values import FUNCTIONS, Send, attack, numbers, post
from tests.protocols.graphpipe.asking import ask
from tests.transports.evergreen import PATH as SESSION
from tests.transports.evergreen import act, frame, leaf

KINDS = {"large": b"1e308", "tiny": b"17e-320"}
JSON = "application/json"
OCTETS = "application/octet-stream"
URLENCODED = "application/x-www-form-urlencoded"
EVENTS = "application/cloudevents-batch+json"

_PATIENCE_S = 60.0
_OPTIONS = [("grpc.use_local_subchannel_pool", 1)]
_SERVICE = "/tests.attack.dear.DearService/"
_SESSIONS = itertools.count()
_END = b'{"end":true}'


def frames(function: str, body: bytes) -> Send:
    """One message over WebSocket, and the end; 200 if there was a result, else 400."""

    def send(target: Victim) -> int:
        with socket.create_connection(target.http_host, timeout=_PATIENCE_S) as sock:
            sock.sendall(handshake(f"/{function}/ws") + framed(0x81, b'{"data":%b}' % body) + framed(0x81, _END))
            got = b""
            while b'"data"' not in got and b"error" not in got and (more := sock.recv(1 << 16)):
                got += more
        return 200 if b'"data"' in got else 400

    return send


def called(path: str, *messages: bytes) -> Callable[[grpc.Channel], int]:
    """One gRPC call; its status."""

    def send(channel: grpc.Channel) -> int:
        call: Any = channel.stream_stream(path)(iter(messages), timeout=_PATIENCE_S)
        try:
            list(call)
        except grpc.RpcError as error:
            return int(error.code().value[0])
        return 0

    return send


def actions(function: str, body: bytes, name: str = "value") -> Send:
    """One action of Evergreen."""
    parts = (frame(leaf("a", body, media_type=JSON)), frame(act(function, {name: "a"}, {"output": "b"})))

    def send(target: Victim) -> int:
        with grpc.insecure_channel(target.grpc, _OPTIONS) as channel:
            return called(SESSION, *parts)(channel)

    return send


def tools(rpc: str, function: str, body: bytes) -> Send:
    """One tool call whose argument is JSON within an Any."""
    packed = any_pb2.Any(type_url="type.googleapis.com/snakepit.list", value=body)
    request = {"ExecuteTool": bridge_pb2.ToolCallRequest, "StreamTool": bridge_pb2.ToolStreamRequest}[rpc]

    def send(target: Victim) -> int:
        session = f"s{next(_SESSIONS)}"
        with grpc.insecure_channel(target.grpc, _OPTIONS) as channel:
            begin = bridge_pb2.InitializeSessionRequest(session_id=session).SerializeToString()
            assert called(f"/{BRIDGE}/InitializeSession", begin)(channel) == 0
            call = request(session_id=session, tool_id=function, args=[packed]).SerializeToString()  # type: ignore[operator]
            return called(f"/{BRIDGE}/{rpc}", call)(channel)

    return send


def connect_stream(method: str, *messages: bytes) -> Send:
    """One streaming call of Connect."""
    body = b"".join(b"\0" + len(one).to_bytes(4, "big") + one for one in messages)
    return post(_SERVICE + method, body, "application/connect+json")


def form(count: int, body: bytes, name: str) -> bytes:
    """A form of several parts of JSON."""
    head = b'--x\r\nContent-Disposition: form-data; name="%b"\r\nContent-Type: application/json\r\n\r\n'
    return (head % name.encode() + body + b"\r\n") * count + b"--x--\r\n"


def _of(kind: str, number: bytes) -> dict[str, Callable[[Victim, float], Figures]]:
    part = numbers(number, 40_000)
    event = b'{"specversion":"1.0","id":"1","source":"x","type":"y","data":%b}' % part
    every: dict[str, Callable[[bytes], Send]] = {
        "socket": lambda body: frames("kind", body),
        "socket-loop": lambda body: frames("akind", body),
        "socket-stream": lambda body: frames("kinds", body),
        "evergreen": lambda body: actions("kind", body),
        "evergreen-loop": lambda body: actions("akind", body),
        "evergreen-floats": lambda body: actions("floats", body, "xs"),
        "tool": lambda body: tools("ExecuteTool", "kind", body),
        "tool-loop": lambda body: tools("ExecuteTool", "akind", body),
        "tool-floats": lambda body: tools("ExecuteTool", "floats", body),
        "tool-stream": lambda body: tools("StreamTool", "kinds", b"[%b]" % body),
        "graphpipe": lambda body: post("/graphpipe/floats", ask([body]), OCTETS),
        "graphpipe-any": lambda body: post("/graphpipe/kind", ask([body]), OCTETS),
        "graphpipe-config": lambda body: post("/graphpipe/kind", ask([b"1"], config=b'{"a":%b}' % body), OCTETS),
        "fields": lambda body: post("/kind", b"value=" + quote_plus(body).encode(), URLENCODED),
        "parts": lambda body: post("/many", form(100, part, "values"), "multipart/form-data; boundary=x"),
        "events": lambda body: post("/kinds", b"[" + b",".join([event] * 90) + b"]", EVENTS),
        "variadic": lambda body: post("/many", b'{"values":%b}' % body),
        "connect-variadic": lambda body: post(_SERVICE + "Many", b'{"values":%b}' % body),
        "connect-stream": lambda body: connect_stream("Kinds", b'{"values":%b}' % body),
        "connect-streams": lambda body: connect_stream("Kinds", *[b'{"values":[%b]}' % part] * 100),
    }  # fmt: skip
    return {f"{name}-{kind}": attack(partial(_made, make, number)) for name, make in every.items()}


def _made(make: Callable[[bytes], Send], number: bytes) -> Send:
    return make(numbers(number))


ATTACKS = {name: run for kind, number in KINDS.items() for name, run in _of(kind, number).items()}

if __name__ == "__main__":
    main(ATTACKS, FUNCTIONS)
