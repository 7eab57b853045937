"""`Wire` and `Conversation`: the interfaces that the body of a direct call uses to read and write, and its owner."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, Protocol

from invoker.core.session import CallSession
from invoker.core.steps import CallStep, Event, Trailers
from invoker.errors import InvocationError
from invoker.execution.pace.gate import Pace


class Wire(Protocol):
    """The interface of a transport for the thread of one conversation; see `transports.grpc.threadcall.ThreadCall`."""

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
        """Wait at most this long for the next frame; returns whether it has come, which is False after a half-close."""

    def write(self, frame: Any, *, hold: bool) -> None:
        """Send one frame, or hold it for a frame that follows at once; waits while the peer is slow."""

    def accepted(self) -> None:
        """Send the peer the headers, since the invocation was admitted (R-133)."""

    def look(self) -> bool:
        """Whether the peer is gone; does not wait."""

    def look_ahead(self) -> Sequence[Any]:
        """The frames that wait for a function which does not pull; called from another thread."""

    @property
    def waiting(self) -> Sequence[Any]:
        """The frames that have come and that the function has not taken; may be called from any thread."""

    @property
    def is_blocked(self) -> bool:
        """Whether the thread waits because the peer takes none of the sent frames."""

    def refuse(self, code: int, detail: str) -> bool:
        """Send the status while the conversation's thread is busy; False if that is impossible now."""

    def send_now(self, frame: Any) -> bool:
        """Send one frame unless it would have to wait, and return whether it was sent; with the lock held."""

    def finish(self, code: int, detail: str, trailers: Trailers = ()) -> bool:
        """Send the held frames, then the status and its metadata; the first status counts."""

    def cut(self, code: int, detail: str) -> None:
        """End the conversation with a status, from any thread."""

    # Several threads may call these, each with the lock held.

    def share(self) -> threading.Condition:
        """Let several threads use this wire from now on; gives a condition that is notified of every event."""

    @property
    def is_done(self) -> bool:
        """Whether the wire is over, so that no event comes any more."""

    def turn(self) -> None:
        """Wait for one event, or for the thread that already waits for events. The lock is released meanwhile."""

    def glance(self) -> None:
        """Take the events that have already come, unless another thread waits for them."""

    def ask(self) -> None:
        """Begin to receive one more frame; it comes by `next_frame`."""

    def next_frame(self) -> Any | None:
        """A frame that has already come."""

    def await_room(self) -> None:
        """Wait until a frame can be sent; Cancelled when the peer is gone."""

    def put(self, frame: Any) -> None:
        """Send one frame now, when there is room."""

    def send_status(self, code: int, detail: str, trailers: Trailers = ()) -> None:
        """Send the held frames, then the status and its metadata; the first status counts."""


class Conversation(Protocol):
    """The methods of its direct conversation that a body needs; called in a thread of the body.

    Once several threads take turns at the wire, they hold its lock whenever they call.
    """

    session: CallSession
    wire: Wire
    turns: threading.Condition | None

    @property
    def debug(self) -> bool:
        """Whether the peer may see tracebacks."""

    def half_closed(self) -> Iterable[CallStep]:
        """The steps of the end of the peer's frames."""

    def perform(self, step: CallStep) -> None:
        """Act on one step of the session."""

    def deliver(self, event: Event) -> None:
        """Give the session an event, and do the steps that it answers with."""

    def is_over(self) -> bool:
        """Whether the invocation has ended, or the peer is gone."""

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """Block the calling thread until the loop has run ``awaitable``, or the peer is gone."""

    def finish(self, error: InvocationError | None) -> InvocationError | None:
        """End the invocation, unless it has ended; gives the error of the ending that counts."""

    def break_off(self, error: InvocationError) -> None:
        """End the invocation and notify the peer at once, since user code may need time to return (R-075, R-112)."""
