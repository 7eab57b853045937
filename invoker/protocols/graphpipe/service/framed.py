"""`FramedTransport`: serves GraphPipe on raw TCP and Unix sockets, where each message follows its length (G-016).

In both directions, a message is a FlatBuffer with a size prefix: its length in four bytes, little-endian, then the
buffer. Requests of a connection are answered in order, one at a time. While one runs, only the next two are read
(G-019), so TCP flow control stops a client that sends more. A client may half-close after its last request. If a client
leaves, its running inference is cancelled.

Between requests a client may be silent without a time limit, so the number of connections is limited. A message that
has begun must come at a minimal speed, and a response must be taken at a minimal speed.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Any, Final

from invoker.errors import let_go
from invoker.protocols.graphpipe.service.connection import FramedConnection
from invoker.protocols.graphpipe.service.inferences import Inferences
from invoker.tensors import Code, GraphPipeError
from invoker.transports.accepting import Acceptor, streaming
from invoker.transports.sockets import Purpose, UnixSocket, address_of, ask_whether_alive, bind_tcp

log = logging.getLogger(__name__)

_TCP: Final = Purpose("GraphPipe", "--graphpipe-tcp", "--graphpipe-tcp")
_UNIX: Final = Purpose("GraphPipe", "--graphpipe-unix")
_CLOSE_S: Final = 5.0
_LATE_S: Final = 0.5
"""For this many seconds after `leave`, a client that has just connected may still send a request."""


class FramedTransport:
    """Serves models on one address: the first model by default, and the others to clients that name them.

    Args:
        inferences: Runs the inferences.
        address: ``host:port``, or the path of a Unix socket.
        is_unix: Whether the address is the path of a Unix socket.
        mode: The file permissions of a Unix socket.
        tls: The TLS settings for TCP; None: there is no TLS.
        share_port: Whether other processes may bind the same port.
    """

    def __init__(
        self,
        inferences: Inferences,
        address: str,
        *,
        is_unix: bool = False,
        mode: str = "600",
        tls: ssl.SSLContext | None = None,
        share_port: bool = False,
    ) -> None:
        self._inferences = inferences
        self._address = address
        self._is_unix = is_unix
        self._mode = mode
        self._tls = tls
        self._share_port = share_port
        self._acceptor: Acceptor | None = None
        self._file: UnixSocket | None = None
        self._connections: dict[FramedConnection, asyncio.Task[Any]] = {}
        self._served = 0
        self._is_leaving = False

    async def start(self) -> str:
        """Bind the address, and start to serve.

        Returns:
            The address, with the actual port.

        Raises:
            StartupError: The address cannot be bound.
        """
        if self._is_unix:
            file = self._file = UnixSocket(self._address, _UNIX, mode=self._mode)
            self._acceptor = Acceptor(file.sock, streaming(self._connected), "GraphPipe")
            return self._address
        host, _, port = self._address.rpartition(":")
        sock = bind_tcp(host, int(port), _TCP, share_port=self._share_port)
        self._acceptor = Acceptor(sock, streaming(self._connected), "GraphPipe", tls=self._tls)
        return address_of(sock)

    def leave(self) -> None:
        """Stop accepting connections; open ones end after their requests are answered."""
        self._is_leaving = True
        if self._acceptor is not None:
            self._acceptor.close()
        for connection in list(self._connections):
            connection.end_when_idle()

    async def stop(self, grace_s: float) -> None:
        """Stop serving; running requests have ``grace_s`` seconds before their connections are closed. Idempotent."""
        self.leave()
        if self._acceptor is not None:
            await self._acceptor.drop()
        if self._file is not None:
            self._file.remove()
        if self._connections:
            await asyncio.wait(list(self._connections.values()), timeout=grace_s)
        left = dict(self._connections)
        for connection, task in left.items():
            connection.abort()
            task.cancel()
        if left:
            log.warning("%s GraphPipe connections were cut", len(left))
            await asyncio.wait(list(left.values()), timeout=_CLOSE_S)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # `Acceptor` runs this in a task of its own
        if not self._is_unix:
            ask_whether_alive(writer.get_extra_info("socket"))
        transport = "unix socket" if self._is_unix else "tcp socket"
        connection = FramedConnection(self._inferences, reader, writer, transport=transport)
        self._connections[connection] = task
        late = asyncio.get_running_loop().call_later(_LATE_S, connection.end_when_idle) if self._is_leaving else None
        most = self._inferences.settings.connections
        is_served = self._served < most
        self._served += is_served
        try:
            if is_served:
                await connection.run()
            else:
                detail = f"{most} connections are open on this socket, and no more are allowed at once"
                await connection.refuse(GraphPipeError(Code.OVERLOADED, detail))
        except asyncio.CancelledError:
            log.debug("a GraphPipe connection was cut")  # only `stop` cancels this task
        except OSError as error:
            log.debug("a GraphPipe connection broke: %s", error)
            let_go(error)  # the traceback refers to the response, and the connection's reader keeps the error
        finally:
            if late is not None:
                late.cancel()
            self._served -= is_served
            connection.abort()
            del self._connections[connection]
