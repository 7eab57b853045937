"""The client of streams by HTTP and WebSocket: raw sockets and one epoll, in a pinned process.

It compares every byte of every body and of every message with the expected one. The kinds of plan are:

- items: each connection requests one stream after another; ``p50`` and ``p99`` are of the time to the first item.
- lines: each connection sends lines of JSON in one request and gets them back, with ``window`` lines in flight.
- talk: each connection sends messages of a WebSocket and gets them back, with ``window`` messages in flight; ``p50``
  and ``p99`` are of the time to a reply.

Usage: ``python -m benchmarks.streamers`` with a plan in JSON on stdin; the last line on stdout is JSON.
"""

from __future__ import annotations

import base64
import gc
import json
import os
import selectors
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Protocol

from benchmarks import items
from benchmarks.bodies import JSON, WrongReplyError
from benchmarks.client import START_TO_WARM, summary
from benchmarks.http1 import connect, request
from benchmarks.servers import DRIVER_CORE, pinned
from benchmarks.wire import chunk, masked, unchunked, unmasked

_READ_BYTES = 1 << 18
_SILENCE_S = 20.0
_COMMENT = b":\n\n"
_CLOSED = b"\x88\x02\x03\xe8"


@dataclass(frozen=True, slots=True)
class Plan:
    """The kind and the amount of requests.

    ``each`` is the number of items per stream, or of messages per connection; ``calls`` is the number of all streams.
    """

    kind: str
    address: str
    path: str
    form: str
    connections: int
    calls: int
    each: int
    window: int = 1


def run(plan: Plan) -> dict[str, float]:
    """Run a plan in a pinned process; return ``seconds`` of all, and ``p50`` and ``p99`` in microseconds.

    Raises:
        WrongReplyError: The server sent other bytes than expected.
    """
    command = pinned(DRIVER_CORE, [sys.executable, "-m", "benchmarks.streamers"])
    asked = json.dumps(asdict(plan))
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise WrongReplyError(done.stderr.strip().rpartition("\n")[2][-300:])
    found: dict[str, float] = json.loads(done.stdout)
    return found


class Peer(Protocol):
    """One connection of a plan."""

    sock: socket.socket

    def begin(self) -> None:
        """Send the first bytes."""

    def arrived(self, data: bytes, now: float) -> bool:
        """Handle received bytes and send the next ones; return whether the connection is done."""


@dataclass(slots=True)
class Items:
    """Requests streams one after another, and compares each as a whole."""

    sock: socket.socket
    asked: bytes
    expected: bytes
    left: int
    took: list[float]
    first: bytes = b""
    _data: bytearray = field(default_factory=bytearray)
    _began: float = 0.0
    _seen: bool = False

    def begin(self) -> None:
        """Request a stream."""
        self._seen = False
        self._began = perf_counter()
        self.sock.sendall(self.asked)

    def arrived(self, data: bytes, now: float) -> bool:
        """Time the first item; after the last chunk, compare the stream and request the next."""
        self._data += data
        if not self._seen and self.first in self._data:
            self._seen = True
            self.took.append(now - self._began)
        if not self._data.endswith(b"\r\n0\r\n\r\n"):
            return False
        compare(self._data, self.expected)
        self._data = bytearray()
        self.left -= 1
        if self.left:
            self.begin()
        return not self.left


@dataclass(slots=True)
class Lines:
    """Sends lines in one request, and gets them back."""

    sock: socket.socket
    asked: bytes
    left: int
    window: int
    count: int = 0
    _data: bytearray = field(default_factory=bytearray)

    def begin(self) -> None:
        """Send the request head and the first lines."""
        self.count = self.left
        self.sock.sendall(self.asked)
        self._send(min(self.window, self.left))

    def arrived(self, data: bytes, now: float) -> bool:
        """Send as many lines as came back, and the last chunk after the last line."""
        del now
        is_cut = data[:1] == b"\n" and self._data.endswith(b"}")
        self._data += data
        if self._data.endswith(b"\r\n0\r\n\r\n"):
            compare(self._data, items.LINE * self.count)
            return True
        self._send(min(data.count(b"}\n") + is_cut, self.left))
        return False

    def _send(self, count: int) -> None:
        if count:
            self.left -= count
            self.sock.sendall(_LINE * count + (b"" if self.left else b"0\r\n\r\n"))


