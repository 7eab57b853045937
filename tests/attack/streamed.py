"""Requests that hide another one behind a body that streams, or behind a response that ended before its body did.

python -m tests.attack.streamed [refused served late] [--seconds 5] [--tree DIR]

``hidden`` counts hidden requests that ran: each commits a number of its own. `REFUSED` are those that two programs may
read differently; `SERVED` are well formed, and the request behind them has to be answered, and nothing else.
"""

from __future__ import annotations

import re
import socket
import time

from tests.attack.leavings import state
from tests.attack.runner import Attack, Figures, Victim, main
from tests.attack.sockets import handshake
from tests.attack.streams import FUNCTIONS, LINES, chunk

_MARK = 4711
_HIDDEN = (
    f"POST /total HTTP/1.1\r\nHost: localhost\r\nContent-Type: {LINES}\r\nAccept: {LINES}\r\n"
    f"Content-Length: 5\r\n\r\n{_MARK}\n"
).encode()
_NEXT = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
_CHUNKED = "Transfer-Encoding: chunked"


def _head(*lines: str, name: str = "first", version: str = "1.1", method: str = "POST") -> bytes:
    fields = [f"{method} /{name} HTTP/{version}", "Host: localhost", f"Content-Type: {LINES}", f"Accept: {LINES}"]
    return "\r\n".join([*fields, *lines]).encode() + b"\r\n\r\n"


_BODY = chunk(b'"a"\n')
_END = b"0\r\n\r\n"

REFUSED: dict[str, bytes] = {
    "length and chunks": _head("Content-Length: 500", _CHUNKED) + _BODY + _END + _HIDDEN,
    "chunks and length": _head(_CHUNKED, "Content-Length: 4") + _BODY + _END + _HIDDEN,
    "two lengths": _head("Content-Length: 4", f"Content-Length: {4 + len(_HIDDEN)}") + b'"a"\n' + _HIDDEN,
    "the same length twice": _head("Content-Length: 4", "Content-Length: 4") + b'"a"\n' + _HIDDEN,
    "chunked twice": _head(_CHUNKED, _CHUNKED) + _BODY + _END + _HIDDEN,
    "chunked, identity": _head("Transfer-Encoding: chunked, identity") + _BODY + _END + _HIDDEN,
    "chunked behind a tab": _head("Transfer-Encoding: \x0bchunked") + _BODY + _END + _HIDDEN,
    "folded coding": _head("Transfer-Encoding:\r\n chunked") + _BODY + _END + _HIDDEN,
    "folded length": _head("X: y\r\n Content-Length: 4", _CHUNKED) + _BODY + _END + _HIDDEN,
    "blank before colon": _head("Transfer-Encoding : chunked") + _BODY + _END + _HIDDEN,
    "bare LF in the head": _head(f"X: y\n{_CHUNKED}") + _BODY + _END + _HIDDEN,
    "HTTP/1.0 in chunks": _head(_CHUNKED, version="1.0") + _BODY + _END + _HIDDEN,
    "bare LF behind a size": _head(_CHUNKED) + b'4\n"a"\n\r\n' + _END + _HIDDEN,
    "bare LF in an extension": _head(_CHUNKED) + b'4;a\n"a"\n\r\n' + _END + _HIDDEN,
    "bare CR in an extension": _head(_CHUNKED) + b'4;a\rb\r\n"a"\n\r\n' + _END + _HIDDEN,
    "long extension": _head(_CHUNKED) + b"4;" + b"a" * 2000 + b'\r\n"a"\n\r\n' + _END + _HIDDEN,
    "bare LF behind a chunk": _head(_CHUNKED) + b'4\r\n"a"\n\n' + _END + _HIDDEN,
    "size with a sign": _head(_CHUNKED) + b'+4\r\n"a"\n\r\n' + _END + _HIDDEN,
    "size with a prefix": _head(_CHUNKED) + b'0x4\r\n"a"\n\r\n' + _END + _HIDDEN,
    "size behind a blank": _head(_CHUNKED) + b' 4\r\n"a"\n\r\n' + _END + _HIDDEN,
    "size of 17 digits": _head(_CHUNKED) + b'10000000000000004\r\n"a"\n\r\n' + _END + _HIDDEN,
    "chunk longer than it says": _head(_CHUNKED) + b'3\r\n"a"\n\r\n' + _END + _HIDDEN,
    "bare LF in the trailers": _head(_CHUNKED) + _BODY + b"0\r\nX: y\n\r\n\r\n" + _HIDDEN,
    "folded trailer": _head(_CHUNKED) + _BODY + b"0\r\nX: y\r\n z\r\n\r\n" + _HIDDEN,
    "chunk of minus": _head(_CHUNKED) + _BODY + b"-1\r\n\r\n" + _HIDDEN,
    "handshake with a length": handshake("/echo/ws")[:-2] + b"Content-Length: 5\r\n\r\n" + _HIDDEN,
    "handshake in chunks": handshake("/echo/ws")[:-2] + b"Transfer-Encoding: chunked\r\n\r\n" + _END + _HIDDEN,
    "handshake of nobody": handshake("/nobody/ws") + _HIDDEN,
    "handshake refused": handshake("/echo/ws").replace(b"Version: 13", b"Version: 8") + _HIDDEN,
}
"""What follows the first response of each is the end of the connection."""

