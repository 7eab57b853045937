"""`invoker.doors.http.hyper`: connections that hypercorn serves, and only those."""

from __future__ import annotations

import subprocess
import sys

from invoker.doors.http.exchange import HttpSettings
from tests.doors.doors import Served

SHAKE = (
    "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: {version}\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


async def echo(x: bytes) -> bytes:
    return x


def test_hypercorn_is_not_there_before_it_is_needed() -> None:
    """It takes a tenth of a second and some MB."""
    program = (
        "import sys, invoker.doors.http.door, invoker.doors.http.websocket\n"
        "print(*(name for name in ('hypercorn', 'h11', 'h2', 'wsproto') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


async def test_a_kept_connection_may_shake_hands() -> None:
    """Requests before that are answered."""
    async with Served.at(echo) as served, served.wire() as wire:
        await wire.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx", SHAKE.format(version=13))
        assert (await wire.answer())[::2] == (200, b"x")
        assert (await wire.answer())[0] == 403  # there is no service of sockets


async def test_behind_a_refused_handshake_nothing_is_served() -> None:
    """Requests of HTTP/1.1 are not hypercorn's, which reads heads less strictly."""
    async with Served.at(echo, settings=HttpSettings(idle_s=0.1)) as served, served.wire() as wire:
        hidden = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\r\nhidden"
        await wire.send(SHAKE.format(version=12), hidden)
        answers = await wire.ended()
        assert (answers.count(b"HTTP/1.1 "), b"hidden" in answers) == (1, False)
