"""One client, one request of 4 MB made of so many pieces: how long the process's loop is held for it, on every wire.

python -m tests.attack.turns [NAME ...] [--tree DIR]
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable
from typing import Any, Final

import grpc
from google.protobuf import json_format, struct_pb2

from tests.attack.runner import Figures, Victim, main
from tests.attack.sockets import framed, handshake
from tests.attack.values import numbers
from tests.attack.wires import called, form, tools
from tests.protocols.graphpipe.asking import ask
from tests.transports.evergreen import PATH as SESSION
from tests.transports.evergreen import act, frame, leaf
from tests.transports.riff import PATH as RIFF
from tests.transports.riff import start

FUNCTIONS = "tests.attack.turning"
PIECES: Final = (1, 10, 100, 1000)

_BYTES = 4_000_000
_JSON = "application/json"
_LINES = "application/x-ndjson"
_OPTIONS = [("grpc.use_local_subchannel_pool", 1)]
_SERVICE = "/tests.attack.turning.TurningService/"
_EVENT = b'{"specversion":"1.0","id":"1","source":"x","type":"y","data":%b}'

Send = Callable[[Victim], int]
Make = Callable[[list[bytes], bool], Send]
"""Of the pieces, and whether the function is async, a request."""


def longest(victim: Victim) -> Figures:
    """What the victim's watch has seen since it was asked last."""
    connection = http.client.HTTPConnection(*victim.http_host, timeout=60)
    connection.request("POST", "/longest")
    answer = connection.getresponse().read()
    connection.close()
    return {name[:-2]: round(value * 1000) for name, value in json.loads(answer).items()}


def post(path: str, body: bytes, media_type: str, **headers: str) -> Send:
    """One request over HTTP; the status of its response, whose body is read and forgotten."""

    def send(victim: Victim) -> int:
        connection = http.client.HTTPConnection(*victim.http_host, timeout=60)
        try:
            connection.request("POST", path, body, {"Content-Type": media_type, **headers})
            response = connection.getresponse()
            while response.read(1 << 16):
                pass
            return response.status
        finally:
            connection.close()

    return send


def _riff(function: str, async_function: str) -> Make:
    def make(pieces: list[bytes], is_async: bool) -> Send:
        frames = [start("*/*"), *(_of_json(one) for one in pieces)]
        return lambda victim: _invoke(victim, frames, async_function if is_async else function)

    return make


def _of_json(payload: bytes) -> bytes:
    from invoker._pb.riff import riff_rpc_pb2 as pb

    return pb.InputSignal(data=pb.InputFrame(payload=payload, contentType=_JSON)).SerializeToString()


def _invoke(victim: Victim, frames: list[bytes], function: str) -> int:
    with grpc.insecure_channel(victim.grpc, _OPTIONS) as channel:
        call: Any = channel.stream_stream(RIFF)(iter(frames), metadata=(("invoker-function", function),), timeout=60)
        try:
            list(call)
        except grpc.RpcError as error:
            return int(error.code().value[0])
        return 0


def _posted(path: str, body: Callable[[list[bytes]], bytes], media_type: str, **headers: str) -> Make:
    """An async function has the same name with an ``a`` before it."""
    return lambda pieces, is_async: post(path % ("a" if is_async else ""), body(pieces), media_type, **headers)


def _socket(function: str) -> Make:
    def make(pieces: list[bytes], is_async: bool) -> Send:
        path = f"/{'a' if is_async else ''}{function}/ws"
        text = b"".join(framed(0x81, b'{"data":%b}' % one) for one in pieces) + framed(0x81, b'{"end":true}')

        def send(victim: Victim) -> int:
            with socket.create_connection(victim.http_host, timeout=60) as sock:
                sock.sendall(handshake(path) + text)
                got = b""
                while b'"end"' not in got and b"error" not in got and (more := sock.recv(1 << 16)):
                    got = got[-8:] + more
            return 400 if b"error" in got else 200

        return send

    return make


def _connect(content: str) -> Make:
    def make(pieces: list[bytes], is_async: bool) -> Send:
        method = "Akinds" if is_async else "Kinds"
        body = b"".join(
            b"\0" + len(one).to_bytes(4, "big") + one for one in (b'{"values":[%b]}' % one for one in pieces)
        )
        return post(_SERVICE + method, body, content)

    return make


