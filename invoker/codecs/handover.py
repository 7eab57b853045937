"""`HANDED_OVER`: threads switch more often while one of them reads a slow value.

Theory. A thread that computes releases the interpreter's lock after 5 ms if another thread waits for it, and any of the
waiting threads may get it. An event loop asks for the lock after each of its system calls, so beside four threads that
read slow values a turn of the loop takes up to half a second. Within this block threads release the lock ten times as
often, which costs them a few hundredths of their time. The short interval is not used everywhere, since it would slow
down threads that often wait for each other.
"""

from __future__ import annotations

import sys
from typing import Final

INTERVAL_S: Final = 0.0005
_AS_SET_S: Final = int(INTERVAL_S * 1e6) / 1e6
"""The short interval, rounded to whole microseconds, as Python returns it."""


class HandedOver:
    """A block of code; several threads may be in it at once, and one thread several times.

    Methods of lists are atomic, so that threads need no lock. The last thread that leaves restores the interval. If two
    threads enter and leave at the same time, one may run with the normal interval, which is only slower.
    """

    __slots__ = ("_before_s", "_within")

    def __init__(self) -> None:
        self._within: list[None] = []
        self._before_s = sys.getswitchinterval()

    def __enter__(self) -> None:
        now_s = sys.getswitchinterval()
        # otherwise another thread has left and not yet restored the interval
        if not self._within and now_s > INTERVAL_S:
            self._before_s = now_s
        self._within.append(None)
        if now_s > INTERVAL_S:
            sys.setswitchinterval(INTERVAL_S)

    def __exit__(self, *_: object) -> None:
        self._within.pop()
        # otherwise the author's program has changed the interval
        if not self._within and sys.getswitchinterval() == _AS_SET_S:
            sys.setswitchinterval(self._before_s)


HANDED_OVER: Final = HandedOver()
"""The only instance, since the interval applies to the whole process."""
