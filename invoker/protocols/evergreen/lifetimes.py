"""`Lifetimes`: releases nodes before their session ends, on request or after a time (E-119, E-120).

The id of a dropped node can never be used again. Its content stays while an action that was accepted may still read it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from functools import partial

from invoker.core.timers import Timer, Timers
from invoker.errors.wording import quoted
from invoker.protocols.evergreen.errors import bad_action, incomplete
from invoker.protocols.evergreen.graph import Graph
from invoker.protocols.evergreen.nodes import INTERIOR, Node

_LOOKS = 256
"""How many ancestors of a dropped node are searched; a node with more is kept until no action runs."""

_AT_ONCE = 64
"""How many dropped nodes are checked again after the end of an action."""


class Lifetimes:
    """Drops nodes of one session, on request or when they expire.

    Args:
        graph: The graph of the session.
        clock: A monotonic clock, in seconds.
    """

    def __init__(self, graph: Graph, clock: Callable[[], float]) -> None:
        self._graph = graph
        self._timers = Timers(clock)
        self._expiries: dict[Node, Timer] = {}
        self._due: list[Node] = []
        self._kept: deque[Node] = deque()

    def set(self, node: Node, seconds: float) -> None:
        """Let a node expire after this many seconds; a later call for the node replaces the time."""
        self._forget(node)
        self._expiries[node] = self._timers.after(seconds, partial(self._due.append, node))

    def next_s(self) -> float | None:
        """Seconds until the next node expires; None if no node will."""
        at = self._timers.next()
        return None if at is None else max(0.0, at - self._timers.now())

    def expired(self) -> list[Node]:
        """Remove and return the expired nodes, with all nodes below them that have no other parent."""
        self._timers.run()
        if not self._due:
            return []
        due = dict.fromkeys(self._due)
        self._due.clear()
        reached = _reach(due)
        held = [node for node in reached if node not in due and self._is_held(node, reached)]
        kept = _reach(held)
        gone = [node for node in reached if node in due or node not in kept]
        for node in gone:
            self._forget(node)
        return gone

    def _is_held(self, node: Node, reached: dict[Node, None]) -> bool:
        if node in self._expiries:
            return True  # the node itself expires later
        return any(parent not in reached and not parent.is_dropped for parent in node.parents or ())

    def drop(self, node: Node, roots: AbstractSet[Node]) -> None:
        """Retire a node's id, and release its content unless a reader may still reach it from one of ``roots``."""
        node.is_dropped = True
        self._forget(node)
        if not _is_read(node, roots):
            self._release(node)
            return
        self._kept.append(node)
        if not node.is_complete:
            node.fault = node.fault or incomplete(f"node {quoted(node.id)} was dropped before it was complete")
            self._graph.wake(node)

    def settle(self, roots: AbstractSet[Node]) -> None:
        """Release the dropped nodes that cannot be reached from one of ``roots`` any more."""
        for _ in range(min(len(self._kept), _AT_ONCE) if roots else len(self._kept)):
            node = self._kept.popleft()
            if _is_read(node, roots):
                self._kept.append(node)
            else:
                self._release(node)

    def _forget(self, node: Node) -> None:
        if (timer := self._expiries.pop(node, None)) is not None:
            timer.cancel()

    def _release(self, node: Node) -> None:
        self._graph.held -= node.charged  # the bytes of a fetch that still runs will be dropped
        node.charged = 0
        node.content, node.joined = [], None
        node.ahead = None
        node.fault = bad_action(f"node {quoted(node.id)} was dropped")
        self._graph.wake(node)


def _reach(roots: Iterable[Node]) -> dict[Node, None]:
    """These nodes and all nodes below them."""
    found = dict.fromkeys(roots)
    stack = list(found)
    while stack:
        node = stack.pop()
        if node.kind == INTERIOR:
            for child in node.content:
                if child not in found:
                    found[child] = None
                    stack.append(child)
    return found


def _is_read(node: Node, roots: AbstractSet[Node]) -> bool:
    """Whether a node may be at or below one of ``roots``; if it has very many ancestors, always True."""
    if not roots:
        return False
    seen = {node}
    stack = [node]
    while stack:
        one = stack.pop()
        if one in roots or len(seen) > _LOOKS:
            return True
        for parent in (one.parents or ())[: _LOOKS + 1]:
            if parent not in seen:
                seen.add(parent)
                stack.append(parent)
    return False