def _parts(pieces: list[bytes]) -> bytes:
    return form(len(pieces), pieces[0], "values")


def _events(pieces: list[bytes]) -> bytes:
    return b"[" + b",".join(_EVENT % one for one in pieces) + b"]"


def _actions(pieces: list[bytes], is_async: bool) -> Send:
    """As many actions in one session."""
    name = "akind" if is_async else "kind"
    frames = [
        frame(leaf(f"a{n}", one, media_type=_JSON), act(name, {"value": f"a{n}"}, {"output": f"b{n}"}))
        for n, one in enumerate(pieces)
    ]
    return lambda victim: _call(victim, SESSION, frames)


def _fragments(pieces: list[bytes], is_async: bool) -> Send:
    """A stream of as many values into one action."""
    from invoker._pb.evergreen import evergreen_pb2 as pb

    name = "asink" if is_async else "sink"
    frames = [frame(act(name, {"values": "in"}, {"output": "out"}))]
    for n, one in enumerate(pieces):
        child = leaf(f"c{n}", one, media_type=_JSON)
        into = pb.NodeFragment(id="in", seq=n, continued=n < len(pieces) - 1, child_ids=[f"c{n}"])
        frames.append(frame(into, child))
    return lambda victim: _call(victim, SESSION, frames)


def _call(victim: Victim, path: str, frames: list[bytes]) -> int:
    with grpc.insecure_channel(victim.grpc, _OPTIONS) as channel:
        return called(path, *frames)(channel)


def _typed(pieces: list[bytes], is_async: bool) -> Send:
    """A stream of as many messages, each with a list of numbers as a Value of protobuf."""
    count = max(1, len(pieces[0]) // 11)  # a number has eleven bytes
    value = json_format.ParseDict([1e308] * count, struct_pb2.Value()).SerializeToString()
    size, shift = b"", len(value)
    while shift > 0x7F:
        size, shift = size + bytes([shift & 0x7F | 0x80]), shift >> 7
    one = b"\x0a" + size + bytes([shift]) + value
    return lambda victim: _call(victim, _SERVICE + ("Akinds" if is_async else "Kinds"), [one] * len(pieces))


def _stream_tool(pieces: list[bytes], is_async: bool) -> Send:
    return tools("StreamTool", "akinds" if is_async else "kinds", b"[" + b",".join(pieces) + b"]")


def _graphpipe(pieces: list[bytes], is_async: bool) -> Send:
    """A tensor of as many texts."""
    return post(f"/graphpipe/{'a' if is_async else ''}kind", ask(pieces), "application/octet-stream")


WIRES: dict[str, Make] = {
    "riff": _riff("kinds", "akinds"),
    "riff-sink": _riff("sink", "asink"),
    "lines": _posted("/%skinds", b"\n".join, _LINES, Accept=_LINES),
    "lines-sink": _posted("/%ssink", b"\n".join, _LINES, Accept=_LINES),
    "sse": _posted("/%skinds", b"\n".join, _LINES, Accept="text/event-stream"),
    "socket": _socket("kinds"),
    "socket-sink": _socket("sink"),
    "parts": _posted("/%smany", _parts, "multipart/form-data; boundary=x"),
    "events": _posted("/%skinds", _events, "application/cloudevents-batch+json"),
    "variadic": _posted("/%smany", lambda some: b'{"values":[%b]}' % b",".join(some), _JSON),
    "connect": _connect("application/connect+json"),
    "grpc-web": _connect("application/grpc-web+json"),
    "typed": _typed,
    "actions": _actions,
    "fragments": _fragments,
    "tool-stream": _stream_tool,
    "graphpipe": _graphpipe,
}


def _run(make: Make, count: int, is_async: bool) -> Callable[[Victim, float], Figures]:
    def run(victim: Victim, _seconds: float) -> Figures:
        longest(victim)
        status = make([numbers(b"1e308", _BYTES // count)] * count, is_async)(victim)
        return {"status": status, **longest(victim)}

    return run


ATTACKS = {
    f"{name}-{count}{'-loop' * is_async}": _run(make, count, is_async)
    for name, make in WIRES.items()
    for is_async in (False, True)
    for count in PIECES
}

if __name__ == "__main__":
    main(ATTACKS, FUNCTIONS)
