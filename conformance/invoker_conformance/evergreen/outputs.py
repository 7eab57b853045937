"""`Outputs`: collects the outputs of a session, checks each fragment, and flattens a root into its leaves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker_conformance.evergreen.frames import shown
from invoker_conformance.faults import CONCRETE

FRAGMENT_BYTES = 1024 * 1024


class Broken(Exception):
    """A fragment breaks a rule for all fragments.

    Attributes:
        met: The description of the fragment.
        expected: The rule, with the id of the requirement.
    """

    def __init__(self, met: str, expected: str) -> None:
        super().__init__(f"{met}; expected {expected}")
        self.met = met
        self.expected = expected


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of a flattened root."""

    id: str
    metadata: pb.ChunkMetadata
    data: bytes

    @property
    def media_type(self) -> str:
        """The media type of the leaf, without parameters."""
        return self.metadata.mimetype.partition(";")[0].strip()

    @property
    def value(self) -> Any:
        """The text of a text leaf, the value of a JSON leaf, or the bytes of any other leaf.

        Raises:
            ValueError: The payload does not fit the media type.
        """
        if self.media_type.startswith("text/"):
            return self.data.decode()
        if self.media_type == "application/json":
            return json.loads(self.data)
        return self.data


@dataclass(slots=True)
class _Node:
    next_seq: int = 0
    has_ended: bool = False
    metadata: pb.ChunkMetadata | None = None
    pieces: list[bytes] = field(default_factory=list)
    children: list[str] = field(default_factory=list)


class Outputs:
    """All nodes that the server sent in a session; each fragment is checked when it comes (E-103)."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._declared: set[str] = set()
        self._ours: set[str] = set()
        self._children: set[str] = set()
        self.fragments = 0

    def sent(self, message: pb.SessionMessage) -> None:
        """Record the ids that the client used, and the outputs that it listed."""
        for fragment in message.node_fragments:
            self._ours.add(fragment.id)
            self._ours.update(fragment.child_ids)
        for action in message.actions:
            self._ours.update(one.id for one in action.inputs)
            self._declared.update(one.id for one in action.outputs)

    def take(self, fragment: pb.NodeFragment) -> None:
        """Check a fragment of the server, and keep it.

        Raises:
            Broken: The fragment breaks a rule.
        """
        text = f"the fragment {shown(fragment)}"
        node = self._nodes.setdefault(fragment.id, _Node())
        if fragment.id not in self._declared and fragment.id not in self._children:
            raise Broken(text, "the id of an output that was listed, or of a child named before (E-086, E-096, E-099)")
        if node.has_ended:
            raise Broken(text, f"nothing of {fragment.id!r} after its final fragment (E-103)")
        if fragment.seq != node.next_seq:
            raise Broken(text, f"seq {node.next_seq}: from 0, ascending, without gaps (E-103)")
        if fragment.child_ids and fragment.HasField("chunk_fragment"):
            raise Broken(text, "children or a chunk, not both (E-027)")
        if fragment.HasField("chunk_fragment"):
            self._take_chunk(fragment, node, text)
        if fragment.child_ids:
            self._take_children(fragment, node, text)
        node.next_seq += 1
        node.has_ended = not fragment.continued
        self.fragments += 1

    def _take_chunk(self, fragment: pb.NodeFragment, node: _Node, text: str) -> None:
        chunk = fragment.chunk_fragment
        if chunk.HasField("metadata"):
            if fragment.seq:
                raise Broken(text, "metadata on seq 0 only (E-097, E-103)")
            if "*" in chunk.metadata.mimetype or not CONCRETE.fullmatch(chunk.metadata.mimetype):
                raise Broken(text, "a concrete mimetype (E-104)")
            node.metadata = chunk.metadata
        elif node.metadata is None and (chunk.data or fragment.continued):
            raise Broken(text, "metadata at seq 0 of a leaf (E-103)")
        if node.children and chunk.data:
            raise Broken(text, "no bytes in an interior node (E-028)")
        if chunk.WhichOneof("payload") == "ref":
            raise Broken(text, "data, no reference (E-059)")
        if len(chunk.data) > FRAGMENT_BYTES:
            raise Broken(f"{len(chunk.data)} bytes in {text}", f"at most {FRAGMENT_BYTES} in a fragment (E-097)")
        if node.metadata is not None and node.metadata.mimetype.partition(";")[0] == "text/plain":
            try:
                chunk.data.decode()
            except UnicodeDecodeError:
                raise Broken(text, "text that is cut between characters (E-097)") from None
        node.pieces.append(chunk.data)

    def _take_children(self, fragment: pb.NodeFragment, node: _Node, text: str) -> None:
        if node.metadata is not None:
            raise Broken(text, "no children of a leaf (E-028)")
        for child in fragment.child_ids:
            if child in self._children or child in self._declared or child in self._ours or child in self._nodes:
                raise Broken(text, "fresh ids for children (E-099, E-100)")
            self._children.add(child)
            node.children.append(child)

    # --- the collected outputs

    @property
    def ids(self) -> list[str]:
        """The ids of the roots for which a fragment came, in order."""
        return [id_ for id_ in self._nodes if id_ not in self._children]

    def has(self, root: str) -> bool:
        """Whether a root and all nodes below it are complete."""
        return all(id_ in self._nodes and self._nodes[id_].has_ended for id_ in self._below(root))

    def incomplete(self, roots: Iterable[str]) -> list[str]:
        """The roots that are not complete."""
        return [root for root in roots if not self.has(root)]

    def leaves(self, root: str) -> list[Leaf]:
        """The leaves of a root from left to right, as far as they have come."""
        found = []
        for id_ in self._below(root):
            node = self._nodes.get(id_)
            if node is not None and node.metadata is not None:
                found.append(Leaf(id_, node.metadata, b"".join(node.pieces)))
        return found

    def values(self, root: str) -> list[Any]:
        """The values of the leaves of a root.

        Raises:
            ValueError: A payload does not fit its type.
        """
        return [leaf.value for leaf in self.leaves(root)]

    def pieces(self, root: str) -> list[bytes]:
        """The payloads of the fragments of one leaf."""
        return list(self._nodes[root].pieces) if root in self._nodes else []

    def children(self, root: str) -> list[str]:
        """The children of one interior node."""
        return list(self._nodes[root].children) if root in self._nodes else []

    def _below(self, root: str) -> Iterator[str]:
        """The ids of a root and all nodes below it, depth first, from left to right."""
        waiting = [root]
        while waiting:
            id_ = waiting.pop()
            yield id_
            if id_ in self._nodes:
                waiting.extend(reversed(self._nodes[id_].children))