SERVED: dict[str, bytes] = {
    "a request as an item": _head(_CHUNKED) + _BODY + chunk(_HIDDEN) + _END,
    "a request as a chunk of its own": _head(_CHUNKED) + _BODY + chunk(b"0\r\n\r\n" + _HIDDEN) + _END,
    "a request within a length": _head(f"Content-Length: {4 + len(_HIDDEN)}") + b'"a"\n' + _HIDDEN,
    "a request as an extension": _head(_CHUNKED) + _BODY + b"0;" + _HIDDEN.partition(b"\r\n")[0] + b"\r\n\r\n",
    "a request as trailers": _head(_CHUNKED) + _BODY + b"0\r\nContent-Length: 99\r\nTransfer-Encoding: x\r\n\r\n",
    "100-continue that did not wait": _head(_CHUNKED, "Expect: 100-continue") + _BODY + chunk(_HIDDEN) + _END,
    "an upgrade that is none": _head(_CHUNKED, "Upgrade: websocket", "Connection: upgrade") + _BODY + _END,
    "h2c": _head(_CHUNKED, "Upgrade: h2c", "Connection: upgrade", "HTTP2-Settings: AAMAAABk") + _BODY + _END,
    "GET with chunks": _head(_CHUNKED, method="GET", name="page") + chunk(_HIDDEN) + _END,
    "HEAD with chunks": _head(_CHUNKED, method="HEAD", name="endless") + chunk(_HIDDEN) + _END,
    "OPTIONS with a length": _head(f"Content-Length: {len(_HIDDEN)}", method="OPTIONS") + _HIDDEN,
    "refused with chunks": _head(_CHUNKED, name="nobody") + chunk(_HIDDEN) + _END,
}
"""Each is followed by a request that ends the connection."""


