"""The performance aims of the project: ratios between the figures of two servers in one run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from benchmarks.measure import Samples, ratio
from benchmarks.report import table

# Client library -> its rows, with 1, 8 and 64 calls in flight. With grpc-js, the server waits after each half-close,
# since a cancel may follow.
_CALLED = {"grpc.aio": ("aio1", "aio8", "aio64"), "grpc-js": ("js1", "js8", "js64")}
_ALONE = ("post1-socket", "post1-http.client", "post1-fetch")
_BODIES = tuple(f"post-{kind}-{size}" for kind in ("json", "text") for size in (16, 1024, 65536))
_STREAMED = ("1x16", "8x16", "64x16", "8x1024", "8x65536", "json", "two", "headers")


@dataclass(frozen=True, slots=True)
class Aim:
    """An aim for the ratio between the figures of two columns, in each of ``rows``.

    The ratio is ``figure`` of ``column`` divided by that of ``against``. ``least`` is required and ``aim`` is desired;
    both are lower bounds for rates, and upper bounds for times and costs.
    """

    title: str
    rows: tuple[str, ...]
    column: str
    against: str
    least: float
    aim: float
    figure: str = "rate"

    @property
    def is_cost(self) -> bool:
        """Whether a smaller ratio is better."""
        return self.figure != "rate"

    def measured(self, found: Samples) -> list[float]:
        """Return the ratio of each row for which both figures were measured."""
        values = []
        for row in self.rows:
            ours = found.get((row, self.column), {}).get(self.figure)
            other = found.get((row, self.against), {}).get(self.figure)
            if ours and other and all(other):
                values.append(ratio(ours, other))
        return values

    def mark(self, values: Sequence[float]) -> str:
        """Return "aim reached", "reached" or "**short of it**", whichever is true of all values."""
        if all(self._reaches(value, self.aim) for value in values):
            return "aim reached"
        return "reached" if all(self._reaches(value, self.least) for value in values) else "**short of it**"

    def _reaches(self, value: float, bound: float) -> bool:
        return value <= bound if self.is_cost else value >= bound


def _each(aim: Aim, *bounds: tuple[str, float, float]) -> Iterator[Aim]:
    """Yield ``aim`` for several columns, each with its own ``least`` and ``aim``."""
    for column, least, best in bounds:
        yield replace(aim, column=column, least=least, aim=best)


def _same(aim: Aim, *columns: str) -> Iterator[Aim]:
    return _each(aim, *((column, aim.least, aim.aim) for column in columns))


def _beside_fastapi(
    title: str, rows: tuple[str, ...], least: float, best: float, figure: str = "rate"
) -> Iterator[Aim]:
    """Compare sync functions with FastAPI's ``def``, and async functions with its ``async def``."""
    for column, against in (("reply", "fastapi"), ("areply", "afastapi")):
        yield Aim(title, rows, column, against, least, best, figure)


def _by_clients(title: str, figure: str, number: int, best: float) -> Iterator[Aim]:
    """Compare with the bare echo for each client library, in the first ``number`` of its rows."""
    for client, rows in _CALLED.items():
        named = f"{title}, {client} client, {' / '.join(('1', '8', '64')[:number])} in flight"
        yield from _same(Aim(named, rows[:number], "", "bare", 1, best, figure), "gen", "reply", "agen")


def _beside_starlette(
    title: str, rows: tuple[str, ...], least: float, best: float, figure: str = "rate"
) -> Iterator[Aim]:
    """Compare sync generators with Starlette's sync generators, and async generators with its async generators."""
    for column, against in (("gen", "starlette"), ("agen", "astarlette")):
        yield Aim(title, rows, column, against, least, best, figure)


