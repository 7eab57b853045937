"""`NodeStore`: keeps the nodes of one session within its limits, and remembers the ids of abandoned nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from invoker.errors import LimitExceeded, Status, StatusError
from invoker.protocols.evergreen.action_engine.nodes import Node, Reader
from invoker.protocols.evergreen.action_engine.running import Running
from invoker.protocols.evergreen.action_engine.settings import ActionEngineSettings
from invoker.protocols.evergreen.action_engine.wire import ABORT, Action, Fragment


class NodeStore:
    """The nodes of one session.

    Args:
        settings: The limits of the session.

    Attributes:
        size: The size of all nodes, in bytes.
    """

    def __init__(self, settings: ActionEngineSettings) -> None:
        self.size = 0
        self._settings = settings
        self._nodes: dict[str, Node] = {}
        # ids of nodes whose action has ended; fragments that still come for them are dropped
        self._left: dict[str, None] = {}

    def put(self, fragment: Fragment) -> Sequence[Reader]:
        """Store a fragment of the peer; returns the readers of its node.

        Raises:
            LimitExceeded: The nodes would hold too many bytes.
        """
        if fragment.id in self._left:
            if fragment.is_last:
                del self._left[fragment.id]
            return ()
        node = self._nodes.get(fragment.id)
        if node is None:
            self._check(fragment.id, "the id of a node")
            node = self._add(Node(fragment.id))
        elif node.is_made_here:
            return ()  # a peer may not write to an output
        return self._put(node, fragment)

    def made_here(self, fragment: Fragment) -> Sequence[Reader]:
        """Store a fragment of an output if an action of this session reads the output; returns the readers.

        Raises:
            LimitExceeded: The nodes would hold too many bytes.
        """
        node = self._nodes.get(fragment.id)
        return () if node is None or not node.readers else self._put(node, fragment)

    def _put(self, node: Node, fragment: Fragment) -> Sequence[Reader]:
        before = node.size
        node.put(fragment)
        self.size += node.size - before
        if self.size > self._settings.session_bytes:
            most = self._settings.session_bytes
            raise LimitExceeded(
                f"the session holds {self.size} bytes that no action has taken, which exceeds the limit of {most} bytes"
            )
        return tuple(node.readers)

    def attach(self, key: str, inputs: Sequence[str], outputs: set[str]) -> list[Reader]:
        """Make the readers of an action's inputs, and the nodes of its outputs.

        Args:
            key: The key of the invocation.
            inputs: Ids of the nodes to be read.
            outputs: Ids of the nodes to be written.

        Raises:
            StatusError: An input was already read, or an output's id is in use.
        """
        for id in outputs:
            if id in self._nodes or id in inputs or id == ABORT:
                raise StatusError(Status.INVALID_ARGUMENT, f"Invalid Action: the node {id!a} of an output is in use")
        readers: list[Reader] = []
        try:
            for index, id in enumerate(inputs):
                self._left.pop(id, None)
                node = self._nodes.get(id) or self._add(Node(id))
                reader = Reader(key, index, node, self._settings.window)
                node.attach(reader)
                readers.append(reader)
        except (StatusError, LimitExceeded):
            self._detach(readers)
            raise
        for id in outputs:
            self._left.pop(id, None)
            self._add(Node(id, is_made_here=True))
        return readers

    def trim(self, node: Node) -> None:
        """Drop the items that all readers of a node have passed."""
        before = node.size
        node.trim()
        self.size += node.size - before

    def release(self, running: Running) -> None:
        """Forget the outputs of an action that has ended, and the inputs that no other action reads."""
        for id in running.outputs.values():
            node = self._nodes.get(id)
            if node is not None and node.readers:
                # other actions still read the output; it is complete, so no item can be added
                node.is_made_here = False
            elif node is not None:
                self._forget(node)
        self._detach(running.readers)

    def _detach(self, readers: list[Reader]) -> None:
        for reader in readers:
            node = reader.node
            node.readers.remove(reader)
            if node.readers:
                self.trim(node)
            elif not node.is_made_here and self._nodes.get(node.id) is node:
                self._leave(node)

    def abandon(self, ids: Iterable[str]) -> None:
        """Drop all fragments for the inputs of a refused action, those that have come and those that will."""
        for id in ids:
            node = self._nodes.get(id)
            if node is None:
                self._drop_further(id)
            elif not node.readers and not node.is_made_here:
                self._leave(node)

    def _leave(self, node: Node) -> None:
        self._forget(node)
        if node.length is None:
            self._drop_further(node.id)

    def _drop_further(self, id: str) -> None:
        self._left[id] = None
        if len(self._left) > self._settings.nodes:
            del self._left[next(iter(self._left))]

    def _forget(self, node: Node) -> None:
        del self._nodes[node.id]
        self.size -= node.size

    def _add(self, node: Node) -> Node:
        if len(self._nodes) >= self._settings.nodes:
            raise LimitExceeded(f"the session has {len(self._nodes)} nodes, which is the limit")
        self._nodes[node.id] = node
        return node

    def clear(self) -> None:
        """Release every node when the session has ended."""
        for node in self._nodes.values():
            # the readers refer to the node; the cycle would keep its items until the garbage collector runs
            node.readers.clear()
        self._nodes.clear()
        self._left.clear()
        self.size = 0

    def check_names(self, action: Action) -> None:
        """Check that no name or id of an action is too long.

        Raises:
            LimitExceeded: A name or id is too long.
        """
        self._check(action.id, "the id of an action")
        self._check(action.name, "the name of an action")
        for name, id in (*action.inputs, *action.outputs):
            self._check(name, "the name of a port")
            self._check(id, "the id of a node")

    def _check(self, text: str, what: str) -> None:
        most = self._settings.name_bytes
        if len(text) * 4 > most and len(text.encode("utf-8", "surrogateescape")) > most:
            raise LimitExceeded(f"{what} exceeds the limit of {most} bytes")
