"""`Graph`: the nodes of one session; takes in fragments of the client and outputs of actions.

A fragment passes these checks, in this order, so that it is sure which error wins:

1. id and seq are valid                      (E-024, E-026)
2. the node is not an action's output        (E-083)
3. the (id, seq) is new, else it is dropped  (E-019, E-020)
4. seq fits the final seq                    (E-021 to E-023)
5. kind: leaf or interior                    (E-027 to E-030)
6. metadata                                  (E-034 to E-036)
7. limits                                    (0.2)
8. edges and cycles                          (E-064, E-067)
9. it is stored, and who waits for it is woken
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.message import EMPTY
from invoker.protocols.evergreen.errors import bad_action, bad_fragment, limit, name_of
from invoker.protocols.evergreen.nodes import INTERIOR, LEAF, MOST, UNDECIDED, Node, Reference
from invoker.protocols.evergreen.order import Order
from invoker.protocols.evergreen.settings import EvergreenSettings
from invoker.protocols.evergreen.wire import headers_of, is_marker

if TYPE_CHECKING:
    from invoker.protocols.evergreen.inputs import Input

__all__ = ["Graph"]

_WEIGHT = 64
"""What a stored fragment weighs beside its bytes, so that empty ones cannot fill the memory."""


class Graph:
    """The nodes of one session.

    Args:
        settings: Limits, and what becomes of stray metadata.

    Attributes:
        nodes: By id, those that are only referred to as well.
        held: What the session holds, in bytes.
        woken: Inputs for which there may be more now; the session goes on with them and empties the list.
    """

    def __init__(self, settings: EvergreenSettings) -> None:
        self.settings = settings
        self.nodes: dict[str, Node] = {}
        self.held = 0
        self.woken: list[Input] = []
        self._order = Order(self.nodes)
        self._prefix = f"{secrets.token_hex(6)}-"
        self._made = 0
        self._is_strict = settings.metadata == "strict"
        self._is_identical = settings.metadata == "identical"

    # What the client sends.

    def accept(self, fragment: pb.NodeFragment) -> None:
        """Take in one fragment of the client.

        Raises:
            EvergreenError: It breaks a rule, which aborts the session.
        """
        id, seq = fragment.id, fragment.seq  # noqa: A001 - what it is
        node = self.nodes.get(id)
        if node is not None and node.count == seq and node.is_plain and self._accept_piece(node, seq, fragment):
            return
        if not id:
            raise bad_fragment(f"a fragment with seq {seq} has no node id")
        if seq < 0:
            raise bad_fragment(f"node {name_of(id)}: seq {seq} is below 0")
        is_new = node is None
        if node is None:
            self._check_id(id)
            self._check_made(id, seq)
            node = Node(id, self._order.before_all())
        elif node.is_dropped:
            return
        elif node.owner is not None:
            raise bad_fragment(
                f"node {name_of(id)}, seq {seq}: it is an output of {node.owner.where}, which alone writes it"
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
            self._register(node)
        if has_chunk:
            item = self._chunk(node, seq, fragment.chunk_fragment)
        else:
            item = self._children(node, seq, fragment.child_ids) if fragment.child_ids else None
        self._store(node, seq, item)

    def _accept_piece(self, node: Node, seq: int, fragment: pb.NodeFragment) -> bool:
        """The hot path: the next bytes of a leaf that goes on. False where it is anything else."""
        if not fragment.continued or fragment.child_ids or not fragment.HasField("chunk_fragment"):
            return False
        chunk = fragment.chunk_fragment
        data = chunk.data
        if not data or chunk.HasField("metadata"):
            return False
        self.charge(node, len(data) + _WEIGHT)
        node.content.append(data)
        node.count = seq + 1
        node.top = seq
        if node.waiters:
            self.woken.extend(node.waiters)
            node.waiters = None
        return True

    def _bound(self, node: Node, seq: int, *, is_final: bool) -> None:
        if 0 <= node.final < seq:
            raise bad_fragment(f"node {name_of(node.id)}: seq {seq} is beyond final seq {node.final}")
        if is_final:
            if seq < node.top:
                raise bad_fragment(f"node {name_of(node.id)}: seq {node.top} is beyond final seq {seq}")
            node.final = seq
        node.top = max(node.top, seq)

    def _decide_kind(self, node: Node, seq: int, *, has_chunk: bool, has_children: bool) -> None:
        if has_chunk:
            if has_children:
                raise bad_fragment(
                    f"node {name_of(node.id)}, seq {seq}: it has both child ids and a chunk; one of them is expected"
                )
            if node.kind == INTERIOR:
                raise bad_fragment(
                    f"node {name_of(node.id)}, seq {seq}: a chunk, but other fragments of the node have child ids"
                )
            if node.kind == UNDECIDED:
                if seq and node.has(0):
                    raise bad_fragment(
                        f"node {name_of(node.id)}, seq {seq}: a chunk, but seq 0 had none and so no metadata"
                    )
                node.kind = LEAF
        elif has_children:
            if node.kind == LEAF:
                raise bad_fragment(
                    f"node {name_of(node.id)}, seq {seq}: child ids, but other fragments of the node have chunks"
                )
            node.kind = INTERIOR
        elif seq == 0 and node.kind == LEAF:
            raise bad_fragment(
                f"node {name_of(node.id)}: seq 0 has no chunk and so no metadata, but later fragments have chunks"
            )

    def _check_metadata(self, node: Node, seq: int, chunk: pb.Chunk) -> None:
        if chunk.HasField("metadata"):
            self._metadata(node, seq, chunk.metadata)
        elif seq == 0:
            raise bad_fragment(f"node {name_of(node.id)}: the chunk at seq 0 has no metadata")

    def _chunk(self, node: Node, seq: int, chunk: pb.Chunk) -> Any:
        if seq == 0:
            self.charge(node, chunk.metadata.ByteSize())
        if chunk.WhichOneof("payload") == "ref":
            reference = Reference(chunk.ref, node)
            self.charge(node, len(chunk.ref) + _WEIGHT)
            return reference
        data = chunk.data
        if data:
            self.charge(node, len(data) + _WEIGHT)
        return data or None

    def _metadata(self, node: Node, seq: int, metadata: pb.ChunkMetadata) -> None:
        if seq == 0:
            node.media_type = metadata.mimetype
            node.headers = headers_of(metadata)
            if self._is_identical:
                told, node.metadata = node.metadata, metadata.SerializeToString()
                if told is not None and told != node.metadata:
                    raise bad_fragment(f"node {name_of(node.id)}: metadata of a later seq differs from that of seq 0")
        elif self._is_strict:
            raise bad_fragment(f"node {name_of(node.id)}, seq {seq}: it has metadata, which only seq 0 may have")
        elif self._is_identical:
            given = metadata.SerializeToString()
            if node.metadata is not None and given != node.metadata:
                raise bad_fragment(f"node {name_of(node.id)}, seq {seq}: its metadata differs from that of seq 0")
            node.metadata = given

    def _children(self, node: Node, seq: int, ids: Any) -> tuple[Node, ...]:
        found: list[Node] = []
        self.charge(node, 16 * len(ids) + _WEIGHT)
        fresh = {child for child in ids if child not in self.nodes}
        for child in fresh:
            self._check_id(child)
        self._check_room(len(fresh), node)
        if "" in fresh:
            raise bad_fragment(f"node {name_of(node.id)}, seq {seq}: an empty child id")
        for id in ids:  # noqa: A001 - what it is
            child = self.nodes.get(id) or self.new(id)
            if child.is_dropped:
                raise bad_action(f"node {name_of(node.id)}, seq {seq}: its child {name_of(id)} was dropped")
            self.link(node, child)
            found.append(child)
        return tuple(found)

    def _store(self, node: Node, seq: int, item: Any) -> None:
        if seq != node.count:
            if node.ahead is None:
                node.ahead = {}
            node.ahead[seq] = item
            self.charge(node, _WEIGHT)
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
            self._now_known(node)

    def _append(self, node: Node, item: Any) -> None:
        node.count += 1
        if item is not None:
            if node.kind == INTERIOR:
                node.content.extend(item)
            else:
                node.content.append(item)

    def _check_made(self, id: str, seq: int) -> None:  # noqa: A002 - what it is
        """Items that are not retained leave nothing behind but their ids, which are ours all the same (E-100)."""
        if id.startswith(self._prefix):
            number = id[len(self._prefix) :]
            if number.isascii() and number.isdigit() and int(number[:20]) <= self._made:
                raise bad_fragment(
                    f"node {name_of(id)}, seq {seq}: it is an item of an output, which its action writes"
                )

    # What everybody uses.

    def new_id(self) -> str:
        """An id that nobody has used (E-100)."""
        while True:
            self._made += 1
            id = f"{self._prefix}{self._made}"  # noqa: A001 - what it is
            if id not in self.nodes:
                return id

    def new(self, id: str, order: int | None = None) -> Node:  # noqa: A002 - what it is
        """Make room for a node that was not met before.

        Raises:
            EvergreenError: The id is too long, or there are too many nodes.
        """
        self._check_id(id)
        node = Node(id, self._order.after_all() if order is None else order)
        self._register(node)
        return node

    def _check_id(self, id: str) -> None:  # noqa: A002 - what it is
        most = self.settings.name_bytes
        if len(id) * 4 > most and len(id.encode()) > most:
            raise limit(f"node {name_of(id)}: its id has {len(id.encode())} bytes; at most {most} are allowed")

    def _register(self, node: Node) -> None:
        self._check_room(1, node)
        self.nodes[node.id] = node

    def _check_room(self, count: int, node: Node) -> None:
        most = self.settings.nodes
        if len(self.nodes) + count > most:
            raise limit(f"node {name_of(node.id)}: {len(self.nodes) + count} nodes; a session may have {most}")

    def new_output(self, id: str) -> Node:  # noqa: A002 - what it is
        """Room for an output that was not met before."""
        return self.new(id, self._order.before_all())

    def clear(self) -> None:
        """The session is over: release every node."""
        for node in self.nodes.values():  # they form cycles, which would wait for the collector
            node.parents = node.sources = node.sinks = node.waiters = node.ahead = None
            node.content = []
            node.owner = None
        self.nodes.clear()
        self.woken.clear()
        self.held = 0

    def find(self, id: str) -> Node:  # noqa: A002 - what it is
        """The node with this id, or room for it."""
        return self.nodes.get(id) or self.new(id)

    def link(self, parent: Node, child: Node) -> None:
        """Take in that ``parent`` has ``child`` in one more place."""
        self._order.edge(parent, child)
        if child.parents is None:
            child.parents = []
        child.parents.append(parent)
        if not child.is_known:
            parent.pending += 1

    def produces(self, source: Node, output: Node) -> None:
        """Take in that ``output`` is made of ``source`` by an action (E-069)."""
        self._order.edge(output, source)
        if output.sources is None:
            output.sources = []
        if source.sinks is None:
            source.sinks = []
        output.sources.append(source)
        source.sinks.append(output)

    def charge(self, node: Node | None, size: int) -> None:
        """Count what the session holds.

        Raises:
            EvergreenError: It would be more than the session may hold.
        """
        self.held += size
        if node is not None:
            node.charged += size
        if self.held > self.settings.session_bytes:
            where = f"node {name_of(node.id)}: " if node is not None else ""
            raise limit(f"{where}the session would hold {self.held} bytes, and may hold {self.settings.session_bytes}")

    def wake(self, node: Node) -> None:
        """Go on with whoever waits for more of this node."""
        if node.waiters:
            self.woken.extend(node.waiters)
            node.waiters = None

    def _now_known(self, node: Node) -> None:
        """All below the node is complete: sum it up, and so on upwards."""
        stack = [node]
        while stack:
            one = stack.pop()
            one.is_known = True
            if one.kind == INTERIOR:
                one.leaves = min(MOST, sum(child.leaves for child in one.content))
                one.solid = min(MOST, sum(child.solid for child in one.content))
                one.size = min(MOST, sum(child.size for child in one.content))
                one.height = 1 + max((child.height for child in one.content), default=0)
            else:
                one.leaves, one.height = int(one.kind == LEAF), 1
                one.solid = int(one.kind == LEAF and not is_marker(one.media_type))
                one.size = sum(len(piece) for piece in one.content if type(piece) is bytes)
            for parent in one.parents or ():
                parent.pending -= 1
                if not parent.pending and parent.is_complete:
                    stack.append(parent)

    # What actions produce.

    def grow(
        self, node: Node, data: bytes, media_type: str = "", headers: Any = EMPTY, *, is_last: bool = False
    ) -> None:
        """One more fragment of an output that is a leaf.

        Raises:
            EvergreenError: The session would hold too much.
        """
        if node.kind == UNDECIDED:
            node.kind, node.media_type, node.headers = LEAF, media_type, headers
        if data and not node.is_dropped and node.fault is None:
            self.charge(node, len(data) + _WEIGHT)
            node.content.append(data)
        self._grown(node, is_last=is_last)

    def refer(self, node: Node, uri: str, media_type: str, headers: Any) -> None:
        """An output that is a reference, all of it."""
        node.kind, node.media_type, node.headers = LEAF, media_type, headers
        self.charge(node, len(uri) + _WEIGHT)
        node.content.append(Reference(uri, node))
        self._grown(node, is_last=True)

    def adopt(self, node: Node, child: Node) -> None:
        """One more item of an output that is interior."""
        node.kind = INTERIOR
        self.charge(node, 16 + _WEIGHT)
        self.link(node, child)
        node.content.append(child)
        self._grown(node, is_last=False)

    def end(self, node: Node) -> None:
        """The fragment that only ends an output."""
        self._grown(node, is_last=True)

    def _grown(self, node: Node, *, is_last: bool) -> None:
        seq = node.count
        node.count += 1
        node.top = seq
        if is_last:
            node.final = seq
        self.wake(node)
        if is_last and not node.pending:
            self._now_known(node)