AIMS = (
    *_each(
        Aim("gRPC calls/s, 64 in flight, h2load", ("calls",), "", "bare", 0, 0),
        ("gen", 2.5, 3.5),
        ("reply", 3, 4),
        ("agen", 2, 3),
    ),
    *_by_clients("server's core a call", "core", 3, 0.7),
    *_by_clients("p50 of a call", "p50", 2, 0.8),
    *_by_clients("p99 of a call", "p99", 2, 0.8),
    Aim("HTTP JSON `square`, 16 connections, requests/s", ("square",), "reply", "fastapi", 4, 7),
    Aim("HTTP JSON `square`, 16 connections, requests/s", ("square",), "areply", "afastapi", 3, 5),
    Aim("the same", ("square",), "reply", "uvicorn", 0.6, 1),
    Aim("HTTP, JSON and text of 16 B / 1 KiB / 64 KiB, requests/s", _BODIES, "reply", "fastapi", 4, 7),
    Aim("HTTP, JSON and text of 16 B / 1 KiB / 64 KiB, requests/s", _BODIES, "areply", "afastapi", 3, 5),
    *_beside_fastapi("HTTP p50, 1 connection, socket / http.client / fetch", _ALONE, 0.7, 0.4, "p50"),
    *_beside_fastapi("GraphPipe 1x4 Float32, 16 connections, requests/s", ("tensor",), 3, 5),
    *_beside_starlette("SSE, 1 / 8 / 64 connections, items/s", ("sse1", "sse8", "sse64"), 2, 3),
    *_beside_starlette("NDJSON, 1 / 8 / 64 connections, items/s", ("ndjson1", "ndjson8", "ndjson64"), 2, 3),
    *_beside_starlette("p50 of the first item, 1 / 16 connections", ("first1", "first16"), 0.8, 0.6, "p50"),
    Aim("SSE, a sleep an item, 64 connections, core an item", ("paced",), "agen", "astarlette", 1, 0.7, "core"),
    Aim("NDJSON both ways, 1 / 8 connections, lines/s", ("lines1", "lines8"), "agen", "astarlette", 1, 1.5),
    Aim("WebSocket, 8 / 64 connections, messages/s", ("talk8", "talk64"), "agen", "astarlette", 1.5, 2),
    Aim("WebSocket, p50 of a round trip", ("talk1",), "agen", "astarlette", 1, 0.8, "p50"),
    Aim("GraphPipe batching by HTTP, 64 clients, 1 ms", ("batches",), "batched", "costly", 5, 7),
    *_same(
        Aim("64 KiB frames, 8 streams, messages/s", ("8x65536",), "", "cpp", 0.55, 0.7),
        "gen",
        "reply",
        "agen",
        "areply",
    ),
    *_same(Aim("ping-pong, 1 stream, p50", ("ping1",), "", "bare", 1, 0.8, "p50"), "gen", "reply", "agen"),
    *_same(Aim("ping-pong, 8 streams, p99", ("ping8",), "", "bare", 1, 0.8, "p99"), "gen", "reply", "agen"),
    *_same(Aim("ping-pong, 8 streams, p50", ("ping8",), "", "peer", 1.2, 1, "p50"), "gen", "reply", "agen"),
    *_same(Aim("16 B, 8 / 64 streams, messages/s", ("held-8x16", "held-64x16"), "", "peer", 0.5, 0.7), "gen", "agen"),
    *(
        Aim("messages/s of streaming rows", _STREAMED, style, f"{style}-before", 0.95, 1)
        for style in ("gen", "reply", "agen", "areply")
    ),
)


def aims(found: Samples, *, is_whole: bool) -> str:
    """Make the table of aims; unless the run is whole, aims without figures are left out."""
    rows = []
    for aim in AIMS:
        values = aim.measured(found)
        bound = "at most" if aim.is_cost else "at least"
        cells = [f"{aim.title}: {aim.column} ÷ {aim.against}", f"{bound} {aim.least:g}", f"{aim.aim:g}"]
        if values:
            rows.append([*cells, " / ".join(f"{value:.2f}" for value in values), aim.mark(values)])
        elif is_whole:
            rows.append([*cells, "not measured"])
    return table("Aims", ("figure", "bound", "aim", "measured", ""), rows) if rows else ""
