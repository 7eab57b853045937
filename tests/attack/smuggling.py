"""Requests that hide another one behind a head which two programs may read differently.

Each is sent as a client behind a proxy would send it; ``hidden`` counts the calls of a function that were hidden.
"""

from __future__ import annotations

import socket
import time

from tests.attack.runner import Figures, Victim, main

_HEAD = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
_HIDDEN = f"{_HEAD}Content-Length: 2\r\n\r\n91"
_ANSWER = b"8281"

SMUGGLED: dict[str, bytes] = {
    name: text.encode()
    for name, text in {
        "length-and-chunks": f"{_HEAD}Content-Length: 200\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{_HIDDEN}",
        "chunks-and-length": f"{_HEAD}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n{_HIDDEN}",
        "two-lengths": f"{_HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\n5{_HIDDEN}",
        "listed-lengths": f"{_HEAD}Content-Length: 1, 2\r\n\r\n5{_HIDDEN}",
        "signed-length": f"{_HEAD}Content-Length: +1\r\n\r\n5{_HIDDEN}",
        "other-coding": f"{_HEAD}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n{_HIDDEN}",
        "spelled-coding": f"{_HEAD}Transfer-Encoding: xchunked\r\nContent-Length: 0\r\n\r\n{_HIDDEN}",
        "space-before-colon": f"{_HEAD}Content-Length : 0\r\n\r\n{_HIDDEN}",
        "folded": f"{_HEAD}Transfer-Encoding:\r\n chunked\r\nContent-Length: 0\r\n\r\n{_HIDDEN}",
        "lower-case-method": f"post{_HEAD[4:]}Content-Length: 0\r\n\r\n{_HIDDEN}",
        "two-hosts": f"{_HEAD}Host: other\r\nContent-Length: 0\r\n\r\n{_HIDDEN}",
        "preface-behind": f"get /livez HTTP/1.1\r\nHost: localhost\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{_HIDDEN}",
    }.items()
}


def _answers(victim: Victim, data: bytes) -> bytes:
    """All that comes back until the victim ends the connection."""
    with socket.create_connection(victim.http_host, timeout=5) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        found = b""
        try:
            while part := sock.recv(65536):
                found += part
        except ConnectionError:
            pass
        return found


def smuggle(victim: Victim, seconds: float) -> Figures:
    """Send each once, and again until the time is over."""
    until_s = time.monotonic() + seconds
    tried = hidden = refused = 0
    while not tried or time.monotonic() < until_s:
        for data in SMUGGLED.values():
            found = _answers(victim, data)
            tried += 1
            hidden += found.count(_ANSWER)
            refused += found.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 "))
    return {"tried": tried, "hidden": hidden, "refused": refused}


if __name__ == "__main__":
    main({"smuggle": smuggle})
