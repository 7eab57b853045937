"""`Order`: keeps the nodes of a session in an order in which parents come before children, and finds cycles.

A new edge that fits the order costs nothing. This is the case for all edges of a tree if parents come first, or if
children come first. For any other new edge two searches start, downwards from the child and upwards from the parent;
each goes no further than the place of the other end. The search that has seen fewer edges takes the next step. If one
reaches the other end, there is a cycle. If one has finished, there is no cycle, and the nodes that it found are moved
past the other end. So it takes only a few steps to link a node with few ancestors to a list of ten thousand nodes, or
the reverse (after Bender, Fineman, Gilbert and Tarjan, "A new approach to incremental cycle detection and related
problems", 2015).

Places are numbers with gaps; nodes that do not include each other may share one. When a gap is used up, all nodes get
new places. The algorithm was chosen for its speed: 50,000 edges in any order must take less than two seconds (E-070).
"""

from __future__ import annotations

from collections.abc import Mapping

from invoker.errors.wording import quoted
from invoker.protocols.evergreen.errors import bad_graph, limit
from invoker.protocols.evergreen.nodes import INTERIOR, Node

_GAP = 1 << 256
_STEP = 1 << 128
"""The distances of new places from all others, and of moved places from their target; both leave room for further
places."""

_MOST_WORK = 3_000_000
"""The limit of edges that are searched in one session. Real graphs stay far below; a malicious graph reaches it."""

_SHOWN = 8


class Order:
    """The order of the nodes of one session.

    Args:
        nodes: All nodes, by id; the dict is shared with the store, which changes it.
    """

    __slots__ = ("_first", "_last", "_nodes", "_work")

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self._nodes = nodes
        self._first = 0
        self._last = 0
        self._work = 0

    def before_all(self) -> int:
        """A new place before all others, for a node that first occurs as a parent."""
        self._first -= _GAP
        return self._first

    def after_all(self) -> int:
        """A new place after all others, for a node that first occurs as a child."""
        self._last += _GAP
        return self._last

    def edge(self, parent: Node, child: Node) -> None:
        """Move nodes, if necessary, so that ``parent`` comes before its new ``child``.

        Raises:
            EvergreenError: The edge closes a cycle (E-064), or the session needs too many search steps.
        """
        if parent.order < child.order:
            return
        if parent is child:
            raise bad_graph(f"node {quoted(parent.id)} includes itself")
        down = _Search(child, parent, is_down=True)
        up = _Search(parent, child, is_down=False)
        while True:
            side = down if down.work <= up.work else up
            if side.step():
                break
        self._count(down.seen + up.seen)
        if side is up:
            self._move_before(up, child)
        else:
            self._move_after(down, parent)

    def _move_before(self, up: _Search, child: Node) -> None:
        ranks = up.ranks()
        low = up.nearest
        if low is None:
            start, step = child.order - _GAP * (len(ranks) + 1), _GAP
            self._first = min(self._first, start)
        else:
            if child.order - low.order <= len(ranks):
                self._renumber()
                ranks = up.ranks()
            step = min(_STEP, (child.order - low.order) // (len(ranks) + 1))
            start = child.order - step * (len(ranks) + 1)
        up.place(ranks, start, step)

    def _move_after(self, down: _Search, parent: Node) -> None:
        ranks = down.ranks()
        high = down.nearest
        if high is None:
            start, step = parent.order, _GAP
            self._last = max(self._last, start + _GAP * len(ranks))
        else:
            if high.order - parent.order <= len(ranks):
                self._renumber()
                ranks = down.ranks()
            start, step = parent.order, min(_STEP, (high.order - parent.order) // (len(ranks) + 1))
        down.place(ranks, start, step)

    def _renumber(self) -> None:
        """Space all places evenly, since there is no room between two of them."""
        nodes = sorted(self._nodes.values(), key=_place)
        self._count(len(nodes))
        place, old = self._first, None
        for node in nodes:
            if node.order != old:
                old = node.order
                place += _GAP
            node.order = place
        self._last = max(self._last, place)

    def _count(self, edges: int) -> None:
        self._work += edges
        if self._work > _MOST_WORK:
            raise limit(f"the node graph took more than {_MOST_WORK} steps to be checked for cycles")


class _Search:
    """The search from one end of a new edge, limited to the nodes that are ordered before the other end.

    Attributes:
        seen: The number of edges that were searched.
        work: The same number, with the edges of the next node.
        nearest: The nearest neighbour beyond the other end; the nodes that were found must not be moved past it.
    """

    __slots__ = ("_came_from", "_is_down", "_stack", "_target", "nearest", "seen", "work")

    def __init__(self, start: Node, target: Node, *, is_down: bool) -> None:
        self._came_from: dict[Node, Node | None] = {start: None}
        self._stack = [start]
        self._target = target
        self._is_down = is_down
        self.seen = 0
        self.work = self._degree(start)
        self.nearest: Node | None = None

    def step(self) -> bool:
        """Search the edges of one node; returns whether it was the last node.

        Raises:
            EvergreenError: The search has reached the other end, so the edge closes a cycle.
        """
        node = self._stack.pop()
        edges = node.below() if self._is_down else node.above()
        self.seen += 1 + len(edges)
        target, came_from, is_down = self._target, self._came_from, self._is_down
        bound = target.order
        for one in edges:
            if one is target:
                raise bad_graph(self._cycle(node))
            if one in came_from:
                continue
            if one.order <= bound if is_down else one.order >= bound:
                came_from[one] = node
                self._stack.append(one)
            elif self.nearest is None or (one.order < self.nearest.order) is is_down:
                self.nearest = one
        if not self._stack:
            return True
        self.work = self.seen + self._degree(self._stack[-1])
        return False

    def ranks(self) -> dict[int, int]:
        """The places of the found nodes, numbered from 1."""
        return {place: rank for rank, place in enumerate(sorted({node.order for node in self._came_from}), 1)}

    def place(self, ranks: Mapping[int, int], start: int, step: int) -> None:
        """Move the found nodes to new places."""
        for node in self._came_from:
            node.order = start + step * ranks[node.order]

    def _degree(self, node: Node) -> int:
        """Estimate how many edges the node has, without making a list of them."""
        if not self._is_down:
            return len(node.parents or ()) + len(node.sinks or ())
        children = len(node.content) + len(node.ahead or ()) if node.kind == INTERIOR else 0
        return children + len(node.sources or ())

    def _cycle(self, last: Node) -> str:
        way: list[Node] = []
        node: Node | None = last
        while node is not None:
            way.append(node)
            node = self._came_from[node]
        if self._is_down:  # the path leads from the child down to a parent of the target
            way = [self._target, *reversed(way)]
        names = [quoted(one.id) for one in way]
        if not self._is_down:  # the path leads from the parent up to a child of the target: begin with the parent
            names = [names[-1], quoted(self._target.id), *names[:-1]]
        shown = names if len(names) <= _SHOWN else [*names[: _SHOWN - 1], "...", names[-1]]
        return f"node {names[0]} includes itself: {' > '.join(shown)} > {names[0]}"


def _place(node: Node) -> int:
    return node.order
