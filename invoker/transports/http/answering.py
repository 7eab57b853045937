"""Answers a request whose whole body has arrived: `begin_unary` on the loop, `answered` in the thread that read it.

Most functions give one value, and most requests arrive with their whole body; such a request needs no session.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from invoker.core.http import BodyChunk, Response
from invoker.core.steps import Close
from invoker.core.unary import UnaryInvocation
from invoker.errors import Cancelled, DeadlineExceeded, InternalError, InvocationError
from invoker.execution.bodies.runner import later
from invoker.execution.driver import Driver
from invoker.execution.loop.unary import UnaryTask
from invoker.execution.thread.leader_follower import Turn, WorkTurn
from invoker.execution.unary import UnaryBody
from invoker.execution.whole import Whole
from invoker.message import Message
from invoker.transports.http.app import Begin, PreparedRequest, Respond, Unary
from invoker.transports.http.exchange import NOBODY, Listener
from invoker.transports.http.inline_connection import Reply
from invoker.transports.http.plain import MOST_BODY_BYTES
from invoker.transports.http.request import Request

log = logging.getLogger(__name__)


def begin_unary(request: Request, prepared: PreparedRequest, body: bytes, driver: Driver) -> bool:
    """Begin to answer a request that has come.

    Returns False, without having done anything, if the request needs a session.

    Args:
        request: The request.
        prepared: The prepared request for the head of this request.
        body: The whole body of the request.
        driver: Runs the function.
    """
    try:
        unary = prepared.unary(body)
    except Exception:
        log.exception("a request failed inside the invoker")
        request.answer(prepared.refusal(InternalError()))
        return True
    if unary is None:
        return False
    if not unary.plan.function.spec.is_async:
        ThreadReply(request, prepared, unary, driver).start()
        return True
    answer = partial(_answer, request, prepared, unary.respond)
    timeout_s = prepared.timeout_s
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    try:
        invocation = driver.engine.open(
            unary.call.open, deadline=deadline, plan=unary.plan, messages=unary.call.messages
        )
    except InvocationError as error:
        driver.refused(unary.call.open, error)
        answer(None, error.with_traceback(None))
        return True
    invocation.peer = request.peer
    task = UnaryTask(driver, cast(UnaryInvocation, invocation), unary.call.messages, answer, unary.second)
    request.attend(task)
    task.start(timeout_s)
    return True


class ThreadReply:
    """The reply to a request on the loop whose sync function runs in a thread; its `Outlet`, and its listener.

    Args:
        request: The request.
        prepared: The prepared request for the head of this request.
        unary: What the client sent.
        driver: Has the threads.

    Attributes:
        peer: The caller, and the status that it got.
    """

    __slots__ = ("_driver", "_is_over", "_loop", "_prepared", "_request", "_timer", "_unary", "body", "peer")

    settle_s = 0.0
    is_blocked = False

    def __init__(self, request: Request, prepared: PreparedRequest, unary: Unary, driver: Driver) -> None:
        self.peer = request.peer
        self.body = UnaryBody(driver, self, WorkTurn(driver.sweeper))
        self._request = request
        self._prepared = prepared
        self._unary = unary
        self._driver = driver
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._is_over = False

    def start(self) -> None:
        """Run the function in a thread, or answer that this is refused."""
        body, unary, timeout_s = self.body, self._unary, self._prepared.timeout_s
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        refused = body.begin(unary.plan, unary.call, unary.second, deadline=deadline)
        if refused is None:
            self._request.attend(self)
            try:
                cast(WorkTurn, body.turn).start(self._driver.threads, body.run, self._done)
            except InvocationError as error:  # no thread is free
                body.break_off(error)
                body.leave()
                refused = error
        if refused is not None:
            self._answer(None, refused)
        elif timeout_s is not None:
            self._timer = self._loop.call_later(timeout_s, self.fail, DeadlineExceeded())

    def _done(self, ending: tuple[Message[bytes] | None, InvocationError | None]) -> None:
        later(self._loop, self._answer, *ending)

    def _answer(self, message: Message[bytes] | None, error: InvocationError | None) -> None:
        """Answer, unless the client has got its answer; on the loop."""
        if self._is_over:
            return
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        _answer(self._request, self._prepared, self._unary.respond, message, error)

    # The methods of `Outlet`, which the body calls.

    def await_end(self) -> None:
        """Return, since the whole body has come."""

    def is_gone(self) -> bool:
        """Whether the function's result is no longer needed: the client has left, or has got its answer."""
        return self._is_over or self._request.is_gone

    def early(self, frames: list[Any], close: Close | None = None, *, may_wait: bool = False) -> None:
        """Do nothing, since only the ending is sent."""

    def cut(self, error: InvocationError) -> None:
        """Answer with an error, whatever the function does."""
        later(self._loop, self._answer, None, error)

    # The request calls these methods.

    def arrived(self, frame: BodyChunk | None) -> bool:  # noqa: ARG002 - the interface
        """Return True, since all of the request has come."""
        return True

    def gone(self) -> None:
        """End the invocation, because the client has left (R-115), although its function still runs."""
        self._break_off(Cancelled())

    def fail(self, error: InvocationError) -> None:
        """End the invocation with an error, whatever its function does."""
        self.body.fail(error)
        self._break_off(error)

    def _break_off(self, error: InvocationError) -> None:
        if self.body.is_open:
            self.body.break_off(error)


