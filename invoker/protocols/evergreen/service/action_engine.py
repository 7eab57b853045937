"""`ActionEngineService`: attaches the sessions of action-engine peers to the HTTP transport, over WebSocket."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from invoker.attach.service import Service
from invoker.errors import ConfigError, InternalError, InvocationError, ProtocolViolation
from invoker.errors.wording import draining
from invoker.protocols.evergreen.actions import ActionServiceSettings
from invoker.settings import parsers as parse
from invoker.settings.setting import setting

if TYPE_CHECKING:
    from invoker.core.http import RequestHead, Response
    from invoker.execution.driver import Driver
    from invoker.execution.loop.sessions import SessionReactor
    from invoker.protocols.evergreen.action_engine.session import ActionEngineSession
    from invoker.protocols.evergreen.action_engine.settings import ActionEngineSettings
    from invoker.settings import Config
    from invoker.transports.http.app import Conversation, Farewell, SocketHandler, SocketSettings, SocketWire

_NORMAL, _PROTOCOL_ERROR, _INTERNAL = 1000, 1002, 1011


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionEngineServiceSettings(ActionServiceSettings):
    """The settings of action-engine: the shared ones, and the path at which clients connect."""

    socket_path: str = setting(
        "/", "INVOKER_SOCKET_PATH", parse.path, "Path on the HTTP port at which action-engine clients connect.",
        heading="action-engine sessions, over WebSocket", before="allowed_origins",
    )  # fmt: skip


class ActionEngineService(Service):
    """Serves functions as actions over WebSocket, on the HTTP port."""

    name = "action-engine"
    is_default = False
    settings = ActionEngineServiceSettings
    _handler: SocketHandler | None = None

    @classmethod
    def is_served(cls, config: Config, *, is_chosen: bool, has_http: bool) -> bool:  # noqa: ARG003 - as `Service`
        """Whether the service is served; without the HTTP transport, choosing it is an error."""
        if is_chosen and not has_http:
            raise ConfigError(
                "INVOKER_PROTOCOLS has action-engine without http; action-engine is served on the HTTP port"
            )
        return is_chosen

    async def start(self) -> None:
        """Make the handler from the functions and the settings."""
        from invoker.protocols.evergreen.action_engine.settings import ActionEngineSettings
        from invoker.transports.http.app import SocketSettings

        config, actions = self.around.config, self.around.actions
        known = config.of(ActionEngineServiceSettings)
        settings = ActionEngineSettings(actions, dict(known.inputs), known.session_bytes, config.high_bytes)
        sockets = SocketSettings(config.max_message_bytes)
        self._handler = ActionEngineHandler(self.around.driver, settings, sockets, sessions=known.sessions)

    def socket_handler(self, path: str) -> SocketHandler | None:
        """The handler of connections, if this is the path in the settings."""
        return self._handler if path == self.around.config.of(ActionEngineServiceSettings).socket_path else None


class ActionEngineHandler:
    """Serves the driver's functions as actions, to a limited number of peers at once.

    Args:
        driver: Runs the sessions.
        known: The settings of sessions: names of actions and limits.
        settings: The limits of a connection.
        sessions: How many sessions may run at once; further ones are refused with 503.

    Attributes:
        settings: The limits of a connection.
        sessions: How many sessions may run at once.
        running: How many sessions are running.
    """

    def __init__(
        self, driver: Driver, known: ActionEngineSettings, settings: SocketSettings, *, sessions: int = 1000
    ) -> None:
        from invoker.protocols.evergreen.action_engine.table import Table

        self.settings = settings
        self.sessions = sessions
        self.running = 0
        self.driver = driver
        self.known = known
        catalog = driver.engine.catalog
        self._table = Table((function.spec for function in catalog), known, tells=bool(catalog.told))

    def meet(self, head: RequestHead) -> Conversation | Response:
        """Accept a peer, unless too many sessions run."""
        from invoker.core.http import Response
        from invoker.protocols.evergreen.action_engine.session import ActionEngineSession

        why = ""
        if self.driver.engine.is_draining:
            why = draining("sessions")
        elif self.running >= self.sessions:
            why = f"{self.running} sessions are running, and no more are allowed at once"
        if why:
            return Response(503, (("Content-Type", "text/plain"),), f"{why}\n".encode())
        self.running += 1
        return _Conversation(self, ActionEngineSession(self._table, _metadata(head), self.known))


class _Conversation:
    """A connection and its `ActionEngineSession`."""

    subprotocol = ""

    def __init__(self, handler: ActionEngineHandler, session: ActionEngineSession) -> None:
        self._handler = handler
        self._session = session

    def begin(self, wire: SocketWire) -> SessionReactor:
        """Start the session; the connection was just opened."""
        from invoker.execution.loop.sessions import SessionReactor

        known = self._handler.known
        reactor = SessionReactor(
            self._session,
            wire,
            self._handler.driver,
            wire.close,
            hard_bytes=known.session_bytes * 2,
            window=known.window,
            fetch=_fetch,
        )
        reactor.is_counted = True  # the session does not keep messages that it has fed
        return reactor

    def farewell(self, error: InvocationError | None) -> Farewell:
        """The last messages: a half-close, or the statuses of running actions and the abort."""
        from invoker.transports.http.app import Farewell

        if error is None:
            return Farewell(_NORMAL, (self._session.last_frame,))
        code = _PROTOCOL_ERROR if isinstance(error, ProtocolViolation) else _INTERNAL
        return Farewell(code, self._session.farewell(error), str(error))

    def over(self) -> None:
        """Count one session less, so that another one may begin."""
        self._handler.running -= 1


def _metadata(head: RequestHead) -> dict[str, str]:
    """The headers of the handshake for functions; the values of a repeated header are joined."""
    found: dict[str, str] = {}
    for name, value in head.headers:
        if name not in ("connection", "upgrade", "host") and not name.startswith("sec-websocket-"):
            found[name] = f"{found[name]}, {value}" if name in found else value
    return found


async def _fetch(uri: str, most: int, deliver: Callable[[bytes], None]) -> None:  # noqa: ARG001 - see `Fetching`
    raise InternalError("sessions of this transport have nothing to fetch")
