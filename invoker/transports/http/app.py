"""`HttpApp`: the common steps of every HTTP request: whether it is allowed, and which handler answers.

First `Origins` decides whether the caller is allowed. Then the `Handler` of the path answers: the part of a service
that serves HTTP requests.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec

from invoker.core.http import RequestHead, Response
from invoker.core.peers import Client
from invoker.core.plan import Plan
from invoker.core.problems import as_problem
from invoker.core.session import CallSession
from invoker.core.steps import Close
from invoker.core.unary import UnaryCall
from invoker.errors import Cancelled, InvocationError, UnsupportedMediaType
from invoker.execution.driver import Driver
from invoker.execution.loop.wire import Wire
from invoker.message import Message
from invoker.transports.http.codings import PLAIN, UNPACKED, Choice, chosen, packed_with
from invoker.transports.http.connections import Connections
from invoker.transports.http.exchange import Exchange, HttpSettings, Listener
from invoker.transports.http.origins import Origins, Verdict
from invoker.transports.http.traced import traced

log = logging.getLogger(__name__)

HandlerOf: TypeAlias = Callable[[str], "Handler | None"]
SocketOf: TypeAlias = Callable[[str], "SocketHandler | None"]

Begin: TypeAlias = Callable[[Exchange], Listener]
"""Begins to answer one request. The answer is given by methods of the exchange, which may be called before this
returns."""

FULL: Final = Response(
    503,
    (("Content-Type", "text/plain; charset=utf-8"),),
    b"Invoker: Overloaded: this process has as many connections with requests as it may have; try again later\n",
    close=True,
)
NOT_FOUND: Final = Response(404, (("Content-Type", "text/plain"),), b"Invoker: Not Found\n")
FAULT: Final = Response(500, (), b"", close=True)
"""The response when a handler has a bug; it does not show the error to the peer."""


_SILENCE_S: Final = 60.0
_AS_IT_IS: Final[tuple[str, ...]] = ()
_KNOWN: Final = ("Accept-Encoding", ", ".join(UNPACKED))
_NOTHING_FITS: Final = Response(
    406,
    (("Content-Type", "text/plain"),),
    b"Invoker: Not Acceptable: Accept-Encoding leaves out identity, and every coding that there is\n",
)


class Handler(Protocol):
    """Answers the requests of a service on this transport; `HttpApp` finds it by the path."""

    async def answer(self, exchange: Exchange) -> Response | None:
        """The response to one request; None if it was written by `Exchange.begin`, `write` and `end`.

        Raises:
            Cancelled: The client has left before its request was complete.
            asyncio.CancelledError: The client has left, so the task of the request is cancelled.
        """


class PromptHandler(Handler, Protocol):
    """A service that needs no task of its own for a request."""

    def prompt(self, head: RequestHead) -> Begin | None:
        """The function that answers requests with this head without a task; None if they need a task."""


class WholeHandler(Handler, Protocol):
    """A handler that can also answer requests in a thread, once their bodies have come."""

    def whole(self, head: RequestHead) -> PreparedRequest | None:
        """The prepared request for answering in a thread, once the body has come; None if a listener must answer."""


Respond: TypeAlias = Callable[["Message[bytes] | None", "InvocationError | None"], Response]
"""Makes the response from the value that a function gave, if any, or from the error."""


class Unary(msgspec.Struct, frozen=True):
    """The instructions for running one request without a session.

    Attributes:
        plan: The plan of its invocation.
        call: The call of the client.
        respond: Makes the response from the value that the function gave, if any, or from the error.
        second: Makes the error for a function that gives a second value.
    """

    plan: Plan
    call: UnaryCall
    respond: Respond
    second: Callable[[], InvocationError]


class PreparedRequest(Protocol):
    """Requests with the same head, which only differ in their bodies.

    Attributes:
        on_loop: Whether the function is async or isolated, so that no thread can answer by itself.
        timeout_s: The time from the request to the response; None means no limit.
        is_stream: Whether each session is a `StreamingSession`, whose response streams.
        most_bytes: A session refuses a longer body as soon as its length is known; None: only when the whole body has
            come.
    """

    timeout_s: float | None
    most_bytes: int | None = None
    on_loop: bool = False
    is_stream: bool = False

    def unary(self, body: bytes) -> Unary | None:  # noqa: ARG002 - the interface
        """The call by which a request with this body runs as a `UnaryInvocation`; None if it needs a session."""
        return None

    def begin(self, body: bytes) -> tuple[RequestSession, Sequence[Any]]:
        """A session for one request, and the frames that it must still receive; it sends the `Response`."""

    def refusal(self, error: InvocationError) -> Response:
        """The response to a request for which there is no session."""


class RequestSession(CallSession, Protocol):
    """The session of one request, which also makes the response of an error."""

    def refusal(self, error: InvocationError) -> Response:
        """The response for an error, if none was sent yet."""


@dataclass(frozen=True, slots=True)
class SocketSettings:
    """The settings of WebSocket connections.

    Attributes:
        max_message_bytes: A longer message ends its conversation.
        ping_s: Seconds between two pings.
        linger_s: Seconds that the peer may take to close the connection after we have closed our side.
        write_s: A peer that takes no bytes for this many seconds loses its connection.
    """

    max_message_bytes: int = 4 * 1024 * 1024
    ping_s: float = 20.0
    linger_s: float = 2.0
    write_s: float = 60.0


class Farewell(NamedTuple):
    """The ending that the peer is sent.

    Attributes:
        code: The code of the close frame.
        messages: Messages that are sent before the close frame.
        reason: The reason in the close frame.
    """

    code: int
    messages: Sequence[str | bytes] = ()
    reason: str = ""


class SocketWire(Wire, Protocol):
    """One WebSocket connection, as its conversation sees it."""

    headers: tuple[tuple[str, str], ...]
    """Not used, since a WebSocket has no headers after the handshake."""

    peer: Client
    """The client; its `number` becomes the close code. Its `field` is set only if the conversation is one invocation,
    whose log record then contains the code."""

    def close(self, close: Close) -> None:
        """Close the connection with the code of this ending, since the conversation is over."""


class Conversation(Protocol):
    """The conversation of a service on one connection."""

    subprotocol: str
    """The subprotocol, one of those that the client offers; empty: none was agreed on."""

    def begin(self, wire: SocketWire) -> Listener:
        """Begin the conversation on this wire; the returned listener gets the messages, texts as `str`."""

    def farewell(self, error: InvocationError | None) -> Farewell:
        """The last messages to the peer."""

    def over(self) -> None:
        """Called once, when the connection is closed."""


class SocketHandler(Protocol):
    """A service on this transport that serves WebSocket connections, each as a conversation."""

    settings: SocketSettings

    def meet(self, head: RequestHead) -> Conversation | Response:
        """Accept a client with a valid handshake; a response refuses it."""


class Coded(NamedTuple):
    """The codings and the trace in a head.

    Attributes:
        verdict: The verdict of the origins, or a refusal if a coding of the body is unknown or the client accepts no
            coding of ours.
        head: The head for the handler.
        packed: The codings of the body, if it is unpacked before the handler sees it.
        choice: The coding of the response.
        is_traced: Whether the request belongs to a trace, so that this result is valid only for this request.
    """

    verdict: Verdict
    head: RequestHead
    packed: tuple[str, ...] = ()
    choice: Choice = PLAIN
    is_traced: bool = False


# `isinstance` with a protocol would look at every member of the handler's class, for each head.


def prompt_of(handler: Handler | None, head: RequestHead) -> Begin | None:
    """The function by which a handler answers this head without a task; None if it needs a task, or there is none."""
    prompt: Callable[[RequestHead], Begin | None] | None = getattr(handler, "prompt", None)
    return None if prompt is None else prompt(head)


def whole_of(handler: Handler | None, head: RequestHead) -> PreparedRequest | None:
    """The prepared request by which a thread may answer requests with this head; None if the handler has none."""
    whole: Callable[[RequestHead], PreparedRequest | None] | None = getattr(handler, "whole", None)
    return None if whole is None else whole(head)


class HttpApp:
    """The objects that all requests share.

    Args:
        driver: Its drain ends the connections, and its memory budget counts the bodies.
        settings: Limits in bytes and time.
        handler: Gives the handler of a path; None: there is none.
        sockets: Gives the handler that serves the WebSockets of a path; None: there is none.

    Attributes:
        connections: All open connections of the loop.
        is_leaving: Whether responses tell clients of HTTP/1 to use another connection.
        origins: Decides whether a caller is allowed.
        handler: Gives the handler of a path.
        sockets: Gives the handler that serves the WebSockets of a path.
    """

    def __init__(
        self, driver: Driver, settings: HttpSettings, handler: HandlerOf, sockets: SocketOf = lambda _: None
    ) -> None:
        self.driver = driver
        self.settings = settings
        self.handler = handler
        self.sockets = sockets
        self.connections = Connections()
        self.is_leaving = False
        self._tells_s = 0.0
        self.origins = Origins(settings.origins, settings.hosts, has_credentials=settings.has_credentials)

    @property
    def is_closing(self) -> bool:
        """Whether a connection ends after its next response."""
        return self.is_leaving or self.driver.engine.is_draining

    def judge(self, head: RequestHead, *, host: str, is_local: bool, is_socket: bool = False) -> Verdict:
        """Let a request pass, answer it, or refuse it; as `Origins.judge`."""
        return self.origins.judge(head, host=host, is_local=is_local, is_socket=is_socket)

    def coded(self, head: RequestHead, handler: Handler | None, verdict: Verdict) -> Coded:
        """Read the codings and the trace in a head.

        Args:
            head: The head of a request.
            handler: Its handler; a handler with ``takes_packed = False`` gets a packed body unchanged.
            verdict: The verdict of the origins.
        """
        packed = _AS_IT_IS
        head, told = traced(head)
        if told:
            verdict = Verdict(verdict.response, (*verdict.headers, *told))
        choice = chosen(head, self.settings.codings)
        if choice is None:
            return Coded(Verdict(verdict.response or _NOTHING_FITS, verdict.headers), head, is_traced=bool(told))
        if any(name == "content-encoding" for name, _ in head.headers) and getattr(handler, "takes_packed", True):
            try:
                packed = packed_with(head)
            except UnsupportedMediaType as error:
                refused = Response(415, (("Content-Type", "text/plain"), _KNOWN), f"{error}\n".encode())
                refused_too = Verdict(verdict.response or refused, verdict.headers)
                return Coded(refused_too, head, choice=choice, is_traced=bool(told))
            headers = [one for one in head.headers if one[0] != "content-encoding"]
            head = msgspec.structs.replace(head, headers=headers)
        return Coded(verdict, head, packed, choice, bool(told))

    def judged(self, response: Response, head: RequestHead) -> Response:
        """The response for a verdict that lets no request pass; a refusal is logged."""
        if response.status >= 400:
            told = {"status": response.status, "detail": response.body.decode().rstrip()}
            log.info("a request was refused", extra=told)
        return as_problem(response, head.value("accept"))

    def full(self, head: RequestHead) -> Response | None:
        """The response to a call while there is no room for another connection; None: there is room."""
        connections = self.connections
        if connections.count <= connections.most or not connections.is_full:
            return None
        now_s = time.monotonic()
        if now_s >= self._tells_s:
            self._tells_s = now_s + _SILENCE_S
            most = self.connections.most
            log.warning("calls over HTTP are refused: more than %s connections are busy; raise ulimit -n", most)
        return as_problem(FULL, head.value("accept"))

    def not_found(self, head: RequestHead) -> Response:
        """The 404 response to a path that no handler answers."""
        return as_problem(NOT_FOUND, head.value("accept"))

    async def answer(self, exchange: Exchange, handler: Handler) -> Response | None:
        """The response; None when the client has left.

        Raises:
            asyncio.CancelledError: The task of the request was cancelled.
        """
        try:
            response = await handler.answer(exchange)
        except Cancelled:
            return None
        finally:
            exchange.close()
        if exchange.is_gone or response is None:
            return None
        return response if response.status < 400 else as_problem(response, exchange.head.value("accept"))
