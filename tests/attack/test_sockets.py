"""`tests.attack.sockets`: who floods a WebSocket, or sends no frames, holds nobody up and takes no memory."""

from __future__ import annotations

import socket

import pytest

from tests.attack.runner import MIB, probed, victim
from tests.attack.sockets import ATTACKS, SERVES, handshake
from tests.conftest import SLOW

pytestmark = pytest.mark.timeout(30)


@pytest.mark.parametrize("kind", ATTACKS)
def test_attackers_of_websocket_hold_nobody_up(kind: str) -> None:
    """`/livez` answers meanwhile, memory stays small, nothing of ours is raised, and the next client is served."""
    with victim(SERVES) as target:
        account = probed(ATTACKS[kind], target, 1.0)
        assert (account.failures, account.held_s < 1.0 * SLOW) == (0, True), account
        assert account.rss_bytes < 400 * MIB, account
        assert "Traceback" not in target.process.log
        with socket.create_connection(target.http_host, timeout=5) as sock:
            sock.sendall(handshake())
            assert sock.recv(4096).startswith(b"HTTP/1.1 101")


def test_half_a_handshake_holds_nothing() -> None:
    """A thousand connections that stop within their heads."""
    with victim(SERVES) as target:
        socks = []
        for _ in range(1000):
            sock = socket.create_connection(target.http_host, timeout=5)
            sock.sendall(handshake()[:-2])
            socks.append(sock)
        account = probed(lambda *_: {}, target, 0)
        assert (account.failures, account.held_s < 0.5 * SLOW) == (0, True), account
        assert account.rss_bytes < 250 * MIB, account
        for sock in socks:
            sock.close()
