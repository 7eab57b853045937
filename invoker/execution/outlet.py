"""`Outlet`: the interface of a transport for a whole conversation; see `invoker.execution.whole`."""

from __future__ import annotations

from typing import Any, Protocol

from invoker.core.steps import Close
from invoker.errors import InvocationError


class Outlet(Protocol):
    """The interface of a transport for a whole conversation."""

    @property
    def settle_s(self) -> float:
        """The most seconds that `await_end` may wait."""

    @property
    def is_blocked(self) -> bool:
        """Whether the thread waits for a slow peer in a way that ``Invocation.blocked`` does not count.

        It is read from any thread.
        """

    def await_end(self) -> None:
        """Return once it is certain that the peer's frames have ended, and were not cut off (R-109).

        Raises:
            Cancelled: The peer cut its frames off.
        """

    def is_gone(self) -> bool:
        """Whether the peer is known to have left; does not wait. From any thread."""

    def early(self, frames: list[Any], close: Close | None = None, *, may_wait: bool = False) -> None:
        """Send frames while the function is still running, and remove the sent ones from the list.

        No two threads call it at once.

        Args:
            frames: The kept frames, the oldest first. The function's thread may append to it meanwhile.
            close: The ending of the conversation, if it has ended; it is sent after the frames, once.
            may_wait: Whether to send all frames, and wait while the peer is slow. Otherwise frames that cannot be sent
                at once stay in the list.

        Raises:
            Cancelled: The peer is gone; only where it may wait.
        """

    def cut(self, error: InvocationError) -> None:
        """End the conversation for the peer, whatever its thread does; may be called from any thread."""