class BodyFirst:
    """A listener that waits for a short body, and then begins to answer.

    It answers by a unary call if it can, and otherwise lets another listener answer.

    Args:
        request: The request.
        prepared: The prepared request for the head of this request; it has no time limit.
        begin: Makes the other listener.
        driver: Runs the function; a drain of the driver cuts this listener if the body does not come in time.
    """

    __slots__ = ("_begin", "_chunks", "_driver", "_listener", "_most_bytes", "_prepared", "_request", "_size")

    def __init__(self, request: Request, prepared: PreparedRequest, begin: Begin, driver: Driver) -> None:
        self._request = request
        self._prepared = prepared
        self._begin = begin
        self._driver = driver
        self._chunks: list[bytes] = []
        self._size = 0
        most = prepared.most_bytes
        self._most_bytes = MOST_BODY_BYTES if most is None else min(most, MOST_BODY_BYTES)
        self._listener: Listener | None = None
        driver.entered(self)

    def arrived(self, frame: BodyChunk | None) -> bool:
        """Keep a chunk of the body; begin to answer when the body has ended, or is long."""
        if self._listener is not None:
            return self._listener.arrived(frame)
        if frame is None:
            if begin_unary(self._request, self._prepared, b"".join(self._chunks), self._driver):
                self._listener = NOBODY
                self._driver.exited(self)
                return True
            return self._give(self._chunks).arrived(None)
        self._chunks.append(frame.payload)
        self._size += len(frame.payload)
        if self._size <= self._most_bytes:
            return True
        *before, last = self._chunks
        listener = self._give(before)
        return listener.arrived(BodyChunk(last))

    def fail(self, error: InvocationError) -> None:
        """Let the other listener answer: the body is late, memory is short, or a drain has reached its time limit."""
        (self._listener or self._give(self._chunks)).fail(error)

    def gone(self) -> None:
        """Note that the client has left; if another listener answers already, notify it."""
        if self._listener is None:
            self._driver.exited(self)
            self._listener = NOBODY
        self._listener.gone()

    def _give(self, chunks: Sequence[bytes]) -> Listener:
        """Make the other listener, and give it the chunks.

        From now on a drain waits for that listener instead of this one.
        """
        self._listener = listener = self._begin(self._request)
        self._driver.exited(self)
        for one in chunks:
            listener.arrived(BodyChunk(one))
        self._chunks = []
        return listener


def _answer(
    request: Request,
    prepared: PreparedRequest,
    respond: Respond,
    message: Message[bytes] | None,
    error: InvocationError | None,
) -> None:
    try:
        response = respond(message, error)
    except Exception:  # a bug in a handler; the peer must not see its text
        log.exception("a request failed inside the invoker")
        response = prepared.refusal(InternalError())
    request.answer(response)


def answered(
    prepared: PreparedRequest, body: bytes, reply: Reply, driver: Driver, turn: Turn, deadline: float | None
) -> tuple[Response, bool]:
    """Run the sync function of a request in this thread.

    Args:
        prepared: The prepared request for the head of this request.
        body: The whole body of the request.
        reply: The outlet of the request; if the function takes long, the response may be written to it before this
            function returns.
        driver: Has the engine, and tracks the request for a drain.
        turn: The turn of this thread as the leader.
        deadline: The deadline on the clock of ``time.monotonic``, or None.

    Returns:
        The response, and whether it took long.
    """
    if (unary := prepared.unary(body)) is not None:
        one = UnaryBody(driver, reply, turn)
        refused = one.begin(unary.plan, unary.call, unary.second, deadline=deadline)
        return unary.respond(*(one.run() if refused is None else (None, refused))), one.is_long
    session, frames = prepared.begin(body)
    reply.refusal = session.refusal
    whole = Whole(session, driver, reply, turn=turn, deadline=deadline, is_counted=False)
    close = whole.run(frames)
    return whole.sent[0] if whole.sent else reply.refusal(close.error or InternalError()), whole.is_long
