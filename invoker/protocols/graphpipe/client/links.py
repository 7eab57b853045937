"""A pool of connections to a server.

A `Link` is one connection, with one request at a time. `Links` keeps the idle ones; each request takes one of these, or
a new one, so several threads can use a client at once. An idle connection is checked before it is used, since the
server may have closed it: a request is never sent twice, since functions may have side effects.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from invoker.protocols.graphpipe.client.addresses import Address
from invoker.protocols.graphpipe.client.failure import GraphPipeError
from invoker.tensors import Code, Written

_KEPT: Final = 8
"""How many idle connections a client keeps; further ones are closed after their request."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The response of a server.

    Attributes:
        body: The bytes; only the reader of the response uses them, so arrays can be views on them.
        status: The HTTP status, whose text is ``reason``; None for raw sockets.
        is_error: Whether a header marks the body as an error, even if the status is 200.
    """

    body: bytes | bytearray
    status: int | None = None
    reason: str = ""
    is_error: bool = False


class Link(Protocol):
    """A connection to a server, with one request at a time."""

    @property
    def is_usable(self) -> bool:
        """Whether another request can be sent: the last one was answered, and the connection is not closed."""

    def ask(self, written: Written) -> Reply:
        """Send a request, and wait for the response.

        Raises:
            NotReached: There is no connection.
            GraphPipeError: There is no response, or it is too large.
        """

    def abort(self) -> None:
        """Shut the connection down from another thread; a thread in `ask` gets an error at once."""

    def close(self) -> None:
        """Close the connection if it is open. Idempotent."""


class Links:
    """The pool of a client's connections.

    Args:
        make: Makes a `Link` that is not connected yet.
    """

    def __init__(self, make: Callable[[], Link]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._idle: list[Link] = []
        self._is_closed = False

    def take(self) -> Link:
        """Take an idle connection, or make one.

        Raises:
            RuntimeError: The client is closed.
        """
        while True:
            with self._lock:
                if self._is_closed:
                    raise RuntimeError("the client is closed")
                link = self._idle.pop() if self._idle else None
            if link is None:
                return self._make()
            if link.is_usable:
                return link
            link.close()

    def give(self, link: Link) -> None:
        """Return a connection after its request, even if the request failed."""
        is_usable = link.is_usable
        with self._lock:
            if is_usable and not self._is_closed and len(self._idle) < _KEPT:
                self._idle.append(link)
                return
        link.close()

    def close(self) -> None:
        """Close the idle connections; the others are closed when they are returned. Idempotent."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for link in idle:
            link.close()


def connected(
    address: Address,
    timeout_s: float,
    tls: ssl.SSLContext | None = None,
    *,
    begun: Callable[[socket.socket], None] | None = None,
) -> socket.socket:
    """Open a connection, with a time limit for every wait.

    Args:
        address: The address of the server.
        timeout_s: The limit of each wait, in seconds.
        tls: The TLS settings; None: there is no TLS.
        begun: Called with the socket before the TLS handshake, so that the caller can abort it.

    Raises:
        OSError: There is no connection, or the TLS handshake failed.
    """
    plain = _plain(address, timeout_s)
    if tls is None:
        return plain
    try:
        secured = tls.wrap_socket(plain, server_hostname=address.host or None, do_handshake_on_connect=False)
    except BaseException:
        plain.close()
        raise
    try:
        if begun is not None:
            begun(secured)
        secured.do_handshake()
    except BaseException:
        secured.close()
        raise
    return secured


def is_quiet(sock: socket.socket) -> bool:
    """Whether an idle connection can be used: neither bytes nor an end have come."""
    poll = select.poll()
    try:
        poll.register(sock, select.POLLIN)
    except ValueError:  # the socket is closed
        return False
    return not poll.poll(0)


def too_large(size: int | str, limit_bytes: int, status: int | None = None) -> GraphPipeError:
    """Make the error for a response that is too large (G-096)."""
    return GraphPipeError(
        Code.TOO_LARGE, f"the answer has {size} bytes, which exceeds the limit of {limit_bytes} bytes", status
    )


def _plain(address: Address, timeout_s: float) -> socket.socket:
    if not address.socket:
        made = socket.create_connection((address.host, address.port), timeout_s)
        # sends each write at once, since a request takes several
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(timeout_s)
        made.connect(address.socket)
    except BaseException:
        made.close()
        raise
    return made
