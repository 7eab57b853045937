"""More clients than a process may have open files, each with a request that lasts, and brings a byte a second.

python -m tests.attack.crowds [NAME ...] [--seconds 5] [--tree DIR]

Of those that are ``fitting`` there is room for all, so that nobody is ended for want of files; but they are too many to
serve others beside them.

Figures: how many were open at the end, how many were ended, how many of these were lost, since their request had come
and was whole, and they got no answer; how many were refused with 503, memory of each, and whether a newcomer was
answered. The victim may have `INVOKER_ATTACK_FILES` files, 400 if nothing says otherwise; with 0 it has
as many as it can get, and then there are 10,000 clients: ``INVOKER_ATTACK_FILES=0 python -m tests.attack.crowds``.
"""

from __future__ import annotations

import http.client
import os
import selectors
import socket
import time
from functools import partial

from h2.config import H2Configuration
from h2.connection import H2Connection

from tests.attack.probe import has_come
from tests.attack.runner import Attack, Figures, Victim, main
from tests.attack.sockets import framed, handshake
from tests.attack.streams import FORM, head

FUNCTIONS = "tests.attack.crowded"

_FILES = int(os.environ.get("INVOKER_ATTACK_FILES", "400"))
_CLIENTS = _FILES * 2 or 10_000
_FITTING = _FILES * 4 // 5 or _CLIENTS
_AT_ONCE = 100
_PAUSE_S = 1.0
_QUIET_S = 0.2
"""When nothing has happened for so long, the victim has dealt with all clients."""
_MOST_S = 10.0

_WHOLE = b"POST /kind HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n1"
_FETCH = head("endless", method="GET")


def _upload() -> tuple[bytes, bytes]:
    """A connection of HTTP/2 with one request, whose body has begun; and one more byte of the body."""
    client = H2Connection(H2Configuration(client_side=True))
    client.initiate_connection()
    head = {":method": "POST", ":path": "/kind", ":scheme": "http", ":authority": "localhost"}
    client.send_headers(1, [*head.items(), ("content-type", "application/json"), ("content-length", "100000")])
    client.send_data(1, b"1")
    begin = client.data_to_send()
    client.send_data(1, b"1")
    return begin, client.data_to_send()


BEGINS: dict[str, tuple[bytes, bytes]] = {
    "heads": (b"POST /kind HTTP/1.1\r\nHost: localhost\r\nX: ", b"x"),
    "bodies": (_WHOLE, b"1"),
    "h2 bodies": _upload(),
    "fitting h2 bodies": _upload(),
    "lines": (head("echo") + b'1\r\n"\r\n', b"1\r\nx\r\n"),
    "parts": (head("first", body=FORM) + b"5\r\n--b\r\n\r\n", b"1\r\nX\r\n"),
    "frames": (handshake("/mute/ws") + framed(0x01, b"{"), framed(0x00, b" ")),
    "silent sockets": (handshake("/mute/ws"), b""),
    "unread streams": (_FETCH, b""),
}
"""What each client sends first, and then every second."""


