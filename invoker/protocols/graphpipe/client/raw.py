"""`RawLink`: sends buffers over a socket, each after its length in four bytes, little-endian (D4, G-016)."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct

from invoker.protocols.graphpipe.client.addresses import Address
from invoker.protocols.graphpipe.client.failure import GraphPipeError, NotReached, lost
from invoker.protocols.graphpipe.client.links import Reply, connected, is_quiet, too_large
from invoker.protocols.graphpipe.wire import LENGTH, NAMED
from invoker.tensors import LIMIT_BYTES, Code, Written


class RawLink:
    """A connection to a raw socket of a server, which is opened for the first request.

    Args:
        address: The address, without a ``target``.
        timeout_s: The limit in seconds of each wait: for the connection, for sending, for each part of the response.
        limit_bytes: Responses that announce more bytes are refused.
        tls: The TLS settings of a TCP connection; None: there is no TLS.
    """

    def __init__(
        self,
        address: Address,
        *,
        timeout_s: float = 60.0,
        limit_bytes: int = LIMIT_BYTES,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._limit_bytes = limit_bytes
        self._tls = None if address.socket else tls
        self._sock: socket.socket | None = None
        self._is_idle = self._is_cut = False

    @property
    def is_usable(self) -> bool:
        """Whether the last request was answered, and no bytes have come since then."""
        return self._is_idle and self._sock is not None and is_quiet(self._sock)

    def ask(self, written: Written) -> Reply:
        """Send a request, and wait for the response."""
        sock = self._sock = self._sock or self._connect()
        self._is_idle = False
        if self._is_cut:
            self.close()
            raise NotReached(f"{self._address}: the request was given up")
        try:
            is_whole = _send(sock, written)
            reply = Reply(_receive(sock, self._length(sock)))
        except BaseException as error:
            _disown(sock)
            self.close()
            if isinstance(error, OSError):
                raise lost(error, f"{self._address} gave no answer") from error
            raise
        self._is_idle = is_whole
        if not is_whole:
            self.close()
        return reply

    def abort(self) -> None:
        """Shut the connection down, so that `ask` in another thread fails."""
        self._is_cut = True
        if (sock := self._sock) is not None:
            _disown(sock)
            with contextlib.suppress(OSError):
                # not the method of the TLS socket, which changes state that the other thread uses
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection; the next `ask` opens another one."""
        self._is_idle = False
        sock, self._sock = self._sock, None
        if sock is not None:
            sock.close()

    def _length(self, sock: socket.socket) -> int:
        length: int = LENGTH.unpack(_receive(sock, LENGTH.size))[0]
        if length == 0:
            raise GraphPipeError(Code.MALFORMED, "the answer has no bytes")
        if length > self._limit_bytes:
            raise too_large(length, self._limit_bytes)
        return length

    def _connect(self) -> socket.socket:
        try:
            sock = connected(self._address, self._timeout_s, self._tls, begun=self._begin)
            if name := self._address.model.encode():
                sock.sendall(LENGTH.pack(NAMED | len(name)) + name)
            return sock
        except OSError as error:
            self.close()
            raise NotReached(f"{self._address} cannot be reached: {error}") from error

    def _begin(self, sock: socket.socket) -> None:
        """Keep the socket, so that `abort` can shut it down."""
        self._sock = sock
        if self._is_cut:
            raise ConnectionAbortedError("it was cut")


def _send(sock: socket.socket, written: Written) -> bool:
    """Send the whole request; False if the server closed the connection before, perhaps with an error response."""
    try:
        sock.sendall(LENGTH.pack(written.size))
        for piece in written.pieces:
            sock.sendall(piece)
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True


def _disown(sock: socket.socket) -> None:
    """Make the next close reset the connection.

    After an ordinary close the server would only see the end of the requests, and continue to compute.
    """
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _receive(sock: socket.socket, size: int) -> bytearray:
    body = bytearray(size)
    rest = memoryview(body)
    while rest:
        count = sock.recv_into(rest)
        if not count:
            raise ConnectionError(f"it closed the connection, and {len(rest)} bytes of {size} are missing")
        rest = rest[count:]
    return body
