"""riff on the HTTP door: one request, one conversation, one response."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from invoker.core.http import Response
from invoker.doors.http.app import Front
from invoker.doors.http.exchange import Exchange
from invoker.drive.driver import Driver
from invoker.drive.loop.request import converse
from invoker.errors import InternalError, Status, StatusError
from invoker.protocols.riff.fields import Signature, signature_of
from invoker.protocols.riff.http import HttpSession

__all__ = ["RiffFront"]

log = logging.getLogger(__name__)


class RiffFront(Front):
    """Answers requests by calling functions.

    Args:
        driver: Runs the conversations.
        max_body_bytes: A longer body is refused with 413.
        timeout_s: From the head to the response, else 504; None means no limit.
    """

    def __init__(
        self, driver: Driver, *, max_body_bytes: int = 4 * 1024 * 1024, timeout_s: float | None = None
    ) -> None:
        engine = driver.engine
        self._driver = driver
        # A body becomes one message, so it must fit below the hard cap of its invocation.
        self._max_body_bytes = min(max_body_bytes, engine.limits.hard_bytes)
        self._timeout_s = timeout_s
        self._signatures: Mapping[str, Signature] = {
            one.spec.name: signature_of(one.spec, engine.registry_for(one)) for one in engine.catalog
        }

    async def answer(self, exchange: Exchange) -> Response:
        """Run one invocation."""
        session = HttpSession(self._signature, max_body_bytes=self._max_body_bytes)
        deadline = None if self._timeout_s is None else time.monotonic() + self._timeout_s
        responses: list[Response] = []
        try:
            error = await converse(
                session, self._driver, exchange.read, responses.append, deadline=deadline, is_counted=False
            )
        except Exception:  # a session or driver of ours is at fault; nothing of it may reach the peer
            log.exception("a request failed inside the invoker")
            error = InternalError()
        if responses:
            return responses[0]
        return session.refusal(error or InternalError(), status=408 if exchange.is_late else 0)

    def _signature(self, name: str) -> Signature:
        known = self._signatures
        if not name and len(known) == 1:
            return next(iter(known.values()))
        if name in known:
            return known[name]
        if name:
            text = f"Invoker: Not Found: no function is named {name!a}; this invoker serves {', '.join(known)}"
            raise StatusError(Status.NOT_FOUND, text)
        text = f"Invoker: Bad Request: this invoker serves {', '.join(known)}; name one in the header Invoker-Function"
        raise StatusError(Status.INVALID_ARGUMENT, text)
