"""Makes and counts Evergreen sessions for the gRPC transports, and translates the errors that end them."""

from __future__ import annotations

import logging

from invoker._pb.evergreen import evergreen_service_pb2
from invoker.core.steps import Close
from invoker.errors import InvocationError
from invoker.errors.wording import draining
from invoker.execution.driver import Driver
from invoker.execution.loop.sessions import Fetching, SessionReactor
from invoker.message import Headers
from invoker.protocols.evergreen.errors import limit, shutting_down, translated
from invoker.protocols.evergreen.session import EvergreenSession
from invoker.protocols.evergreen.settings import EvergreenSettings
from invoker.protocols.evergreen.table import Table
from invoker.transports.grpc.loopcall import Listener
from invoker.transports.grpc.methods import CallWire, OnClose, SessionMethod

log = logging.getLogger(__name__)

# reflection finds this method by the service's name, too
_SERVICE = evergreen_service_pb2.DESCRIPTOR.services_by_name["EvergreenService"]


def evergreen_method(
    driver: Driver, settings: EvergreenSettings, *, fetch: Fetching, sessions: int = 1000
) -> SessionMethod:
    """The gRPC method that starts sessions; see `Evergreen`."""
    return SessionMethod(
        _SERVICE.full_name, _SERVICE.methods[0].name, Evergreen(driver, settings, fetch=fetch, sessions=sessions).begin
    )


class Evergreen:
    """Begins sessions, and refuses further ones when too many run.

    Args:
        driver: Runs the actions of the sessions.
        settings: The settings and limits of a session.
        fetch: Fetches the content of references.
        sessions: How many sessions may run at once; further ones are refused.

    Attributes:
        running: How many sessions are running; one that has ended still counts until its peer has received all
            messages.
    """

    def __init__(self, driver: Driver, settings: EvergreenSettings, *, fetch: Fetching, sessions: int = 1000) -> None:
        self.running = 0
        self._driver = driver
        self._settings = settings
        self._fetch = fetch
        self._most = sessions
        catalog = driver.engine.catalog
        self._table = Table((function.spec for function in catalog), settings, tells=bool(catalog.told))

    def begin(self, wire: CallWire, metadata: Headers, on_close: OnClose, deadline: float | None) -> Listener:
        """Begin a session; refuse it if the process drains (ET-93) or too many run."""
        refusal = self._refusal()
        if refusal is not None:
            log.info("a session was refused", extra={"status": refusal.status.name, "detail": str(refusal)})
            on_close(Close(refusal))
            return _Refused()
        session = EvergreenSession(self._table, metadata)
        self.running += 1
        wire.over = self._is_over
        return SessionReactor(
            session,
            wire,
            self._driver,
            _closing(on_close),
            deadline=deadline,
            hard_bytes=self._settings.session_bytes * 2,
            window=self._settings.window,
            fetch=self._fetch,
        )

    def _refusal(self) -> InvocationError | None:
        if self._driver.engine.is_draining:
            return shutting_down(draining("sessions"))
        if self.running >= self._most:
            return limit(f"{self.running} sessions are running, and no more are allowed at once")
        return None

    def _is_over(self) -> None:
        self.running -= 1


def _closing(on_close: OnClose) -> OnClose:
    """Wrap ``on_close`` so that it is called with Evergreen's form of the error."""

    def close(told: Close) -> None:
        error = told.error
        on_close(told if error is None else Close(translated(error, "the session"), told.trailers))

    return close


class _Refused:
    """The listener of a session that was refused. It ignores all frames and events."""

    settles = False

    def arrived(self, frame: bytes | None) -> bool:  # noqa: ARG002 - the listener's interface
        return True

    def gone(self) -> None:
        """Do nothing, because the end was reported already."""