def _answers(victim: Victim, data: bytes, pieces: int) -> bytes:
    """All that comes back until the victim ends the connection; the request leaves in pieces."""
    with socket.create_connection(victim.http_host, timeout=10) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        found, size = b"", -(-len(data) // pieces)
        try:
            for at in range(0, len(data), size):
                sock.sendall(data[at : at + size])
                if pieces > 1:
                    time.sleep(0.002)
            while part := sock.recv(65536):
                found += part
        except ConnectionError:
            pass
        return found


def _hidden(victim: Victim) -> int:
    """How often the hidden request ran, besides the once that it is sent openly now, which has to be seen."""
    _answers(victim, _HIDDEN + _NEXT, 1)
    return int(state(victim)["commits"].count(_MARK)) - 1


def _statuses(found: bytes) -> list[bytes]:
    return [one for one in re.findall(rb"HTTP/1\.1 (\d+) ", found) if one != b"100"]


def _refused(victim: Victim, seconds: float) -> Figures:
    until_s, tried, wrong = time.monotonic() + seconds, 0, ""
    while not tried or time.monotonic() < until_s:
        for name, data in REFUSED.items():
            for pieces in (1, 3):
                found = _statuses(_answers(victim, data, pieces))
                tried += 1
                if len(found) != 1:  # it is 200 where a body is found out to be wrong behind the response to its item
                    wrong = f"{name}: {found}"
    return {"tried": tried, "hidden": _hidden(victim), "wrong": wrong}


def _served(victim: Victim, seconds: float) -> Figures:
    until_s, tried, wrong = time.monotonic() + seconds, 0, ""
    while not tried or time.monotonic() < until_s:
        for name, data in SERVED.items():
            for pieces in (1, 3):
                found = _answers(victim, data + _NEXT, pieces)
                tried += 1
                if len(_statuses(found)) != 2 or not found.endswith(b"\r\n\r\nok\n"):
                    wrong = f"{name}: {found[-300:]!r}"
    return {"tried": tried, "hidden": _hidden(victim), "wrong": wrong}


LATE: dict[str, tuple[bytes, bytes, bytes, list[bytes]]] = {
    "the rest of a body": (_head(_CHUNKED) + _BODY, _END, chunk(_HIDDEN) + _END + _NEXT, [b"200", b"200"]),
    "the rest of a length": (
        _head(f"Content-Length: {4 + len(_HIDDEN)}") + b'"a"\n', _END, _HIDDEN + _NEXT, [b"200", b"200"],
    ),
    "a request instead of the rest": (_head(_CHUNKED) + _BODY, _END, _HIDDEN, [b"200"]),
    "a bad chunk behind the response": (_head(_CHUNKED) + _BODY, _END, b"x\r\n" + _HIDDEN, [b"200"]),
    "a bad chunk within the response": (_head(_CHUNKED, name="echo") + _BODY, b'"a"\n', b"x\r\n" + _HIDDEN, [b"200"]),
    "a bad trailer within the response": (
        _head(_CHUNKED, name="echo") + _BODY, b'"a"\n', b"0\r\nX\r\n\r\n" + _HIDDEN, [b"200"],
    ),
    "a request behind an endless response": (_head(method="GET", name="endless"), b"x" * 1000, _HIDDEN, [b"200"]),
    "100-continue that waits": (
        _head(_CHUNKED, "Expect: 100-continue", name="echo"), b"100 Continue\r\n\r\n", _BODY + _END + _NEXT,
        [b"200", b"200"],
    ),
}  # fmt: skip
"""What is sent, what is waited for, what is sent then, and the statuses of the responses."""


def _late(victim: Victim, seconds: float) -> Figures:
    until_s, tried, wrong = time.monotonic() + seconds, 0, ""
    while not tried or time.monotonic() < until_s:
        for name, (first, wanted, then, statuses) in LATE.items():
            found = _met(victim, first, wanted, then)
            tried += 1
            is_cut = "within the response" in name
            if _statuses(found) != statuses or (is_cut and found.endswith(_END)):
                wrong = f"{name}: {found[-300:]!r}"
    return {"tried": tried, "hidden": _hidden(victim), "wrong": wrong}


def _met(victim: Victim, first: bytes, wanted: bytes, then: bytes) -> bytes:
    """All that comes back; of an endless response, its beginning."""
    with socket.create_connection(victim.http_host, timeout=10) as sock:
        found = b""
        sock.sendall(first)
        while wanted not in found and (part := sock.recv(65536)):
            found += part
        sock.sendall(then)
        try:
            while len(found) < 1 << 20 and (part := sock.recv(65536)):
                found += part
        except ConnectionError:
            pass
        return found


ATTACKS: dict[str, Attack] = {"refused": _refused, "served": _served, "late": _late}

if __name__ == "__main__":
    main(ATTACKS, FUNCTIONS)
