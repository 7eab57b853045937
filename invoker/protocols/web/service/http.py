"""riff on the HTTP transport: each request is one conversation with one response, which may be a stream."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from invoker.core.http import BodyChunk, RequestHead, Response
from invoker.core.steps import Close
from invoker.errors import DeadlineExceeded, InternalError, InvocationError, Status, StatusError
from invoker.errors.wording import nearest, spelt
from invoker.execution.driver import Driver
from invoker.execution.loop.reactor import Reactor
from invoker.execution.placement import Placement, placement_of
from invoker.protocols.web.asking import Asked
from invoker.protocols.web.faults import second
from invoker.protocols.web.fields import Signature, signature_of
from invoker.protocols.web.http import HttpSession, State
from invoker.protocols.web.items import Reading
from invoker.protocols.web.service.unary import UnaryRequests
from invoker.protocols.web.stream import StreamSession
from invoker.transports.http.app import Begin, PreparedRequest, PromptHandler, RequestSession, Unary, WholeHandler
from invoker.transports.http.exchange import Exchange
from invoker.transports.http.streamed import Streamed

log = logging.getLogger(__name__)

_MOST_LISTED = 20


class RiffHandler(PromptHandler, WholeHandler):
    """Answers requests by calling functions.

    Args:
        driver: Runs the conversations.
        max_body_bytes: A longer body is refused with 413.
        timeout_s: The time limit in seconds from the head to the end of the response; a later response is 504. None: no
            limit.
        settle_s: See `Streamed`.
        ignores_unknown: Whether fields and members with unknown names are ignored; otherwise they are refused.
    """

    def __init__(
        self,
        driver: Driver,
        *,
        max_body_bytes: int = 4 * 1024 * 1024,
        timeout_s: float | None = None,
        settle_s: float = 0.01,
        ignores_unknown: bool = False,
    ) -> None:
        engine = driver.engine
        self._driver = driver
        # A body becomes one message, which must not exceed the hard limit of the invocation.
        self._max_body_bytes = min(max_body_bytes, engine.limits.hard_bytes)
        self._timeout_s = timeout_s
        self._settle_s = settle_s
        self._signatures: Mapping[str, Signature] = {
            one.spec.name: signature_of(one.spec, engine.registry_for(one), drops=ignores_unknown)
            for one in engine.catalog
        }

    def prompt(self, head: RequestHead) -> Begin:
        """Return the callback that starts a request; none needs a task of its own.

        A head is parsed once for all requests that have the same head.
        """
        session = self._read(head)
        if session.asked.streams:
            return partial(self._stream, session.asked)
        return partial(self._begin, session if session.can_repeat else None)

    async def answer(self, exchange: Exchange) -> Response:  # noqa: ARG002 - as `Handler`
        """Never called, since `prompt` answers every request."""
        raise AssertionError("prompt() answers every request")

    def _stream(self, asked: Asked, exchange: Exchange) -> Streamed:
        """Run one invocation, item by item."""
        return Streamed(
            exchange,
            StreamSession(asked, most_bytes=self._max_body_bytes),
            self._driver,
            streams_in=asked.reading is not Reading.WHOLE,
            has_beats=True,
            settle_s=self._settle_s,
            deadline=self._until(),
        )

    def _until(self) -> float | None:
        return None if self._timeout_s is None else time.monotonic() + self._timeout_s

    def _begin(self, known: HttpSession | None, request: Exchange) -> Reactor:
        """Start one invocation, which the frames of the request drive.

        Args:
            known: A session that has read the head of the request; None if the head is refused.
            request: The rest of the request.
        """
        session = HttpSession(self._signature, max_body_bytes=self._max_body_bytes) if known is None else known.again()
        reply = _Reply(session, request)
        reactor = Reactor(session, reply, self._driver, reply.close, deadline=self._until(), is_counted=False)
        if self._timeout_s is not None:
            late = DeadlineExceeded()
            reply.timer = asyncio.get_running_loop().call_later(self._timeout_s, reactor.fail, late)
        if known is None:
            reactor.arrived(request.head)
        return reactor

    def whole(self, head: RequestHead) -> PreparedRequest | None:
        """Prepare for requests with this head whose body comes in one piece.

        None if such requests are refused, if their body is fed item by item, or if it is multipart.
        """
        session = self._read(head)
        asked = session.asked
        if session.state is not State.READING:
            return None
        on_loop = placement_of(self._driver.engine.catalog.spec(asked.function)) is not Placement.CALL
        if asked.streams:
            if asked.reading is not Reading.WHOLE:
                return None
            return _Streams(asked, head, self._timeout_s, self._max_body_bytes, on_loop=on_loop)
        if not session.can_repeat:
            return None
        unary = UnaryRequests(asked, self._driver.engine, most_bytes=self._max_body_bytes)
        return _Requests(session, self._timeout_s, unary, most_bytes=self._max_body_bytes, on_loop=on_loop)

    def _read(self, head: RequestHead) -> HttpSession:
        session = HttpSession(self._signature, max_body_bytes=self._max_body_bytes)
        session.receive(head)
        return session

    def _signature(self, name: str) -> Signature:
        known, told = self._signatures, self._driver.engine.catalog.told
        name = spelt(name, known)
        if not name and len(known) == 1:
            return next(iter(known.values()))
        if name in known:
            return known[name]
        if name:
            near = nearest(name.removesuffix("/ws").strip("/"), told)
            hint = f" (did you mean '/{near}'?)" if near else ""
            there = f"; this invoker serves {_listed(told)}" if told else ""
            raise StatusError(Status.NOT_FOUND, f"Invoker: Not Found: no function is named {name!a}{hint}{there}")
        text = (
            f"Invoker: Bad Request: this invoker serves {_listed(told) if told else 'several functions'}; "
            f"ask for one by its path, such as /{next(iter(told), 'NAME')}, or by the header Invoker-Function"
        )
        raise StatusError(Status.INVALID_ARGUMENT, text)


def _listed(names: Iterable[str]) -> str:
    """A list of names for the text of an error, shortened."""
    known = list(names)
    more = len(known) - _MOST_LISTED
    return ", ".join(known) if more <= 0 else f"{', '.join(known[:_MOST_LISTED])} and {more} more (see /functions)"


class _Reply:
    """The conversation's connection to the client, for one request over HTTP/1.1."""

    __slots__ = ("_request", "_response", "is_gone", "peer", "session", "timer")

    def __init__(self, session: HttpSession, request: Exchange) -> None:
        self.is_gone, self.peer = False, request.peer
        self.session = session
        self.timer: asyncio.TimerHandle | None = None
        self._request = request
        self._response: Response | None = None

    def accepted(self) -> None:
        """Do nothing: nothing is sent before the conversation ends."""

    def ask(self) -> None:
        self._request.ask()

    def write(self, frame: Any) -> bool:
        self._response = frame
        return True

    async def room(self) -> None:
        raise AssertionError("`write` never asks to wait for room")

    def close(self, close: Close) -> None:
        """Send the response of the conversation, or the response for its error."""
        if self.timer is not None:
            self.timer.cancel()
        request = self._request
        response = self._response
        if response is None:
            response = self.session.refusal(close.error or InternalError(), status=408 if request.is_late else 0)
        request.answer(response)


