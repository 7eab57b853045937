"""Connections to a server, which are kept for the next request.

A `Link` is one connection and carries one request at a time. `Links` keeps those that are idle; each request takes one
of them, or a new one, so that a client may be used by several threads at once. A connection that the server closed
meanwhile is noticed before it is used: a request is never sent a second time, since functions may have effects.
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
"""Idle connections of one client; more are closed after their request."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a server.

    Attributes:
        body: The bytes; no other code uses them, so arrays may be views on them.
        status: The HTTP status, and ``reason`` beside it; None from raw sockets, which have none.
        is_error: Whether a header says that the body is an error, whatever the status.
    """

    body: bytes | bytearray
    status: int | None = None
    reason: str = ""
    is_error: bool = False


class Link(Protocol):
    """A connection to a server; it has one request at a time."""

    @property
    def is_usable(self) -> bool:
        """Whether another request may be sent: the last request was answered, and the server has not closed."""

    def ask(self, written: Written) -> Reply:
        """Send a request and wait for the answer.

        Raises:
            NotReached: There was no connection.
            GraphPipeError: There is no answer, or it is too large.
        """

    def abort(self) -> None:
        """Cut the connection, from another thread: a thread that waits in `ask` gets an error at once."""

    def close(self) -> None:
        """Close the connection if it is open. Idempotent."""


class Links:
    """The connections of a client.

    Args:
        make: Makes a connection that is not yet open.
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
        """Give a connection back after its request, also after a failed one."""
        is_usable = link.is_usable
        with self._lock:
            if is_usable and not self._is_closed and len(self._idle) < _KEPT:
                self._idle.append(link)
                return
        link.close()

    def close(self) -> None:
        """Close the idle connections; the others are closed when they are given back. Idempotent."""
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
    """A connection; every wait on it is limited.

    Args:
        address: The address of the server.
        timeout_s: The limit of each wait.
        tls: Secures it; None: it stays plain.
        begun: Called with the connection before the TLS handshake, whose duration depends on the server.

    Raises:
        OSError: There is no connection, or it cannot be secured.
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
    """Whether an idle connection is still good: no bytes and no end have come on it."""
    poll = select.poll()
    try:
        poll.register(sock, select.POLLIN)
    except ValueError:  # the socket is closed
        return False
    return not poll.poll(0)


def too_large(size: int | str, limit_bytes: int, status: int | None = None) -> GraphPipeError:
    """Make the error of an answer that is too large (G-096)."""
    return GraphPipeError(
        Code.TOO_LARGE, f"the answer has {size} bytes, which exceeds the limit of {limit_bytes} bytes", status
    )


def _plain(address: Address, timeout_s: float) -> socket.socket:
    if not address.socket:
        made = socket.create_connection((address.host, address.port), timeout_s)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a request takes several writes
        return made
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(timeout_s)
        made.connect(address.socket)
    except BaseException:
        made.close()
        raise
    return made
