"""`PromptInference`: one small inference over HTTP on the event loop, without a task."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from invoker.core.http import BodyChunk, RequestHead, Response
from invoker.core.steps import Close
from invoker.errors import DeadlineExceeded, InternalError, InvocationError
from invoker.execution.driver import Driver
from invoker.execution.loop.reactor import Reactor
from invoker.protocols.graphpipe.service.told import ToldSession
from invoker.transports.http.exchange import Exchange


class PromptInference:
    """Collects the body of a request in callbacks, and is then the connection of the conversation that answers it.

    Args:
        request: The HTTP request, to whose frames this object listens.
        session: Makes the response.
        driver: Runs the conversation.
        timeout_s: The time limit in seconds from the end of the body to the response; None means no limit.
        refuse: Makes the response if the body does not come completely, or not in time.
    """

    __slots__ = ("_body", "_driver", "_reactor", "_refuse", "_request", "_response", "_session", "_timeout_s", "_timer",
                 "is_gone", "peer")  # fmt: skip

    def __init__(
        self,
        request: Exchange,
        session: ToldSession,
        driver: Driver,
        timeout_s: float | None,
        refuse: Callable[[InvocationError], Response],
    ) -> None:
        self.is_gone, self.peer = False, request.peer
        self._request = request
        self._session = session
        self._driver = driver
        self._timeout_s = timeout_s
        self._refuse = refuse
        self._body = b""
        self._reactor: Reactor | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._response: Response | None = None

    # The interface of listeners.

    def arrived(self, frame: RequestHead | BodyChunk | None) -> bool:
        """Collect the body; at its end, start the conversation."""
        if isinstance(frame, BodyChunk):
            self._body += frame.payload
        elif frame is None:
            self._begin()
        return True

    def fail(self, error: InvocationError) -> None:
        """Refuse the request, since its body is late, or the process holds too many bytes."""
        self._request.answer(self._refuse(error))

    def gone(self) -> None:
        """Cancel the invocation, since the client has left (G-013)."""
        self.is_gone = True
        if self._reactor is not None:
            self._reactor.gone()

    def _begin(self) -> None:
        until = None if self._timeout_s is None else time.monotonic() + self._timeout_s
        self._reactor = reactor = Reactor(
            self._session, self, self._driver, self._close, deadline=until, is_counted=False
        )
        if self._timeout_s is not None:
            late = DeadlineExceeded()
            self._timer = asyncio.get_running_loop().call_later(self._timeout_s, reactor.fail, late)
        body, self._body = self._body, b""
        reactor.arrived(body)
        reactor.arrived(None)

    # The interface of connections.

    def accepted(self) -> None:
        """Do nothing: nothing is sent before the conversation ends."""

    def ask(self) -> None:
        """Do nothing: the whole request has come."""

    def write(self, frame: Any) -> bool:
        """Keep the response until the conversation ends."""
        self._response = frame
        return True

    async def room(self) -> None:
        """Never called, since there is always room."""
        raise AssertionError("there is always room")

    def _close(self, close: Close) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._request.answer(self._response or self._session.refusal(close.error or InternalError()))
