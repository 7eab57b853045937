"""`Arrivals`: the nodes that a server sends, assembled from fragments in any order; `Cursor` reads one of them.

Theory. Nothing here waits: fragments go in, parts come out. A node is a leaf (its parts are payloads) or interior (its
parts are ids of children). Only the parts below the first gap in its seqs can be read. The state of a node decides how
long its parts are held::

    node       becomes so by                             its parts
    ---------  ----------------------------------------  ---------------------------------------------------------
    orphan     a fragment, before anything lists the id  are held
    listed     being an output, or a child of such       are held until they were read once, then released
    kept       being listed twice, or below such a node  are held until the session ends, and can be read any times
    dropped    its reader stopped                        are released, now and when more come; so are those below
    spent      its end, when it was read or dropped      are gone; only the id and the final seq of the node are left

If the server breaks a rule (E-103 and "Fragments" of docs/reference/evergreen.md), `BadNode` is raised, with a text for
the author of the server.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from invoker._pb.evergreen import evergreen_pb2 as pb

COST_BYTES = 128
"""Bytes that a fragment or a child counts in addition to its payload, so that empty ones count, too."""

_SHOWN = 64


class BadNode(Exception):
    """The server sent fragments that break a rule; the text says which one."""


class Reference(str):
    """The URI of a part whose bytes are stored elsewhere."""

    __slots__ = ()


class End:
    """`Cursor.step` returns this when the whole node was read."""


END: Final = End()


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a leaf.

    Attributes:
        metadata: The metadata of the leaf.
        payload: Bytes or a reference; None: this is the end of the leaf.
    """

    metadata: pb.ChunkMetadata
    payload: bytes | Reference | None


@dataclass(slots=True, eq=False)
class _Node:
    id: str
    is_leaf: bool | None = None
    metadata: pb.ChunkMetadata | None = None
    parts: deque[bytes | Reference | str] = field(default_factory=deque)
    released: int = 0  # how many parts were read and released
    next_seq: int = 0
    early: dict[int, pb.NodeFragment] = field(default_factory=dict)
    final_seq: int | None = None
    is_listed: bool = False
    is_kept: bool = False
    is_dropped: bool = False

    @property
    def is_complete(self) -> bool:
        return self.final_seq is not None and self.next_seq > self.final_seq


