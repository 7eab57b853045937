"""Clients that do next to nothing: a POST over a connection that is kept, and a buffer behind its length."""

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
    """A reply: its body, which the next reply overwrites, and the bytes of all of it."""

    body: memoryview
    reply_bytes: int


class Post:
    """One connection to an HTTP server.

    Args:
        address: ``host:port``.
        body: What is posted each time.
        path: Where to.
        headers: Others than those of any request.
    """

    def __init__(
        self, address: str, body: bytes, *, path: str = "/graphpipe", headers: Mapping[str, str] = _OCTETS
    ) -> None:
        self._sock = connect(address)
        self._request = request(address, body, path=path, headers=headers)
        self._reply = bytearray(len(body) + _HEAD_BYTES)

    def ask(self) -> Got:
        """Send the request and wait for the reply.

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
        """Close the connection."""
        self._sock.close()


class Framed:
    """One connection to a socket that takes each buffer behind its length; with the methods of `Post`."""

    def __init__(self, address: str, body: bytes) -> None:
        self._sock = connect(address)
        self._request = len(body).to_bytes(4, "little") + body
        self._reply = bytearray(len(body) + _HEAD_BYTES)

    def ask(self) -> Got:
        """Send the request and wait for the reply.

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
        """Close the connection."""
        self._sock.close()


def request(address: str, body: bytes, *, path: str = "/graphpipe", headers: Mapping[str, str] = _OCTETS) -> bytes:
    """A whole request."""
    lines = [f"POST {path} HTTP/1.1", f"Host: {address}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def length(head: bytes) -> int:
    """Bytes of the body that a head announces.

    Raises:
        WrongReplyError: The status is not 200, or there is no length.
    """
    status, *lines = head.lower().split(b"\r\n")
    found = [int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")]
    if status.split(b" ")[1] != b"200" or not found:
        raise WrongReplyError(f"not a reply: {head[:200]!r}")
    return found[0]


@dataclass(slots=True)
class _State:
    """A connection of several: bytes that are due of its reply, requests that are left with this one."""

    sock: socket.socket
    due: int
    left: int


def rate(address: str, whole: bytes, reply_bytes: int, *, connections: int, each: int) -> float:
    """Requests a second over several connections, each with one under way.

    Args:
        address: ``host:port``.
        whole: A request as it is sent.
        reply_bytes: Of a whole reply, head included.
        connections: How many.
        each: Requests of each.

    Raises:
        WrongReplyError: Other numbers of bytes came.
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
                raise WrongReplyError("more came than a reply, or the end")
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
    """A connection that sends at once."""
    host, _, port = address.rpartition(":")
    sock = socket.create_connection((host, int(port)), timeout=_TIMEOUT_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _received(sock: socket.socket, view: memoryview) -> int:
    count = sock.recv_into(view)
    if not count:
        raise WrongReplyError("the connection ended")
    return count
