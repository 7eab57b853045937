"""`Wire`: the interface of a transport for a conversation on the loop."""

from __future__ import annotations

from typing import Any, Final, Protocol


class Wire(Protocol):
    """A transport's side of one conversation. Only `room` waits."""

    @property
    def is_gone(self) -> bool:
        """Whether the peer will get nothing any more."""

    def accepted(self) -> None:
        """Send the peer the headers, since the first invocation was admitted (R-133)."""

    def ask(self) -> None:
        """Continue to read, after `arrived` has stopped it by returning False."""

    def write(self, frame: Any) -> bool:
        """Send one frame, after the headers; False when the next one should wait for `room`.

        gRPC calls whose frames are not joined take a `core.frames.SharedFrame`, too.
        """

    async def room(self) -> None:
        """Wait until a frame may be written."""


class _Gone:
    """Replaces the wire of a conversation that is over, so that neither refers to the other."""

    is_gone = True

    def accepted(self) -> None:
        pass

    def ask(self) -> None:
        pass

    def write(self, frame: Any) -> bool:  # noqa: ARG002 - as `Wire`
        return False

    async def room(self) -> None:
        return

    def close(self, _: Any) -> None:
        pass


GONE: Final = _Gone()
