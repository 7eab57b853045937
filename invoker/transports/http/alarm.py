"""`Alarm`: a timer that is often set again and rarely fires. `Soon`: runs one action in the next turn of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Soon:
    """Runs an action in the next turn of the loop, once for all calls of `do` before that turn.

    Attributes:
        is_due: Whether the action is still to be done.
    """

    __slots__ = ("is_due",)

    def __init__(self) -> None:
        self.is_due = False

    def do(self, action: Callable[[], None]) -> None:
        """Run an action in the next turn, unless one is already due."""
        if not self.is_due:
            self.is_due = True
            asyncio.get_running_loop().call_soon(self._do, action)

    def _do(self, action: Callable[[], None]) -> None:
        self.is_due = False
        action()


class Alarm:
    """Runs one action later.

    It has one timer of the loop. The timer stays unchanged when the alarm is set to a later time; if it then fires too
    early, it is set again.
    """

    __slots__ = ("_action", "_due_s", "_loop", "_rings_s", "_timer")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._rings_s = 0.0
        self._due_s = 0.0
        self._action: Callable[[], None] | None = None

    def set(self, delay_s: float, action: Callable[[], None]) -> None:
        """Run an action after ``delay_s`` seconds; it replaces the action that was set before."""
        self._action = action
        self._due_s = due_s = self._loop.time() + delay_s
        if self._timer is not None:
            if self._rings_s <= due_s:
                return
            self._timer.cancel()
        self._rings_s = due_s
        self._timer = self._loop.call_at(due_s, self._ring)

    def unset(self) -> None:
        """Drop the action, until the next `set`."""
        self._action = None

    def close(self) -> None:
        """Drop the action and the timer, so that the loop forgets the alarm."""
        self._action = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._timer = None
        action = self._action
        if action is None:
            return
        if self._due_s > self._rings_s:
            self._rings_s = self._due_s
            self._timer = self._loop.call_at(self._due_s, self._ring)
            return
        self._action = None
        action()
