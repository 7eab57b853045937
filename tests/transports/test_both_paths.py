"""The same calls all at once and dribbled, on each gRPC transport: the same replies, statuses and texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.transports.both_paths import CALLS, functions, reply
from tests.transports.rawpeer import RawPeer
from tests.transports.riff import PATH, Riff

CORE = "grpc-python/1.85.1 grpc-c/58.0.0 (linux; chttp2)"
NODE = "grpc-node-js/1.14.7"

Said = tuple[list[Any], str, str]


@pytest.fixture(scope="module")
def expected() -> Iterator[dict[str, Said]]:
    """What the public transport answers to each call, frame by frame."""
    with Riff("aio", *functions("aio")) as riff, RawPeer(riff.port) as peer:
        yield {name: reply(_call(peer, name, "apart")) for name in CALLS}


def _call(peer: RawPeer, name: str, way: str) -> tuple[list[bytes], str, str]:
    call = CALLS[name]
    metadata = (("invoker-function", call.function), ("who", name.replace(" ", "-")))
    if way == "at once":
        stream = peer.whole(PATH, *call.frames, metadata=metadata)
    elif way == "apart":
        stream = peer.call(PATH, *call.frames, metadata=metadata)
        peer.half_close(stream)
    else:
        stream = peer.dribbled(PATH, *call.frames, metadata=metadata, pause_s=0.004)
    return peer.await_reply(stream)


def _by_output(frames: list[Any]) -> list[Any]:
    return sorted(frames, key=lambda frame: frame[0])  # the order between outputs is not determined


@pytest.mark.timeout(30)
@pytest.mark.parametrize("agent", [CORE, NODE])
@pytest.mark.parametrize("way", ["at once", "apart", "dribbled"])
@pytest.mark.parametrize("kind", ["direct", "lending", "uvloop"])
def test_every_path_answers_the_same(expected, kind, way, agent):
    """Replies of each output in order, with media types and headers; the status and its text."""
    with Riff(kind, *functions(kind)) as riff, RawPeer(riff.port, agent=agent) as peer:
        for name, call in CALLS.items():
            frames, status, text = reply(_call(peer, name, way))
            wanted = expected[name]
            assert (status, text) == wanted[1:], name
            if not call.is_cut:
                assert _by_output(frames) == _by_output(wanted[0]), name
        assert not riff.driver.engine.running
        assert riff.driver.threads.stuck == 0


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", ["direct", "lending"])
def test_every_path_counts_the_same(kind):
    """Opened, refused, finished by status, frames and bytes."""
    seen = []
    for way in ("at once", "dribbled"):
        with Riff(kind, *functions(kind)) as riff, RawPeer(riff.port, agent=CORE) as peer:
            for name, call in CALLS.items():
                if not call.is_cut and not name.startswith("raises at once"):
                    _call(peer, name, way)
            counters = riff.driver.engine.counters
            frames = counters.frames_in, counters.frames_out, counters.bytes_in, counters.bytes_out
            seen.append((counters.opened, counters.refused, counters.finished, frames))
    assert seen[0] == seen[1]
