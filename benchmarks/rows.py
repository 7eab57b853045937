"""The rows of the tables: each defines the requests, their number, and the number of streams."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.bodies import JSON, JSON_VALUE, OCTETS, TEXT, Body
from benchmarks.http2 import AGENT
from benchmarks.items import NDJSON, SSE

_HEADERS = (("x-tenant", "blue"), ("x-trace", "0af7651916cd43dd8448eb211c80319c"))


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: ``calls`` calls of ``body``, ``streams`` of them at a time.

    ``work`` names the variant of the function in benchmarks/functions.py, and of the bare echo. The modes are:

    - load: riff calls on one connection, by h2load, or by the driver "client", which half-closes after the last reply,
      for peers that lose replies otherwise.
    - pingpong: ``calls`` are round trips.
    - calls: riff calls on one connection by a client library, which ``driver`` names.
    - posts: HTTP requests on ``streams`` kept connections, by h2load or by the client that ``driver`` names; only the
      payload of ``body`` is sent.
    - items, lines, talk: streams by HTTP and WebSocket (`benchmarks/streamers.py`) on ``streams`` connections, where
      ``driver`` is the media type, ``each`` is the number of items per stream or messages per connection, and
      ``window`` is the number of messages in flight per connection.

    ``figures`` are the table's figures: rate, p50, p99, or core, which is the server's processor time for one call.
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
    agent: str = AGENT
    figures: tuple[str, ...] = ("rate",)
    each: int = 0
    window: int = 1

    @property
    def transport(self) -> str:
        """The transport of the server: "http" or "grpc"."""
        return "http" if self.mode == "posts" or self.is_stream else "grpc"

    @property
    def one(self) -> str:
        """The unit of work of the processor time, such as "a call"."""
        if self.is_stream:
            return "an item" if self.mode == "items" else "a message"
        return "a request" if self.mode == "posts" else "a call"

    @property
    def is_stream(self) -> bool:
        """Whether the row measures streams by HTTP or WebSocket."""
        return self.mode in {"items", "lines", "talk"}

    def scaled(self, scale: float) -> Row:
        """Return the row with ``scale`` times the calls, but at least one per stream."""
        return self.with_calls(max(self.streams, int(self.calls * scale)))

    def with_calls(self, calls: int) -> Row:
        """Return the row with another number of calls."""
        return replace(self, calls=calls)

    def rate(self, seconds: float) -> float:
        """Return messages or calls per second, if all calls took this time."""
        per_call = self.each or (self.body.messages if self.unit == "messages/s" else 1)
        return self.calls * per_call / seconds


def _ping(streams: int, count: int) -> Row:
    title = f"ping-pong, 16 B, {streams} stream{'s' if streams > 1 else ''}"
    return Row(f"ping{streams}", title, streams, count, Body(1, b"x" * 16), mode="pingpong", figures=("p50", "p99"))


def _held(row: Row) -> Row:
    title = f"{row.title}, half-close after the replies"
    return replace(row, name=f"held-{row.name}", title=title, driver="client")


def echo_row(streams: int, size: int, calls: int = 0) -> Row:
    """Make a row of text frames of ``size`` bytes on ``streams`` streams; a call has at most 1,000 frames and 6 MiB."""
    frames = max(20, min(1000, (6 << 20) // size))
    calls = calls or max(streams, 32 if size < 4096 else 16)
    kib = f"{size // 1024} KiB" if size >= 1024 else f"{size} B"
    title = f"{kib}, {streams} stream{'s' if streams > 1 else ''}"
    return Row(f"{streams}x{size}", title, streams, calls, Body(frames, b"x" * size))


def _called(driver: str, streams: int, calls: int) -> Row:
    """Make a row of one-frame calls by a client library: latency if at most 8 are in flight, and the rate otherwise."""
    title = f"calls of one frame by {driver}, {streams} in flight"
    figures = ("rate", "core") if streams > 8 else ("p50", "p99", "core")
    name = f"{driver.removeprefix('grpc').strip('.-')}{streams}"
    return Row(name, title, streams, calls, _ONE, unit="calls/s", mode="calls", driver=driver, figures=figures)


def _posted(name: str, title: str, payload: bytes, media_type: str, work: str, calls: int = 2000) -> Row:
    """Make a row of HTTP requests on 16 kept connections; ``calls`` suits a server of 5,000 requests per second."""
    body, figures = Body(1, payload, media_type), ("rate", "core")
    return Row(name, f"HTTP: {title}, 16 connections", 16, calls, body, work, "requests/s", "posts", figures=figures)


def _alone(driver: str, calls: int) -> Row:
    """Make a row of HTTP requests one after another, on one connection."""
    name, title = f"post1-{driver}", f"HTTP: JSON `square` by {driver}, 1 connection"
    figures = ("p50", "p99", "core")
    return Row(name, title, 1, calls, _NUMBER, "square", "requests/s", "posts", driver, figures=figures)


def _streamed(form: str, connections: int, calls: int) -> Row:
    """Make a row of streams of 2,000 JSON items, one stream at a time on each connection."""
    label, figures = ("SSE", "NDJSON")[form == NDJSON], ("rate", "core")
    title = f"{label}: streams of 2,000 JSON items, {_connections(connections)}"
    name = f"{label.lower()}{connections}"
    return Row(name, title, connections, calls, _ONE, "items", "items/s", "items", form, figures=figures, each=2000)


def _first(connections: int, calls: int) -> Row:
    """Make a row that measures the time to the first item of short streams."""
    title, figures = f"SSE: the first of 10 JSON items, {_connections(connections)}", ("p50", "p99", "core")
    name = f"first{connections}"
    return Row(name, title, connections, calls, _ONE, "items", "items/s", "items", SSE, figures=figures, each=10)


def _echoed(mode: str, connections: int, each: int, window: int) -> Row:
    """Make a row of echoed WebSocket messages or NDJSON lines, ``window`` in flight on each connection."""
    label = "WebSocket: JSON messages" if mode == "talk" else "NDJSON: lines of JSON in one request"
    title = f"{label} echoed, {_connections(connections)}, {window} under way"
    name, figures, form = f"{mode}{connections}", ("rate", "core"), NDJSON
    if window == 1:
        title, figures = f"WebSocket: ping-pong of a JSON message, {_connections(connections)}", ("p50", "p99", "core")
    return Row(
        name, title, connections, connections, _ONE, "lines", "messages/s", mode, form, AGENT, figures, each, window
    )


def _connections(count: int) -> str:
    return f"{count} connection{'s' if count > 1 else ''}"


def _object(size: int) -> bytes:
    """Make a JSON object of ``size`` bytes."""
    return b'{"data":"%s"}' % (b"x" * (size - 11))


_ONE = Body(1, b"x" * 16)
_SIZES = ((16, "16 B"), (1024, "1 KiB"), (65536, "64 KiB"))
_NUMBER = Body(1, b"12", JSON)
_PACED = Row(
    "paced", "SSE: a millisecond of sleep before each of 200 items, 64 connections", 64, 128, Body(1, b"x"), "paced",
    "items/s", "items", SSE, figures=("rate", "core"), each=200,
)  # fmt: skip
_CALLS = Row("calls", "calls of one frame, 64 in flight", 64, 6000, _ONE, unit="calls/s", figures=("rate", "core"))
ROWS = (
    echo_row(1, 16, calls=24),
    echo_row(8, 16),
    echo_row(64, 16, calls=64),
    _held(echo_row(8, 16)),  # shows servers that wait for the half-close, and should not
    echo_row(8, 1024),
    echo_row(8, 65536),
    _CALLS,
    replace(_CALLS, name="calls-js", title=f"{_CALLS.title}, user-agent of grpc-js", agent="grpc-node-js/1.14.7"),
    *(_called("grpc.aio", streams, calls) for streams, calls in ((1, 1500), (8, 2000), (64, 2000))),
    *(_called("grpc-js", streams, calls) for streams, calls in ((1, 500), (8, 2000), (64, 4000))),
    Row("json", "JSON objects of 60 B, 8 streams", 8, 32, Body(1000, JSON_VALUE, JSON), "json"),
    Row("two", "two inputs zipped, 16 B, 8 streams", 8, 32, Body(500, b"x" * 16, inputs=2), "zip"),
    Row("headers", "two headers a frame, 16 B, 8 streams", 8, 32, Body(1000, b"x" * 16, headers=_HEADERS), "headers"),
    Row("sleep", "asyncio.sleep(.001) an item, 8 streams", 8, 32, Body(200, b"x" * 16), "sleep"),
    Row("executor", "run_in_executor an item, 8 streams", 8, 16, Body(1000, b"x" * 16), "executor"),
    _ping(1, 8000),
    _ping(8, 24000),
    _posted("square", "JSON `square`", b"12", JSON, "square"),
    *(_posted(f"post-json-{size}", f"JSON of {label}", _object(size), JSON, "json") for size, label in _SIZES),
    *(_posted(f"post-text-{size}", f"text of {label}", b"x" * size, TEXT, "echo") for size, label in _SIZES),
    *(_alone(driver, calls) for driver, calls in (("socket", 1500), ("http.client", 1000), ("fetch", 1000))),
    _posted("tensor", "1x4 of Float32, GraphPipe or nested lists in JSON", b"", OCTETS, "tensor"),
    *(_streamed(form, count, 64) for form in (SSE, NDJSON) for count in (1, 8, 64)),
    _PACED,
    _first(1, 800),
    _first(16, 1600),
    *(_echoed("lines", count, 20_000 // count, 32) for count in (1, 8)),
    *(_echoed("talk", count, each, 32) for count, each in ((8, 4000), (64, 500))),
    _echoed("talk", 1, 3000, 1),
)
# Measured only with a peer: some peers lose replies if the half-close comes together with the frames.
PEER_ROWS = tuple(_held(row) for row in (echo_row(1, 16, calls=24), echo_row(64, 16, calls=64), _CALLS))


def row_named(name: str) -> Row:
    """Return the row of this name, or make one from STREAMSxSIZE.

    Raises:
        ValueError: The name is neither a row nor STREAMSxSIZE.
    """
    for row in (*ROWS, *PEER_ROWS):
        if row.name == name:
            return row
    streams, _, size = name.partition("x")
    return echo_row(int(streams), int(size))