class Arrivals:
    """All nodes of a session that came from the server.

    Attributes:
        held_bytes: The memory of all nodes in bytes, bookkeeping included.
    """

    def __init__(self) -> None:
        self.held_bytes = 0
        self._nodes: dict[str, _Node] = {}
        self._spent: dict[str, int] = {}  # the final seq of each spent node, by its id

    def list(self, id_: str) -> None:
        """Record that a node will be read once, as an output or as a child of a node that is read."""
        if id_ in self._spent:
            return  # the cursor that reads the node raises an error
        node = self._node(id_)
        if node.is_listed:
            self._keep(node)
        node.is_listed = True

    def drop(self, id_: str) -> None:
        """Release a node and all nodes below it for ever, except nodes that are kept."""
        waiting = [id_]
        while waiting:
            id_ = waiting.pop()
            if id_ in self._spent or (node := self._node(id_)).is_kept or node.is_dropped:
                continue
            node.is_listed = node.is_dropped = True
            self.held_bytes -= sum(_size(part) for part in node.parts)
            if not node.is_leaf:
                waiting.extend(str(part) for part in node.parts)
            node.released += len(node.parts)
            node.parts.clear()
            self._end(node)

    def is_complete(self, id_: str) -> bool:
        """Whether all fragments of a node have come; fragments of its children may still be missing."""
        return id_ in self._spent or (id_ in self._nodes and self._nodes[id_].is_complete)

    def missing(self, id_: str) -> str:
        """A phrase for error texts that says what a node lacks."""
        node = self._nodes.get(id_)
        if node is None or not (node.next_seq or node.early):
            return "never came"
        if node.early:
            return f"has no seq {node.next_seq}, though later ones came"
        return f"never ended after seq {node.next_seq - 1}"

    def receive(self, fragment: pb.NodeFragment) -> None:
        """Take one fragment.

        Raises:
            BadNode: The fragment breaks a rule.
        """
        seq = fragment.seq
        if not fragment.id:
            raise BadNode("a fragment without an id")
        if fragment.id in self._spent:
            if not 0 <= seq <= self._spent[fragment.id]:
                raise BadNode(f"{_called(fragment.id)} with seq {seq} beyond its final seq {self._spent[fragment.id]}")
            return
        node = self._node(fragment.id)
        if seq < 0:
            raise BadNode(f"{_called(node.id)} with the negative seq {seq}")
        if seq < node.next_seq or seq in node.early:
            return  # E-019: if a seq comes twice, the first one counts
        self._check(node, fragment)
        node.early[seq] = fragment
        self.held_bytes += _weight(fragment)
        while (ready := node.early.pop(node.next_seq, None)) is not None:
            self.held_bytes -= _weight(ready)
            self._append(node, ready)
            node.next_seq += 1
        if node.is_dropped:
            self._end(node)

    def _check(self, node: _Node, fragment: pb.NodeFragment) -> None:
        seq, called = fragment.seq, _called(node.id)
        if node.final_seq is not None and seq > node.final_seq:
            raise BadNode(f"{called} with seq {seq} beyond its final seq {node.final_seq}")
        if not fragment.continued:
            highest = max(node.early, default=node.next_seq - 1)
            if highest > seq:
                raise BadNode(f"{called} with final seq {seq}, but seq {highest} has come before")
            node.final_seq = seq
        has_chunk = fragment.HasField("chunk_fragment")
        if has_chunk and fragment.child_ids:
            raise BadNode(f"{called} with children and a chunk in seq {seq}")
        if (has_chunk and node.is_leaf is False) or (fragment.child_ids and node.is_leaf):
            raise BadNode(f"{called} as a leaf and as an interior node")
        if has_chunk or fragment.child_ids:
            node.is_leaf = has_chunk
        if has_chunk and seq > 0 and fragment.chunk_fragment.HasField("metadata"):
            raise BadNode(f"{called} with metadata in seq {seq}; only seq 0 may have them")
        if not all(fragment.child_ids):
            raise BadNode(f"{called} with a child that has no id")

    def _append(self, node: _Node, fragment: pb.NodeFragment) -> None:
        chunk = fragment.chunk_fragment
        if chunk.HasField("metadata"):
            node.metadata = chunk.metadata
        parts: list[bytes | Reference | str] = list(fragment.child_ids)
        if chunk.WhichOneof("payload") == "ref":
            parts.append(Reference(chunk.ref))
        elif chunk.data:
            parts.append(chunk.data)
        if node.is_leaf and parts and node.metadata is None:
            raise BadNode(f"{_called(node.id)} with bytes, but without metadata at seq 0")
        for child in fragment.child_ids:
            if node.is_dropped:
                self.drop(child)
                continue
            self.list(child)
            if node.is_kept and child not in self._spent:
                self._keep(self._node(child))
        if node.is_dropped:
            node.released += len(parts)
        else:
            node.parts.extend(parts)
            self.held_bytes += sum(_size(part) for part in parts)

    def _keep(self, node: _Node) -> None:
        waiting = [node]
        while waiting:
            node = waiting.pop()
            if not node.is_kept:
                node.is_kept = True
                if node.is_leaf is False:
                    waiting.extend(self._node(str(part)) for part in node.parts if part not in self._spent)

    def _end(self, node: _Node) -> None:
        """Reduce a node that will not be read further to its final seq, if it is complete and not kept."""
        if node.is_complete and not node.is_kept and node.final_seq is not None:
            self._nodes.pop(node.id, None)
            self._spent[node.id] = node.final_seq

    def _node(self, id_: str) -> _Node:
        node = self._nodes.get(id_)
        if node is None:
            node = self._nodes[id_] = _Node(id_)
        return node

    def _take(self, node: _Node, position: int) -> bytes | Reference | str | None:
        """Take the part at a position, which is released unless the node is kept; None if it has not come."""
        if position < node.released or node.id in self._spent:
            raise BadNode(f"{_called(node.id)} listed again after it was read and dropped")
        if position - node.released >= len(node.parts):
            return None
        part = node.parts[position - node.released]
        if not node.is_kept:
            node.parts.popleft()
            node.released += 1
            self.held_bytes -= _size(part)
        return part


class Cursor:
    """Reads a node depth first, from left to right, as far as its fragments have come (E-062).

    Attributes:
        waits_for: The id of the node for whose next part `step` waits.
    """

    def __init__(self, arrivals: Arrivals, root: str) -> None:
        self._arrivals = arrivals
        # positions by id of the node; the dict also keeps the path in order, and finds cycles
        self._path: dict[str, int] = {root: 0}
        self.waits_for = root

    def step(self) -> Part | End | None:
        """Return the next part; None if it has not come yet; `End` after the last one.

        Raises:
            BadNode: A node includes itself, or was released before.
        """
        nodes = self._arrivals
        while self._path:
            id_ = next(reversed(self._path))
            # A spent node reads like an empty one.
            node = _Node(id_) if id_ in nodes._spent else nodes._node(id_)  # noqa: SLF001
            part = nodes._take(node, self._path[id_])  # noqa: SLF001 - as above
            if part is not None:
                self._path[id_] += 1
                if node.is_leaf:
                    assert node.metadata is not None, "_append() checked it"
                    return Part(node.metadata, part if isinstance(part, bytes) else Reference(part))
                if part in self._path:
                    raise BadNode(f"{_called(node.id)} which includes itself")
                self._path[str(part)] = 0
            elif node.is_complete:
                del self._path[id_]
                nodes._end(node)  # noqa: SLF001 - as above
                if node.metadata is not None:
                    return Part(node.metadata, None)
            else:
                self.waits_for = id_
                return None
        return END

    def drop(self) -> None:
        """Release the nodes below the root that were not read."""
        while self._path:
            self._arrivals.drop(self._path.popitem()[0])


def _weight(fragment: pb.NodeFragment) -> int:
    return COST_BYTES * (1 + len(fragment.child_ids)) + len(fragment.chunk_fragment.data)


def _size(part: bytes | str) -> int:
    return COST_BYTES + len(part)


def _called(id_: str) -> str:
    return f"node {id_[:_SHOWN]!r}"
