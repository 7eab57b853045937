"""`Node`: the fragments that a peer has sent for one id and that are not yet taken.

`Reader`: the position of an input in its node.

Theory. The chunks of a node have places from 0. They may come in any order; if a place comes twice, the first counts.
The length of a node is known once its last fragment has come; if the chunk of that fragment is null, it is not part of
the node. A chunk is kept until all current readers have passed it; without a reader, all chunks are kept. A reader that
comes when the first chunks are dropped already is refused.
"""

from __future__ import annotations

from invoker.errors import Status, StatusError
from invoker.protocols.evergreen.action_engine.wire import Chunk, Fragment, NodeRef

OVERHEAD = 128
"""Bytes that each chunk counts in addition to its data."""


class Node:
    """A node of a session: a sequence of chunks, written by the peer or by an action.

    Attributes:
        id: The id that the peer has chosen.
        length: The number of items; None while the last one is not known.
        size: The size of the chunks that are kept, in bytes.
        readers: The inputs that read the node.
        is_made_here: Whether the node is an output of an action of this session.
    """

    __slots__ = ("_first", "_given", "_items", "id", "is_made_here", "length", "readers", "size")

    def __init__(self, id: str, *, is_made_here: bool = False) -> None:
        self.id = id
        self.length: int | None = None
        self.size = 0
        self.readers: list[Reader] = []
        self.is_made_here = is_made_here
        self._items: dict[int, Chunk | NodeRef] = {}
        self._first = self._given = 0

    def put(self, fragment: Fragment) -> None:
        """Store one fragment. It is dropped if its place is filled already, or is beyond the end."""
        seq, content = fragment.seq, fragment.content
        if seq is None or seq < 0:
            seq = self._given
        self._given += 1
        if self.length is not None and seq >= self.length:
            return
        is_end = fragment.is_end
        if not is_end and seq >= self._first and seq not in self._items:
            self._items[seq] = content
            self.size += _size(content)
        if fragment.is_last:
            self._end(seq if is_end else seq + 1)

    def at(self, seq: int) -> Chunk | NodeRef | None:
        """The item at a place, if it has come."""
        return self._items.get(seq)

    def has_ended_at(self, seq: int) -> bool:
        """Whether this place is at or beyond the end of the node."""
        return self.length is not None and seq >= self.length

    def attach(self, reader: Reader) -> None:
        """Add an input, which reads from the beginning.

        Raises:
            StatusError: Other inputs have already read the node, so its items were dropped.
        """
        if self._first:
            text = (
                f"node {self.id!a} was already read by another action; start both actions before its first item is sent"
            )
            raise StatusError(Status.FAILED_PRECONDITION, text)
        self.readers.append(reader)

    def trim(self) -> None:
        """Drop the items that all readers have passed."""
        if not self.readers:
            return
        reached = min(reader.seq for reader in self.readers)
        for seq in range(self._first, reached):
            self._drop(seq)
        self._first = max(self._first, reached)

    def _end(self, length: int) -> None:
        self.length = length
        for seq in [one for one in self._items if one >= length]:
            self._drop(seq)

    def _drop(self, seq: int) -> None:
        content = self._items.pop(seq, None)
        if content is not None:
            self.size -= _size(content)


class Reader:
    """One input of a running action.

    Attributes:
        key: The key of the invocation.
        index: The index of its input.
        node: The node that is read.
        seq: The place of the next item.
        credit: How many items may be fed before the function has to take some.
        is_ended: Whether the function was notified of the end.
    """

    __slots__ = ("credit", "index", "is_ended", "key", "node", "seq")

    def __init__(self, key: str, index: int, node: Node, credit: int) -> None:
        self.key = key
        self.index = index
        self.node = node
        self.seq = 0
        self.credit = credit
        self.is_ended = False


def _size(content: Chunk | NodeRef) -> int:
    return OVERHEAD + (len(content.data) + len(content.ref) if isinstance(content, Chunk) else 0)
