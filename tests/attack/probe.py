"""`Probe`: asks a server for `/livez` again and again, on a new connection each time, and records what failed and how.

Whoever connects and sends nothing may be ended for newcomers (H-173), and so may a probe that the machine holds up
between its connect and its request. That is no fault of the server, and the probe asks again. A request that has come
must be answered. Whether it has come is not judged by a clock: the kernel of the probe knows which bytes the kernel of
the server has acknowledged, and it acknowledges none after the server has closed the connection.
"""

from __future__ import annotations

import http.client
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

REQUEST = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"

_PAUSE_S = 0.02
_PATIENCE_S = 10.0
_TRIES = 10
_SHARE = 4
"""A victim gets at least one in so many seconds of a processor, however busy the machine is."""
_NAMES: dict[type[Exception], str] = {
    http.client.RemoteDisconnected: "empty",
    ConnectionRefusedError: "refused",
    ConnectionResetError: "reset",
    BrokenPipeError: "broken pipe",
    TimeoutError: "timeout",
}
_INFO_BYTES = 256
_ACKED_AT = 120
"""Where ``tcpi_bytes_acked`` is in ``struct tcp_info`` of Linux; it counts the first packet of a connection as one."""


@dataclass
class Ask:
    """One request for `/livez`.

    Attributes:
        outcome: "200" or another status; otherwise "refused", "reset", "broken pipe", "timeout", "empty" if the
            connection ended without an answer, or the name of another error.
        phase: What was under way at the end: "connect", "send" or "receive".
        took_s: How long each phase took, by its name.
        has_come: Whether the request has come to the server, which may not have read it yet.
    """

    outcome: str = ""
    phase: str = "connect"
    took_s: dict[str, float] = field(default_factory=dict)
    has_come: bool = False

    @property
    def is_well(self) -> bool:
        """Whether the server is alive, as it says itself."""
        return self.outcome == "200"

    def __str__(self) -> str:
        took = ", ".join(f"{phase} {seconds * 1000:.1f} ms" for phase, seconds in self.took_s.items())
        return f"{self.outcome} at {self.phase}, the request had {'' if self.has_come else 'not '}come ({took})"


def ask(address: tuple[str, int], patience_s: float = _PATIENCE_S) -> Ask:
    """Ask once."""
    done, begun_s = Ask(), time.monotonic()

    def enter(phase: str) -> None:
        nonlocal begun_s
        now_s = time.monotonic()
        done.took_s[done.phase], done.phase, begun_s = now_s - begun_s, phase, now_s

    try:
        with socket.create_connection(address, timeout=patience_s) as sock:
            try:
                enter("send")
                sock.sendall(REQUEST)
                enter("receive")
                with http.client.HTTPResponse(sock, method="GET") as response:
                    response.begin()
                    done.outcome = str(response.status)
            finally:
                done.has_come = has_come(sock, len(REQUEST))
    except (OSError, http.client.HTTPException) as error:
        done.outcome = _name_of(error)
    done.took_s[done.phase] = time.monotonic() - begun_s
    return done


def has_come(sock: socket.socket, size: int) -> bool:
    """Whether the peer's kernel has taken so many bytes. Only Linux says it; elsewhere it is taken for true."""
    option = getattr(socket, "TCP_INFO", None)
    info = b"" if option is None else sock.getsockopt(socket.IPPROTO_TCP, option, _INFO_BYTES)
    if len(info) < _ACKED_AT + 8:
        return True
    acknowledged: int = struct.unpack_from("=Q", info, _ACKED_AT)[0]
    return acknowledged > size


class Probe(threading.Thread):
    """Asks every 20 ms until it is stopped.

    Args:
        address: Where the server listens, as `socket` wants it.
        cpu_s: Gives the processor time that the server has used.

    Attributes:
        longest_s: The longest time that an answer took.
        held_s: The longest time for which the server itself let it wait; see `tests.attack.runner.Account`.
        answers: How often it was answered.
        losses: The requests that were not answered although they had come, or that failed ten times in a row.
        repeated: How often it asked again, since its connection was ended before its request had come.
    """

    def __init__(self, address: tuple[str, int], cpu_s: Callable[[], float]) -> None:
        super().__init__(name="livez probe")
        self.longest_s = self.held_s = 0.0
        self.answers = self.repeated = 0
        self.losses: list[Ask] = []
        self._address = address
        self._cpu_s = cpu_s
        self._is_over = threading.Event()

    def stop(self) -> None:
        """Ask once more, so that there is an answer after the attack's last act, and end."""
        self._is_over.set()
        self.join()

    def run(self) -> None:
        is_over = False
        while not is_over:
            is_over = self._is_over.wait(_PAUSE_S)
            begun_s, cpu_s = time.monotonic(), self._cpu_s()
            self._ask()
            took_s, used_s = time.monotonic() - begun_s, self._cpu_s() - cpu_s
            self.longest_s = max(self.longest_s, took_s)
            self.held_s = max(self.held_s, min(took_s, used_s), took_s / _SHARE)

    def _ask(self) -> None:
        """Ask until the server has answered, or has lost a request."""
        for left in reversed(range(_TRIES)):
            one = ask(self._address)
            if one.is_well:
                self.answers += 1
                return
            if one.has_come or not left:
                self.losses.append(one)
                return
            self.repeated += 1


def _name_of(error: Exception) -> str:
    return next((name for kind, name in _NAMES.items() if isinstance(error, kind)), type(error).__name__)
