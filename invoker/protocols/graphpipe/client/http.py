"""`HttpLink`: sends requests by HTTP/1.1, over TCP, TLS or a Unix socket.

The end of a response's body is determined by its length, its last chunk, or the end of the connection (G-111).
Redirects are not followed, and proxies from environment variables are not used, since models are usually on the same
network.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import io
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from invoker.message import EMPTY
from invoker.protocols.graphpipe.client.addresses import Address
from invoker.protocols.graphpipe.client.failure import GraphPipeError, NotReached, lost
from invoker.protocols.graphpipe.client.links import Reply, connected, is_quiet, too_large
from invoker.protocols.graphpipe.wire import ERROR_HEADER, OCTETS
from invoker.tensors import LIMIT_BYTES, Written

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CHUNK_BYTES = 256 << 10
_HEADS_BYTES = 1 << 20
"""How many bytes may come in addition to a body: headers, sizes of chunks, interim responses."""
_HEADERS = {"accept": f"{OCTETS}, */*;q=0.5", "content-type": OCTETS}


class HttpLink:
    """A connection to an HTTP server, which is opened for the first request.

    Args:
        address: The address, with a ``target``.
        timeout_s: The limit in seconds of each wait: for the connection, for sending, for each part of the response.
        limit_bytes: Larger responses are refused as soon as their size is known.
        headers: The headers of each request.
        tls: The TLS settings for https; None: the certificate authorities of this machine are trusted.
    """

    def __init__(
        self,
        address: Address,
        *,
        timeout_s: float = 60.0,
        limit_bytes: int = LIMIT_BYTES,
        headers: Mapping[str, str] = EMPTY,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._limit_bytes = limit_bytes
        self._headers = _HEADERS | {name.lower(): value for name, value in headers.items()}
        self._tls = (tls or ssl.create_default_context()) if address.is_tls else None
        self._connection: http.client.HTTPConnection | None = None
        # kept here, since http.client drops its socket if the server announces a close
        self._sock: socket.socket | None = None
        self._is_idle = self._is_cut = False

    @property
    def is_usable(self) -> bool:
        """Whether the connection is open, and no bytes have come since the last response."""
        return self._is_idle and self._sock is not None and is_quiet(self._sock)

    def ask(self, written: Written) -> Reply:
        """Send a request by POST, and wait for the response."""
        connection = self._connection = self._connection or self._connect()
        self._is_idle = False
        if self._is_cut:
            self.close()
            raise NotReached(f"{self._address}: the request was given up")
        try:
            is_whole = self._send(connection, written)
            with _understood(connection) as response:
                reply = self._read(response)
                self._is_idle = is_whole and not response.will_close
        except BaseException as error:
            self.close()
            if isinstance(error, OSError | http.client.HTTPException):
                raise lost(error, f"{self._address} gave no answer") from error
            raise
        if not self._is_idle:
            self.close()
        if self._is_cut:  # a body without a length looks complete after `abort`
            raise lost(ConnectionAbortedError("it was cut"), f"{self._address} gave no answer")
        return reply

    def abort(self) -> None:
        """Shut the connection down, so that `ask` in another thread fails."""
        self._is_cut = True
        if (sock := self._sock) is not None:
            with contextlib.suppress(OSError):
                # not the method of the TLS socket, which changes state that the other thread uses
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection; the next `ask` opens another one."""
        self._is_idle = False
        connection, self._connection = self._connection, None
        self._sock = None
        if connection is not None:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        address = self._address
        host = "localhost" if address.socket else address.host
        made = http.client.HTTPConnection(host, address.port or None, timeout=self._timeout_s)
        most_bytes = 2 * self._limit_bytes + _HEADS_BYTES
        # a partial of the class
        made.response_class = functools.partial(_Response, most_bytes=most_bytes)  # type: ignore[assignment]
        made.auto_open = 0  # otherwise http.client would reconnect on its own, without TLS
        try:
            made.sock = self._sock = connected(address, self._timeout_s, self._tls, begun=self._begin)
        except OSError as error:
            self._sock = None
            raise NotReached(f"{address} cannot be reached: {error}") from error
        return made

    def _begin(self, sock: socket.socket) -> None:
        """Keep the socket, so that `abort` can shut it down."""
        self._sock = sock
        if self._is_cut:
            raise ConnectionAbortedError("it was cut")

    def _send(self, connection: http.client.HTTPConnection, written: Written) -> bool:
        """Send the whole request; False if the server closed the connection before, perhaps with an error response."""
        skip_host = "host" in self._headers
        connection.putrequest("POST", self._address.target, skip_host=skip_host, skip_accept_encoding=True)
        for name, value in self._headers.items():
            connection.putheader(name, value)
        connection.putheader("content-length", str(written.size))
        try:
            connection.endheaders()
            for piece in written.pieces:
                connection.send(piece)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def _read(self, response: http.client.HTTPResponse) -> Reply:
        status, length, limit = response.status, response.length, self._limit_bytes
        coding = response.getheader("content-encoding", "identity")
        if coding.lower() != "identity":
            raise GraphPipeError(None, f"the answer is compressed with {coding!r}, which was not asked for", status)
        if length is not None and length > limit:
            raise too_large(length, limit, status)
        body = _read_some(response, limit) if length is None else _read_exactly(response, length)
        if len(body) > limit:
            raise too_large(f"more than {limit}", limit, status)
        is_error = response.getheader(ERROR_HEADER) is not None
        return Reply(body, status, response.reason, is_error)


@contextlib.contextmanager
def _understood(connection: http.client.HTTPConnection) -> Iterator[http.client.HTTPResponse]:
    """A context for reading a response, in which a malformed number is reported as a violation of HTTP."""
    try:
        with connection.getresponse() as response:
            yield response
    except ValueError as error:
        raise http.client.HTTPException(f"it is not HTTP: {error}") from error


class _Response(http.client.HTTPResponse):
    """A response of limited size; without the limit, the library accepts chunks of -1 bytes and endless lines."""

    def __init__(
        self,
        sock: socket.socket,
        debuglevel: int = 0,
        method: str | None = None,
        url: str | None = None,
        *,
        most_bytes: int,
    ) -> None:
        super().__init__(sock, debuglevel, method, url)
        self.fp = io.BufferedReader(_Counted(self.fp.detach(), most_bytes))


class _Counted(io.RawIOBase):
    """Reads the bytes of a socket, up to a limit."""

    def __init__(self, raw: io.RawIOBase, most_bytes: int) -> None:
        self._raw = raw
        self._left = most_bytes

    def readable(self) -> bool:
        """Return True: the response is read from this object."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        """Read some bytes of the response into a buffer."""
        count = self._raw.readinto(buffer)
        self._left -= count or 0
        if self._left < 0:
            raise http.client.HTTPException("the answer does not end")
        return count

    def close(self) -> None:
        """Close the file, and release the socket."""
        self._raw.close()
        super().close()


def _read_exactly(response: http.client.HTTPResponse, length: int) -> bytearray:
    """Read a body of known length into one buffer."""
    body = bytearray(length)
    rest = memoryview(body)
    while rest:
        count = response.readinto(rest)
        if not count:
            raise http.client.IncompleteRead(b"", len(rest))
        rest = rest[count:]
    return body


def _read_some(response: http.client.HTTPResponse, limit_bytes: int) -> bytearray:
    """Read a body of unknown length; stop as soon as it is too large."""
    body = bytearray()
    while len(body) <= limit_bytes and (part := response.read(_CHUNK_BYTES)):
        body += part
    return body
