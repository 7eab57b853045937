"""Minimal clients on a connection that is kept: a POST by HTTP/1.1, and a buffer behind its length by bare TCP."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.bodies import OCTETS, WrongReplyError

_TIMEOUT_S = 300.0
_HEAD_BYTES = 1 << 16
_OCTETS = {"content-type": OCTETS}


class Got(NamedTuple):
    """A reply: its body, which the next reply overwrites, and the size of the whole reply with its head."""

    body: memoryview
    reply_bytes: int


class Post:
    """One connection to an HTTP server.

    Args:
        address: ``host:port``.
        body: The body of each request.
        path: The path of each request.
        headers: Headers besides host and content-length.
    """

    def __init__(
        self, address: str, body: bytes, *, path: str = "/graphpipe", headers: Mapping[str, str] = _OCTETS
    ) -> None:
        self._sock = connect(address)
        self._request = request(address, body, path=path, headers=headers)
        self._reply = bytearray(len(body) + _HEAD_BYTES)

    def path(self, address: str, body: bytes, path: str, headers: Mapping[str, str] = _OCTETS) -> None:
        """Send another request from now on."""
        self._request = request(address, body, path=path, headers=headers)

    def ask(self) -> Got:
        """Send the request and return the reply.

        Raises:
            WrongReplyError: The status is not 200, or the connection ends.
        """
        self._sock.sendall(self._request)
        got, end = 0, -1
        while end < 0:
            got += _received(self._sock, memoryview(self._reply)[got:])
            end = self._reply.find(b"\r\n\r\n", 0, got)
        body = end + 4
        until = body + length(bytes(self._reply[:body]))
        if until > len(self._reply):
            self._reply = self._reply[:got] + bytearray(until - got)
        view = memoryview(self._reply)
        while got < until:
            got += _received(self._sock, view[got:until])
        return Got(view[body:until], until)

    def close(self) -> None:
        """Close the socket."""
        self._sock.close()


class Framed:
    """One connection of GraphPipe's bare TCP, where a length precedes each buffer; it has the methods of `Post`."""

    def __init__(self, address: str, body: bytes) -> None:
        self._sock = connect(address)
        self._request = len(body).to_bytes(4, "little") + body
        self._reply = bytearray(len(body) + _HEAD_BYTES)

    def path(self, address: str, body: bytes, path: str, headers: Mapping[str, str] = _OCTETS) -> None:
        """Send another request from now on."""
        self._request = request(address, body, path=path, headers=headers)

    def ask(self) -> Got:
        """Send the request and return the reply.

        Raises:
            WrongReplyError: The connection ends.
        """
        self._sock.sendall(self._request)
        view, got, until = memoryview(self._reply), 0, 4
        while got < until:
            got += _received(self._sock, view[got:])
            if got >= 4:
                until = 4 + int.from_bytes(view[:4], "little")
        return Got(view[4:until], until)

    def close(self) -> None:
        """Close the socket."""
        self._sock.close()


def request(address: str, body: bytes, *, path: str = "/graphpipe", headers: Mapping[str, str] = _OCTETS) -> bytes:
    """Make a whole POST request."""
    lines = [f"POST {path} HTTP/1.1", f"Host: {address}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def length(head: bytes) -> int:
    """Return the content-length of a response head.

    Raises:
        WrongReplyError: The status is not 200, or there is no content-length.
    """
    status, *lines = head.lower().split(b"\r\n")
    found = [int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")]
    if status.split(b" ")[1] != b"200" or not found:
        raise WrongReplyError(f"not a reply: {head[:200]!r}")
    return found[0]


@dataclass(slots=True)
class _State:
    """One of several connections: bytes missing from the current reply, and requests left with the current one."""

    sock: socket.socket
    due: int
    left: int


def rate(address: str, whole: bytes, reply_bytes: int, *, connections: int, each: int) -> float:
    """Send requests over several connections, each with one in flight; return requests per second.

    Args:
        address: ``host:port``.
        whole: The bytes of one whole request.
        reply_bytes: The size of a whole reply, head included.
        connections: The number of connections.
        each: The number of requests of each connection.

    Raises:
        WrongReplyError: A reply has more bytes than ``reply_bytes``, or a connection ends.
    """
    socks = [connect(address) for _ in range(connections)]
    selector = selectors.DefaultSelector()
    for sock in socks:
        selector.register(sock, selectors.EVENT_READ, _State(sock, reply_bytes, each))
    began, left = time.perf_counter(), connections
    for sock in socks:
        sock.sendall(whole)
    while left:
        for key, _ in selector.select():
            state: _State = key.data
            state.due -= len(state.sock.recv(_HEAD_BYTES)) or reply_bytes + 1
            if state.due < 0:
                raise WrongReplyError("a reply is too long, or the connection ended")
            if state.due == 0:
                state.left -= 1
                if state.left:
                    state.due = reply_bytes
                    state.sock.sendall(whole)
                else:
                    left -= 1
                    selector.unregister(state.sock)
    took = time.perf_counter() - began
    for sock in socks:
        sock.close()
    return connections * each / took


def connect(address: str) -> socket.socket:
    """Connect to ``host:port`` with TCP_NODELAY."""
    host, _, port = address.rpartition(":")
    sock = socket.create_connection((host, int(port)), timeout=_TIMEOUT_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _received(sock: socket.socket, view: memoryview) -> int:
    count = sock.recv_into(view)
    if not count:
        raise WrongReplyError("the connection ended")
    return count
