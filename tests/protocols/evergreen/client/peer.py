"""A bare Evergreen server on grpc.aio whose actions are scripts; it shares only the generated messages with ours.

A script gets the session as the wire has it and sends what it likes, right or wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.connect.quiet import quieten

Script = Callable[["Talk", pb.Action], Awaitable[None]]


def leaf(
    id_: str, data: bytes, *, seq: int = 0, more: bool = False, media_type: str | None = "text/plain", role: str = ""
) -> pb.NodeFragment:
    """A fragment of a leaf; no media type: no metadata."""
    metadata = None if media_type is None else pb.ChunkMetadata(mimetype=media_type, role=role)
    chunk = pb.Chunk(metadata=metadata, data=data)
    return pb.NodeFragment(id=id_, seq=seq, continued=more, chunk_fragment=chunk)


def inner(id_: str, *children: str, seq: int = 0, more: bool = False) -> pb.NodeFragment:
    """A fragment of an interior node, or a bare terminator."""
    return pb.NodeFragment(id=id_, seq=seq, continued=more, child_ids=children)


@dataclass
class Peer:
    """A running peer and what it has seen.

    Attributes:
        target: ``host:port``.
        scripts: By name of the action; may be added to.
        accepts: The extensions that it knows.
        talks: The sessions, in order.
        is_mute: Whether headers wait for the first fragment.
        on_message: Done with each message before the next is read.
    """

    target: str = ""
    scripts: dict[str, Script] = field(default_factory=dict)
    accepts: tuple[str, ...] = ("cancel", "discovery")
    talks: list[Talk] = field(default_factory=list)
    is_mute: bool = False
    on_message: Callable[[Talk, pb.SessionMessage], Awaitable[None]] | None = None
    _begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def talk(self) -> Talk:
        """The first session, once it has begun."""
        await self._begun.wait()
        return self.talks[0]

    async def start_session(self, requests: AsyncIterator[pb.SessionMessage], context: Any) -> None:
        talk = Talk(self, context)
        self.talks.append(talk)
        self._begun.set()
        try:
            await talk.run(requests)
        finally:
            if not talk.half_closed.is_set():
                talk.cancelled.set()


class Talk:
    """One session.

    Attributes:
        fragments: As they came.
        actions: As they came.
        metadata: Of the call.
        cancelled: Set when it ended before the client had half-closed.
        half_closed: Set when it has half-closed.
        cancels: Ids that CANCEL named.
    """

    def __init__(self, peer: Peer, context: Any) -> None:
        self.peer = peer
        self.context = context
        self.fragments: list[pb.NodeFragment] = []
        self.actions: list[pb.Action] = []
        self.metadata = dict(context.invocation_metadata())
        self.cancelled = threading.Event()
        self.half_closed = asyncio.Event()
        self.cancels: list[str] = []
        self._changed = asyncio.Condition()
        self._writing = asyncio.Lock()

    async def run(self, requests: AsyncIterator[pb.SessionMessage]) -> None:
        asked = [token.strip() for token in self.metadata.get("evergreen-extensions", "").split(",")]
        accepted = ", ".join(token for token in asked if token in self.peer.accepts)
        if not self.peer.is_mute:
            await self.context.send_initial_metadata((("evergreen-extensions", accepted),))
        async with asyncio.TaskGroup() as scripts:
            async for message in requests:
                self.fragments.extend(message.node_fragments)
                self.actions.extend(message.actions)
                for action in message.actions:
                    if action.name == "CANCEL":
                        self.cancels.append(action.inputs[0].id)
                    else:
                        scripts.create_task(self.peer.scripts[action.name](self, action))
                await self._tell()
                if self.peer.on_message is not None:
                    await self.peer.on_message(self, message)
            await asyncio.sleep(0.05)  # a cancel, too, first looks like the end of the requests to grpc.aio
            self.half_closed.set()
            await self._tell()

    async def send(self, *fragments: pb.NodeFragment) -> None:
        """Send fragments in one message."""
        async with self._writing:  # grpc.aio takes one write at a time
            await self.context.write(pb.SessionMessage(node_fragments=fragments))

    async def until(self, is_so: Callable[[], Any]) -> None:
        """Wait until what came fulfils a condition."""
        async with self._changed:
            await self._changed.wait_for(is_so)

    async def whole(self, id_: str) -> list[pb.NodeFragment]:
        """The leaves of a node once all of it is there, each put together as one fragment."""

        def own() -> list[pb.NodeFragment]:
            return sorted((one for one in self.fragments if one.id == id_), key=lambda one: one.seq)

        await self.until(lambda: (found := own()) and len(found) == found[-1].seq + 1 and not found[-1].continued)
        found = own()
        children = [child for one in found for child in one.child_ids]
        if children or not found[0].HasField("chunk_fragment"):
            return [one for child in children for one in await self.whole(child)]
        whole = pb.NodeFragment()
        whole.CopyFrom(found[0])
        if whole.chunk_fragment.WhichOneof("payload") != "ref":
            whole.chunk_fragment.data = b"".join(one.chunk_fragment.data for one in found)
        return [whole]

    async def texts(self, id_: str) -> list[str]:
        """The text of each leaf."""
        return [one.chunk_fragment.data.decode() for one in await self.whole(id_)]

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def sending(*fragments: pb.NodeFragment) -> Script:
    """A script that sends these; the id R stands for the first output."""

    async def script(talk: Talk, action: pb.Action) -> None:
        for one in fragments:
            copy = pb.NodeFragment()
            copy.CopyFrom(one)
            if copy.id == "R":
                copy.id = action.outputs[0].id
            await talk.send(copy)

    return script


async def echo(talk: Talk, action: pb.Action) -> None:
    """All leaves of all inputs as one text, with a bar between them, in two pieces and a terminator."""
    texts = [text for one in action.inputs for text in await talk.texts(one.id)]
    output = action.outputs[0].id
    talk.fragments.append(leaf(output, "|".join(texts).encode()))  # later actions may use it
    text = "|".join(texts).encode()
    await talk.send(leaf(output, text[:2], more=True))
    await talk.send(leaf(output, text[2:], seq=1, more=True, media_type=None))
    await talk.send(leaf(output, b"", seq=2, media_type=None))


async def fail(talk: Talk, action: pb.Action) -> None:
    """A piece, then the end of the session."""
    await talk.send(leaf(action.outputs[0].id, b"begun", more=True))
    await talk.context.abort(grpc.StatusCode.UNKNOWN, "Evergreen: Action Failed: ValueError: boom")


async def silent(talk: Talk, action: pb.Action) -> None:
    """Nothing, until it is cancelled; then its terminators."""
    ids = {one.id for one in action.outputs}
    await talk.until(lambda: ids & set(talk.cancels) or talk.half_closed.is_set())
    await talk.send(*(inner(one.id) for one in action.outputs))


SCRIPTS: dict[str, Script] = {"ECHO": echo, "FAIL": fail, "SILENT": silent}


@contextlib.asynccontextmanager
async def serve(credentials: grpc.ServerCredentials | None = None) -> AsyncIterator[Peer]:
    """Run a peer on the current loop, on a free port of loopback."""
    quieten(asyncio.get_running_loop())
    peer = Peer(scripts=dict(SCRIPTS))
    server = grpc.aio.server(options=(("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", 4 << 20)))
    handler = grpc.stream_stream_rpc_method_handler(
        peer.start_session,
        request_deserializer=pb.SessionMessage.FromString,
        response_serializer=pb.SessionMessage.SerializeToString,
    )
    methods = grpc.method_handlers_generic_handler("evergreen.v2.EvergreenService", {"StartSession": handler})
    server.add_generic_rpc_handlers((methods,))
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

    thread = threading.Thread(target=asyncio.run, args=(main(),), name="evergreen-peer")
    thread.start()
    assert started.wait(10), "the peer did not start"
    try:
        yield box["peer"]
    finally:
        box["loop"].call_soon_threadsafe(box["stop"].set)
        thread.join(10)
        assert not thread.is_alive(), "the peer did not stop"
