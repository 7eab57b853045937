"""Slow clients: they bring nothing, or a head or a body byte by byte.

``ended`` says how many of the connections the victim ended within the time; its limits are those of `HttpSettings`, so
it takes more than half a minute until it has ended those that are late.
"""

from __future__ import annotations

import itertools
import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from tests.attack.runner import Attack, Figures, Victim, main

_CONNECTIONS = 500
_PAUSE_S = 0.2
_HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def _dripped(begin: bytes, drops: bytes) -> Iterator[bytes]:
    yield begin
    yield from (bytes([one]) for one in itertools.cycle(drops))


def _drip(kind: str, victim: Victim, seconds: float) -> Figures:
    ended, until_s = 0, time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for _ in range(_CONNECTIONS):
            sock = socket.create_connection(victim.http_host, timeout=5)
            sock.setblocking(False)
            selector.register(sock, selectors.EVENT_READ, _DROPS[kind]())
        while time.monotonic() < until_s and selector.get_map():
            for key in list(selector.get_map().values()):
                assert isinstance(key.fileobj, socket.socket)
                try:
                    with suppress(BlockingIOError):
                        key.fileobj.send(next(key.data))
                        if not key.fileobj.recv(65536):
                            raise ConnectionResetError
                except ConnectionError:
                    ended += 1
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
            time.sleep(_PAUSE_S)
        for key in list(selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
    return {"connections": _CONNECTIONS, "ended": ended}


_DROPS = {
    "silent": lambda: itertools.repeat(b""),
    "head": lambda: _dripped(_HEAD, b"X: 1\r\n"),
    "body": lambda: _dripped(_HEAD + b"Content-Length: 100000\r\n\r\n", b"1"),
    "chunks": lambda: _dripped(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n1\r\n"),
    "preface": lambda: _dripped(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\0\0\0\4\0\0\0\0\0"),
}

ATTACKS: dict[str, Attack] = {kind: partial(_drip, kind) for kind in _DROPS}

if __name__ == "__main__":
    main(ATTACKS)
