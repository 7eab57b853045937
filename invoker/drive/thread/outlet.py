"""`DirectOutlet`: what a sync function sends by its context, written in the thread that runs it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from invoker.core.invocation import Invocation
from invoker.core.steps import Emitted, OutputEnded
from invoker.drive.bodies.runner import production_failed
from invoker.errors import EncodeError, InvocationError, StopInvocation

if TYPE_CHECKING:
    from invoker.drive.thread.direct import DirectConversation

__all__ = ["DirectOutlet"]


class DirectOutlet:
    """The door of one context to its wire; made in the thread that it belongs to.

    Args:
        conversation: Whose session, wire and endings these are.
        invocation: That of the conversation.
    """

    __slots__ = ("_conversation", "_invocation", "_thread", "is_over", "wait")

    def __init__(self, conversation: DirectConversation, invocation: Invocation) -> None:
        self._conversation = conversation
        self._invocation = invocation
        self._thread = threading.get_ident()
        self.is_over, self.wait = conversation.is_over, conversation.wait

    @property
    def outputs(self) -> Sequence[Any]:
        """The outputs of the invocation."""
        return self._invocation.outputs

    def send(self, index: int, value: Any) -> None:
        """Emit a value that the function sends by its context; waits while the peer is slow."""
        self._check_thread()
        invocation = self._invocation
        message = invocation.encode_sent(index, value)
        if message is None or invocation.is_finished:
            self._conversation.check_over()
            return
        invocation.emit(index, message)
        self._tell(Emitted(invocation.key, index, message))

    def end(self, index: int) -> None:
        """End an output as the function asks by its context."""
        self._check_thread()
        if self._invocation.end_sent(index) and not self._invocation.is_finished:
            self._tell(OutputEnded(self._invocation.key, index))

    def _check_thread(self) -> None:
        if threading.get_ident() != self._thread:
            raise EncodeError("this function sends from the thread that runs it only; its wire has no other")

    def _tell(self, event: Emitted | OutputEnded) -> None:
        conversation = self._conversation
        try:
            for step in conversation.session.deliver(event):
                conversation.wire.write(step.frame, hold=False)  # type: ignore[union-attr]  # it is only ever sent
        except InvocationError as error:  # the peer is gone; no function may make light of that
            conversation.raised(error, production_failed)
            raise StopInvocation("the invocation is over") from None