@dataclass(slots=True)
class Talk:
    """Sends messages on one WebSocket, and gets them back."""

    sock: socket.socket
    asked: bytes
    left: int
    window: int
    took: list[float]
    due: int = 0
    _is_open: bool = False
    _data: bytes = b""
    _began: float = 0.0

    def begin(self) -> None:
        """Send the WebSocket handshake."""
        self.due = self.left
        self.sock.sendall(self.asked)

    def arrived(self, data: bytes, now: float) -> bool:
        """Send as many messages as came back; when all are back, send the end message and wait for the close."""
        self._data += data
        if not self._is_open:
            head, found, rest = self._data.partition(b"\r\n\r\n")
            if not found:
                return False
            if b" 101 " not in head or rest:
                raise WrongReplyError(f"not a WebSocket handshake: {self._data[:200]!r}")
            self._data, self._is_open = b"", True
            self._send(min(self.window, self.left))
            return False
        count = min(len(self._data) // len(_TOLD), self.due)
        if count:
            came, self._data = self._data[: count * len(_TOLD)], self._data[count * len(_TOLD) :]
            if came != _TOLD * count:
                raise WrongReplyError(f"not the expected messages: {came[:200]!r}")
            self.took.append(now - self._began)
            self.due -= count
            self._send(min(count, self.left))
            if not self.due:
                self.sock.sendall(masked(items.END_SAID))
        if self.due or not self._data.endswith(_CLOSED):
            return False
        if self._data != unmasked(items.END_TOLD) + _CLOSED:
            raise WrongReplyError(f"not the expected end: {self._data[:200]!r}")
        return True

    def _send(self, count: int) -> None:
        if count:
            self.left -= count
            self._began = perf_counter()
            self.sock.sendall(_SAID * count)


_LINE, _SAID, _TOLD = chunk(items.LINE), masked(items.SAID), unmasked(items.TOLD)


def compare(data: bytes | bytearray, expected: bytes) -> None:
    """Compare the body of a whole chunked response with ``expected``; comments between events are ignored.

    Raises:
        WrongReplyError: The body differs, the status is not 200, or the response is not chunked.
    """
    head, _, _ = data.partition(b"\r\n\r\n")
    if b" 200 " not in head[:20] or b"chunked" not in head.lower():
        raise WrongReplyError(f"not a stream: {bytes(data[:300])!r}")
    body = unchunked(data, len(head) + 4).replace(_COMMENT, b"")
    if body != expected:
        at = next((at for at, (one, other) in enumerate(zip(body, expected, strict=False)) if one != other), -1)
        raise WrongReplyError(f"{len(body)} bytes, {len(expected)} expected; they differ at {at}: {body[at:][:80]!r}")


def drive(peers: Sequence[Peer]) -> float:
    """Run all connections until each is done; return the seconds.

    Raises:
        WrongReplyError: A connection ends too soon, or nothing is received for 20 s.
    """
    selector = selectors.DefaultSelector()
    for peer in peers:
        selector.register(peer.sock, selectors.EVENT_READ, peer)
    began, left = perf_counter(), len(peers)
    for peer in peers:
        peer.begin()
    while left:
        ready = selector.select(_SILENCE_S)
        if not ready:
            raise WrongReplyError(f"nothing was received for {_SILENCE_S:g} s")
        for key, _ in ready:
            data = key.data.sock.recv(_READ_BYTES)
            if not data:
                raise WrongReplyError("the connection ended")
            if key.data.arrived(data, perf_counter()):
                left -= 1
                selector.unregister(key.data.sock)
    return perf_counter() - began


def peers(plan: Plan, took: list[float]) -> list[Peer]:
    """Open the connections of a plan; ``took`` gets the measured seconds."""
    socks = [connect(plan.address) for _ in range(plan.connections)]
    if plan.kind == "items":
        headers = {"content-type": JSON, "accept": plan.form}
        asked = request(plan.address, b"%d" % plan.each, path=plan.path, headers=headers)
        expected, first = items.streamed(plan.form, plan.each), items.encoded(items.item(0))
        share = plan.calls // plan.connections
        return [Items(sock, asked, expected, share, took, first) for sock in socks]
    if plan.kind == "lines":
        asked = _head(plan, "POST", {"content-type": plan.form, "accept": plan.form, "transfer-encoding": "chunked"})
        return [Lines(sock, asked, plan.each, plan.window) for sock in socks]
    key = base64.b64encode(os.urandom(16)).decode()
    more = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13", "sec-websocket-key": key}
    return [Talk(sock, _head(plan, "GET", more), plan.each, plan.window, took) for sock in socks]


def _head(plan: Plan, method: str, headers: dict[str, str]) -> bytes:
    lines = [f"{method} {plan.path} HTTP/1.1", f"Host: {plan.address}", *(f"{a}: {b}" for a, b in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def main() -> int:
    """Run the plan given on stdin, and print the figures in JSON."""
    plan = Plan(**json.load(sys.stdin))
    took: list[float] = []
    gc.disable()
    seconds = drive(peers(plan, took))
    warm = took[len(took) // START_TO_WARM :]
    print(json.dumps({"seconds": seconds, **(summary(warm) if len(warm) > 1 else {})}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
