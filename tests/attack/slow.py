"""Clients that read 4 KiB a second of SSE or NDJSON, and then leave.

python -m tests.attack.slow [NAME ...] [--seconds 5] [--tree DIR]

A hundred at once, of values of 9 MB or of 64 KiB. Figures: the most memory, memory just before they leave and ten
seconds after, and how many responses had ended by then.
"""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from functools import partial

from tests.attack.memory import Peak, settled
from tests.attack.runner import MIB, Attack, Figures, Victim, main

FUNCTIONS = "tests.attack.mixed"

_READERS = 100
_PIECE = 4096
_FEW_MIB = 150


def _opened(victim: Victim, path: str, accept: str) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _PIECE)
    sock.settimeout(20)
    sock.connect(victim.http_host)
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n".encode())
    sock.setblocking(False)
    return sock


def _has_ended(sock: socket.socket) -> bool:
    """Read a piece, if there is one; whether there is none any more."""
    try:
        return not sock.recv(_PIECE)
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def _slow(path: str, accept: str, victim: Victim, seconds: float) -> Figures:
    with ExitStack() as stack, Peak(victim) as peak:
        socks = [stack.enter_context(_opened(victim, path, accept)) for _ in range(_READERS)]
        ended: set[socket.socket] = set()
        until_s = time.monotonic() + seconds
        while (now_s := time.monotonic()) < until_s:
            ended.update(one for one in socks if one not in ended and _has_ended(one))
            time.sleep(max(0.0, min(now_s + 1, until_s) - time.monotonic()))
        held = victim.rss_bytes
    after, took_s = settled(victim, _FEW_MIB * MIB)
    return {
        "peak MiB": peak.bytes // MIB,
        "held MiB": held // MIB,
        "after MiB": after // MIB,
        "settled s": round(took_s, 1),
        "ended": len(ended),
    }


ATTACKS: dict[str, Attack] = {
    f"{kind} {name} {what}": partial(_slow, f"/{name}?size={size}&count={count}", accept)
    for kind, accept in (("sse", "text/event-stream"), ("ndjson", "application/x-ndjson"))
    for name in ("gives", "agives")
    for what, size, count in (("large", 9_000_000, 3), ("small", 64 << 10, 10_000))
}

if __name__ == "__main__":
    main(ATTACKS, FUNCTIONS)
