"""invoker's own measuring client, in a process that can be pinned to a core: the modes ``load`` and ``pingpong``.

``load`` half-closes each call after its last reply (some servers lose replies otherwise); it also replaces h2load if
that is not installed. ``pingpong`` sends the next frame of a stream when it has the reply to the last one. The last
line on stdout is JSON. Usage: ``python -m benchmarks.client MODE HOST:PORT ROW --calls N``.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
from statistics import quantiles
from time import perf_counter

from benchmarks.bodies import Body, WrongReplyError
from benchmarks.http2 import Connection, Stream
from benchmarks.rows import Row, row_named
from benchmarks.servers import DRIVER_CORE, pinned
from invoker._pb.riff import riff_rpc_pb2 as pb

START_TO_WARM = 10  # the first tenth of the round trips is not counted


def first_reply(address: str, body: Body) -> bytes:
    """Make one call of one frame, check the parsed reply and return its bytes.

    Only the server determines their length, since protobuf lets it write or omit default values.

    Raises:
        WrongReplyError: The reply is not the one that the body expects.
    """
    connection = Connection(address)
    stream = connection.open(body.start + body.round, half_close=False)
    stream.kept = bytearray()
    while not stream.ended and stream.received < len(body.reply):
        connection.turn()
    connection.close()
    if decoded(stream.kept) != decoded(body.reply):
        raise WrongReplyError(f"status {stream.status!r}, the reply is {bytes(stream.kept[:200])!r}")
    return bytes(stream.kept)


def decoded(data: bytes | bytearray) -> pb.OutputSignal | None:
    """Parse one length-prefixed OutputSignal; returns None unless ``data`` is exactly one message."""
    if len(data) < 5 or len(data) != 5 + int.from_bytes(data[1:5], "big"):
        return None
    return pb.OutputSignal.FromString(bytes(data[5:]))


def load(address: str, row: Row) -> float:
    """Make a row's calls, each half-closed after its last reply; return the seconds of all.

    Raises:
        WrongReplyError: The number of reply bytes or the status of a call is not the expected one.
    """
    expected = row.body.frames * len(first_reply(address, row.body))
    connection, data = Connection(address), row.body.data
    began = perf_counter()
    left, running = row.calls, 0
    while left or running:
        while left and running < row.streams:
            connection.open(data)
            left -= 1
            running += 1
        for stream in connection.turn():
            if stream.ended:
                running -= _closed(connection, stream, expected)
            elif stream.received >= expected and not stream.half_closes:
                connection.send(stream, half_close=True)
    took = perf_counter() - began
    connection.close()
    return took


def _closed(connection: Connection, stream: Stream, expected: int) -> int:
    """Check and remove an ended call; return 1, or 0 if the call was removed before."""
    if connection.streams.pop(stream.id, None) is None:
        return 0
    if stream.status != "0" or stream.received != expected:
        raise WrongReplyError(f"status {stream.status!r}, {stream.received} reply bytes, {expected} expected")
    return 1


def pingpong(address: str, body: Body, *, streams: int, count: int) -> list[float]:
    """Return the seconds of each of about ``count`` round trips, without the first tenth.

    Raises:
        WrongReplyError: A reply has another length than expected, or a call ends.
    """
    size = len(first_reply(address, body))
    connection = Connection(address)
    sent: dict[int, float] = {}
    for stream in [connection.open(body.start) for _ in range(streams)]:
        connection.send(stream, body.round)
        sent[stream.id] = perf_counter()
    took: list[float] = []
    while len(took) < count:
        touched = connection.turn()
        now = perf_counter()
        for stream in touched:
            if stream.ended or stream.received > size:
                raise WrongReplyError(f"status {stream.status!r}, {stream.received} reply bytes, {size} expected")
            if stream.received == size:
                stream.received = 0
                took.append(now - sent[stream.id])
                connection.send(stream, body.round)
                sent[stream.id] = now
        connection.flush()
    connection.close()
    return took[count // START_TO_WARM :]


def summary(seconds: list[float]) -> dict[str, float]:
    """Return ``p50`` and ``p99`` of the times, in microseconds."""
    cuts = quantiles(seconds, n=100)
    return {"p50": cuts[49] * 1e6, "p99": cuts[98] * 1e6}


def run(mode: str, address: str, row: Row) -> dict[str, float]:
    """Run a mode in a pinned process; return ``seconds`` of a load, or ``p50`` and ``p99`` of a ping-pong in µs.

    Raises:
        WrongReplyError: The process failed, for example because of a wrong reply.
    """
    command = [sys.executable, "-m", "benchmarks.client", mode, address, row.name, "--calls", str(row.calls)]
    done = subprocess.run(pinned(DRIVER_CORE, command), capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise WrongReplyError(done.stderr.strip().rpartition("\n")[2])
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> int:
    """Run the mode named on the command line, and print the figures in JSON."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.client", description=__doc__)
    options.add_argument("mode", choices=("load", "pingpong"))
    options.add_argument("address")
    options.add_argument("row")
    options.add_argument("--calls", type=int, required=True, help="calls of a load, round trips of a ping-pong")
    args = options.parse_args()
    row = row_named(args.row).with_calls(args.calls)
    gc.disable()
    if args.mode == "load":
        found = {"seconds": load(args.address, row)}
    else:
        found = summary(pingpong(args.address, row.body, streams=row.streams, count=row.calls))
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
