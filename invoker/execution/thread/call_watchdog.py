"""`CallWatchdog`: acts on a conversation whose thread is in user code for too long.

A function that runs long after its inputs have ended is logged (R-134). A function whose peer is gone gets a grace to
return; after that its thread counts as stuck until it does (R-116). Whatever such a function waits for on the loop is
cancelled when its peer goes (R-115).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Awaitable
from typing import Any

from invoker.core.invocation import Invocation
from invoker.errors import DeadlineExceeded, InvocationError
from invoker.execution.bodies.awaiting import Awaiting
from invoker.execution.driver import Driver

log = logging.getLogger(__name__)

_EARLY_S = 0.01
"""Seconds by which the transport may enforce a deadline before it has passed on our own clock."""


class CallWatchdog:
    """Checks the time limits of one conversation.

    Args:
        driver: Has the time limits, and counts stuck threads.

    Attributes:
        ended_at: When the inputs ended, on the clock of ``time.monotonic``; 0 before, and once it was logged.
        gone_at: When the thread or the sweeper noticed that the peer is gone; 0 before.
    """

    __slots__ = ("_awaiting", "_driver", "_has_left", "_is_stuck", "_lock", "ended_at", "gone_at")

    def __init__(self, driver: Driver) -> None:
        self.ended_at = 0.0
        self.gone_at = 0.0
        self._driver = driver
        self._awaiting: Awaiting | None = None  # made by the first `wait`
        self._lock = threading.Lock()
        self._is_stuck = self._has_left = False

    def look(self, now: float, invocation: Invocation | None) -> None:
        """Log an invocation that outlives its inputs by too much, once."""
        lingering_s = self._driver.settings.lingering_s
        if self.ended_at and self.ended_at + lingering_s < now:
            self.ended_at = 0.0
            _warn(f"an invocation goes on although its inputs ended {lingering_s:g} s ago", invocation)

    def notice_gone(self, now: float, invocation: Invocation | None) -> None:
        """Act on a peer that is gone, or to which an error was sent, while user code is busy."""
        if not self.gone_at:
            # Set this, then check for a waiting thread; `wait` does the reverse, so one of the two notices the other.
            self.gone_at = now
            if self._awaiting is not None:
                self._awaiting.cancel()
        elif self.gone_at + self._driver.settings.grace_s < now and not self._is_stuck:
            with self._lock:
                self._is_stuck = not self._has_left
                self._driver.threads.stuck += self._is_stuck
            _warn(
                "a sync function ignores that its invocation ended; its thread is abandoned until it returns",
                invocation,
            )

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """Block the calling thread until the loop has run ``awaitable``, or the peer is gone (R-034, R-115)."""
        with self._lock:  # several threads of one body may come here at once
            awaiting = self._awaiting = self._awaiting or Awaiting(self._driver.loop)
        if self.gone_at:
            awaiting.cancel()
        return awaiting.wait(awaitable)

    def left(self) -> None:
        """Note that the thread has left user code."""
        with self._lock:
            self._has_left = True
            if self._is_stuck:
                self._driver.threads.stuck -= 1


def why_gone(error: InvocationError, cut: InvocationError | None, deadline: float | None) -> InvocationError:
    """The error that ends a conversation whose peer is gone.

    Args:
        error: The error that says that the peer is gone.
        cut: The error for which we cut the conversation ourselves, if we did.
        deadline: The deadline of the conversation, on the clock of ``time.monotonic``.
    """
    if cut is not None:
        return cut
    if deadline is not None and time.monotonic() >= deadline - _EARLY_S:
        return DeadlineExceeded()
    return error


def _warn(text: str, invocation: Invocation | None) -> None:
    name = invocation.function.spec.name if invocation is not None else ""
    number = invocation.id if invocation is not None else ""
    log.warning(text, extra={"invocation": number, "function": name})