class _Requests(PreparedRequest):
    """Requests that share a head, which a session has read."""

    def __init__(
        self, session: HttpSession, timeout_s: float | None, unary: UnaryRequests, *, most_bytes: int, on_loop: bool
    ) -> None:
        self._session = session
        self._is_bodiless = session.asked.is_bodiless
        self._second = partial(second, session.asked.inputs)
        self._unary = unary
        self.most_bytes = most_bytes
        self.timeout_s = timeout_s
        self.on_loop = on_loop

    def unary(self, body: bytes) -> Unary | None:
        if (found := self._unary.call(body)) is None:
            return None
        plan, call = found
        begins = b"" if self._is_bodiless else body[:1]
        # The response must not hold the body, since the function may run for long.
        respond = partial(self._unary.response, call.open.input_names, begins)
        return Unary(plan, call, respond, self._second)

    def begin(self, body: bytes) -> tuple[RequestSession, Sequence[Any]]:
        return self._session.again(body), ()

    def refusal(self, error: InvocationError) -> Response:
        return self._session.refusal(error)


class _Streams(PreparedRequest):
    """Requests that share a head, whose bodies come in one piece, and whose responses are streams."""

    is_stream = True

    def __init__(
        self, asked: Asked, head: RequestHead, timeout_s: float | None, most_bytes: int, *, on_loop: bool
    ) -> None:
        self.on_loop = on_loop
        self._asked = asked
        self._head = head
        self._most_bytes = most_bytes
        self.timeout_s = timeout_s

    def begin(self, body: bytes) -> tuple[StreamSession, Sequence[Any]]:
        session = StreamSession(self._asked, most_bytes=self._most_bytes)
        return session, (self._head, BodyChunk(body)) if body else (self._head,)

    def refusal(self, error: InvocationError) -> Response:
        return StreamSession(self._asked, most_bytes=self._most_bytes).refusal(error)