class _Crowd:
    """Clients of one kind; some may have been ended."""

    def __init__(self, victim: Victim, kind: str) -> None:
        self._victim = victim
        self._begin, self._drop = BEGINS[kind]
        self._is_deaf = kind.startswith("unread")
        self.most = _FITTING if kind.startswith("fitting") else _CLIENTS
        self._selector = selectors.DefaultSelector()
        self._deaf: list[socket.socket] = []
        self._is_whole = not kind.endswith(("heads", "bodies"))  # whether its function can run
        self._unanswered = set[socket.socket]()
        self.ended = self.lost = self.refused = 0

    def __len__(self) -> int:
        return len(self._selector.get_map()) + len(self._deaf)

    @property
    def is_in(self) -> bool:
        """Whether the victim has accepted all clients; more than it may have files never are."""
        return self.most >= _CLIENTS or self._victim.files >= self.most

    def grow(self) -> None:
        """Open some more."""
        for _ in range(min(_AT_ONCE, self.most - len(self))):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.setblocking(False)
            sock.connect_ex(self._victim.http_host)
            self._selector.register(sock, selectors.EVENT_WRITE, True)

    def go_on(self, wait_s: float = 0.01) -> bool:
        """Begin, and see who was refused or ended; returns whether anything happened within this time."""
        happened = self._selector.select(wait_s)
        for key, events in happened:
            sock = key.fileobj
            assert isinstance(sock, socket.socket)
            try:
                if events & selectors.EVENT_WRITE:
                    sock.send(self._begin)
                    self._unanswered.add(sock)
                    self._selector.modify(sock, selectors.EVENT_READ, False)
                    continue
                data = sock.recv(4096)
                if data:
                    self._unanswered.discard(sock)
                self.refused += data.startswith(b"HTTP/1.1 503")
                if self._is_deaf and data.startswith(b"HTTP/1.1 200"):
                    self._selector.unregister(sock)
                    self._deaf.append(sock)
                elif not data:
                    raise ConnectionResetError
            except BlockingIOError:
                continue
            except OSError:
                self._forget(sock)
        return bool(happened)

    def drip(self) -> None:
        """Send a byte or so on each."""
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            if not key.data and self._drop:
                try:
                    key.fileobj.send(self._drop)
                except BlockingIOError:
                    continue
                except OSError:
                    self._forget(key.fileobj)

    def _forget(self, sock: socket.socket) -> None:
        self.ended += 1
        if sock in self._unanswered:
            self._unanswered.remove(sock)
            self.lost += self._is_whole and has_come(sock, len(self._begin))
        self._selector.unregister(sock)
        sock.close()

    def close(self) -> None:
        """End all of them."""
        for sock in (*self._deaf, *(key.fileobj for key in list(self._selector.get_map().values()))):
            assert isinstance(sock, socket.socket)
            sock.close()
        self._selector.close()


def _newcomer(victim: Victim) -> str:
    """What a well-behaved client gets that calls a function of the loop; the thread that leads refuses no call."""
    connection = http.client.HTTPConnection(*victim.http_host, timeout=10)
    try:
        connection.request("POST", "/akind", b"1", {"Content-Type": "application/json"})
        return str(connection.getresponse().status)
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__
    finally:
        connection.close()


def _livez_s(victim: Victim) -> float:
    """How long the next `/livez` takes, once nobody is new."""
    began_s = time.monotonic()
    with socket.create_connection(victim.http_host, timeout=10) as sock:
        sock.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        sock.recv(4096)
    return time.monotonic() - began_s


def _attack(kind: str, victim: Victim, seconds: float) -> Figures:
    before = victim.rss_bytes
    crowd = _Crowd(victim, kind)
    steady_s = 0.0
    try:
        until_s = time.monotonic() + seconds
        next_s = time.monotonic() + _PAUSE_S
        while (now_s := time.monotonic()) < until_s or not crowd.is_in:
            crowd.grow()
            crowd.go_on()
            if now_s > next_s:
                next_s = now_s + _PAUSE_S
                if len(crowd) == crowd.most:
                    steady_s = _livez_s(victim)  # the last one counts: those who came at once are in by then
                crowd.drip()
        newcomer = _newcomer(victim)
        while crowd.go_on(_QUIET_S) and time.monotonic() < until_s + _MOST_S:
            pass  # the victim is still busy with those who came last
        return {
            "open": len(crowd),
            "livez then": round(steady_s, 3),
            "ended": crowd.ended,
            "lost": crowd.lost,
            "refused": crowd.refused,
            "files": victim.files,
            "KiB each": (victim.rss_bytes - before) // 1024 // max(1, min(victim.files, len(crowd))),
            "newcomer": newcomer,
        }
    finally:
        crowd.close()


ATTACKS: dict[str, Attack] = {kind: partial(_attack, kind) for kind in BEGINS}

if __name__ == "__main__":
    main(ATTACKS, FUNCTIONS)
