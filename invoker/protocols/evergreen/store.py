"""`NodeStore`: makes, links and counts the nodes of one session, wakes waiting inputs, and stores outputs."""

from __future__ import annotations

import secrets
from typing import Any

from invoker.errors.wording import quoted
from invoker.message import EMPTY
from invoker.protocols.evergreen.errors import bad_fragment, limit
from invoker.protocols.evergreen.nodes import INTERIOR, LEAF, MOST, UNDECIDED, Node, Reference, Waiter
from invoker.protocols.evergreen.order import Order
from invoker.protocols.evergreen.settings import EvergreenSettings
from invoker.protocols.evergreen.wire import is_marker

WEIGHT = 64
"""Bytes that a stored fragment counts in addition to its own, so that empty fragments cannot fill the memory."""


class NodeStore:
    """The nodes of one session.

    Args:
        settings: The limits of the session.

    Attributes:
        nodes: All nodes by id, including those of which only the id has come.
        held: How many bytes the session holds.
        woken: Inputs that may have more to read; the session advances them and empties the list.
    """

    def __init__(self, settings: EvergreenSettings) -> None:
        self.settings = settings
        self.nodes: dict[str, Node] = {}
        self.held = 0
        self.woken: list[Waiter] = []
        self._order = Order(self.nodes)
        self._prefix = f"{secrets.token_hex(6)}-"
        self._made = 0

    # Nodes and their ids.

    def new_id(self) -> str:
        """An unused id (E-100)."""
        while True:
            self._made += 1
            id = f"{self._prefix}{self._made}"
            if id not in self.nodes:
                return id

    def check_made(self, id: str, seq: int) -> None:
        """Refuse a fragment for an item of an output: its id belongs to the server, even if not retained (E-100)."""
        if id.startswith(self._prefix):
            number = id[len(self._prefix) :]
            if number.isascii() and number.isdigit() and int(number[:20]) <= self._made:
                raise bad_fragment(f"node {quoted(id)}, seq {seq}: it is an item of an output, which its action writes")

    def place_above(self) -> int:
        """A place in the order for a node that first occurs as a parent."""
        return self._order.before_all()

    def new(self, id: str, order: int | None = None) -> Node:
        """Make and register a node.

        Raises:
            EvergreenError: The id is too long, or there are too many nodes.
        """
        self.check_id(id)
        node = Node(id, self._order.after_all() if order is None else order)
        self.register(node)
        return node

    def check_id(self, id: str) -> None:
        """Refuse an id that is too long."""
        most = self.settings.name_bytes
        if len(id) * 4 > most and len(id.encode()) > most:
            raise limit(
                f"node {quoted(id)}: its id has {len(id.encode())} bytes, which exceeds the limit of {most} bytes"
            )

    def register(self, node: Node) -> None:
        """Add a new node to the session, and count it."""
        self.check_room(1, node)
        self.nodes[node.id] = node

    def check_room(self, count: int, node: Node) -> None:
        """Raise if the session may not have ``count`` more nodes; the error names ``node``."""
        most = self.settings.nodes
        if len(self.nodes) + count > most:
            raise limit(
                f"node {quoted(node.id)}: the session would have {len(self.nodes) + count} nodes, which "
                f"exceeds the limit of {most}"
            )

    def new_output(self, id: str) -> Node:
        """Make the node of a new output."""
        return self.new(id, self._order.before_all())

    def clear(self) -> None:
        """Release every node when the session has ended."""
        # the nodes form cycles, which would stay in memory until the garbage collector runs
        for node in self.nodes.values():
            node.parents = node.sources = node.sinks = node.waiters = node.ahead = None
            node.content, node.joined = [], None
            node.owner = None
        self.nodes.clear()
        self.woken.clear()
        self.held = 0

    def find(self, id: str) -> Node:
        """The node with this id; a new one if there is none."""
        return self.nodes.get(id) or self.new(id)

    def link(self, parent: Node, child: Node) -> None:
        """Add an edge from ``parent`` to ``child``; there may already be others."""
        self._order.edge(parent, child)
        if child.parents is None:
            child.parents = []
        child.parents.append(parent)
        if not child.is_known:
            parent.pending += 1

    def produces(self, source: Node, output: Node) -> None:
        """Record that an action produces ``output`` from ``source`` (E-069)."""
        self._order.edge(output, source)
        if output.sources is None:
            output.sources = []
        if source.sinks is None:
            source.sinks = []
        output.sources.append(source)
        source.sinks.append(output)

    def charge(self, node: Node | None, size: int) -> None:
        """Add to the bytes that the session holds.

        Raises:
            EvergreenError: The session would exceed its limit of bytes.
        """
        self.held += size
        if node is not None:
            node.charged += size
        if self.held > self.settings.session_bytes:
            where = f"node {quoted(node.id)}: " if node is not None else ""
            raise limit(
                f"{where}the session would hold {self.held} bytes, which exceeds the limit of "
                f"{self.settings.session_bytes} bytes"
            )

    def wake(self, node: Node) -> None:
        """Add the inputs that wait for more of this node to `woken`."""
        if node.waiters:
            self.woken.extend(node.waiters)
            node.waiters = None

    def now_known(self, node: Node) -> None:
        """Compute the sums of a node, all of whose children are known, and of its parents if they become known, too."""
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

    # Outputs of actions.

    def grow(
        self, node: Node, data: bytes, media_type: str = "", headers: Any = EMPTY, *, is_last: bool = False
    ) -> None:
        """Append a fragment to an output that is a leaf.

        Raises:
            EvergreenError: The session would hold too many bytes.
        """
        if node.kind == UNDECIDED:
            node.kind, node.media_type, node.headers = LEAF, media_type, headers
        if data and not node.is_dropped and node.fault is None:
            self.charge(node, len(data) + WEIGHT)
            node.content.append(data)
        self._grown(node, is_last=is_last)

    def refer(self, node: Node, uri: str, media_type: str, headers: Any) -> None:
        """Store a reference as the only content of an output."""
        node.kind, node.media_type, node.headers = LEAF, media_type, headers
        self.charge(node, len(uri) + WEIGHT)
        node.content.append(Reference(uri, node))
        self._grown(node, is_last=True)

    def adopt(self, node: Node, child: Node) -> None:
        """Append an item to an output that is an interior node."""
        node.kind = INTERIOR
        self.charge(node, 16 + WEIGHT)
        self.link(node, child)
        node.content.append(child)
        self._grown(node, is_last=False)

    def end(self, node: Node) -> None:
        """Mark an output as complete."""
        self._grown(node, is_last=True)

    def _grown(self, node: Node, *, is_last: bool) -> None:
        seq = node.count
        node.count += 1
        node.top = seq
        if is_last:
            node.final = seq
        self.wake(node)
        if is_last and not node.pending:
            self.now_known(node)
