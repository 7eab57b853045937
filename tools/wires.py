"""The clients for counting calls; they send few bytes and packets, so that each run is the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from http.client import HTTPConnection
from typing import TypeAlias

from google.protobuf.wrappers_pb2 import StringValue

from benchmarks.bodies import JSON, Body, WrongReplyError, framed
from benchmarks.evergreen import PATH as EVERGREEN
from benchmarks.evergreen import action, fragments, replied
from benchmarks.http1 import Post
from benchmarks.http2 import Connection, Stream
from benchmarks.toolbridge import SERVICE, packed
from benchmarks.toolbridge import ask as ask_once
from invoker._pb.dspex import bridge_pb2
from tools.server import Server

Ask: TypeAlias = Callable[[], object]
"""Makes one call, and waits for its end."""
Opening: TypeAlias = Callable[[Server, str, int], AbstractContextManager[Ask]]
"""Opens a connection to a server; each call on it has this many items."""

_TEXT = b"x" * 16
_SESSION = "gates"


def _riff(function: str) -> Opening:
    """Send each frame after the previous one was answered, and the last one together with the half-close."""

    @contextmanager
    def opening(server: Server, _: str, items: int) -> Iterator[Ask]:
        body = Body(1, _TEXT)
        with closing(Connection(server.grpc, metadata=(("invoker-function", function),))) as connection:

            def call() -> None:
                stream = connection.open(body.data, half_close=items == 1)
                for item in range(1, items):
                    _receive(connection, stream, item * len(body.reply))
                    connection.send(stream, body.round, half_close=item == items - 1)
                _end(connection, stream)
                if stream.received != items * len(body.reply):
                    raise WrongReplyError(f"{stream.received} bytes for {items} frames")

            yield call

    return opening


@contextmanager
def _evergreen(server: Server, _: str, items: int) -> Iterator[Ask]:
    body = action("reply", value="p") + fragments(items)
    with closing(Connection(server.grpc, path=EVERGREEN)) as connection:

        def call() -> None:
            stream = connection.open(body, half_close=True)
            stream.kept = bytearray()
            _end(connection, stream)
            if len(replied(stream)) != items * len(_TEXT):
                raise WrongReplyError("the echo of a session is not what was sent")

        yield call


def _post(function: str) -> Opening:
    @contextmanager
    def opening(server: Server, _: str, items: int) -> Iterator[Ask]:
        del items  # a body is one item
        body = json.dumps(_TEXT.decode()).encode()
        with closing(
            Post(server.http, body, path=f"/{function}", headers={"content-type": JSON, "accept": JSON})
        ) as post:
            yield post.ask

    return opening


@contextmanager
def _kept(server: Server, _: str, items: int) -> Iterator[Ask]:
    """A sync function on a connection that the loop reads, since an async function was called on it before."""
    del items  # a body is one
    body = json.dumps(_TEXT.decode()).encode()
    headers = {"content-type": JSON, "accept": JSON}
    with closing(Post(server.http, body, path="/async_reply", headers=headers)) as post:
        post.ask()
        post.path(server.http, body, "/reply", headers)
        yield post.ask


@contextmanager
def _events(server: Server, _: str, items: int) -> Iterator[Ask]:
    with closing(HTTPConnection(server.http, timeout=20)) as connection:

        def call() -> None:
            connection.request("GET", f"/ticks?to={items}", headers={"accept": "text/event-stream"})
            response = connection.getresponse()
            body = response.read()
            if response.status != 200 or body.count(b"data:") < items:
                raise WrongReplyError(f"status {response.status}, the reply is {body[:200]!r}")

        yield call


@contextmanager
def _graphpipe(server: Server, _: str, items: int) -> Iterator[Ask]:
    import numpy as np

    from invoker.tensors import InferRequest, write_request
    from invoker.tensors.arrays import to_tensor

    tensor = to_tensor(np.ones((items, 4), np.float32))
    with closing(Post(server.http, bytes(write_request(InferRequest((tensor,)))), path="/graphpipe/same")) as post:
        yield post.ask


@contextmanager
def _typed(server: Server, module: str, items: int) -> Iterator[Ask]:
    del items  # it is unary
    service = f"{module}.{module.rpartition('.')[2].capitalize()}Service"
    body = framed(StringValue(value=_TEXT.decode()).SerializeToString())  # of one field, like the function's request
    with closing(Connection(server.grpc, path=f"/{service}/Reply")) as connection:
        yield lambda: _unary(connection, body)


@contextmanager
def _tool(server: Server, _: str, items: int) -> Iterator[Ask]:
    del items  # it is unary
    ask_once(server.grpc, "InitializeSession", bridge_pb2.InitializeSessionRequest(session_id=_SESSION))
    value = packed(StringValue(value=_TEXT.decode()))
    request = bridge_pb2.ToolCallRequest(session_id=_SESSION, tool_id="reply", args=[value])
    body = framed(request.SerializeToString())
    with closing(Connection(server.grpc, path=f"{SERVICE}ExecuteTool")) as connection:

        def call() -> None:
            if not bridge_pb2.ToolCallResponse.FromString(_unary(connection, body)).success:
                raise WrongReplyError("the tool failed")

        yield call


def _unary(connection: Connection, body: bytes) -> bytes:
    stream = connection.open(body, half_close=True)
    stream.kept = bytearray()
    _end(connection, stream)
    return bytes(stream.kept)[5:]


def _receive(connection: Connection, stream: Stream, size: int) -> None:
    while stream.received < size:
        connection.turn()
        if stream.ended and stream.received < size:
            raise WrongReplyError(f"status {stream.status}")


def _end(connection: Connection, stream: Stream) -> None:
    while not stream.ended:
        connection.turn()
    del connection.streams[stream.id]
    if stream.status != "0":
        raise WrongReplyError(f"status {stream.status}")


CALLS: dict[str, Opening] = {
    "riff sync": _riff("reply"),
    "riff async": _riff("async_reply"),
    "http sync": _post("reply"),
    "http async": _post("async_reply"),
    "http sync, read by the loop": _kept,
    "graphpipe": _graphpipe,
    "typed": _typed,
    "toolbridge": _tool,
    "evergreen": _evergreen,
}
STREAMS: dict[str, Opening] = {"riff stream, a message": _riff("stream"), "sse, an item": _events}
