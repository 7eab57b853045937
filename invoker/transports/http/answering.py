"""Answers a request whose whole body has arrived: `begin_unary` on the loop, `answered` in a thread.

Most functions give one value, and most requests arrive with their whole body; such a request needs no session.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import partial
from typing import cast

from invoker.core.http import BodyChunk, Response
from invoker.core.unary import UnaryInvocation
from invoker.errors import InternalError, InvocationError
from invoker.execution.driver import Driver
from invoker.execution.loop.unary import UnaryTask
from invoker.execution.thread.leader_follower import Turn
from invoker.execution.unary import UnaryBody
from invoker.execution.whole import Whole
from invoker.message import Message
from invoker.transports.http.app import Begin, PreparedRequest, Respond
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
    if unary is None or not unary.plan.function.spec.is_async:
        return False
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
        return unary.respond(*one.run(unary.plan, unary.call, unary.second, deadline=deadline)), one.is_long
    session, frames = prepared.begin(body)
    reply.refusal = session.refusal
    whole = Whole(session, driver, reply, turn=turn, deadline=deadline, is_counted=False)
    close = whole.run(frames)
    return whole.sent[0] if whole.sent else reply.refusal(close.error or InternalError()), whole.is_long
