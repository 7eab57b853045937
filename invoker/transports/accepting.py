"""`Acceptor`: accepts the connections of a listening socket, also when the process has no file descriptors left.

asyncio's own server would then retry at once, log each failure, and pause accepting for a second. Here a few
descriptors are kept in reserve. When all others are taken, a new connection gets one of the reserve, and the connection
that has been idle for longest is ended to make room for the next. So a probe is still answered, and the log has one
line a minute. If there is no idle connection, or only new ones, accepting pauses for a moment, and new connections wait
in the backlog of the kernel.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from invoker.errors import let_go

log = logging.getLogger(__name__)

ProtocolOf: TypeAlias = Callable[[], asyncio.Protocol]
Connected: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_AT_ONCE: Final = 64
_SPARES: Final = 8
_RETRY_S: Final = 0.005
_SILENCE_S: Final = 60.0
_HANDSHAKE_S: Final = 10.0


class Acceptor:
    """Accepts from one socket until it is closed, which closes the socket.

    Args:
        sock: A listening socket that does not block.
        protocol: Makes the object that serves one connection.
        transport: The name of the transport, for the log.
        tls: None serves plain text.
        evict: Ends an idle connection, one without a request; returns whether there was one.
        take: Serves a connection without TLS itself, in place of an object made by ``protocol``; None: it is not used.
    """

    def __init__(
        self,
        sock: socket.socket,
        protocol: ProtocolOf,
        transport: str,
        *,
        tls: ssl.SSLContext | None = None,
        evict: Callable[[], bool] = lambda: False,
        take: Callable[[socket.socket], object] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._protocol = protocol
        self._transport = transport
        self._tls = tls
        self._evict = evict
        self._take = take
        self._spares: list[int] = []
        self._begun: set[asyncio.Task[None]] = set()
        self._retry: asyncio.TimerHandle | None = None
        self._told_s = self._loop.time() - _SILENCE_S
        self._refill()
        self._resume()

    def close(self) -> None:
        """Accept no more connections; accepted ones are served. Idempotent."""
        if self._retry is not None:
            self._retry.cancel()
        if self._sock.fileno() >= 0:
            self._loop.remove_reader(self._sock)
            self._sock.close()
        while self._spares:
            os.close(self._spares.pop())

    async def drop(self) -> None:
        """Drop connections whose TLS handshake is still running."""
        for task in self._begun:
            task.cancel()
        await asyncio.gather(*self._begun, return_exceptions=True)

    def _resume(self) -> None:
        self._retry = None
        self._loop.add_reader(self._sock, self._accept)

    def _pause(self) -> None:
        self._loop.remove_reader(self._sock)
        self._retry = self._loop.call_later(_RETRY_S, self._resume)

    def _accept(self) -> None:
        """Accept some of the waiting connections; the loop calls this again as long as any wait."""
        self._refill()
        for _ in range(_AT_ONCE):
            try:
                sock, _ = self._sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    self._squeeze(error)
                    return
                log.debug("a connection was gone before it was accepted: %s", error)
                return
            self._begin(sock)

    def _squeeze(self, error: OSError) -> None:
        """Accept one connection although no descriptor is free, by closing one of the reserve."""
        self._tell(error)
        is_room = self._evict()
        if self._spares:
            os.close(self._spares.pop())
            try:
                self._begin(self._sock.accept()[0])
                return
            except OSError:  # another process took the descriptor or the connection first
                pass
        if not is_room:
            self._pause()

    def begin(self, sock: socket.socket, protocol: ProtocolOf, *, tls: ssl.SSLContext | None = None) -> None:
        """Serve a connection that was accepted, which may have happened elsewhere.

        Args:
            sock: A socket that does not block.
            protocol: Makes the object that serves the connection.
            tls: None serves plain text.
        """
        task = self._loop.create_task(self._connect(sock, protocol, tls), name="connection")
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)

    def _begin(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        if self._take is None:
            self.begin(sock, self._protocol, tls=self._tls)
        else:
            self._take(sock)

    async def _connect(self, sock: socket.socket, protocol: ProtocolOf, tls: ssl.SSLContext | None) -> None:
        limit_s = None if tls is None else _HANDSHAKE_S
        try:
            await self._loop.connect_accepted_socket(protocol, sock, ssl=tls, ssl_handshake_timeout=limit_s)
        except OSError as error:
            log.debug("a connection was lost before it was set up: %s", error)
            sock.close()

    def _refill(self) -> None:
        try:
            while len(self._spares) < _SPARES:
                self._spares.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            pass  # no descriptor is free now; the next call tries again

    def _tell(self, error: OSError) -> None:
        now_s = self._loop.time()
        if now_s - self._told_s < _SILENCE_S:
            return
        self._told_s = now_s
        log.warning(
            "%s for connections to the %s transport; those without a request are ended to make room; "
            "raise the limit (ulimit -n), or have fewer clients",
            error.strerror,
            self._transport,
        )


def streaming(connected: Connected) -> ProtocolOf:
    """Make the object that serves a connection by a task of its own that has streams."""

    def protocol() -> asyncio.Protocol:
        loop = asyncio.get_running_loop()
        return _Streams(asyncio.StreamReader(loop=loop), connected, loop=loop)

    return protocol


class _Streams(asyncio.StreamReaderProtocol):
    """Drops the traceback of the error by which a connection is lost, before a future keeps it.

    The traceback of a failed write refers to the frames of all callers, which hold the data to send and the future. The
    future would refer to the traceback in turn, so only the garbage collector would free the data.
    """

    def connection_lost(self, exc: Exception | None) -> None:
        let_go(exc)
        super().connection_lost(exc)
