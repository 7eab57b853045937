"""Streams over HTTP that cost more than they bring: nobody reads them, or their bodies are made to be held or slow.

python -m tests.attack.streams [NAME ...] [--seconds 5] [--tree DIR]

Figures: the most memory while it lasted, memory afterwards, statuses, and what the victim was sent. `MEMORY` lists
those whose bytes have to be counted against INVOKER_MEMORY_BYTES.
"""

from __future__ import annotations

import gzip
import selectors
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from h2.config import H2Configuration
from h2.connection import H2Connection

from tests.attack.memory import Peak, settled
from tests.attack.runner import MIB, Attack, Figures, Victim, main

FUNCTIONS = "tests.attack.streaming"

LINES = "application/x-ndjson"
FORM = "multipart/form-data; boundary=b"
_PART = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n'


def chunk(data: bytes) -> bytes:
    """A chunk of HTTP/1.1."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def head(function: str, *more: str, body: str = LINES, accept: str = LINES, method: str = "POST") -> bytes:
    """The head of a request whose body comes in chunks."""
    lines = [f"{method} /{function} HTTP/1.1", "Host: localhost", f"Accept: {accept}", *more]
    if method == "POST":
        lines += [f"Content-Type: {body}", "Transfer-Encoding: chunked"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


_QUIET_S = 0.5


@contextmanager
def _opened(victim: Victim, count: int) -> Iterator[list[socket.socket]]:
    socks: list[socket.socket] = []
    try:
        for _ in range(count):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.settimeout(20)
            sock.connect(victim.http_host)
            socks.append(sock)
        yield socks
    finally:
        for sock in socks:
            sock.close()


class _Sender:
    """One connection's bytes: a head, then the same again and again."""

    def __init__(self, begin: bytes, part: bytes, most: int) -> None:
        self._begin, self._part, self._most = begin, memoryview(part), most
        self._at = self.sent = 0

    def send(self, sock: socket.socket) -> bool:
        """Send what goes through; whether there is more."""
        if self._begin:
            self._begin = self._begin[sock.send(self._begin) :]
            return True
        count = sock.send(self._part[self._at :])
        self._at = (self._at + count) % len(self._part)
        self.sent += count
        return self.sent < self._most


class _Rest:
    """Tells whether a victim has neither said nor done anything for a moment."""

    def __init__(self, victim: Victim) -> None:
        self._victim = victim
        self._since_s, self._cpu_s = time.monotonic(), victim.cpu_s

    def disturb(self) -> None:
        """Note that the victim has said something."""
        self._since_s = time.monotonic()

    def is_long(self) -> bool:
        """Whether it rests for long enough to say that it has nothing left to do."""
        if (used_s := self._victim.cpu_s) > self._cpu_s:
            self._cpu_s = used_s
            self.disturb()
        return time.monotonic() - self._since_s > _QUIET_S


