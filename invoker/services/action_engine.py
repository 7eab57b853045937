"""`ActionEngineService`: attaches the sessions of action-engine peers to the HTTP door, over WebSocket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from invoker.config import parsers as parse
from invoker.config.knob import knob
from invoker.errors import ConfigError
from invoker.services.actions import ActionKnobs
from invoker.services.service import Service

if TYPE_CHECKING:
    from invoker.config import Config
    from invoker.doors.http.asgi import Application
    from invoker.doors.http.socketline import SocketSettings
    from invoker.doors.http.websocket import SocketApp
    from invoker.drive.driver import Driver
    from invoker.protocols.action_engine.session import ActionEngineSession
    from invoker.protocols.action_engine.settings import ActionEngineSettings

__all__ = ["ActionEngineKnobs", "ActionEngineService", "action_engine_app"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionEngineKnobs(ActionKnobs):
    """The settings of action-engine."""

    socket_path: str = knob(
        "/", "INVOKER_SOCKET_PATH", parse.path, "Path on the HTTP port at which action-engine clients connect.",
        heading="action-engine sessions, over WebSocket", before="allowed_origins",
    )  # fmt: skip


class ActionEngineService(Service):
    """action-engine's sessions."""

    name = "action-engine"
    is_default = False
    knobs = ActionEngineKnobs

    @classmethod
    def is_served(cls, config: Config, *, is_chosen: bool, has_http: bool) -> bool:  # noqa: ARG003 - as `Service`
        """On the HTTP door, which must be there."""
        if is_chosen and not has_http:
            raise ConfigError(
                "INVOKER_PROTOCOLS has action-engine without http; action-engine is served on the HTTP port"
            )
        return is_chosen

    def websocket(self) -> Application:
        """Who serves the connections."""
        from invoker.doors.http.socketline import SocketSettings
        from invoker.protocols.action_engine.settings import ActionEngineSettings

        config, actions = self.around.config, self.around.actions
        known = config.of(ActionEngineKnobs)
        settings = ActionEngineSettings(actions, dict(known.inputs), known.session_bytes, config.high_bytes)
        sockets = SocketSettings(
            known.socket_path,
            config.max_message_bytes,
            known.sessions,
            hard_bytes=known.session_bytes * 2,
            window=settings.window,
        )
        return action_engine_app(self.around.driver, settings, sockets)


def action_engine_app(driver: Driver, settings: ActionEngineSettings, sockets: SocketSettings) -> SocketApp:
    """The application that serves the driver's functions as actions."""
    from invoker.doors.http.websocket import SocketApp
    from invoker.protocols.action_engine.session import ActionEngineSession
    from invoker.protocols.action_engine.table import Table

    table = Table((function.spec for function in driver.engine.catalog), settings)

    def begin(metadata: Mapping[str, str]) -> ActionEngineSession:
        return ActionEngineSession(table, metadata, settings)

    return SocketApp(driver, begin, sockets)
