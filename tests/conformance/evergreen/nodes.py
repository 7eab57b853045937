"""Nodes of the peer of `peer.py`: which fragments it takes, and how it reads them."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

import grpc

from invoker._pb.evergreen import evergreen_pb2 as pb

EOT = "application/x-protobuf; type=EndOfTurn"
INVALID = grpc.StatusCode.INVALID_ARGUMENT


class Refused(Exception):
    """The session ends with this status."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def frag(text: str) -> Refused:
    """A broken rule of fragments."""
    return Refused(INVALID, f"Evergreen: Invalid Node Fragment: {text}")


class Leaf(NamedTuple):
    """A leaf as functions get it."""

    metadata: pb.ChunkMetadata
    chunks: list[pb.Chunk]


class Node:
    """What came of one node."""

    def __init__(self) -> None:
        self.fragments: dict[int, pb.NodeFragment] = {}
        self.final: int | None = None

    @property
    def is_interior(self) -> bool:
        """Whether it has children."""
        return any(each.child_ids for each in self.fragments.values())

    @property
    def is_leaf(self) -> bool:
        """Whether it has bytes."""
        return any(each.HasField("chunk_fragment") for each in self.fragments.values())

    @property
    def children(self) -> list[str]:
        """In the order of seq."""
        return [child for seq in sorted(self.fragments) for child in self.fragments[seq].child_ids]


