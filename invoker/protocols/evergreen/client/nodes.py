"""The nodes that a caller handles: `Node` is one to use again, `LeafNode` and `TreeNode` are written piece by piece."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.protocols.evergreen.client.media import charset_of
from invoker.protocols.evergreen.wire import children_frame, leaf_frame, prefix_of

FRAGMENT_BYTES = 1 << 20
"""Larger payloads are sent in several fragments, well below the 4 MiB that a server usually accepts in one message."""

CHILDREN = 1000
"""The largest number of children in one fragment."""


class Sender(Protocol):
    """The methods of a session that its nodes need."""

    def send(self, *frames: bytes) -> None:
        """Put serialised messages into the outbox, without waiting."""

    async def room(self) -> None:
        """Wait until the outbox has room."""


def new_id() -> str:
    """Make an id that no node of any session has (E-016: ids have no meaning)."""
    return uuid.uuid4().hex


class Node:
    """A node of a session. It can be an input, or a part of one, any number of times; only its id is sent then.

    Attributes:
        id: The id of the node in its session.
        session: The only session that has this node.
    """

    def __init__(self, session: Sender, id_: str) -> None:
        self.session = session
        self.id = id_

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"


class LeafNode(Node):
    """A leaf that is sent piece by piece, as it is written; the borders between pieces have no meaning (E-040)."""

    def __init__(self, session: Sender, metadata: pb.ChunkMetadata) -> None:
        super().__init__(session, new_id())
        self._metadata: bytes | None = metadata.SerializeToString()
        self._charset = charset_of(metadata.mimetype)
        self._seq = 0
        self._is_ended = False

    async def write(self, piece: str | bytes) -> None:
        """Send a piece; waits while too many bytes are unsent.

        Raises:
            RuntimeError: The node was ended before.
            CallFailed: The session has ended.
        """
        data = piece.encode(self._charset) if isinstance(piece, str) else bytes(piece)
        for payload in payloads(data):
            self._send(payload, is_last=False)
        await self.session.room()

    async def end(self) -> None:
        """End the leaf: no more pieces will come. Idempotent."""
        if not self._is_ended:
            self._send(b"", is_last=True)
            self._is_ended = True

    def _send(self, data: bytes, *, is_last: bool) -> None:
        if self._is_ended:
            raise RuntimeError(f"node {self.id} has ended, so nothing can be written to it")
        prefix, metadata = prefix_of(self.id), self._metadata
        self.session.send(leaf_frame(prefix, self._seq, data, continued=not is_last, metadata=metadata))
        self._metadata = None
        self._seq += 1


class TreeNode(Node):
    """An interior node; children are added one by one.

    Args:
        make: Makes the node for a value, and the messages that send the node.
    """

    def __init__(self, session: Sender, make: Callable[[object], tuple[Node, list[bytes]]]) -> None:
        super().__init__(session, new_id())
        self._make = make
        self._seq = 0
        self._is_ended = False

    async def add(self, *items: object) -> None:
        """Add children: nodes, or values of any kind that an input may have; waits while too many bytes are unsent.

        Raises:
            RuntimeError: The node was ended before.
            TypeError: A value cannot become a node.
            CallFailed: The session has ended.
        """
        if self._is_ended:
            raise RuntimeError(f"node {self.id} has ended, so nothing can be added to it")
        for item in items:
            node, frames = self._make(item)
            self._send(continued=True, child_ids=(node.id,))  # parents are sent before their children
            self.session.send(*frames)
        await self.session.room()

    async def end(self) -> None:
        """End the node: no more children will come. Idempotent."""
        if not self._is_ended:
            self._send(continued=False)
            self._is_ended = True

    def _send(self, *, continued: bool, child_ids: Sequence[str] = ()) -> None:
        self.session.send(children_frame(prefix_of(self.id), self._seq, child_ids, continued=continued))
        self._seq += 1


def payloads(data: bytes) -> Iterator[bytes]:
    """Cut bytes into payloads of fragments; empty bytes give none."""
    for start in range(0, len(data), FRAGMENT_BYTES):
        yield data[start : start + FRAGMENT_BYTES]


def children(id_: str, child_ids: Sequence[str]) -> Iterator[bytes]:
    """The messages of a complete interior node."""
    starts = range(0, len(child_ids), CHILDREN) or range(1)
    for seq, start in enumerate(starts):
        ids = child_ids[start : start + CHILDREN]
        yield children_frame(prefix_of(id_), seq, ids, continued=start != starts[-1])
