"""`UnaryBody`: runs a sync function with one message for each input and one value, in the thread that read the request.

There is no session: the values are decoded, the function is called, its value is encoded, and the transport answers
when this thread is back. If the function takes long, another thread leads and the sweeper watches the invocation, as in
`Whole`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from invoker.core.plan import Plan
from invoker.core.streams import InputStream
from invoker.core.unary import UnaryCall
from invoker.errors import Cancelled, InternalError, InvocationError, StopInvocation
from invoker.execution.keeping import Keeping
from invoker.execution.placement import Run
from invoker.execution.thread.call_watchdog import why_gone
from invoker.message import Message

log = logging.getLogger(__name__)


class UnaryBody(Keeping):
    """Runs one unary invocation.

    It keeps no frames, unlike other kinds of `Keeping`, because only the ending is sent.
    """

    __slots__ = ("_deadline", "_message", "_messages", "_second", "invocation")

    def begin(
        self, plan: Plan, call: UnaryCall, second: Callable[[], InvocationError], *, deadline: float | None = None
    ) -> InvocationError | None:
        """Open the invocation; `run` calls the function.

        Args:
            plan: The plan of the call, which says `is_unary`.
            call: The call that the peer sent.
            second: Makes the error for a function that gives a second value.
            deadline: The deadline on the clock of ``time.monotonic``, or None.

        Returns:
            The error if the invocation is refused.
        """
        driver = self.driver
        self._message: Message[bytes] | None = None
        self._messages, self._second, self._deadline = call.messages, second, deadline
        try:
            invocation = driver.engine.open(call.open, deadline=deadline, plan=plan, messages=call.messages)
        except InvocationError as error:
            driver.refused(call.open, error)
            return error.with_traceback(None)
        self.invocation = invocation
        invocation.run = Run.THREAD if self.turn is None else self.turn.run
        invocation.peer = getattr(self.outlet, "peer", "")
        invocation.may_be_ended(self.fail)
        self.is_open, self.started_s = True, invocation.started_s
        driver.direct.add(self)
        return None

    def run(self) -> tuple[Message[bytes] | None, InvocationError | None]:
        """Run the call to its end, in the thread that has the turn.

        Returns:
            The value that the function gave, if any, and the error with which the invocation ended, if it failed.
        """
        try:
            copy_context().run(self.call_unary, self._messages)  # the thread may serve other calls later
            self.break_off(None)
        except Exception:
            log.exception("a request failed inside the invoker")
            self.break_off(InternalError())
        finally:
            self.leave()
        error, message = self.invocation.error, self._message
        self._message = None  # the thread keeps a reference to this object for a while
        return (None, error) if error is not None else (message, None)

    def put(self, index: int, message: Message[bytes]) -> None:
        """Keep the value that the function gives or sends by its context; a second value is an error."""
        if self.invocation.is_finished:
            raise StopInvocation
        self.invocation.emit(index, message)
        if self._message is not None:
            self.break_off(self._second())
            raise StopInvocation
        self._message = message

    def break_off(self, error: InvocationError | None) -> None:
        """End the invocation, unless it has ended; from any thread."""
        with self.lock:
            if error is None and self.is_long and (self.cut_by is not None or self.outlet.is_gone()):
                error = Cancelled()  # the function may have returned because of the cancel
            if type(error) is Cancelled:
                error = why_gone(error, self.cut_by, self._deadline)
            if self.invocation.finish(error):
                self.driver.engine.close(self.invocation)

    def tell_end(self, index: int) -> None:
        """Do nothing: the only output ends with the invocation."""

    def pull(self, stream: InputStream) -> Any:
        """Return None, since the function has been given the only message of each input."""
        return stream.take()