class Nodes:
    """The nodes of one session.

    Args:
        has: Whether the peer has a fault.
        owned: Ids of outputs.
    """

    def __init__(self, has: Callable[[str], bool], owned: set[str]) -> None:
        self.has = has
        self.owned = owned
        self.by_id: dict[str, Node] = {}
        self.moved = asyncio.Condition()
        self.waits: dict[Any, str] = {}
        self.on_wait: Callable[[], None] = lambda: None

    async def take(self, fragment: pb.NodeFragment, *, is_ours: bool = False) -> None:
        """Check a fragment in the catalogue's order and keep it."""
        if not is_ours:
            self._check_place(fragment)
        node = self.by_id.setdefault(fragment.id, Node())
        seq = len(node.fragments) if self.has("ignores seq") else fragment.seq
        if not is_ours and self.has("checks metadata before duplicates"):
            self._check_metadata(fragment)
        if seq in node.fragments and not self.has("last duplicate wins"):
            return
        if not is_ours:
            self._check(fragment, node)
        node.fragments[seq] = fragment
        if not fragment.continued:
            node.final = seq
        if fragment.child_ids and not self.has("no check of cycles"):
            self._check_cycle(fragment.id)
        async with self.moved:
            self.moved.notify_all()

    def _check_place(self, fragment: pb.NodeFragment) -> None:
        if not fragment.id and not self.has("takes empty ids"):
            raise frag("an empty id")
        if len(fragment.id.encode()) > 1024:
            raise Refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "Evergreen: Limit Exceeded: an id of over 1024 bytes")
        if fragment.seq < 0 and not self.has("takes a negative seq"):
            raise frag(f"seq {fragment.seq}")
        if fragment.id in self.owned and not self.has("lets clients write outputs"):
            raise frag("an output")

    def _check(self, fragment: pb.NodeFragment, node: Node) -> None:
        if node.final is not None and fragment.seq > node.final and not self.has("takes a seq beyond the final one"):
            raise frag(f"seq {fragment.seq} is beyond final seq {node.final}")
        highest = max(node.fragments, default=-1)
        if not fragment.continued and highest > fragment.seq and not self.has("takes a low final seq"):
            raise frag(f"seq {highest} is beyond final seq {fragment.seq}")
        is_leaf, is_interior = fragment.HasField("chunk_fragment"), bool(fragment.child_ids)
        if is_leaf and is_interior and not self.has("takes both kinds"):
            raise frag("both kinds")
        conflict = (is_leaf and node.is_interior) or (is_interior and node.is_leaf)
        if conflict and not self.has("takes conflicts of kinds"):
            raise frag("leaf and interior")
        if "" in fragment.child_ids:
            raise frag("an empty child id")
        self._check_metadata(fragment)
        if is_leaf and 0 in node.fragments and not node.fragments[0].HasField("chunk_fragment"):
            raise frag("no metadata at seq 0")

    def _check_metadata(self, fragment: pb.NodeFragment) -> None:
        chunk = fragment.chunk_fragment
        if fragment.seq and chunk.HasField("metadata") and not self.has("takes metadata anywhere"):
            raise frag("metadata on a seq other than 0")
        is_bare = fragment.HasField("chunk_fragment") and not chunk.HasField("metadata")
        if not fragment.seq and is_bare and not self.has("needs no metadata"):
            raise frag("no metadata at seq 0")

    def _check_cycle(self, start: str) -> None:
        waiting, seen = [start], set()
        while waiting:
            for child in self.by_id[waiting.pop()].children:
                if child == start:
                    raise Refused(INVALID, f"Evergreen: Invalid Node Graph: {start!r} includes itself")
                if child in self.by_id and child not in seen:
                    seen.add(child)
                    waiting.append(child)

    async def until(self, ready: Callable[[], bool], id_: str) -> None:
        """Wait for a node; the session knows meanwhile who waits."""
        me = asyncio.current_task()
        while not ready():
            self.waits[me] = id_
            self.on_wait()
            async with self.moved:
                await self.moved.wait()
            self.waits.pop(me, None)

    async def fragments(self, id_: str) -> AsyncIterator[pb.NodeFragment]:
        """The fragments of a node in the order of seq, as they come."""
        node = self.by_id.setdefault(id_, Node())
        seq = 0
        while node.final is None or seq <= node.final:
            await self.until(lambda: seq in node.fragments, id_)  # noqa: B023  # asked before seq moves
            yield node.fragments[seq]
            seq += 1

    async def leaves(self, id_: str, depth: int = 1) -> AsyncIterator[Leaf]:
        """The leaves below a node, depth first."""
        if depth > 64 and not self.has("no limit of depth"):
            raise Refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "Evergreen: Limit Exceeded: over 64 levels")
        if self.has("waits for whole nodes"):
            async for _ in self.fragments(id_):
                pass
        leaf: Leaf | None = None
        async for fragment in self.fragments(id_):
            children = list(fragment.child_ids)
            for child in dict.fromkeys(children) if self.has("reads a doubled child once") else children:
                if self.has("reads no outputs") and child in self.owned:
                    continue
                async for below in self.leaves(child, depth + 1):
                    yield below
            chunk = fragment.chunk_fragment
            if fragment.HasField("chunk_fragment") and (leaf is not None or chunk.HasField("metadata")):
                leaf = leaf or Leaf(chunk.metadata, [])
                leaf.chunks.append(chunk)
        if leaf is not None:
            yield leaf

    def bytes_of(self, chunk: pb.Chunk) -> bytes:
        """The payload of a chunk, resolved if it is a reference."""
        if chunk.WhichOneof("payload") != "ref":
            return chunk.data
        scheme, _, rest = chunk.ref.partition(":")
        if scheme != "data":
            if self.has("takes any reference"):
                return b""
            raise Refused(grpc.StatusCode.PERMISSION_DENIED, f"Evergreen: Reference Refused: scheme {scheme!r}")
        head, comma, body = rest.partition(",")
        try:
            if not comma:
                raise ValueError("no comma")
            return base64.b64decode(body, validate=True) if head.endswith(";base64") else unquote_to_bytes(body)
        except (ValueError, binascii.Error) as error:
            raise bad(str(error)) from None

    def value(self, leaf: Leaf) -> Any:
        """A leaf decoded: text, JSON or bytes."""
        media_type = leaf.metadata.mimetype.partition(";")[0]
        refs = [chunk.ref for chunk in leaf.chunks if chunk.ref]
        if refs and self.has("believes references"):
            media_type = refs[0].removeprefix("data:").partition(";")[0].partition(",")[0] or media_type
        pieces = [self.bytes_of(chunk) for chunk in leaf.chunks]
        try:
            if media_type.startswith("text/") or media_type == "application/x-latex":
                if self.has("decodes fragments alone"):
                    return "".join(piece.decode(errors="replace") for piece in pieces)
                return b"".join(pieces).decode()
            if media_type == "application/json":
                return json.loads(b"".join(pieces), parse_constant=_refuse)
        except ValueError as error:
            raise bad(str(error)) from None
        return b"".join(pieces)


def bad(text: str) -> Refused:
    """A bad input."""
    return Refused(INVALID, f"Evergreen: Bad Input: {text}")


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
