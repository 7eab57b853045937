"""Clients of WebSocket that mean no good: floods, no frames, messages that never end, readers that do not read.

``ended`` says how many of the connections the victim has ended by itself.
"""

from __future__ import annotations

import os
import selectors
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from tests.attack.runner import Attack, Figures, Victim, main

SERVES = "tests.attack.functions"
PATH = "/kinds/ws"

_CONNECTIONS = 40
_BATCH = 500
_MASK = b"\0\0\0\0"


def framed(first: int, payload: bytes = b"", *, size: int | None = None, is_masked: bool = True) -> bytes:
    """A frame; ``size`` is what it says of its length."""
    told = len(payload) if size is None else size
    bit = 0x80 if is_masked else 0
    if told < 126:
        wide = bytes([bit | told])
    else:
        wide = bytes([bit | 126]) + told.to_bytes(2) if told < 1 << 16 else bytes([bit | 127]) + told.to_bytes(8)
    return bytes([first]) + wide + (_MASK if is_masked else b"") + payload


def handshake(path: str = PATH) -> bytes:
    """One that is right."""
    return (
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ).encode()


def _again(data: bytes) -> Iterator[bytes]:
    while True:
        yield data


def _begun(begin: bytes, more: bytes) -> Iterator[bytes]:
    yield begin
    yield from _again(more)


_DRAWS: dict[str, Callable[[], Iterator[bytes]]] = {
    "pings": lambda: _again(framed(0x89, b"?" * 125) * _BATCH),
    "pongs": lambda: _again(framed(0x8A) * _BATCH),
    "empty-fragments": lambda: _begun(framed(0x01), framed(0x00) * _BATCH),
    "endless": lambda: _begun(framed(0x02, b"x"), framed(0x00, bytes(8192))),
    "empty-texts": lambda: _again(framed(0x81) * _BATCH),
    "announcements": lambda: _again(framed(0x81, b'{"contentType":"a/b"}') * _BATCH),
    "unmasked": lambda: _again(framed(0x81, b'{"data":1}', is_masked=False) * _BATCH),
    "huge": lambda: _again(framed(0x82, bytes(100), size=1 << 62)),
    "bombs": lambda: _again(framed(0xC2, bytes(1000))),
    "deep": lambda: _again(framed(0x81, b'{"data":' + b"[" * 60_000)),
    "unread": lambda: _again(framed(0x81, b'{"data":"' + b"x" * 4096 + b'"}') * 8),
    "noise": lambda: iter(lambda: os.urandom(4096), b""),
}


def _attack(kind: str, victim: Victim, seconds: float) -> Figures:
    """Send as much as the victim takes, on some connections; nothing is read but on those that are over."""
    sent = ended = 0
    until_s = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for _ in range(_CONNECTIONS):
            _open(victim, kind, selector)
        while time.monotonic() < until_s:
            for key, _ in selector.select(0.05):
                sock, (source, left) = key.fileobj, key.data
                assert isinstance(sock, socket.socket)
                try:
                    left = left or next(source)
                    done = sock.send(left)
                    sent += done
                    selector.modify(sock, selectors.EVENT_WRITE, (source, left[done:]))
                except BlockingIOError:
                    continue
                except ConnectionError:
                    ended += 1
                    selector.unregister(sock)
                    sock.close()
                    if time.monotonic() < until_s:
                        _open(victim, kind, selector)
        for key in list(selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
    return {"sent": sent, "ended": ended}


def _open(victim: Victim, kind: str, selector: selectors.BaseSelector) -> None:
    with suppress(ConnectionError):
        sock = socket.create_connection(victim.http_host, timeout=5)
        sock.sendall(handshake())
        if kind not in ("unread", "pings"):  # else the answers are left where they are
            sock.settimeout(5)
            with suppress(TimeoutError):
                sock.recv(4096)
        sock.setblocking(False)
        selector.register(sock, selectors.EVENT_WRITE, (_DRAWS[kind](), b""))


ATTACKS: dict[str, Attack] = {kind: partial(_attack, kind) for kind in _DRAWS}

if __name__ == "__main__":
    main(ATTACKS, SERVES)