def _blast(
    count: int, begin: bytes, part: bytes, most: int, victim: Victim, seconds: float, *, reads: bool = True
) -> Figures:
    """So many clients send a head, then the same again and again, as fast as it goes through.

    Those who have sent all wait until the victim has answered, and for a moment has neither said nor done anything.
    """
    statuses: Counter[str] = Counter()
    rest = _Rest(victim)
    until_s = time.monotonic() + seconds
    with _opened(victim, count) as socks, selectors.DefaultSelector() as selector, Peak(victim) as peak:
        both = selectors.EVENT_READ | selectors.EVENT_WRITE if reads else selectors.EVENT_WRITE
        senders = {sock: _Sender(begin, part, most) for sock in socks}
        sending = set(socks)
        for sock in socks:
            sock.setblocking(False)
            selector.register(sock, both)
        while time.monotonic() < until_s and selector.get_map():
            if not sending and statuses and rest.is_long():
                break
            for key, events in selector.select(0.05):
                sock = key.fileobj
                assert isinstance(sock, socket.socket)
                try:
                    if events & selectors.EVENT_READ:
                        rest.disturb()
                        data = sock.recv(65536)
                        if data.startswith(b"HTTP/1.1 "):
                            statuses[data[9:12].decode()] += 1
                        if not data:
                            raise ConnectionResetError
                    if events & selectors.EVENT_WRITE and not senders[sock].send(sock):
                        sending.discard(sock)
                        selector.modify(sock, selectors.EVENT_READ)
                except BlockingIOError:
                    continue
                except ConnectionError:
                    statuses["ended"] += 1
                    sending.discard(sock)
                    selector.unregister(sock)
    after, _ = settled(victim)
    sent = sum(one.sent for one in senders.values())
    figures: Figures = {"peak MiB": peak.bytes // MIB, "after MiB": after // MIB, "sent MiB": sent // MIB}
    return {**figures, **dict(sorted(statuses.items()))}


def _unread(count: int, function: str, victim: Victim, seconds: float, *, method: str = "GET") -> Figures:
    """So many clients ask for a stream, and read nothing of it."""
    with _opened(victim, count) as socks, Peak(victim) as peak:
        for sock in socks:
            sock.sendall(head(function, method=method) + (b"0\r\n\r\n" if method == "POST" else b""))
        time.sleep(seconds)
    after, _ = settled(victim)
    return {"peak MiB": peak.bytes // MIB, "after MiB": after // MIB}


def _windows(count: int, window: int, victim: Victim, seconds: float) -> Figures:
    """So many connections of HTTP/2 with a hundred streams each, which have no or tiny windows."""
    with _opened(victim, count) as socks, Peak(victim) as peak:
        for sock in socks:
            h2 = H2Connection(H2Configuration(client_side=True))
            h2.local_settings.initial_window_size = window
            h2.local_settings.acknowledge()  # else it would not be told
            h2.initiate_connection()
            for stream in range(1, 201, 2):
                fields = [(":method", "GET"), (":path", "/endless"), (":scheme", "http"), (":authority", "localhost")]
                h2.send_headers(stream, [*fields, ("accept", LINES)], end_stream=True)
            sock.sendall(h2.data_to_send())
        time.sleep(seconds)
    after, _ = settled(victim)
    return {"peak MiB": peak.bytes // MIB, "after MiB": after // MIB}


_MANY = 1 << 40


def _sends(count: int, begin: bytes, part: bytes, most: int = _MANY) -> Attack:
    return partial(_blast, count, begin, part, most)


def _accepts() -> bytes:
    """Requests with lists of 1000 media types, no two alike."""
    lists = (",".join(f"a/b{one};q=0.{number}" for one in range(1000)) for number in range(10, 60))
    return b"".join(head("endless", accept=f"{one},{LINES};q=0.1", method="HEAD") for one in lists)


MEMORY: dict[str, Attack] = {
    "line": _sends(100, head("echo"), chunk(b"x" * 60_000), 3 * MIB),
    "text": _sends(100, head("echo", body="text/plain"), chunk(b"x" * 60_000), 3 * MIB),
    "part": _sends(100, head("pair", body=FORM), chunk(_PART) + chunk(b"x" * 60_000) * 100, 3 * MIB),
    "part of CR": _sends(60, head("pair", body=FORM), chunk(_PART) + chunk(b"\r" * 60_000) * 100, 3 * MIB),
}
"""Items of 3 MiB that never end."""

ATTACKS: dict[str, Attack] = {
    **MEMORY,
    "blank": _sends(20, head("echo"), chunk(b"\n" * 60_000)),
    "blank text": _sends(50, head("slow", body="text/plain"), chunk(b"\n" * 60_000)),
    "no member": _sends(20, head("pair"), chunk(b"{}\n" * 20_000)),
    "tiny": _sends(100, head("slow"), chunk(b'""\n' * 20_000)),
    "tiny sync": _sends(100, head("slow_sync"), chunk(b'""\n' * 20_000)),
    "pieces": _sends(50, head("slow_pieces", body="application/octet-stream"), chunk(b"x" * 60_000)),
    "chunks": _sends(20, head("slow_pieces", body="application/octet-stream"), chunk(b"x") * 10_000),
    "parts": _sends(10, head("pair", body=FORM), chunk(_PART + b"1\r\n") * 100),
    "part heads": _sends(20, head("pair", body=FORM), chunk(b"--b\r\n") + chunk(b"X: y" * 15_000) * 100),
    "boundaries": _sends(20, head("pair", body=FORM), chunk(_PART) + chunk(b"\r\n--" * 15_000) * 100),
    "packed": _sends(20, head("echo", "Content-Encoding: gzip"), chunk(gzip.compress(b"\n" * (16 << 20)))),
    "packed line": _sends(20, head("echo", "Content-Encoding: gzip"), chunk(gzip.compress(b"x" * (16 << 20)))),
    "accept": _sends(20, b"", _accepts()),
    "unread": partial(_unread, 500, "endless"),
    "unread sync": partial(_unread, 300, "endless_sync"),
    "unread huge": partial(_unread, 10, "huge", method="POST"),
    "window 0": partial(_windows, 5, 0),
    "window 1": partial(_windows, 5, 1),
}

if __name__ == "__main__":
    main(ATTACKS, FUNCTIONS)
