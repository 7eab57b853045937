"""`Hyper`: connections of the HTTP transport that speak HTTP/2, which hypercorn serves.

Most processes never see one, so hypercorn is imported when the first comes. Sockets, TLS and ends are the transport's
(ADR 0004). Each connection has one timer: a client that has no request under way for ``idle_s`` loses its connection,
whatever it does in that time (R-155).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config

from invoker.transports.accepting import streaming
from invoker.transports.http.asgi import Application, AsgiApp
from invoker.transports.http.connections import Connections
from invoker.transports.http.hyperhttp import PatientServer

__all__ = ["Hyper", "HyperConnection", "configured"]

log = logging.getLogger(__name__)

_CLOSE_S = 5.0
_MANY = 2**31 - 1


class Hyper:
    """Serves such connections.

    Args:
        app: Answers requests.
        connections: The connections of the transport.
        idle_s: How long one may be without a request.
    """

    def __init__(self, app: AsgiApp, connections: Connections, *, idle_s: float) -> None:
        self._connections = connections
        self._idle_s = idle_s
        self._wrapped = ASGIWrapper(_Counted(app))
        self._config = configured()
        self._context = WorkerContext(None)

    def take(self, transport: asyncio.Transport, data: bytes) -> None:
        """Serve a connection of which some bytes were read already."""
        protocol = streaming(self._connected)()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if data:
            protocol.data_received(data)

    async def stop(self) -> None:
        """Take no more requests on the connections that there are."""
        await self._context.terminated.set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # `StreamReaderProtocol` runs this in a task of its own
        connection = HyperConnection(writer, task, self._idle_s, self._connections)
        state = {"connection": connection}
        loop = asyncio.get_running_loop()
        server = PatientServer(self._wrapped, loop, self._config, self._context, state, reader, writer)
        server.idle_task = _NoTimer()  # type: ignore[assignment]  # it has the two methods that are called
        try:
            await server
        except asyncio.CancelledError:
            log.debug("an HTTP connection was cut")  # by `abort`; nobody else cancels this task
        except Exception:  # a peer's frames may lead hypercorn astray, and only its own connection pays for that
            log.debug("an HTTP connection failed", exc_info=True)
        finally:
            connection.over()


class HyperConnection:
    """One connection: how many requests are under way on it, and when it ends.

    Args:
        writer: Its writing end.
        task: Serves it.
        idle_s: How long it may be without a request.
        connections: The connections of the transport.
    """

    def __init__(
        self, writer: asyncio.StreamWriter, task: asyncio.Task[Any], idle_s: float, connections: Connections
    ) -> None:
        self._writer = writer
        self._task = task
        self._sock = writer.get_extra_info("socket")
        self._idle_s = idle_s
        self._connections = connections
        self._requests = 0
        self._is_ending = False
        self._timer: asyncio.TimerHandle | None = None
        self._arm(idle_s)
        connections.meet(self, is_new=True)

    def entered(self) -> None:
        """Count a request that begins, so that the connection is not idle."""
        self._requests += 1
        self._disarm()

    def exited(self) -> None:
        """Count a request that is over; after the last one the connection is idle."""
        self._requests -= 1
        if not self._requests:
            self._arm(0 if self._is_ending else self._idle_s)

    def fileno(self) -> int:
        """Of the socket; negative once it is closed."""
        return int(self._sock.fileno())

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
        """End the connection now, without a farewell to the client."""
        self._disarm()
        if self.fileno() >= 0:  # asyncio 3.11 fails at an abort behind a close that had to wait for its last writes
            self._writer.transport.abort()

    def cut(self) -> None:
        """End the connection now, with all that runs for it."""
        self.abort()
        self._task.cancel()

    def over(self) -> None:
        """Forget the connection: nothing runs for it any more."""
        self.abort()
        self._connections.leave(self)

    def _arm(self, delay_s: float) -> None:
        self._disarm()
        self._connections.idle[self] = None
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._close)

    def _disarm(self) -> None:
        self._connections.idle.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        self._writer.close()  # `close` waits until what is written is taken, which a client can delay for ever
        self._disarm()
        self._timer = asyncio.get_running_loop().call_later(_CLOSE_S, self._writer.transport.abort)


class _NoTimer:
    """Replaces hypercorn's idle timer, which ignores HTTP/2 with prior knowledge and costs two tasks a request."""

    async def restart(self, task_group: Any, action: Any) -> None:
        pass

    async def stop(self) -> None:
        pass


class _Counted:
    """Lets each connection count its requests."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        connection: HyperConnection = scope["state"]["connection"]
        connection.entered()
        try:
            await self._app(scope, receive, send)
        finally:
            connection.exited()


def configured() -> Config:
    """Hypercorn's settings, with our log and no limit of requests for a connection."""
    config = Config()
    config.accesslog = None
    config.errorlog = log
    config.include_server_header = False
    # At this many requests hypercorn ends a HTTP/2 connection together with the requests that are under way on it.
    config.keep_alive_max_requests = _MANY
    logging.getLogger("hpack").setLevel(logging.INFO)  # at DEBUG it logs every header, credentials included
    return config
