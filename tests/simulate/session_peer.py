"""`Received`: what a client makes of what it is sent, and what must hold of it (E-103)."""

from __future__ import annotations

from dataclasses import dataclass, field

from invoker._pb.evergreen import evergreen_pb2 as pb
from tests.simulate.verdict import Violation


@dataclass
class _Node:
    seq: int = 0
    has_ended: bool = False
    is_leaf: bool = False
    data: bytearray = field(default_factory=bytearray)
    children: list[str] = field(default_factory=list)


class Received:
    """The nodes of one session at the client."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}

    def take(self, frame: bytes) -> None:
        """One message.

        Raises:
            Violation: It breaks the rules of outputs.
        """
        message = pb.SessionMessage.FromString(frame)
        _expect(not message.actions, "an action was sent to the client")
        for one in message.node_fragments:
            node = self._nodes.setdefault(one.id, _Node())
            _expect(not node.has_ended, f"{one.id} goes on behind its end")
            _expect(one.seq == node.seq, f"{one.id} has seq {one.seq} after {node.seq - 1}")
            _expect(not (one.child_ids and node.is_leaf), f"{one.id} is a leaf with children")
            chunk = one.chunk_fragment
            if chunk.HasField("metadata"):
                _expect(one.seq == 0, f"{one.id} has metadata at seq {one.seq}")
                node.is_leaf = True
            _expect(node.is_leaf or not chunk.data, f"{one.id} has bytes, but no metadata")
            node.seq += 1
            node.has_ended = not one.continued
            node.data += chunk.data
            node.children += one.child_ids

    def flat(self, id: str) -> list[str]:
        """The leaves of an output, as far as they came."""
        node = self._nodes.get(id)
        if node is None:
            return []
        if node.is_leaf:
            return [node.data.decode(errors="ignore")]
        return [leaf for child in node.children for leaf in self.flat(child)]

    def has_ended(self, id: str) -> bool:
        """Whether the output and all below it is complete."""
        node = self._nodes.get(id)
        return node is not None and node.has_ended and all(self.has_ended(child) for child in node.children)


def _expect(fact: bool, text: str) -> None:
    if not fact:
        raise Violation(text)
