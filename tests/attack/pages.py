"""What a hostile web page can make a browser send, as browsers send it: `called` counts what ran.

``tests/interop/test_chromium.py`` has a real browser do it; this is for machines without one, and tries more heads.
"""

from __future__ import annotations

import http.client
import itertools
import time

from tests.attack.runner import Figures, Victim, main

EVIL = "https://evil.example"
TYPES = ("text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "")
HEADS: tuple[dict[str, str], ...] = (
    {"Origin": EVIL},
    {"Origin": "null"},
    {"Origin": EVIL, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "empty"},
    {"Origin": "http://localhost:1", "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    {"Origin": EVIL, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
    {"Host": "evil.example"},
    {"Host": "evil.example:80", "Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"},
    {"Host": "127.0.0.1.evil.example", "Origin": "http://127.0.0.1.evil.example"},
    {"Host": "[::1].evil.example"},
    {"Host": "localhost:80@evil.example"},
)
HANDSHAKE = {
    "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}  # fmt: skip
SOCKET = "/square/ws"
SOCKET_HEADS: tuple[dict[str, str], ...] = (
    {"Origin": EVIL, "Sec-WebSocket-Protocol": "invoker.v1"},
    {"Origin": EVIL, "Sec-Fetch-Site": "same-origin"},
    {"Origin": "http://localhost"},
    {"Host": "evil.example:8080", "Origin": "http://evil.example:8080", "Sec-Fetch-Mode": "websocket"},
    {"Host": "localhost.evil.example", "Origin": "http://localhost.evil.example"},
)

FUNCTIONS = "tests.attack.streaming"
CALLS = ("/", "/state", "/echo", "/total", "/graphpipe", "/readyz", "/echo/ws", "/streaming.Echo/Echo")
READS = ("/", "/_page/main.js", "/invocations", "/functions", "/openapi.json", "/endless", "/echo", "/nobody")
ACCEPTS = ("text/html", "text/event-stream", "application/x-ndjson", "*/*")
SOCKETS = ("/echo/ws", "/", "/endless/ws", "/nobody/ws")
HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


def fence(victim: Victim, path: str, accept: str) -> str | None:
    """The policy of what a safe function gives to a link that somebody else's page has made the user follow."""
    connection = http.client.HTTPConnection(*victim.http_host, timeout=5)
    try:
        head = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        connection.request("GET", path, None, {**head, "Accept": accept})
        return connection.getresponse().getheader("Content-Security-Policy")
    finally:
        connection.close()


def _ask(victim: Victim, method: str, path: str, headers: dict[str, str]) -> int:
    connection = http.client.HTTPConnection(*victim.http_host, timeout=5)
    try:
        connection.request(method, path, b"3" if method == "POST" else None, headers)
        return connection.getresponse().status
    finally:
        connection.close()


def _is_seen(head: dict[str, str]) -> bool:
    """Whether the user sees in a tab what is answered; the page that asked for it sees nothing of it."""
    return head.get("Sec-Fetch-Dest") == "document"


def attack(victim: Victim, seconds: float) -> Figures:
    """Send every head with every type to every path, and again until the time is over."""
    tried = refused = 0
    until_s = time.monotonic() + seconds
    while not tried or time.monotonic() < until_s:
        for head, type_, path in itertools.product(HEADS, TYPES, CALLS):
            status = _ask(victim, "POST", path, {**head, **({"Content-Type": type_} if type_ else {})})
            tried += 1
            refused += status == 403
        for head, path, accept in itertools.product(HEADS, READS, ACCEPTS):
            if not _is_seen(head):
                tried += 1
                refused += _ask(victim, "GET", path, {**head, "Accept": accept}) == 403
        for head, path in itertools.product(HEADS, SOCKETS):
            if "Origin" in head:  # a browser always sends it with a handshake
                tried += 1
                refused += _ask(victim, "GET", path, {**HANDSHAKE, **head}) == 403
        for head in (*HEADS, *SOCKET_HEADS):
            tried += 1
            refused += _ask(victim, "GET", SOCKET, {**HANDSHAKE, **head}) == 403
    return {"tried": tried, "refused": refused, "called": sum("invocation" in one for one in victim.process.lines)}


if __name__ == "__main__":
    main({"pages": attack}, FUNCTIONS)
