"""`ReadControl`: reads a connection in small pieces, pauses and resumes reading, and checks whether the peer has left.

asyncio does not notice the end of a connection that is not read, so the kernel is polled now and then. After a reset
the peer is gone. A peer that has half-closed may still wait for the response, if its request is complete; it counts as
gone if reading does not continue for a long time. If the reader counts the bytes that it holds, the rest is read at
once, to find out whether bytes are missing.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_LOOK_S = 1.0
_READ_BYTES = 32 * 1024
"""How many bytes are read before other tasks can run: chunks of one byte cost 300 ns for each received byte."""
_RESET = select.POLLERR | select.POLLHUP
_ENDED: int = getattr(select, "POLLRDHUP", 0)  # Linux only


class ReadControl:
    """The reading end of one connection.

    Args:
        transport: The transport of the connection.
        lost: Called when the peer has left while reading was paused; None: no notice is wanted.
        patience_s: How long a peer that sends no more may wait until reading continues.

    Attributes:
        is_shut: Whether reading is paused.
    """

    def __init__(self, transport: Any, lost: Callable[[], None] | None = None, *, patience_s: float = 60.0) -> None:
        self._transport = transport
        self._lost = lost
        self._patience_s = patience_s
        self.is_shut = self._takes_rest = self._reads_rest = False
        self._shut_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        with suppress(AttributeError):  # asyncio would read 256 KiB; uvloop has no such limit
            transport.max_size = _READ_BYTES

    def shut(self, *, takes_rest: bool = False) -> None:
        """Read no more for now.

        Args:
            takes_rest: Whether the remaining bytes may be read once the peer has half-closed; they are counted then.
        """
        if not (self.is_shut or self._reads_rest or self._transport.is_closing()):
            self.is_shut, self._takes_rest = True, takes_rest
            self._transport.pause_reading()
            if self._lost is not None:
                self._watch()

    def open(self) -> None:
        """Read from the connection again, unless it closes."""
        if self.is_shut and not self._transport.is_closing():
            self.is_shut = False
            self._transport.resume_reading()

    def close(self) -> None:
        """Forget a connection that is over, and stop the timer, which would keep it alive."""
        self._lost = None
        if self._timer is not None:
            self._timer.cancel()

    def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        self._shut_s = loop.time()
        if self._timer is None:  # a timer that still runs from the last `shut` is enough
            self._timer = loop.call_later(_LOOK_S, self._look)

    def _look(self) -> None:
        self._timer = None
        if not self.is_shut or self._transport.is_closing() or self._lost is None:
            return
        loop, events = asyncio.get_running_loop(), _events(self._transport.get_extra_info("socket").fileno())
        if events & _RESET or (events & _ENDED and loop.time() - self._shut_s >= self._patience_s):
            self._lost()
        elif events & _ENDED and self._takes_rest:
            self._reads_rest = True
            self.open()
        else:
            self._timer = loop.call_later(_LOOK_S, self._look)


def _events(descriptor: int) -> int:
    poll = select.poll()
    poll.register(descriptor, _ENDED)
    return next((events for _, events in poll.poll(0)), 0)
