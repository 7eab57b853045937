"""The rows of the tables: what is sent, how often, and by how many streams at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.bodies import JSON, JSON_VALUE, Body

_HEADERS = (("x-tenant", "blue"), ("x-trace", "0af7651916cd43dd8448eb211c80319c"))


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: ``calls`` calls of ``body``, ``streams`` of them at a time on one connection.

    ``work`` names the function's variant in benchmarks/functions.py, and what the bare echo does. In the mode pingpong
    ``calls`` are round trips. The driver "client" half-closes after the last reply, for peers that lose some otherwise.
    """

    name: str
    title: str
    streams: int
    calls: int
    body: Body
    work: str = "echo"
    unit: str = "messages/s"
    mode: str = "load"
    driver: str = "h2load"

    def scaled(self, scale: float) -> Row:
        """The same with fewer or more calls, yet one for each stream."""
        return self.with_calls(max(self.streams, int(self.calls * scale)))

    def with_calls(self, calls: int) -> Row:
        """The same with another number of calls."""
        return replace(self, calls=calls)

    def rate(self, seconds: float) -> float:
        """Messages, or calls, in a second."""
        per_call = 1 if self.unit == "calls/s" else self.body.messages
        return self.calls * per_call / seconds


def _ping(streams: int, count: int) -> Row:
    title = f"ping-pong, 16 B, {streams} stream{'s' if streams > 1 else ''}"
    return Row(f"ping{streams}", title, streams, count, Body(1, b"x" * 16), unit="µs", mode="pingpong")


def _held(row: Row) -> Row:
    title = f"{row.title}, half-close after the replies"
    return replace(row, name=f"held-{row.name}", title=title, driver="client")


def echo_row(streams: int, size: int, calls: int = 0) -> Row:
    """Text frames of ``size`` bytes on ``streams`` streams; a call is at most 1,000 frames and about 6 MiB."""
    frames = max(20, min(1000, (6 << 20) // size))
    calls = calls or max(streams, 32 if size < 4096 else 16)
    kib = f"{size // 1024} KiB" if size >= 1024 else f"{size} B"
    title = f"{kib}, {streams} stream{'s' if streams > 1 else ''}"
    return Row(f"{streams}x{size}", title, streams, calls, Body(frames, b"x" * size))


_CALLS = Row("calls", "calls of one frame, 64 in flight", 64, 6000, Body(1, b"x" * 16), unit="calls/s")
ROWS = (
    echo_row(1, 16, calls=24),
    echo_row(8, 16),
    echo_row(64, 16, calls=64),
    _held(echo_row(8, 16)),  # shows what waits for the half-close, and must not
    echo_row(8, 1024),
    echo_row(8, 65536),
    _CALLS,
    Row("json", "JSON objects of 60 B, 8 streams", 8, 32, Body(1000, JSON_VALUE, JSON), "json"),
    Row("two", "two inputs zipped, 16 B, 8 streams", 8, 32, Body(500, b"x" * 16, inputs=2), "zip"),
    Row("headers", "two headers a frame, 16 B, 8 streams", 8, 32, Body(1000, b"x" * 16, headers=_HEADERS), "headers"),
    Row("sleep", "asyncio.sleep(.001) an item, 8 streams", 8, 32, Body(200, b"x" * 16), "sleep"),
    Row("executor", "run_in_executor an item, 8 streams", 8, 16, Body(1000, b"x" * 16), "executor"),
    _ping(1, 8000),
    _ping(8, 24000),
)
# Measured when there is a peer: not every invoker keeps its replies when the half-close comes with the frames.
PEER_ROWS = tuple(_held(row) for row in (echo_row(1, 16, calls=24), echo_row(64, 16, calls=64), _CALLS))


def row_named(name: str) -> Row:
    """A row of the table, or one made up as STREAMSxSIZE.

    Raises:
        ValueError: The name is neither.
    """
    for row in (*ROWS, *PEER_ROWS):
        if row.name == name:
            return row
    streams, _, size = name.partition("x")
    return echo_row(int(streams), int(size))
