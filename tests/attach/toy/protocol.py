"""The toy protocol: each frame is one value for the function, and each value that it gives is one frame.

A conversation opens one invocation with its first frame, and ends when the invocation does.
"""

from __future__ import annotations

from collections.abc import Iterable

from invoker.core.steps import Close, Emitted, EndInput, Event, Feed, Finished, Open, Send, Step
from invoker.message import Headers, Message

_ID = "echo"
_TEXT = "text/plain"


class EchoSession:
    """Translates one conversation.

    Args:
        metadata: Of the conversation, for the function.
    """

    def __init__(self, metadata: Headers) -> None:
        self._metadata = metadata
        self._is_open = False

    def receive(self, frame: bytes) -> Iterable[Step]:
        """Give a value to the function, which the first one opens."""
        return (*self._opening(), Feed(_ID, 0, Message(frame, media_type=_TEXT)))

    def half_close(self) -> Iterable[Step]:
        """The function gets no more."""
        return (*self._opening(), EndInput(_ID))

    def deliver(self, event: Event) -> Iterable[Step]:
        """Give a value to the peer, or the end."""
        if isinstance(event, Emitted):
            return (Send(event.message.payload),)
        return (Close(event.error),) if isinstance(event, Finished) else ()

    def _opening(self) -> Iterable[Step]:
        if self._is_open:
            return ()
        self._is_open = True
        return (Open(_ID, accepts=(_TEXT,), metadata=self._metadata),)
