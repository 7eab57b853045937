"""The HTTP door: HTTP/1.1 and HTTP/2 (with prior knowledge, or by ALPN) on one port, in the loop of the process.

Clients on the same machine may use a Unix socket as well, without TLS.

Hypercorn speaks the protocols. The sockets, their TLS and their ends are ours, because its own `serve` does not tell
which port it took, and cannot end in bounded time on every Python (ADR 0004). Each connection has one timer: a client
that has no request under way for ``idle_s`` loses its connection, whatever it does in that time (R-155).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from ipaddress import ip_address
from typing import Any

from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config as HypercornConfig

from invoker.doors.accepting import Acceptor
from invoker.doors.http.app import Application, FrontOf, HttpApp
from invoker.doors.http.exchange import HttpSettings
from invoker.doors.http.hyperhttp import PatientServer, waiting
from invoker.doors.sockets import Purpose, UnixSocket, address_of, ask_whether_alive, bind_tcp, open_files
from invoker.doors.tls import TlsFiles
from invoker.drive.driver import Driver

__all__ = ["HttpDoor"]

log = logging.getLogger(__name__)

_CLOSE_S = 5.0
_MANY = 2**31 - 1
_SHARE = 2
"""Connections may take this part of the descriptors, here a half; beyond it, one without a request is ended."""
_TCP = Purpose("HTTP", "PORT", "INVOKER_HOST")
_UNIX = Purpose("HTTP", "INVOKER_HTTP_UNIX")


class HttpDoor:
    """Serves services over HTTP.

    Args:
        driver: Runs the conversations.
        front: Gives who answers a path; None: nobody does.
        host: Address to listen on.
        port: 0 takes a free one.
        tls: For TLS; None serves plain text.
        settings: Limits in bytes and time.
        share_port: Whether other processes may bind the same port.
        sockets: Serves WebSocket connections; None: they are refused.
        unix: Path of a Unix socket that serves the same; empty: there is none.
        unix_mode: Permissions of its file, in octal.
    """

    def __init__(  # noqa: PLR0913 - the composition root gives each by name
        self,
        driver: Driver,
        front: FrontOf,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        tls: TlsFiles | None = None,
        settings: HttpSettings | None = None,
        share_port: bool = False,
        sockets: Application | None = None,
        unix: str = "",
        unix_mode: str = "600",
    ) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._share_port = share_port
        settings = settings or HttpSettings()
        self._idle_s = settings.idle_s
        self._app = HttpApp(driver, settings, front, sockets=sockets)
        self._wrapped = ASGIWrapper(_Counted(self._app))
        self._config = _configured()
        self._context = WorkerContext(None)
        self._connections: dict[Connection, asyncio.Task[Any]] = {}
        self._idle: dict[Connection, None] = {}
        self._most = 0
        self._acceptors: list[Acceptor] = []
        self._unix = (unix, unix_mode)
        self._file: UnixSocket | None = None

    async def start(self) -> str:
        """Bind, and begin to answer.

        Returns:
            ``host:port``, with the port that was taken.

        Raises:
            StartupError: The address cannot be bound.
            ConfigError: A TLS file is not usable.
        """
        context = self._tls.server_context() if self._tls is not None else None
        sock = bind_tcp(self._host, self._port, _TCP, share_port=self._share_port)
        path, mode = self._unix
        try:
            self._file = UnixSocket(path, _UNIX, mode=mode) if path else None
        except BaseException:
            sock.close()
            raise
        self._app.origins.bind(self._host, is_loopback=ip_address(sock.getsockname()[0]).is_loopback)
        self._most = open_files() // _SHARE
        self._acceptors.append(Acceptor(sock, self._connected, "HTTP", tls=context, evict=self._evict))
        if self._file is not None:
            self._acceptors.append(Acceptor(self._file.sock, self._connected, "HTTP", evict=self._evict))
        return address_of(sock)

    def leave(self) -> None:
        """Accept no more; HTTP/1 connections end after their next response, which says so."""
        self._app.is_leaving = True
        for one in self._acceptors:
            one.close()

    async def stop(self, grace_s: float) -> None:
        """Accept no more; requests under way have ``grace_s`` before their connections are cut. Idempotent."""
        for one in self._acceptors:
            one.close()
            await one.drop()
        if self._file is not None:
            self._file.remove()
        await self._context.terminated.set()
        for connection in list(self._connections):
            connection.end_when_idle()
        if self._connections and grace_s > 0:
            await asyncio.wait(list(self._connections.values()), timeout=grace_s)
        left = dict(self._connections)
        for connection, task in left.items():
            connection.abort()
            task.cancel()
        if left:
            log.warning("%s HTTP connections were cut", len(left))
            await asyncio.wait(list(left.values()), timeout=_CLOSE_S)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # `Acceptor` runs this in a task of its own
        sock = writer.get_extra_info("socket")
        if sock.family != socket.AF_UNIX:
            ask_whether_alive(sock)
        connection = Connection(writer, self._idle_s, self._idle)
        self._connections[connection] = task
        if len(self._connections) > self._most:
            self._evict()
        state = {"connection": connection}
        loop = asyncio.get_running_loop()
        server = PatientServer(self._wrapped, loop, self._config, self._context, state, reader, writer)
        server.idle_task = _NoTimer()  # type: ignore[assignment]  # it has the two methods that are called
        try:
            await server
        except asyncio.CancelledError:
            log.debug("an HTTP connection was cut")  # by `stop`; nobody else cancels this task
        except Exception:  # a peer's frames may lead hypercorn astray, and only its own connection pays for that
            log.debug("an HTTP connection failed", exc_info=True)
        finally:
            connection.abort()
            del self._connections[connection]

    def _evict(self) -> bool:
        """End the connection that has been without a request for longest; whether there was one."""
        longest = next(iter(self._idle), None)
        if longest is None:
            return False
        longest.abort()
        return True


class Connection:
    """One TCP connection: how many requests are under way on it, and when it ends.

    Args:
        writer: Its writing end.
        idle_s: How long it may be without a request.
        idle: The connections without a request, the one that has been so for longest first.
    """

    def __init__(self, writer: asyncio.StreamWriter, idle_s: float, idle: dict[Connection, None]) -> None:
        self._writer = writer
        self._sock = writer.get_extra_info("socket")
        self._idle_s = idle_s
        self._idle = idle
        self._requests = 0
        self._is_ending = False
        self._timer: asyncio.TimerHandle | None = None
        self._arm(idle_s)

    def entered(self) -> None:
        """A request begins."""
        self._requests += 1
        self._disarm()

    def exited(self) -> None:
        """A request is over."""
        self._requests -= 1
        if not self._requests:
            self._arm(0 if self._is_ending else self._idle_s)

    def end_when_idle(self) -> None:
        """End now, or with the last request."""
        self._is_ending = True
        if not self._requests:
            self._close()

    @property
    def is_lost(self) -> bool:
        """Whether nothing can be written any more."""
        return self._writer.transport.is_closing()

    def abort(self) -> None:
        """End now, without ceremony."""
        self._disarm()
        if (
            self._sock.fileno() >= 0
        ):  # asyncio 3.11 fails at an abort behind a close that had to wait for its last writes
            self._writer.transport.abort()

    def _arm(self, delay_s: float) -> None:
        self._disarm()
        self._idle[self] = None
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._close)

    def _disarm(self) -> None:
        self._idle.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        self._writer.close()  # waits for what is written to be taken, which a client can delay for ever
        self._disarm()
        self._timer = asyncio.get_running_loop().call_later(_CLOSE_S, self._writer.transport.abort)


class _NoTimer:
    """Replaces hypercorn's idle timer, which ignores HTTP/2 with prior knowledge and costs two tasks a request."""

    async def restart(self, task_group: Any, action: Any) -> None:
        pass

    async def stop(self) -> None:
        pass


class _Counted:
    """Tells each connection of its requests."""

    def __init__(self, app: HttpApp) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        connection: Connection = scope["state"]["connection"]
        connection.entered()
        client = waiting(receive, send)
        if client is not None:
            receive, send = client.receive, client.send
        try:
            await self._app(scope, receive, send)
        finally:
            connection.exited()


def _configured() -> HypercornConfig:
    config = HypercornConfig()
    config.accesslog = None
    config.errorlog = log
    config.include_server_header = False
    # At this many requests hypercorn ends a HTTP/2 connection together with the requests that are under way on it.
    config.keep_alive_max_requests = _MANY
    logging.getLogger("hpack").setLevel(logging.INFO)  # at DEBUG it logs every header, credentials included
    return config
