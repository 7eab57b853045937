"""`asgi`: functions as an ASGI application, to be mounted into FastAPI or Starlette, or run by any ASGI server.

Theory. An application has a *run* for each event loop on which it gets requests, since the driver, its threads and the
start hooks belong to one loop. A run is one task, which starts a server, waits, and stops it::

    what comes first          starts it             who ends it
    ------------------------  --------------------  -----------------------------------------------------------------
    lifespan of the server    at the startup        the shutdown, which drains
    `async with`, `lifespan`  when it is entered    the end of the block, which drains
    a request                 before it is served   the end of the loop, which cancels its tasks: nothing is drained

Starlette passes no lifespan on to mounted applications, so the first request starts the run there, unless the host
application enters `lifespan` in its own. Requests that come while the server starts wait for it. If the server cannot
start, all these requests fail, and the first request after a second tries again.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Final, Self

from invoker.core.http import Response
from invoker.errors import ConfigError, StartupError
from invoker.server import life
from invoker.server.building import build
from invoker.server.given import config_of, spelled
from invoker.server.server import Server
from invoker.server.table import HTTP, TABLE
from invoker.settings import Config, setting_of
from invoker.transports.http.asgi import Receive, Scope, Send
from invoker.transports.http.mounted import refuse

log = logging.getLogger(__name__)

_RETRY_S: Final = 1.0

_HOSTS: Final = frozenset(
    {
        "host", "port", "grpc_port", "grpc_driver", "http", "http_unix", "unix_mode", "tls_cert", "tls_key",
        "tls_client_ca", "max_streams", "settle_s", "lame_duck_s", "workers", "heartbeat_s", "connection_age_s",
        "window_bytes", "loop", "log_level", "log_format",
    }
)  # fmt: skip
"""Settings of sockets and of the process. Both belong to the host here, so these settings are refused.
`Service.host_settings` adds those of services."""


class Mounted:
    """Functions as an ASGI 3 application; made by `invoker.asgi`.

    It can be mounted, called by a server directly, and entered: ``async with app:`` starts it and, at the end of the
    block, lets running invocations end and stops it.

    Attributes:
        functions: The names of the functions.
    """

    def __init__(self, what: Sequence[Any], config: Config) -> None:
        self._what = what
        self._config = config
        self._server: Server | None = build(config, *what, is_mounted=True)  # the server of the first run
        self._runs: dict[asyncio.AbstractEventLoop, _Run] = {}
        self._lock = threading.Lock()  # loops of several threads may begin at once
        self._failed: tuple[asyncio.AbstractEventLoop, float, StartupError] | None = None
        self.functions = tuple(function.spec.name for function in self._server.engine.catalog)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, a WebSocket, or the lifespan of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] in ("http", "websocket"):
            try:
                run = await self._begun()
            except StartupError:
                text = "Invoker: Service Unavailable: the functions could not be started; see the log\n"
                headers = (("Content-Type", "text/plain"), ("Retry-After", f"{_RETRY_S:.0f}"))
                await refuse(scope, receive, send, Response(503, headers, text.encode()))
                return
            await run.server.application(scope, receive, send)

    def lifespan(self, app: object = None) -> AbstractAsyncContextManager[None]:  # noqa: ARG002 - hosts give theirs
        """Start and stop the server with the application that mounts it: ``FastAPI(lifespan=functions.lifespan)``.

        Args:
            app: The host application; it is not used.
        """
        return self._entered()

    @asynccontextmanager
    async def _entered(self) -> AsyncIterator[None]:
        async with self:
            yield  # a value here would be merged into the state of the host

    async def __aenter__(self) -> Self:
        run = await self._begun(enters=True)
        run.entered += 1
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        run = self._runs.get(asyncio.get_running_loop())
        if run is not None:
            run.entered -= 1
            if run.entered <= 0:
                await run.stop()

    def __repr__(self) -> str:
        return f"<Mounted {', '.join(self.functions)}>"

    async def _live(self, receive: Receive, send: Send) -> None:
        """Handle the lifespan of a server, or of a host that passes it on."""
        await receive()  # lifespan.startup
        try:
            await self.__aenter__()
        except StartupError as error:
            await send({"type": "lifespan.startup.failed", "message": f"invoker: {error.detail}"})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()  # lifespan.shutdown
        await self.__aexit__(None, None, None)
        await send({"type": "lifespan.shutdown.complete"})

    async def _begun(self, *, enters: bool = False) -> _Run:
        """Return the run of this loop, once it serves.

        Args:
            enters: Whether the caller will stop the run; then a failed start is tried again at once.

        Raises:
            StartupError: The server cannot be started.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise RuntimeError("invoker.asgi() needs an event loop of asyncio; this server runs another one") from None
        run = self._runs.get(loop)
        if run is None:
            if self._failed is not None:
                where, until_s, error = self._failed
                if where is loop and loop.time() < until_s and not enters:
                    raise error.with_traceback(None)
            run = self._begin(loop, is_asked=not enters)
        if not run.ready.done() or run.ready.exception() is not None:
            await asyncio.shield(run.ready)
        return run

    def _begin(self, loop: asyncio.AbstractEventLoop, *, is_asked: bool) -> _Run:
        with self._lock:
            for other in [one for one in self._runs if one.is_closed()]:
                self._runs.pop(other).abandon()
            server, self._server = self._server or build(self._config, *self._what, is_mounted=True), None
            run = self._runs[loop] = _Run(server, loop)

        def over(_: object) -> None:
            with self._lock:
                self._runs.pop(loop, None)
            if (error := run.failure) is not None:
                self._failed = (loop, loop.time() + _RETRY_S, error)

        run.task.add_done_callback(over)
        if is_asked and any(one.hooks.stop_limit_s for one in server.engine.catalog):
            log.warning(
                "a request has started %s, because no lifespan did; whether their stop hooks will run is up to the "
                "server. Give the application's lifespan to its host: FastAPI(lifespan=app.lifespan)",
                ", ".join(self.functions),
            )
        return run


