"""What hypercorn's WebSocket lacks: a limit of memory for a message, and pings that end with their connection.

hypercorn 0.18 closes with 1009 when a message is too long, but keeps what still comes of it, and does not tell the
application. Its own pings, and with them the connection's task, outlive the connection by a whole interval. Drop this
module when a release bounds the buffer and ends the pings.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from hypercorn.protocol.ws_stream import WebsocketBuffer, WSStream
from wsproto.events import Message, Ping

__all__ = ["bound_messages", "keep_pinging"]


def bound_messages(send: Any, most_bytes: int, on_excess: Callable[[], None]) -> None:
    """Keep at most so many bytes of a message, and say once when one has more; nothing is kept from then on.

    Args:
        send: As the application was given it.
        most_bytes: Of one message, inflated.
        on_excess: Called in the middle of such a message.
    """
    stream = getattr(send, "__self__", None)
    if isinstance(stream, WSStream):
        stream.buffer = _Bounded(most_bytes, on_excess)


async def keep_pinging(send: Any, interval_s: float, is_lost: Callable[[], bool]) -> None:
    """Ping, so that nobody on the way takes the connection for dead; returns when it is.

    While nothing is read of a connection, writing to it is all that tells that its peer is gone.

    Args:
        send: As the application was given it.
        interval_s: Between two pings.
        is_lost: Whether the connection is closed.
    """
    stream = getattr(send, "__self__", None)
    while isinstance(stream, WSStream) and not is_lost():
        await asyncio.sleep(interval_s)
        with contextlib.suppress(TimeoutError):  # what tells the end of a connection may wait for us to read
            async with asyncio.timeout(interval_s):
                await stream._send_wsproto_event(Ping())  # noqa: SLF001 - see above


class _Bounded(WebsocketBuffer):
    def __init__(self, most_bytes: int, on_excess: Callable[[], None]) -> None:
        super().__init__(most_bytes)
        self._on_excess = on_excess
        self._is_over = False

    def extend(self, event: Message[Any]) -> None:
        """Add a part of a message."""
        if self._is_over:
            return
        if self.length + len(event.data) > self.max_length:
            self._is_over = True
            self.clear()
            self._on_excess()
        else:
            super().extend(event)
