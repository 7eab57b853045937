"""`Wire`: what a transport offers to the thread of one conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from invoker.core.steps import Trailers
from invoker.drive.thread.gate import Pace

__all__ = ["Wire"]


class Wire(Protocol):
    """What a transport offers to the thread of one conversation; see `invoker.doors.grpc.line.Line`."""

    lock: Any
    is_gone: bool
    is_ended: bool
    settles: bool
    pace: Pace

    @property
    def is_idle(self) -> bool:
        """Whether the thread waits for the peer."""

    def read(self) -> Any | None:
        """Wait for the next frame; None when the peer has half-closed, Cancelled when it is gone."""

    def await_frame(self, delay_s: float) -> bool:
        """Wait at most so long for the next frame; whether it is here. Not if the peer has half-closed."""

    def write(self, frame: Any, *, hold: bool) -> None:
        """Send one frame, or hold it for what follows at once; waits while the peer is slow."""

    def accepted(self) -> None:
        """The invocation was admitted: whatever can be told to the peer now, is (R-133)."""

    def look(self) -> bool:
        """Whether the peer is gone; does not wait."""

    def look_ahead(self) -> Sequence[Any]:
        """The frames that wait for a function which does not pull; from another thread than its own."""

    def refuse(self, code: int, detail: str) -> bool:
        """Send the status while the thread is busy; False where that cannot be now."""

    def finish(self, code: int, detail: str, trailers: Trailers = ()) -> bool:
        """Send what is held, then the status and its metadata; the first one counts."""

    def cut(self, code: int, detail: str) -> None:
        """End the conversation with a status, from any thread."""
