"""What a caller holds of nodes: `Node` is an id to use again, `LeafNode` and `TreeNode` are written piece by piece."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.protocols.evergreen.client.media import charset_of

__all__ = ["FRAGMENT_BYTES", "LeafNode", "Node", "Sender", "TreeNode", "children", "new_id", "payloads"]

FRAGMENT_BYTES = 1 << 20
"""Larger payloads travel in several fragments, which leaves room in the 4 MiB that a server usually takes at once."""

CHILDREN = 1000
"""The most children that one fragment names."""


class Sender(Protocol):
    """What nodes need of their session."""

    def send(self, *fragments: pb.NodeFragment) -> None:
        """Put fragments into the outbox, without waiting."""

    async def room(self) -> None:
        """Wait until the outbox has room."""


def new_id() -> str:
    """Make an id that no node of any session has (E-016: ids have no meaning)."""
    return uuid.uuid4().hex


class Node:
    """A node of a session, to be used as an input, or within one, any number of times; only its id travels then.

    Attributes:
        id: In its session.
        session: The session to which it belongs; no other one knows it.
    """

    def __init__(self, session: Sender, id_: str) -> None:
        self.session = session
        self.id = id_

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"


class LeafNode(Node):
    """A leaf that is sent as it is written; where one piece ends and the next begins means nothing (E-040)."""

    def __init__(self, session: Sender, metadata: pb.ChunkMetadata) -> None:
        super().__init__(session, new_id())
        self._metadata: pb.ChunkMetadata | None = metadata
        self._charset = charset_of(metadata.mimetype)
        self._seq = 0
        self._is_ended = False

    async def write(self, piece: str | bytes) -> None:
        """Send a piece; waits while too much is unsent.

        Raises:
            RuntimeError: The node has been ended.
            CallFailed: The session is over.
        """
        data = piece.encode(self._charset) if isinstance(piece, str) else bytes(piece)
        for payload in payloads(data):
            self._send(payload, is_last=False)
        await self.session.room()

    async def end(self) -> None:
        """End the leaf, which is whole; its readers wait for this. Idempotent."""
        if not self._is_ended:
            self._send(b"", is_last=True)
            self._is_ended = True

    def _send(self, data: bytes, *, is_last: bool) -> None:
        if self._is_ended:
            raise RuntimeError(f"node {self.id} has ended, so nothing can be written to it")
        chunk = pb.Chunk(metadata=self._metadata, data=data) if self._metadata else pb.Chunk(data=data)
        self._metadata = None
        self.session.send(pb.NodeFragment(id=self.id, seq=self._seq, continued=not is_last, chunk_fragment=chunk))
        self._seq += 1


class TreeNode(Node):
    """An interior node to which children are added as they come up.

    Args:
        make: Makes the node of a value, and the fragments that bring it there.
    """

    def __init__(self, session: Sender, make: Callable[[object], tuple[Node, list[pb.NodeFragment]]]) -> None:
        super().__init__(session, new_id())
        self._make = make
        self._seq = 0
        self._is_ended = False

    async def add(self, *items: object) -> None:
        """Add children: nodes, or whatever an input may be; waits while too much is unsent.

        Raises:
            RuntimeError: The node has been ended.
            TypeError: Something that no node can be made of.
            CallFailed: The session is over.
        """
        if self._is_ended:
            raise RuntimeError(f"node {self.id} has ended, so nothing can be added to it")
        for item in items:
            node, fragments = self._make(item)
            self._send(continued=True, child_ids=(node.id,))  # parents travel before their children
            self.session.send(*fragments)
        await self.session.room()

    async def end(self) -> None:
        """End the node: no more children will come. Idempotent."""
        if not self._is_ended:
            self._send(continued=False)
            self._is_ended = True

    def _send(self, *, continued: bool, child_ids: Iterable[str] = ()) -> None:
        self.session.send(pb.NodeFragment(id=self.id, seq=self._seq, continued=continued, child_ids=child_ids))
        self._seq += 1


def payloads(data: bytes) -> Iterator[bytes]:
    """Cut bytes to what a fragment may hold; no bytes are no fragment."""
    for start in range(0, len(data), FRAGMENT_BYTES):
        yield data[start : start + FRAGMENT_BYTES]


def children(id_: str, child_ids: list[str]) -> Iterator[pb.NodeFragment]:
    """The fragments of an interior node whose children are all known."""
    starts = range(0, len(child_ids), CHILDREN) or range(1)
    for seq, start in enumerate(starts):
        ids = child_ids[start : start + CHILDREN]
        yield pb.NodeFragment(id=id_, seq=seq, continued=start != starts[-1], child_ids=ids)
