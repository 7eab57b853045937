"""`Watcher`: a thread that waits for a loop's sockets while the loop itself sleeps in a completion queue.

The loop's epoll is watched by another one, for one event at a time. So nothing is to be done before a sleep unless
something has come since the last one, and the thread is never woken while only the queue has news.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable

__all__ = ["Watcher"]

_ONCE = select.EPOLLIN | select.EPOLLONESHOT


class Watcher:
    """Watches one epoll.

    Args:
        epoll: Its file descriptor.
        wake: Called in the thread when the epoll has something to tell.

    Attributes:
        is_armed: Whether ``wake`` will be called; it is called once for each `arm`.
    """

    def __init__(self, epoll: int, wake: Callable[[], None]) -> None:
        self.is_armed = False
        self._epoll = epoll
        self._wake = wake
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._outer = select.epoll()
        self._outer.register(self._bell, select.EPOLLIN)
        self._outer.register(epoll, 0)
        self._thread = threading.Thread(target=self._watch, name="invoker-watcher", daemon=True)
        self._thread.start()

    def arm(self) -> None:
        """Call ``wake`` as soon as the epoll has something to tell, which may be now."""
        if not self.is_armed:
            self.is_armed = True
            self._outer.modify(self._epoll, _ONCE)

    def close(self) -> None:
        """End the thread; before the epoll is closed."""
        os.eventfd_write(self._bell, 1)
        self._thread.join()
        self._outer.close()
        os.close(self._bell)

    def _watch(self) -> None:
        while True:
            for number, _ in self._outer.poll():
                if number == self._bell:
                    return
                self.is_armed = False
                self._wake()
