"""Makes the sessions of action-engine peers for the HTTP door."""

from __future__ import annotations

from collections.abc import Mapping

from invoker.config import Config
from invoker.doors.http.socketline import SocketSettings
from invoker.doors.http.websocket import SocketApp
from invoker.drive.driver import Driver
from invoker.protocols.action_engine.session import ActionEngineSession
from invoker.protocols.action_engine.settings import ActionEngineSettings
from invoker.protocols.action_engine.table import Table

__all__ = ["action_engine_app", "configured_app"]


def action_engine_app(
    driver: Driver, settings: ActionEngineSettings | None = None, sockets: SocketSettings | None = None
) -> SocketApp:
    """The application that serves the driver's functions as actions."""
    known = settings or ActionEngineSettings()
    table = Table((function.spec for function in driver.engine.catalog), known)

    def begin(metadata: Mapping[str, str]) -> ActionEngineSession:
        return ActionEngineSession(table, metadata, known)

    return SocketApp(driver, begin, sockets or SocketSettings(window=known.window, hard_bytes=known.session_bytes * 2))


def configured_app(driver: Driver, config: Config, actions: Mapping[str, str]) -> SocketApp:
    """The same, as the knobs say.

    Args:
        driver: Runs the conversations.
        config: Every knob.
        actions: Names of functions by those of actions, besides the functions' own.
    """
    settings = ActionEngineSettings(actions, dict(config.inputs), config.session_bytes, config.high_bytes)
    sockets = SocketSettings(
        config.socket_path,
        config.max_message_bytes,
        config.sessions,
        hard_bytes=config.session_bytes * 2,
        window=settings.window,
    )
    return action_engine_app(driver, settings, sockets)
