"""`HANDED_OVER`: while values are read that take long, threads hand the interpreter over more often.

Theory. A thread that computes gives the interpreter away after 5 ms if another one wants it, and of those who wait any
may get it. An event loop asks for it after each of its system calls, so beside four threads that read slow values a
turn of the loop takes up to half a second. Within this block threads give it away ten times as often, which costs them
a few hundredths of their time. It is not so everywhere: threads that wait for each other all the time would be slower.
"""

from __future__ import annotations

import sys
from typing import Final

__all__ = ["HANDED_OVER", "INTERVAL_S", "HandedOver"]

INTERVAL_S: Final = 0.0005
_AS_SET_S: Final = int(INTERVAL_S * 1e6) / 1e6
"""The interval as Python gives it back, which is in whole microseconds."""


class HandedOver:
    """A block of code; several threads may be in it at once, and one thread several times.

    Methods of lists are atomic, so that threads need no lock. The last thread that leaves puts the interval back: it
    was made short by each thread before that one left. Of two that come and go at the same time one may be within while
    the interval is as before, which is only slower.
    """

    __slots__ = ("_before_s", "_within")

    def __init__(self) -> None:
        self._within: list[None] = []
        self._before_s = sys.getswitchinterval()

    def __enter__(self) -> None:
        now_s = sys.getswitchinterval()
        if not self._within and now_s > INTERVAL_S:  # else somebody has left, and not put it back yet
            self._before_s = now_s
        self._within.append(None)
        if now_s > INTERVAL_S:
            sys.setswitchinterval(INTERVAL_S)

    def __exit__(self, *_: object) -> None:
        self._within.pop()
        if not self._within and sys.getswitchinterval() == _AS_SET_S:  # else the author's program has changed it
            sys.setswitchinterval(self._before_s)


HANDED_OVER: Final = HandedOver()
"""One for the process, like the interval."""
