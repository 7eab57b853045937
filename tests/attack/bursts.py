"""Calls that all begin at once on the gRPC port, and calls that are taken back as soon as they have begun.

python -m tests.attack.bursts [2000 5000 resets] [--seconds 5] [--tree DIR]

``2000`` and ``5000`` open that many calls on ten connections before they read anything; figures are the statuses.
``resets`` is the rapid reset: streams that are begun and reset, 10,000 on each of two
connections, or 3,000 with ``--seconds`` below 5.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from functools import partial

from benchmarks.http2 import Connection, WireError, frame
from invoker._pb.riff import riff_rpc_pb2 as pb
from tests.attack.runner import SQUARE, Attack, Figures, Victim, main

_CONNECTIONS = 10
_RESETS, _FEW_RESETS, _LONG_S = 10_000, 3_000, 5.0
_AT_ONCE = 100
_RST_STREAM, _CANCEL = 3, b"\0\0\0\x08"


def _message(signal: pb.InputSignal) -> bytes:
    body = signal.SerializeToString()
    return b"\0" + len(body).to_bytes(4, "big") + body


def _square() -> bytes:
    start = pb.StartFrame(expectedContentTypes=["application/json"])
    data = pb.InputFrame(payload=b"7", contentType="application/json")
    return _message(pb.InputSignal(start=start)) + _message(pb.InputSignal(data=data))


def _together(work: Sequence[threading.Thread]) -> None:
    for one in work:
        one.start()
    for one in work:
        one.join()


def burst(calls: int, target: Victim, seconds: float) -> Figures:
    """So many calls of one value each; how often each status came."""
    statuses: Counter[str] = Counter()
    ready = threading.Barrier(_CONNECTIONS)

    def one() -> None:
        connection = Connection(target.grpc)
        connection.settle()
        ready.wait()
        running = {connection.open(_square(), half_close=True) for _ in range(calls // _CONNECTIONS)}
        while running:
            running.difference_update(stream for stream in connection.turn() if stream.ended)
        statuses.update(stream.status for stream in connection.streams.values())
        connection.close()

    _together([threading.Thread(target=one, name="burst") for _ in range(_CONNECTIONS)])
    return {f"status {status}": count for status, count in sorted(statuses.items())}


def resets(target: Victim, seconds: float) -> Figures:
    """Begin calls and reset them at once."""
    ended: Counter[str] = Counter()
    count = _RESETS if seconds >= _LONG_S else _FEW_RESETS

    def one() -> None:
        connection = Connection(target.grpc)
        connection.settle()
        try:
            for begun in range(1, count + 1):
                stream = connection.open(_square())
                connection.flush()
                connection._out += frame(_RST_STREAM, 0, stream.id, _CANCEL)
                del connection.streams[stream.id]
                if begun % _AT_ONCE == 0:
                    connection.flush()
                    connection.drain()
            reply = connection.open(_square(), half_close=True)
            while not reply.ended:
                connection.turn()
            ended[f"status {reply.status}"] += 1
        except (WireError, OSError):
            ended["cut"] += 1
        connection.close()

    _together([threading.Thread(target=one, name="resets") for _ in range(2)])
    return dict(ended)


BURSTS: dict[str, Attack] = {
    "2000": partial(burst, 2000),
    "5000": partial(burst, 5000),
    "resets": resets,
}

if __name__ == "__main__":
    main(BURSTS, SQUARE)
