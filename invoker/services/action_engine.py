"""`ActionEngineService`: attaches the sessions of action-engine peers to the HTTP door, over WebSocket."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from invoker.services.service import Service

if TYPE_CHECKING:
    from invoker.doors.http.app import Application
    from invoker.doors.http.socketline import SocketSettings
    from invoker.doors.http.websocket import SocketApp
    from invoker.drive.driver import Driver
    from invoker.protocols.action_engine.session import ActionEngineSession
    from invoker.protocols.action_engine.settings import ActionEngineSettings

__all__ = ["ActionEngineService", "action_engine_app"]


class ActionEngineService(Service):
    """action-engine's sessions."""

    name = "action-engine"

    def websocket(self) -> Application:
        """Who serves the connections."""
        from invoker.doors.http.socketline import SocketSettings
        from invoker.protocols.action_engine.settings import ActionEngineSettings

        config, actions = self.around.config, self.around.actions
        settings = ActionEngineSettings(actions, dict(config.inputs), config.session_bytes, config.high_bytes)
        sockets = SocketSettings(
            config.socket_path,
            config.max_message_bytes,
            config.sessions,
            hard_bytes=config.session_bytes * 2,
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
