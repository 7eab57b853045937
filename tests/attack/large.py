"""Ten clients who ask for streams of items of 20 or 50 MiB, and read them as fast as they come, or not at all.

python -m tests.attack.large [NAME ...] [--seconds 5] [--tree DIR]

Figures: the most memory while it lasted, and what was received; `/livez` tells for how long others had to wait.
"""

from __future__ import annotations

import selectors
import socket
import time
from functools import partial

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived

from tests.attack.memory import Peak
from tests.attack.runner import MIB, Attack, Figures, Victim, main
from tests.attack.sockets import handshake

FUNCTIONS = "tests.attack.largest"

_CLIENTS = 10
_READ_BYTES = 1 << 18


def _asking(path: str, accept: str, *more: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", f"Accept: {accept}", *more, "", ""]).encode()


class _Http2:
    """A client of HTTP/2 that opens its windows again."""

    def __init__(self, path: str, accept: str, coding: str = "identity") -> None:
        self._h2 = H2Connection(H2Configuration(client_side=True))
        settings = self._h2.local_settings
        settings.initial_window_size = MIB
        settings.acknowledge()  # else it would not be told
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(1 << 24)
        fields = [(":method", "GET"), (":path", path), (":scheme", "http"), (":authority", "localhost")]
        self._h2.send_headers(1, [*fields, ("accept", accept), ("accept-encoding", coding)], end_stream=True)
        self.begin = self._h2.data_to_send()

    def took(self, data: bytes) -> bytes:
        for event in self._h2.receive_data(data):
            if isinstance(event, DataReceived) and event.flow_controlled_length:
                self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        return self._h2.data_to_send()


def _ask(begin: bytes | tuple[str, ...], victim: Victim, seconds: float, *, reads: bool = True) -> Figures:
    until_s, received = time.monotonic() + seconds, 0
    with selectors.DefaultSelector() as selector, Peak(victim) as peak:
        for _ in range(_CLIENTS):
            sock = socket.create_connection(victim.http_host, timeout=20)
            client = _Http2(*begin) if isinstance(begin, tuple) else None
            sock.sendall(begin if isinstance(begin, bytes) else client.begin)  # type: ignore[union-attr]
            selector.register(sock, selectors.EVENT_READ, client)
        while (now_s := time.monotonic()) < until_s:
            if not reads:
                time.sleep(until_s - now_s)
                continue
            for key, _ in selector.select(0.05):
                assert isinstance(key.fileobj, socket.socket)
                data = key.fileobj.recv(_READ_BYTES)
                assert data, "a client was left"
                received += len(data)
                if key.data is not None and (answer := key.data.took(data)):
                    key.fileobj.sendall(answer)
        for key in list(selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
    return {"peak MiB": peak.bytes // MIB, "received MiB": received // MIB}


_LINES, _EVENTS, _MIXED = "application/x-ndjson", "text/event-stream", "multipart/mixed"


def _stream(kind: str, mib: int = 20, *more: str, accept: str = _LINES, name: str = "large") -> Attack:
    return partial(_ask, _asking(f"/{name}?kind={kind}&mib={mib}", accept, *more))


ATTACKS: dict[str, Attack] = {
    "bytes": _stream("bytes"),
    "bytes sync": _stream("bytes", name="large_sync"),
    "bytes unread": partial(_ask, _asking("/large?kind=bytes", _LINES), reads=False),
    "bytes of 50": _stream("bytes", 50),
    "bytes gzip": _stream("bytes", 20, "Accept-Encoding: gzip"),
    "bytes http/2": partial(_ask, ("/large?kind=bytes", _LINES)),
    "bytes http/2 gzip": partial(_ask, ("/large?kind=bytes", _LINES, "gzip")),
    "bytes socket": partial(_ask, handshake("/large/ws?kind=bytes")),
    "parts": _stream("bytes", accept=_MIXED),
    "text": _stream("text"),
    "text events": _stream("text", accept=f"{_EVENTS}, text/plain"),
    "text sync of 50": _stream("text", 50, name="large_sync"),
    "text socket": partial(_ask, handshake("/large/ws?kind=text")),
    "dict": _stream("dict"),
    "dict sync": _stream("dict", name="large_sync"),
    "numbers": _stream("numbers"),
    "numbers sync": _stream("numbers", name="large_sync"),
    "numbers of 50": _stream("numbers", 50),
    "numbers sync of 50": _stream("numbers", 50, name="large_sync"),
    "numbers socket": partial(_ask, handshake("/large/ws?kind=numbers")),
}

if __name__ == "__main__":
    main(ATTACKS, FUNCTIONS)
