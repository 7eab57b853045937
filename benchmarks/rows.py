"""The rows of the tables: what is sent, how often, and by how many streams at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.bodies import JSON, JSON_VALUE, Body

_HEADERS = (("x-tenant", "blue"), ("x-trace", "0af7651916cd43dd8448eb211c80319c"))


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: ``calls`` calls of ``body``, ``streams`` of them at a time on one connection.

    ``work`` names the function's variant in benchmarks/functions.py, and what the bare echo does.
    """

    name: str
    title: str
    streams: int
    calls: int
    body: Body
    work: str = "echo"
    unit: str = "messages/s"
    connections: int = 1

    def scaled(self, scale: float) -> Row:
        """The same with fewer calls, yet one for each stream."""
        return replace(self, calls=max(self.streams * self.connections, int(self.calls * scale)))

    def rate(self, seconds: float) -> float:
        """Messages, or calls, in a second."""
        per_call = 1 if self.unit == "calls/s" else self.body.messages
        return self.calls * per_call / seconds


def echo_row(streams: int, size: int, calls: int = 0) -> Row:
    """Text frames of ``size`` bytes on ``streams`` streams; a call is at most 1,000 frames and about 6 MiB."""
    frames = max(20, min(1000, (6 << 20) // size))
    calls = calls or max(streams, 32 if size < 4096 else 16)
    kib = f"{size // 1024} KiB" if size >= 1024 else f"{size} B"
    title = f"{kib}, {streams} stream{'s' if streams > 1 else ''}"
    return Row(f"{streams}x{size}", title, streams, calls, Body(frames, b"x" * size))


ROWS = (
    echo_row(1, 16, calls=24),
    echo_row(8, 16),
    echo_row(64, 16, calls=64),
    echo_row(8, 1024),
    echo_row(8, 65536),
    Row("calls", "calls of one frame, 64 in flight", 64, 6000, Body(1, b"x" * 16), unit="calls/s"),
    Row("json", "JSON objects of 60 B, 8 streams", 8, 32, Body(1000, JSON_VALUE, JSON), "json"),
    Row("two", "two inputs zipped, 16 B, 8 streams", 8, 32, Body(500, b"x" * 16, inputs=2), "zip"),
    Row("headers", "two headers a frame, 16 B, 8 streams", 8, 32, Body(1000, b"x" * 16, headers=_HEADERS), "headers"),
    Row("sleep", "asyncio.sleep(.001) an item, 8 streams", 8, 32, Body(200, b"x" * 16), "sleep"),
    Row("executor", "run_in_executor an item, 8 streams", 8, 16, Body(1000, b"x" * 16), "executor"),
)


def row_named(name: str) -> Row:
    """A row of the table, or one made up as STREAMSxSIZE.

    Raises:
        ValueError: The name is neither.
    """
    for row in ROWS:
        if row.name == name:
            return row
    streams, _, size = name.partition("x")
    return echo_row(int(streams), int(size))
