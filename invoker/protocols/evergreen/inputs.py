"""`Input`: one input of a running action; feeds the leaves below its root to the invocation, one window ahead of it."""

from __future__ import annotations

from typing import Any

from invoker.author.spec import StreamSpec, Take
from invoker.core.steps import EndInput, Feed, Step
from invoker.errors.wording import quoted
from invoker.message import Message
from invoker.protocols.evergreen.cursor import END, Cursor
from invoker.protocols.evergreen.errors import bad_input
from invoker.protocols.evergreen.nodes import Node, Owner
from invoker.protocols.evergreen.references import References

_BYTES: tuple[Any, ...] = (bytes, bytearray, memoryview)


def pieces_of(spec: StreamSpec, *, is_streaming: bool) -> str:
    """How a parameter takes leaves: piece by piece (``"text"`` or ``"bytes"``), or each as a whole (empty) (E-095)."""
    if not is_streaming or spec.single or spec.take is not Take.PAYLOAD:
        return ""
    if spec.type is str:
        return "text"
    return "bytes" if spec.type in _BYTES else ""


class Input:
    """One input of one action.

    Args:
        action: The action of the input.
        index: The index of the invocation's input.
        spec: The spec of the parameter.
        root: The root node to read.
        references: The references of the session, with its settings.
        is_streaming: Whether the function takes streams; otherwise it is called for each leaf.
        is_only: Whether the input must have exactly one leaf (E-094).

    Attributes:
        cursor: The position below the root.
        is_ended: Whether the end of the input was fed.
        is_stalled: Whether leaves may have come that were not fed, because the window is used up.
        is_waited_for: Whether the function is known to wait for this input.
    """

    __slots__ = ("_credit", "_is_only", "_only", "_references", "_window", "action", "cursor", "index", "is_ended",
                 "is_stalled", "is_waited_for", "name")  # fmt: skip

    def __init__(
        self,
        action: Owner,
        index: int,
        spec: StreamSpec,
        root: Node,
        references: References,
        *,
        is_streaming: bool,
        is_only: bool,
    ) -> None:
        self.action = action
        settings = references.settings
        self.index = index
        self.name = spec.name
        self.cursor = Cursor(
            root,
            settings,
            pieces=pieces_of(spec, is_streaming=is_streaming),
            markers=spec.take is Take.MESSAGE and not is_only,
        )
        self.is_ended = self.is_stalled = self.is_waited_for = False
        self._window = self._credit = settings.window
        self._references = references
        self._is_only = is_only
        self._only: Feed | None = None

    @property
    def awaited(self) -> Node | None:
        """The node that the input waits for."""
        return self.cursor.awaited

    def refill(self) -> None:
        """Restore the whole window after the function has read all messages."""
        self._credit = self._window
        self.is_stalled = False

    def advance(self, steps: list[Step]) -> None:
        """Feed the leaves that have come, up to the window.

        Raises:
            InvocationError: The input is wrong, so the action fails.
        """
        cursor, key = self.cursor, self.action.key
        while not self.is_ended:
            if not self._credit:
                self.is_stalled = True
                return
            found = cursor.next()
            if isinstance(found, str):
                if found is END:
                    self._end(steps)
                    return
                if self._must_wait(steps):
                    return
                continue
            self.is_waited_for = False
            node, data = found
            self._credit -= 1
            feed = Feed(key, self.index, Message(data, node.headers, node.media_type))
            if not self._is_only:
                steps.append(feed)
            elif self._only is None:
                self._only = feed  # the leaf is fed at the end of the input, when no second leaf has followed
            else:
                raise bad_input(f"{self.action.where}, input {quoted(self.name)}: expected 1 chunk, got 2 or more")

    def _must_wait(self, steps: list[Step]) -> bool:
        node, reference = self.awaited, self.cursor.asked
        assert node is not None
        if reference is not None and self._references.ask(reference, steps):
            return False
        if node.waiters is None:
            node.waiters = []
        node.waiters.append(self)
        return True

    def _end(self, steps: list[Step]) -> None:
        if self._is_only:
            if self._only is None:
                raise bad_input(f"{self.action.where}, input {quoted(self.name)}: expected 1 chunk, got 0")
            steps.append(self._only)
        self.is_ended, self.is_waited_for = True, False
        steps.append(EndInput(self.action.key, self.index))

    def close(self) -> None:
        """Stop feeding, since the action has ended."""
        self.is_ended = True
        self.is_stalled = False
        self.cursor.close()
