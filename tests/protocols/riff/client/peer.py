"""A bare riff invoker on grpc.aio: it knows the wire and a few behaviours, chosen by the metadata ``invoker-function``.

It shares no code with our own server but the generated messages, so the client is tested against the wire.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.connect.quiet import quieten

Frames = AsyncIterator[pb.InputFrame]


@dataclass
class Peer:
    """A running peer and what it has seen.

    Attributes:
        target: ``host:port``.
        starts: The StartFrames, in order.
        frames: The InputFrames of all calls, in order.
        metadata: Of the last call.
        started: Set when the first frame of a call has arrived.
        cancelled: Set when a call was cancelled by its caller.
        half_closed: Set when a caller has half-closed.
    """

    target: str = ""
    starts: list[pb.StartFrame] = field(default_factory=list)
    frames: list[pb.InputFrame] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    started: threading.Event = field(default_factory=threading.Event)
    cancelled: threading.Event = field(default_factory=threading.Event)
    half_closed: threading.Event = field(default_factory=threading.Event)

    async def invoke(self, requests: AsyncIterator[pb.InputSignal], context: Any) -> AsyncIterator[pb.OutputSignal]:
        self.metadata = dict(context.invocation_metadata())
        behaviour = BEHAVIOURS[self.metadata.get("invoker-function", "echo")]
        try:
            start = await anext(aiter(requests))
            self.starts.append(start.start)
            self.started.set()
            async for out in behaviour(self._inputs(requests), start.start, context):
                yield pb.OutputSignal(data=out)
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled.set()
            raise

    async def _inputs(self, requests: AsyncIterator[pb.InputSignal]) -> Frames:
        async for signal in requests:
            self.frames.append(signal.data)
            yield signal.data
        # A cancel, too, first looks like the end of the requests to grpc.aio; CancelledError follows a little later.
        await asyncio.sleep(0.05)
        self.half_closed.set()


def _copy(frame: pb.InputFrame, index: int) -> pb.OutputFrame:
    return pb.OutputFrame(
        payload=frame.payload, contentType=frame.contentType, headers=frame.headers, resultIndex=index
    )


async def _echo(frames: Frames, start: pb.StartFrame, context: Any) -> AsyncIterator[pb.OutputFrame]:
    """Every value back on output 0."""
    async for frame in frames:
        yield _copy(frame, 0)


async def _two(frames: Frames, start: pb.StartFrame, context: Any) -> AsyncIterator[pb.OutputFrame]:
    """Every value on output 0, its length on output 1."""
    async for frame in frames:
        yield _copy(frame, 0)
        yield pb.OutputFrame(payload=b"%d" % len(frame.payload), contentType="application/json", resultIndex=1)


async def _indexed(frames: Frames, start: pb.StartFrame, context: Any) -> AsyncIterator[pb.OutputFrame]:
    """Every value back as text with the number of its input in front."""
    async for frame in frames:
        yield pb.OutputFrame(payload=b"%d:" % frame.argIndex + frame.payload, contentType="text/plain")


async def _fail(frames: Frames, start: pb.StartFrame, context: Any) -> AsyncIterator[pb.OutputFrame]:
    """The first value back, then an error."""
    async for frame in frames:
        yield _copy(frame, 0)
        break
    await context.abort(grpc.StatusCode.UNKNOWN, "Invoker: Unexpected Error: ValueError: boom")


async def _arity(frames: Frames, start: pb.StartFrame, context: Any) -> AsyncIterator[pb.OutputFrame]:
    """Refuses any number of outputs but two, in the words of the catalogue."""
    count = len(start.expectedContentTypes)
    text = f"Invoker: Protocol Violation: Invalid output count {count}: function has only 2 output(s)"
    await context.abort(grpc.StatusCode.UNKNOWN, text)
    yield pb.OutputFrame()


async def _silent(frames: Frames, start: pb.StartFrame, context: Any) -> AsyncIterator[pb.OutputFrame]:
    """Reads nothing and answers nothing, for ever."""
    await asyncio.Event().wait()
    yield pb.OutputFrame()


async def _endless(frames: Frames, start: pb.StartFrame, context: Any) -> AsyncIterator[pb.OutputFrame]:
    """Numbers for ever, whatever is sent."""
    number = 0
    while True:
        yield pb.OutputFrame(payload=b"%d" % number, contentType="application/json")
        number += 1


async def _first(frames: Frames, start: pb.StartFrame, context: Any) -> AsyncIterator[pb.OutputFrame]:
    """The first value back, then OK although the caller still sends."""
    async for frame in frames:
        yield _copy(frame, 0)
        return


async def _source(frames: Frames, start: pb.StartFrame, context: Any) -> AsyncIterator[pb.OutputFrame]:
    """Three numbers without waiting for any input."""
    for number in range(3):
        yield pb.OutputFrame(payload=b"%d" % number, contentType="application/json")


async def _binary(frames: Frames, start: pb.StartFrame, context: Any) -> AsyncIterator[pb.OutputFrame]:
    """Bytes that are no text, and a type that has no codec."""
    async for _ in frames:
        pass
    yield pb.OutputFrame(payload=b"\x00\xff\x1b", contentType="image/x-thing", headers={"X-Size": "3"})


async def _shutting(frames: Frames, start: pb.StartFrame, context: Any) -> AsyncIterator[pb.OutputFrame]:
    """UNAVAILABLE from a peer that is there."""
    await context.abort(grpc.StatusCode.UNAVAILABLE, "Invoker: Shutting Down")
    yield pb.OutputFrame()


BEHAVIOURS = {
    "arity": _arity,
    "binary": _binary,
    "echo": _echo,
    "endless": _endless,
    "fail": _fail,
    "first": _first,
    "indexed": _indexed,
    "shutting": _shutting,
    "silent": _silent,
    "source": _source,
    "two": _two,
}


@contextlib.asynccontextmanager
async def serve(credentials: grpc.ServerCredentials | None = None) -> AsyncIterator[Peer]:
    """Run a peer on the current loop, on a free port of loopback."""
    quieten(asyncio.get_running_loop())
    peer = Peer()
    server = grpc.aio.server(options=(("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", 64 << 20)))
    handler = grpc.stream_stream_rpc_method_handler(
        peer.invoke,
        request_deserializer=pb.InputSignal.FromString,
        response_serializer=pb.OutputSignal.SerializeToString,
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("streaming.Riff", {"Invoke": handler}),))
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    peer.target = f"127.0.0.1:{port}"
    await server.start()
    try:
        yield peer
    finally:
        await server.stop(None)


@contextlib.contextmanager
def serve_in_thread(credentials: grpc.ServerCredentials | None = None) -> Iterator[Peer]:
    """Run a peer on a loop in a thread, for callers that have no loop or block theirs."""
    started = threading.Event()
    box: dict[str, Any] = {}

    async def main() -> None:
        box["stop"] = asyncio.Event()
        box["loop"] = asyncio.get_running_loop()
        async with serve(credentials) as box["peer"]:
            started.set()
            await box["stop"].wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),), name="peer")
    thread.start()
    assert started.wait(10), "the peer did not start"
    try:
        yield box["peer"]
    finally:
        box["loop"].call_soon_threadsafe(box["stop"].set)
        thread.join(10)
        assert not thread.is_alive(), "the peer did not stop"
