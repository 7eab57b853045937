"""A process that serves action-engine sessions when it is asked to, from its first answer to its last."""

from __future__ import annotations

import signal

import pytest

from invoker.protocols.evergreen.action_engine.wire import ABORT, Action
from tests.e2e.process import started
from tests.serving import serving
from tests.transports.sockets import item, open_peer, texts

pytestmark = pytest.mark.timeout(15)

SQUARE = Action("A", "square", (("x", "A#x"),), (("y", "A#y"),))


async def test_sessions_are_off_unless_they_are_asked_for() -> None:
    """The HTTP transport refuses the handshake."""
    with serving("functions.square:square") as served:
        async with open_peer(served.http) as peer:
            assert peer.status == 404


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_process_serves_sessions_beside_the_rest(workers: str) -> None:
    """On the HTTP port; SIGTERM ends an idle session, and the process with exit code 0."""
    flags = ("--protocols", "riff,http,action-engine", "--socket-path", "/actions", "--workers", workers)
    flags += ("--action", "SQUARE=functions.square:square", "--input", "number=x")
    with serving("functions.square:square", *flags) as served:
        async with open_peer(served.http, "/actions") as peer, open_peer(served.http, "/") as stray:
            assert stray.status == 404
            await peer.say(SQUARE, item("A#x", 0, b"7"), item("A#x", 1, b"8", last=True))
            assert texts(await peer.fragments(), "A#y") == [b"49", b"64"]
            aliased = Action("B", "SQUARE", (("number", "B#x"),), (("y", "B#y"),))
            await peer.say(aliased, item("B#x", 0, b"9", last=True))
            assert texts(await peer.fragments(), "B#y") == [b"81"]


async def test_sessions_end_when_the_process_is_told_to_stop() -> None:
    """With the abort and code 1001, exit code 0, and no fault in its log."""
    env = {"INVOKER_PROTOCOLS": "riff,http,action-engine"}
    with started("functions.square:square", env=env) as process:
        _, address = process.ready()
        async with open_peer(address) as peer:
            await peer.say(SQUARE, item("A#x", 0, b"7", last=True))
            await peer.fragments()
            process.send(signal.SIGTERM)
            assert [one.id for one in await peer.fragments(ABORT)] == [ABORT]
            assert await peer.closed() == 1001
        assert process.exit_code() == 0
        assert not [line for line in process.lines if '"warning"' in line or '"error"' in line]
