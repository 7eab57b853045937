"""Floods of requests that are short to write: GET of everything, handshakes, OPTIONS, queries that are dear to read.

python -m tests.attack.asks [NAME ...] [--seconds 5] [--tree DIR]

Twenty clients send one request behind the other, as fast as they go through, and read what comes; ``answers`` says how
many were answered with which status.
"""

from __future__ import annotations

import gzip
import itertools
import re
import selectors
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial

from tests.attack.memory import Peak
from tests.attack.runner import MIB, Attack, Figures, Victim, main
from tests.attack.sockets import handshake
from tests.attack.streams import FUNCTIONS, LINES, chunk

__all__ = ["ATTACKS", "FUNCTIONS"]

_CLIENTS = 20
_STATUS = re.compile(rb"HTTP/1\.1 (\d\d\d) ")


def _get(path: str, *more: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *more, "", ""]).encode("latin-1")


def _same(*data: bytes) -> Callable[[], Iterator[bytes]]:
    return lambda: itertools.repeat(b"".join(data))


def _numbered(make: Callable[[int], bytes]) -> Callable[[], Iterator[bytes]]:
    return lambda: map(make, itertools.count())


class _Client:
    def __init__(self, victim: Victim, parts: Iterator[bytes]) -> None:
        self.sock = socket.create_connection(victim.http_host, timeout=10)
        self.sock.setblocking(False)
        self._parts = parts
        self._left = b""

    def send(self) -> None:
        self._left = self._left or next(self._parts)
        self._left = self._left[self.sock.send(self._left) :]


def _flood(parts: Callable[[], Iterator[bytes]], victim: Victim, seconds: float) -> Figures:
    statuses: Counter[str] = Counter()
    until_s, ended = time.monotonic() + seconds, 0
    both = selectors.EVENT_READ | selectors.EVENT_WRITE
    with selectors.DefaultSelector() as selector, Peak(victim) as peak:
        for _ in range(_CLIENTS):
            client = _Client(victim, parts())
            selector.register(client.sock, both, client)
        while time.monotonic() < until_s:
            for key, events in selector.select(0.05):
                client = key.data
                try:
                    if events & selectors.EVENT_READ:
                        data = client.sock.recv(1 << 18)
                        statuses.update(one.decode() for one in _STATUS.findall(data))
                        if not data:
                            raise ConnectionResetError
                    if events & selectors.EVENT_WRITE:
                        client.send()
                except BlockingIOError:
                    continue
                except ConnectionError:
                    ended += 1
                    selector.unregister(client.sock)
                    client.sock.close()
                    client = _Client(victim, parts())
                    selector.register(client.sock, both, client)
        for key in list(selector.get_map().values()):
            key.data.sock.close()
    return {"peak MiB": peak.bytes // MIB, "ended": ended, **dict(sorted(statuses.items()))}


_ASK = ("Accept: text/event-stream", "Content-Type: application/json")
_KEYS = "&".join(f"{one:x}" for one in range(3300))
_NEAR = "&".join(f"valu{one:x}" for one in range(1700))


def _nested(size: int, times: int) -> bytes:
    data = b"\n" * size
    for _ in range(times):
        data = gzip.compress(data, 9)
    return data


def _packed(coding: str, make: Callable[[], bytes]) -> Callable[[], Iterator[bytes]]:
    """The body is made once, when the first client needs it."""
    lines = (f"Content-Type: {LINES}", f"Accept: {LINES}", f"Content-Encoding: {coding}", "Transfer-Encoding: chunked")
    request = cache(lambda: _get("/echo", *lines, method="POST") + chunk(make()) + b"0\r\n\r\n")
    return lambda: itertools.repeat(request())


def _zstd(log: int, size: int = 1 << 20) -> bytes:
    """A frame with a window of so many bits."""
    from backports import zstd

    options = {zstd.CompressionParameter.window_log: log, zstd.CompressionParameter.content_size_flag: 0}
    packer = zstd.ZstdCompressor(options=options)
    return packer.compress(b"\n" * size) + packer.flush()


_DRAWS: dict[str, Callable[[], Iterator[bytes]]] = {
    "safe": _same(_get("/page") * 50),
    "safe, no two alike": _numbered(lambda n: _get(f"/page?n={n}")),
    "functions": _same(_get("/functions") * 50),
    "openapi": _same(_get("/openapi.json", "Accept-Encoding: gzip") * 50),
    "invocations": _same(_get("/invocations") * 50),
    "invocations as events": _same(_get("/invocations", "Accept: text/event-stream")),
    "page": _same(_get("/", "Accept: text/html", "Accept-Encoding: gzip") * 50),
    "nobody": _numbered(lambda n: _get(f"/endles{n}") * 10),
    "handshakes": _same(handshake("/mute/ws") + b"\x88\x80\0\0\0\0"),
    "bad handshakes": _same(handshake("/nobody/ws")),
    "options": _same(_get("/echo", method="OPTIONS") * 50),
    "preflights": _same(
        _get("/echo", "Origin: https://a.example", "Access-Control-Request-Method: POST", method="OPTIONS") * 50
    ),
    "methods": _numbered(lambda n: _get("/echo", method=f"M{n}") * 20),
    "last event": _numbered(lambda n: _get("/endless", "Accept: text/event-stream", f"Last-Event-ID: {n}{'9' * 9000}")),
    "many keys": _numbered(lambda n: _get(f"/page?{_KEYS}&{n}")),
    "near keys": _numbered(lambda n: _get(f"/keyed?{_NEAR}&{n}")),
    "one key, many times": _numbered(lambda n: _get(f"/keyed?{'value=1&' * 1900}{n}")),
    "deep query": _numbered(lambda n: _get(f"/keyed?value={'[' * 14_000}&{n}")),
    "deep query, percent": _numbered(lambda n: _get(f"/keyed?value={'%5B' * 5_000}{n}")),
    "huge number": _numbered(lambda n: _get(f"/keyed?value=1{'9' * 15_000}&{n}")),
    "nested": _packed("gzip, gzip, gzip", lambda: _nested(64 << 20, 3)),
    "members": _packed("gzip", lambda: gzip.compress(b"") * 3000),
    "zstd window": _packed("zstd", lambda: _zstd(23, 64 << 20)),
    "zstd frames": _packed("zstd", lambda: _zstd(10, 0) * 5000),
}

ATTACKS: dict[str, Attack] = {name: partial(_flood, parts) for name, parts in _DRAWS.items()}

if __name__ == "__main__":
    main(ATTACKS, FUNCTIONS)
