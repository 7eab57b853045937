"""`LoopHandoff`: the work of a thread while the loop continues its conversation.

A session asks the store, whose answer comes on the loop. From then on the loop runs the conversation to its end, and
the thread waits, without the slot that the function may need, and sends the kept frames. The sweeper checks the peer;
when the peer is gone or cancels, the part of the conversation on the loop is cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from invoker.core.steps import Close
from invoker.errors import Cancelled, InputCancelled
from invoker.execution.bodies.awaiting import Awaiting
from invoker.execution.driver import Driver


class LoopHandoff:
    """A conversation that continues on the loop.

    Args:
        driver: Has the loop, the sweeper and the thread slots.
        is_gone: Whether the peer has left; called by the sweeper.
    """

    __slots__ = ("_awaiting", "_driver", "_is_back", "_is_gone")

    def __init__(self, driver: Driver, is_gone: Callable[[], bool]) -> None:
        self._driver = driver
        self._is_gone = is_gone
        self._awaiting = Awaiting(driver.loop)
        self._is_back = False

    def run(self, rest: Coroutine[Any, Any, Close]) -> Close:
        """Wait until the loop has run the rest of the conversation, and give its ending."""
        driver = self._driver
        driver.sweeper.add(self)
        driver.threads.leave()
        try:
            return self._awaiting.wait(rest)  # type: ignore[no-any-return]  # what it awaits gives it
        except InputCancelled:
            return Close(Cancelled())
        finally:
            driver.threads.come_back()
            self._is_back = True

    def sweep(self, now: float) -> bool:  # noqa: ARG002 - the sweeper's interface
        """Check whether the peer is gone; False when no call waits any more."""
        if not self._is_back and self._is_gone():
            self._awaiting.cancel()
            return False
        return not self._is_back