class _Run:
    """An application on one event loop.

    Args:
        server: The mounted server, not yet started.
        loop: The running loop.

    Attributes:
        ready: Done once the server serves, or has failed to start.
        entered: How many ``async with`` blocks that need this run are entered.
        failure: The error for which it could not be started.
        task: The task that starts the server, waits and stops it.
    """

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.server = server
        self.ready: asyncio.Future[None] = loop.create_future()
        self.ready.add_done_callback(lambda it: it.cancelled() or it.exception())  # there may be no waiter left
        self.entered = 0
        self.failure: StartupError | None = None
        self._told = asyncio.Event()
        # Context variables that the first request has set must not be visible here.
        self.task = loop.create_task(self._live(), name="invoker", context=contextvars.Context())

    async def stop(self) -> None:
        """Let running invocations end, and stop; returns when the server has stopped."""
        self._told.set()
        await asyncio.wait([self.task])

    def abandon(self) -> None:
        """Drop the run of a loop that was closed without cancelling its tasks."""
        log.warning("an event loop was closed while it served %s; their stop hooks have not run", self._names)
        self.server.abandon()

    @property
    def _names(self) -> str:
        return ", ".join(function.spec.name for function in self.server.engine.catalog)

    async def _live(self) -> None:
        try:
            is_started = await life.begin(self.server, self._told)
        except asyncio.CancelledError:
            self.ready.cancel()
            raise
        except BaseException as error:  # noqa: BLE001 - raised in the requests that wait
            self._fail(error)
            return
        if not is_started:
            await life.end(self.server, 0.0)
            self._fail(StartupError("the server was stopped before it had started"))
            return
        self.ready.set_result(None)
        log.info("mounted: %s", self._names)
        drain_s = self.server.config.drain_s
        try:
            await self._told.wait()
        except asyncio.CancelledError:  # the loop is closing, and waits for its tasks
            drain_s = 0.0
            self.task.uncancel()
        await life.end(self.server, drain_s)

    def _fail(self, error: BaseException) -> None:
        if isinstance(error, StartupError):
            log.error("%s", error, exc_info=error.__cause__)
            self.failure = error
        self.ready.set_exception(error)


def asgi(*functions: Any, **settings: Any) -> Mounted:
    """Make an ASGI application of functions, which answers the same requests as the HTTP port.

    Mount it into an application of FastAPI or Starlette, or give it to any ASGI server::

        functions = invoker.asgi(square)
        app = FastAPI(lifespan=functions.lifespan)
        app.mount("/fn", functions)  # POST /fn/square

    Functions run as on the HTTP port: async ones on the event loop, sync ones in threads. Every client of the host
        application may call them, but no web page of another origin, unless ``allowed_origins`` lists it.

    Args:
        functions: Functions of any shape, modules with functions, or entrypoints as on the command line.
        settings: The settings of the HTTP port, by the names of their flags: ``max_message_bytes=1024``. Settings that
            are not given come from the environment.

    Returns:
        The application. Its ``lifespan`` starts and stops it with its host; without that, the first request starts it.

    Raises:
        StartupError: A function cannot be loaded, understood or served, or a setting is invalid.
        TypeError: There is no such setting.
    """
    if not functions:
        raise TypeError("asgi() takes at least one function, module or entrypoint")
    hosts = _HOSTS.union(*(one.host_settings for one in TABLE.rows))
    for name, value in settings.items():
        if name in hosts and value is not None:
            raise ConfigError(f"{name} is for ports and processes of invoker's own; here they are the host's")
    theirs = {setting_of(one).env for one in TABLE.settings if one.name in hosts}
    env = {name: text for name, text in os.environ.items() if name not in theirs}
    settings.setdefault("blocked_s", 0)  # the host program watches itself for code that blocks the loop
    config = config_of(settings, env=env)
    if settings.get("protocols") is not None:
        for one in TABLE.served(config):
            if one.on_grpc and not one.on_http:
                raise ConfigError(f"protocols has {one.name}, which needs the gRPC port; there is none here")
    if not TABLE.has_http(config):
        raise ConfigError(f"protocols does not have {HTTP}, so nothing would be served here")
    with spelled(settings):
        return Mounted(functions, config)
