"""Clients that leave a stream at each possible moment; what was cancelled may not commit, and nothing may be left.

python -m tests.attack.leavings [NAME ...] [--seconds 5] [--tree DIR]

Each moment is tried as often as the time allows, on functions in threads and on the loop, over both versions of HTTP;
``every`` tries one after the other on one victim, because to see that its threads leave takes a while.
``commits`` counts functions that took a leaving for the end of their input; ``good`` are whole calls beside them.
"""

from __future__ import annotations

import http.client
import json
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any, TypeAlias

from h2.config import H2Configuration
from h2.connection import H2Connection

from tests.attack.runner import Attack, Figures, Victim, main
from tests.attack.streams import FUNCTIONS, LINES, chunk, head
from tests.conftest import SLOW

__all__ = ["ATTACKS", "FUNCTIONS", "state"]

Leave: TypeAlias = Callable[[Victim, str, Random], None]

NAMES = ("total", "total_sync")
_BODY = chunk(b"1\n2\n")
_SETTLE_S = 15.0 * SLOW

MOMENTS: dict[str, tuple[bytes, bytes]] = {
    "within the head": (b"POST /total HTTP/1.1\r\nHost: loc", b""),
    "behind the head": (head("total"), b""),
    "behind the first output": (head("total"), b"0\n"),
    "within the line of a chunk": (head("total") + _BODY + b"4;", b"0\n"),
    "within a chunk": (head("total") + _BODY + b"ff\r\n3\n4", b"0\n"),
    "between two chunks": (head("total") + _BODY, b"0\n"),
    "within the last chunk": (head("total") + _BODY + b"0\r\n", b"0\n"),
    "within the trailers": (head("total") + _BODY + b"0\r\nX: y\r\n", b"0\n"),
}
"""What is sent before the client leaves, and what it waits for before that."""


def state(victim: Victim) -> dict[str, Any]:
    """What the victim holds."""
    connection = http.client.HTTPConnection(*victim.http_host, timeout=20)
    try:
        connection.request("POST", "/state", b"1", {"Content-Type": "application/json"})
        found: dict[str, Any] = json.loads(connection.getresponse().read())
        return {**found, "files": victim.files}
    finally:
        connection.close()


def _leave(sock: socket.socket, chance: Random) -> None:
    """By RST, by FIN of one direction and then of both, or by closing."""
    how = chance.randrange(3)
    if how == 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif how == 1:
        sock.shutdown(socket.SHUT_WR)
        if chance.random() < 0.5:
            select.select([sock], [], [], 0.05)
    sock.close()


def _heard(sock: socket.socket, wanted: bytes) -> None:
    data = b""
    while wanted and wanted not in data.partition(b"\r\n\r\n")[2]:
        more = sock.recv(65536)
        assert more, data
        data += more


def _http1(moment: str, victim: Victim, name: str, chance: Random) -> None:
    data, wanted = MOMENTS[moment]
    with socket.create_connection(victim.http_host, timeout=20) as sock:
        sock.sendall(data.replace(b"/total ", b"/%b " % name.encode()))
        _heard(sock, wanted)
        _leave(sock, chance)


def _http2(moment: str, victim: Victim, name: str, chance: Random) -> None:
    """By RST_STREAM at once or just behind END_STREAM, or by leaving the connection."""
    with socket.create_connection(victim.http_host, timeout=20) as sock:
        h2 = H2Connection(H2Configuration(client_side=True))
        h2.initiate_connection()
        fields = [(":method", "POST"), (":path", f"/{name}"), (":scheme", "http"), (":authority", "localhost")]
        h2.send_headers(1, [*fields, ("content-type", LINES), ("accept", LINES)])
        h2.send_data(1, b"1\n2\n")
        sock.sendall(h2.data_to_send())
        data = b""
        while b"0\n" not in data:
            data += sock.recv(65536)
        if moment == "behind END_STREAM":
            h2.end_stream(1)
        if moment != "connection":
            h2.reset_stream(1, 8)
            sock.sendall(h2.data_to_send())
            select.select([sock], [], [], 0.01)
        _leave(sock, chance)


def _good(victim: Victim, name: str) -> bool:
    connection = http.client.HTTPConnection(*victim.http_host, timeout=20)
    try:
        connection.request("POST", f"/{name}", iter([b"20\n", b"22\n"]), {"Content-Type": LINES, "Accept": LINES})
        return connection.getresponse().read() == b"0\n42\n"
    finally:
        connection.close()


def _moments(leaves: Sequence[Leave], victim: Victim, seconds: float) -> Figures:
    chance, left, good = Random(1), [0] * len(leaves), 0
    for name in NAMES:
        for leave in leaves:
            leave(victim, name, chance)
        good += _good(victim, name)
    before = _settled(victim, {})
    for at, leave in enumerate(leaves):
        until_s = time.monotonic() + seconds / len(leaves)
        while not left[at] or time.monotonic() < until_s:
            for _ in range(10):
                for name in NAMES:
                    leave(victim, name, chance)
                    left[at] += 1
            good += sum(_good(victim, name) for name in NAMES)
    after = _settled(victim, before)
    return {
        "left": min(left),
        "good": good,
        "commits": len(after["commits"]) - good,
        **{f"more {one}": after[one] - before[one] for one in ("running", "tasks", "threads", "files")},
    }


def _settled(victim: Victim, before: dict[str, Any]) -> dict[str, Any]:
    """What the victim holds once that is no more than before, or after a while."""
    ends_s = time.monotonic() + _SETTLE_S
    found = state(victim)
    while time.monotonic() < ends_s and any(
        found[one] > before.get(one, 0 if one == "running" else found[one])
        for one in ("running", "tasks", "threads", "files")
    ):
        time.sleep(0.1)
        found = state(victim)
    return found


_LEAVES: dict[str, Leave] = {
    **{moment: partial(_http1, moment) for moment in MOMENTS},
    **{f"http/2 {one}": partial(_http2, one) for one in ("RST_STREAM", "behind END_STREAM", "connection")},
}
ATTACKS: dict[str, Attack] = {
    **{moment: partial(_moments, (leave,)) for moment, leave in _LEAVES.items()},
    "every": partial(_moments, tuple(_LEAVES.values())),
}

if __name__ == "__main__":
    main(ATTACKS, FUNCTIONS)
