"""`Graph`: builds the nodes of a session from the fragments that a client sends.

A fragment passes these checks in a fixed order, so that a fragment with several errors always gets the same one:

1. id and seq are valid                      (E-024, E-026)
2. the node is not an action's output        (E-083)
3. the (id, seq) is new, else it is dropped  (E-019, E-020)
4. seq fits the final seq                    (E-021 to E-023)
5. kind: leaf or interior                    (E-027 to E-030)
6. metadata                                  (E-034 to E-036)
7. limits                                    (0.2)
8. edges and cycles                          (E-064, E-067)
9. it is stored, and the inputs that wait for it are woken
"""

from __future__ import annotations

from typing import Any

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.errors.wording import quoted
from invoker.protocols.evergreen.errors import bad_action, bad_fragment
from invoker.protocols.evergreen.nodes import INTERIOR, LEAF, UNDECIDED, Node, Reference
from invoker.protocols.evergreen.settings import EvergreenSettings
from invoker.protocols.evergreen.store import WEIGHT, NodeStore
from invoker.protocols.evergreen.wire import headers_of


class Graph(NodeStore):
    """The nodes of one session.

    Args:
        settings: Limits, and the treatment of stray metadata.
    """

    def __init__(self, settings: EvergreenSettings) -> None:
        super().__init__(settings)
        self._is_strict = settings.metadata == "strict"
        self._is_identical = settings.metadata == "identical"

    def accept(self, fragment: pb.NodeFragment) -> None:
        """Add one fragment of the client.

        Raises:
            EvergreenError: The fragment breaks a rule, which aborts the session.
        """
        id, seq = fragment.id, fragment.seq
        node = self.nodes.get(id)
        if node is not None and node.count == seq and node.is_plain and self._accept_piece(node, seq, fragment):
            return
        if not id:
            raise bad_fragment(f"a fragment with seq {seq} has no node id")
        if seq < 0:
            raise bad_fragment(f"node {quoted(id)}: seq {seq} is below 0")
        is_new = node is None
        if node is None:
            self.check_id(id)
            self.check_made(id, seq)
            node = Node(id, self.place_above())
        elif node.is_dropped:
            return
        elif node.owner is not None:
            raise bad_fragment(
                f"node {quoted(id)}, seq {seq}: it is an output of {node.owner.where}, and only that "
                "action may write it"
            )
        elif node.has(seq):
            return
        node.is_received = True
        self._bound(node, seq, is_final=not fragment.continued)
        has_chunk = fragment.HasField("chunk_fragment")
        self._decide_kind(node, seq, has_chunk=has_chunk, has_children=len(fragment.child_ids) > 0)
        if has_chunk:
            self._check_metadata(node, seq, fragment.chunk_fragment)
        if is_new:
            self.register(node)
        if has_chunk:
            item = self._chunk(node, seq, fragment.chunk_fragment)
        else:
            item = self._children(node, seq, fragment.child_ids) if fragment.child_ids else None
        self._store(node, seq, item)

    def _accept_piece(self, node: Node, seq: int, fragment: pb.NodeFragment) -> bool:
        """The hot path: append the next bytes to a leaf; returns False, without effect, for any other fragment."""
        if not fragment.continued or fragment.child_ids or not fragment.HasField("chunk_fragment"):
            return False
        chunk = fragment.chunk_fragment
        data = chunk.data
        if not data or chunk.HasField("metadata"):
            return False
        self.charge(node, len(data) + WEIGHT)
        node.content.append(data)
        node.count = seq + 1
        node.top = seq
        if node.waiters:
            self.woken.extend(node.waiters)
            node.waiters = None
        return True

    def _bound(self, node: Node, seq: int, *, is_final: bool) -> None:
        if 0 <= node.final < seq:
            raise bad_fragment(f"node {quoted(node.id)}: seq {seq} is beyond final seq {node.final}")
        if is_final:
            if seq < node.top:
                raise bad_fragment(f"node {quoted(node.id)}: seq {node.top} is beyond final seq {seq}")
            node.final = seq
        node.top = max(node.top, seq)

    def _decide_kind(self, node: Node, seq: int, *, has_chunk: bool, has_children: bool) -> None:
        if has_chunk:
            if has_children:
                raise bad_fragment(
                    f"node {quoted(node.id)}, seq {seq}: it has both child ids and a chunk; one of them is expected"
                )
            if node.kind == INTERIOR:
                raise bad_fragment(
                    f"node {quoted(node.id)}, seq {seq}: it has a chunk, but other fragments of the node have child ids"
                )
            if node.kind == UNDECIDED:
                if seq and node.has(0):
                    raise bad_fragment(
                        f"node {quoted(node.id)}, seq {seq}: it has a chunk, but seq 0 had neither a chunk nor metadata"
                    )
                node.kind = LEAF
        elif has_children:
            if node.kind == LEAF:
                raise bad_fragment(
                    f"node {quoted(node.id)}, seq {seq}: it has child ids, but other fragments of the node have chunks"
                )
            node.kind = INTERIOR
        elif seq == 0 and node.kind == LEAF:
            raise bad_fragment(
                f"node {quoted(node.id)}: seq 0 has neither a chunk nor metadata, but later fragments have chunks"
            )

    def _check_metadata(self, node: Node, seq: int, chunk: pb.Chunk) -> None:
        if chunk.HasField("metadata"):
            self._metadata(node, seq, chunk.metadata)
        elif seq == 0:
            raise bad_fragment(f"node {quoted(node.id)}: the chunk at seq 0 has no metadata")

    def _chunk(self, node: Node, seq: int, chunk: pb.Chunk) -> Any:
        if seq == 0:
            self.charge(node, chunk.metadata.ByteSize())
        if chunk.WhichOneof("payload") == "ref":
            reference = Reference(chunk.ref, node)
            self.charge(node, len(chunk.ref) + WEIGHT)
            return reference
        data = chunk.data
        if data:
            self.charge(node, len(data) + WEIGHT)
        return data or None

    def _metadata(self, node: Node, seq: int, metadata: pb.ChunkMetadata) -> None:
        if seq == 0:
            node.media_type = metadata.mimetype
            node.headers = headers_of(metadata)
            if self._is_identical:
                told, node.metadata = node.metadata, metadata.SerializeToString()
                if told is not None and told != node.metadata:
                    raise bad_fragment(f"node {quoted(node.id)}: metadata of a later seq differs from that of seq 0")
        elif self._is_strict:
            raise bad_fragment(f"node {quoted(node.id)}, seq {seq}: it has metadata, which only seq 0 may have")
        elif self._is_identical:
            given = metadata.SerializeToString()
            if node.metadata is not None and given != node.metadata:
                raise bad_fragment(f"node {quoted(node.id)}, seq {seq}: its metadata differs from that of seq 0")
            if node.metadata is None:
                self.charge(node, len(given))
            node.metadata = given

    def _children(self, node: Node, seq: int, ids: Any) -> tuple[Node, ...]:
        found: list[Node] = []
        self.charge(node, 16 * len(ids) + WEIGHT)
        fresh = {child for child in ids if child not in self.nodes}
        for child in fresh:
            self.check_id(child)
        self.check_room(len(fresh), node)
        if "" in fresh:
            raise bad_fragment(f"node {quoted(node.id)}, seq {seq}: it has an empty child id")
        for id in ids:
            child = self.nodes.get(id) or self.new(id)
            if child.is_dropped:
                raise bad_action(f"node {quoted(node.id)}, seq {seq}: its child {quoted(id)} was dropped")
            self.link(node, child)
            found.append(child)
        return tuple(found)

    def _store(self, node: Node, seq: int, item: Any) -> None:
        if seq != node.count:
            if node.ahead is None:
                node.ahead = {}
            node.ahead[seq] = item
            self.charge(node, WEIGHT)
            return
        self._append(node, item)
        ahead = node.ahead
        if ahead:
            while node.count in ahead:
                self._append(node, ahead.pop(node.count))
            if not ahead:
                node.ahead = None
        self.wake(node)
        if node.is_complete and not node.pending:
            self.now_known(node)

    def _append(self, node: Node, item: Any) -> None:
        node.count += 1
        if item is not None:
            if node.kind == INTERIOR:
                node.content.extend(item)
            else:
                node.content.append(item)
