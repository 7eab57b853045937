"""`Order`: keeps the nodes of a session in an order in which parents come before children, edge by edge.

A new edge that fits the order costs nothing, which is so for all edges of a tree that comes parents first or children
first. One that does not fit is looked into within the affected part of the order only (Pearce and Kelly, "A dynamic
topological sort algorithm for directed acyclic graphs", 2006), which either finds the cycle that it closes or mends
the order. Chosen for its cost, not its beauty: 50,000 edges in any order must take less than two seconds (E-070).
"""

from __future__ import annotations

from invoker.protocols.evergreen.errors import bad_graph, limit, name_of
from invoker.protocols.evergreen.nodes import Node

__all__ = ["Order"]

_MOST_WORK = 30_000_000
"""Edges looked at in one session. An honest graph comes nowhere near; one that was made to be slow ends here."""

_SHOWN = 8


class Order:
    """The order of one session's nodes."""

    __slots__ = ("_first", "_last", "_work")

    def __init__(self) -> None:
        self._first = 0
        self._last = 0
        self._work = 0

    def before_all(self) -> int:
        """A place for a node that is met as a parent."""
        self._first -= 1
        return self._first

    def after_all(self) -> int:
        """A place for a node that is met as a child."""
        self._last += 1
        return self._last

    def edge(self, parent: Node, child: Node) -> None:
        """Take in that ``parent`` includes ``child``.

        Raises:
            EvergreenError: The edge closes a cycle (E-064), or the graph was made to be slow.
        """
        if parent.order < child.order:
            return
        if parent is child:
            raise bad_graph(f"node {name_of(parent.id)} includes itself")
        later = self._later(parent, child)
        earlier = self._earlier(parent, child)
        moved = sorted(earlier, key=_place) + sorted(later, key=_place)
        for node, place in zip(moved, sorted(node.order for node in moved), strict=True):
            node.order = place

    def _later(self, parent: Node, child: Node) -> list[Node]:
        """What ``child`` includes, as far as it stands before ``parent``."""
        bound = parent.order
        came_from: dict[Node, Node | None] = {child: None}
        stack = [child]
        while stack:
            node = stack.pop()
            below = node.below()
            self._count(len(below))
            for one in below:
                if one is parent:
                    raise bad_graph(_path(parent, node, came_from))
                if one.order < bound and one not in came_from:
                    came_from[one] = node
                    stack.append(one)
        return list(came_from)

    def _earlier(self, parent: Node, child: Node) -> list[Node]:
        """What includes ``parent``, as far as it stands after ``child``."""
        bound = child.order
        found = {parent}
        stack = [parent]
        while stack:
            above = stack.pop().above()
            self._count(len(above))
            for one in above:
                if one.order > bound and one not in found:
                    found.add(one)
                    stack.append(one)
        return list(found)

    def _count(self, edges: int) -> None:
        self._work += edges
        if self._work > _MOST_WORK:
            raise limit(f"the node graph took more than {_MOST_WORK} steps to be checked for cycles")


def _place(node: Node) -> int:
    return node.order


def _path(parent: Node, last: Node, came_from: dict[Node, Node | None]) -> str:
    way: list[str] = []
    node: Node | None = last
    while node is not None:
        way.append(name_of(node.id))
        node = came_from[node]
    way.append(name_of(parent.id))
    way.reverse()
    shown = way if len(way) <= _SHOWN else [*way[: _SHOWN - 1], "...", way[-1]]
    return f"node {name_of(parent.id)} includes itself: {' > '.join(shown)} > {name_of(parent.id)}"
