"""The HTTP transport: HTTP/1.1 and HTTP/2 (with prior knowledge, or by ALPN) on one port, in the loop of the process.

Clients on the same machine may use a Unix socket as well, without TLS.

A connection begins as one of HTTP/1.1 (`Http1`). If it speaks HTTP/2, it is passed on to `Http2`, with the bytes that
were read (ADR 0065); after the handshake of a WebSocket, to a `SocketConnection` (ADR 0044). A thread answers plain
requests of HTTP/1.1 for sync functions itself; all other connections come to the loop (`InlineHttp`, ADR 0029).
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from functools import partial

from invoker.execution.driver import Driver
from invoker.settings import parsers as parse
from invoker.transports.accepting import Acceptor
from invoker.transports.http.app import HandlerOf, HttpApp, SocketOf
from invoker.transports.http.cachedhead import SharedHeads
from invoker.transports.http.connections import NEW_S
from invoker.transports.http.exchange import HttpSettings
from invoker.transports.http.h1 import Http1
from invoker.transports.http.inline_http import InlineHttp, can_lead
from invoker.transports.http.plain import PlainHeads
from invoker.transports.sockets import Purpose, UnixSocket, address_of, bind_each, open_files
from invoker.transports.tls import TlsFiles

log = logging.getLogger(__name__)

_CLOSE_S = 5.0
_SHARE = 2
"""Connections may take the descriptors divided by this number, a half; beyond that, an idle connection is ended for
each new one."""
_TCP = Purpose("HTTP", "PORT", "INVOKER_HOST")
_UNIX = Purpose("HTTP", "INVOKER_HTTP_UNIX")


class HttpTransport:
    """Serves services over HTTP.

    Args:
        driver: Runs the conversations.
        handler: Gives the handler of a path; None: there is none.
        host: Address to listen on.
        port: 0 takes a free one.
        tls: Settings of TLS; None serves plain text.
        settings: Limits in bytes and time.
        share_port: Whether other processes may bind the same port.
        sockets: Gives the handler that serves the WebSockets of a path; None: there is none.
        unix: Path of a Unix socket on which the same services are served; empty: there is none.
        unix_mode: Permissions of its file, in octal.

    Attributes:
        app: Checks and answers the requests of all connections.
        connections: All open connections of the loop.
        leader: Serves plain requests; None: no thread leads.
    """

    def __init__(  # noqa: PLR0913 - the composition root gives each by name
        self,
        driver: Driver,
        handler: HandlerOf,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        tls: TlsFiles | None = None,
        settings: HttpSettings | None = None,
        share_port: bool = False,
        sockets: SocketOf = lambda _: None,
        unix: str = "",
        unix_mode: str = "600",
    ) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._share_port = share_port
        self.app = HttpApp(driver, settings or HttpSettings(), handler, sockets)
        self.connections = self.app.connections
        self.leader: InlineHttp | None = None
        self._heads = SharedHeads(self.app)
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
        socks = bind_each(self._host, self._port, _TCP, share_port=self._share_port)
        path, mode = self._unix
        try:
            self._file = UnixSocket(path, _UNIX, mode=mode) if path else None
        except BaseException:
            for sock in socks:
                sock.close()
            raise
        is_loopback = all(parse.is_loopback(sock.getsockname()[0]) for sock in socks)
        self.app.origins.bind(self._host, is_loopback=is_loopback)
        self.connections.most = open_files() // _SHARE
        driver = self.app.driver
        driver.loop = asyncio.get_running_loop()
        if driver.may_lead and can_lead():
            self.leader = InlineHttp(driver, self.app.settings, self.adopt)
        for sock in socks:
            self._accept(sock, context)
        if self._file is not None:
            self._accept(self._file.sock, None)
        return address_of(socks[0])

    def _accept(self, sock: socket.socket, tls: ssl.SSLContext | None) -> None:
        take = None
        if self.leader is not None and tls is None:
            heads = PlainHeads(
                self.app.handler,
                self.app.origins,
                is_local=sock.family == socket.AF_UNIX,
                codings=self.app.settings.codings,
            )
            take = partial(self._take, heads=heads)
        self._acceptors.append(Acceptor(sock, self._connection, "HTTP", tls=tls, evict=self._evict, take=take))

    def _take(self, sock: socket.socket, *, heads: PlainHeads) -> None:
        """Let the leader serve a connection as long as its requests are plain."""
        assert self.leader is not None
        self.leader.take(sock, heads)
        connections, led = self.connections, len(self.leader)
        is_beyond = connections.count + led > connections.most
        # With no more than `spare` of them, the new connection itself may be the idle one that is ended.
        if is_beyond and not connections.make_room(led) and led > connections.spare:
            self.leader.evict()

    def _evict(self) -> bool:
        """End a connection without a request.

        The leader's connections are tried last, since they may be new and are read at once.
        """
        return self.connections.evict() or (self.leader is not None and self.leader.evict(NEW_S))

    def leave(self) -> None:
        """Accept no more connections. Those of HTTP/1 end after their next response, which announces it."""
        self.app.is_leaving = True
        for one in self._acceptors:
            one.close()
        if self.leader is not None:
            self.leader.leave()

    async def stop(self, grace_s: float) -> None:
        """Accept no more connections; running requests have ``grace_s`` until they are cut. Idempotent."""
        acceptors, self._acceptors = self._acceptors, []
        for one in acceptors:
            one.close()
            await one.drop()
        if self._file is not None:
            self._file.remove()
        cut = 0 if self.leader is None else await self.leader.stop(grace_s)
        cut += await self.connections.end(grace_s, _CLOSE_S)
        if cut:
            log.warning("%s HTTP connections were cut", cut)

    def adopt(self, sock: socket.socket, data: bytes = b"") -> None:
        """Serve a connection that other code has accepted, and from which some bytes were already read.

        Args:
            sock: A socket that does not block; it is closed here if this transport has stopped.
            data: The bytes that were read; they are not yet answered.
        """
        if not self._acceptors:
            sock.close()
            return
        self._acceptors[0].begin(sock, lambda: self._connection(data))

    def _connection(self, early: bytes = b"") -> Http1:
        return Http1(self.app, self.connections, self._hand_over, early)

    def _hand_over(self, transport: asyncio.Transport, data: bytes) -> None:
        from invoker.transports.http.h2 import Http2  # the import takes long, and most processes never need it

        protocol = Http2(self.app, self.connections, self._heads)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if data:
            protocol.data_received(data)
