"""Typed methods on the HTTP transport, for Connect and gRPC-Web; each request is one call."""

from __future__ import annotations

import time

from invoker.core.http import RequestHead, Response
from invoker.execution.driver import Driver
from invoker.protocols.typed.calls import Call
from invoker.protocols.typed.web import WebSession, timeout_of
from invoker.transports.http.app import Begin, PromptHandler
from invoker.transports.http.exchange import Exchange
from invoker.transports.http.streamed import Streamed


class MethodHandler(PromptHandler):
    """Answers requests for one method.

    Args:
        call: The method.
        driver: Runs the function.
        most_bytes: The largest message, in bytes.
        settle_s: See `Streamed`.
        timeout_s: How long a call may take, even if its head allows more; None means no limit.
    """

    def __init__(
        self, call: Call, driver: Driver, *, most_bytes: int, settle_s: float, timeout_s: float | None = None
    ) -> None:
        self._call = call
        self._driver = driver
        self._most_bytes = most_bytes
        self._settle_s = settle_s
        self._timeout_s = timeout_s

    def prompt(self, head: RequestHead) -> Begin:  # noqa: ARG002 - the head makes no difference
        """Return the callback that starts a call; no request needs a task of its own."""
        return self._begin

    async def answer(self, exchange: Exchange) -> Response:  # noqa: ARG002 - as `Handler`
        """Raise an error: this is never called, since `prompt` answers every request."""
        raise AssertionError("prompt() answers every request")

    def _begin(self, exchange: Exchange) -> Streamed:
        limits = [one for one in (timeout_of(exchange.head), self._timeout_s) if one is not None]
        timeout_s = min(limits, default=None)
        return Streamed(
            exchange,
            WebSession(self._call, most_bytes=self._most_bytes),
            self._driver,
            streams_in=self._call.streams_in,
            settle_s=self._settle_s,
            deadline=None if timeout_s is None else time.monotonic() + timeout_s,
        )
