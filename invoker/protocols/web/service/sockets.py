"""riff over WebSocket: each connection is one invocation."""

from __future__ import annotations

from invoker.core.http import RequestHead, Response
from invoker.errors import InvocationError, ProtocolViolation
from invoker.errors.wording import known_as
from invoker.execution.driver import Driver
from invoker.execution.loop.reactor import Reactor
from invoker.protocols.web.socket import Shape, SocketSession, shape_of
from invoker.transports.http.app import Conversation, Farewell, SocketSettings, SocketWire
from invoker.transports.http.exchange import Exchange
from invoker.transports.http.handshake import offered

_SUBPROTOCOL = "invoker.v1"
_SUFFIX = "/ws"

_NORMAL, _PROTOCOL_ERROR, _REFUSED, _INTERNAL, _TRY_AGAIN = 1000, 1002, 1008, 1011, 1013
_LATER = frozenset({429, 503})
_TOO_LARGE, _TOO_BIG = 413, 1009


class Sockets:
    """Finds the handler of the WebSockets of a path: ``/NAME/ws`` is the function of that name.

    Args:
        driver: Runs the conversations.
        settings: Limits of the connections.
    """

    def __init__(self, driver: Driver, settings: SocketSettings) -> None:
        engine = driver.engine
        self._handlers = {
            f"/{one.spec.name}{_SUFFIX}": RiffSocketHandler(
                driver, shape_of(one.spec, engine.registry_for(one)), settings
            )
            for one in engine.catalog
        }

    def handler(self, path: str) -> RiffSocketHandler | None:
        """The handler of a path; None: there is none."""
        return self._handlers.get(known_as(path, self._handlers))


class RiffSocketHandler:
    """Calls one function for each connection.

    Args:
        driver: Runs the conversations.
        shape: The shape of the function.
        settings: Limits of the connections.
    """

    def __init__(self, driver: Driver, shape: Shape, settings: SocketSettings) -> None:
        self.settings = settings
        self._driver = driver
        self._shape = shape

    def meet(self, head: RequestHead) -> Conversation:
        """Accept every client: errors are sent as messages, since a browser cannot read a refused handshake."""
        return _Conversation(self._driver, SocketSession(self._shape), head)


class _Conversation:
    """The conversation over one connection, which is exactly one invocation."""

    def __init__(self, driver: Driver, session: SocketSession, head: RequestHead) -> None:
        self.subprotocol = _SUBPROTOCOL if _SUBPROTOCOL in offered(head) else ""
        self._driver = driver
        self._session = session
        self._head = head

    def begin(self, wire: SocketWire) -> Reactor:
        """Open the invocation from the head of the handshake."""
        wire.peer.field = "close_code"
        reactor = Reactor(self._session, wire, self._driver, wire.close)
        reactor.arrived(self._head)
        return reactor

    def farewell(self, error: InvocationError | None) -> Farewell:
        """The close code and the last message, which reports the end or the error."""
        last = self._session.farewell(error)
        return Farewell(_NORMAL, (last,)) if error is None else Farewell(self._code(error), (last,), str(error))

    def _code(self, error: InvocationError) -> int:
        if isinstance(error, ProtocolViolation):
            return _PROTOCOL_ERROR
        status = self._session.problem(error)["status"]
        if status in _LATER:
            return _TRY_AGAIN
        if status == _TOO_LARGE:
            return _TOO_BIG
        return _REFUSED if isinstance(status, int) and status < 500 else _INTERNAL

    def over(self) -> None:
        """Do nothing: the only invocation has already ended."""


class NoSocketHandler:
    """Refuses plain HTTP requests at the path of a WebSocket."""

    async def answer(self, exchange: Exchange) -> Response:
        """Answer a request with 426, or with 405 if its method is not GET."""
        text = (("Content-Type", "text/plain"),)
        if exchange.head.method not in ("GET", "HEAD"):
            why = f"Invoker: Method Not Allowed: {exchange.head.method!a}; WebSocket begins with GET\n"
            return Response(405, (*text, ("Allow", "GET, HEAD")), why.encode())
        upgrade = (("Upgrade", "websocket"), ("Connection", "upgrade"))
        path = exchange.head.path
        why = (
            f"Invoker: Upgrade Required: this is the path of a WebSocket; open {path!a} by ws:// or wss://, "
            f"or call the function at {path.removesuffix(_SUFFIX)!a}\n"
        )
        return Response(426, (*text, *upgrade), why.encode())
