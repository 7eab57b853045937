"""Evergreen compared with riff on the same function: rates, time to the first output, memory, and fragments out of
order."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Sequence
from statistics import median

from benchmarks.bodies import TEXT, Body, WrongReplyError, framed
from benchmarks.http2 import Connection, Stream
from benchmarks.load import h2load, loaded
from benchmarks.measure import FAILURES, ratio, say
from benchmarks.process import resident_mib
from benchmarks.report import spread, table
from benchmarks.rows import Row
from benchmarks.servers import Series, ours, serving
from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker._pb.riff import riff_rpc_pb2 as riff

PATH = "/evergreen.v2.EvergreenService/StartSession"
FRAGMENTS, SIZE = 1000, 16
NODES = 100_000
SHUFFLED = 10_000
_LOADS = ((1, 1), (8, 1), (64, 1), (1, 16), (64, 16))
_PER_MESSAGE = 500


def evergreen(columns: Sequence[Series], *, quick: bool) -> str:
    """Make all four tables, or one sentence if h2load is not installed."""
    if shutil.which("h2load") is None:
        return "### Evergreen\n\nLeft out: h2load is missing (Debian: nghttp2-client)."
    ours_ = [one for one in columns if one.driver == "auto" and one.base in {"gen", "agen"}]
    number = 1 if quick else 3
    parts = [
        table(
            f"Evergreen: fragments/s against riff's frames/s, {SIZE} B, {FRAGMENTS:,} a session",
            ("function", "sessions", "fragments a message", "riff", "evergreen", "ratio"),
            [row for one in ours_ for row in _each(one, lambda address, one=one: _rates(one, address, number))],
        ),
        table(
            "Evergreen: first input fragment out to first output fragment in, p50",
            ("function", "riff, µs", "evergreen, µs", "ratio"),
            [row for one in ours_ for row in _each(one, lambda address, one=one: _first(one, address, quick=quick))],
        ),
        *_tried(lambda: _memory(NODES // 10 if quick else NODES)),
        *_tried(lambda: _disorder(number)),
    ]
    return "\n\n".join(parts)


def _each(series: Series, do: Callable[[str], list[list[str]]]) -> list[list[str]]:
    try:
        with serving(series.command("echo")) as (address, _):
            return do(address)
    except FAILURES as error:
        say(f"evergreen {series.name} fails: {error}")
        return [[series.label, "fails"]]


def _tried(do: Callable[[], str]) -> list[str]:
    try:
        return [do()]
    except FAILURES as error:
        say(f"evergreen fails: {error}")
        return []


# Messages.


def action(name: str, **inputs: str) -> bytes:
    """Make a framed message with one action whose output node is ``r``."""
    made = pb.Action(name=name, outputs=[pb.NamedParameter(name="out", id="r")])
    made.inputs.extend(pb.NamedParameter(name=key, id=value) for key, value in inputs.items())
    return framed(pb.SessionMessage(actions=[made]).SerializeToString())


def fragments(count: int, *, each: int = 1, node: str = "p", order: Sequence[int] = ()) -> bytes:
    """Make framed messages with the fragments of one text node, ``each`` per message, in this ``order`` of seq."""
    seqs = list(order) or list(range(count))
    made = [_fragment(node, seq, is_last=seq == count - 1) for seq in seqs]
    groups = (made[at : at + each] for at in range(0, count, each))
    return b"".join(framed(pb.SessionMessage(node_fragments=one).SerializeToString()) for one in groups)


def _fragment(node: str, seq: int, *, is_last: bool) -> pb.NodeFragment:
    made = pb.NodeFragment(id=node, seq=seq, continued=not is_last)
    made.chunk_fragment.data = _payload(seq)
    if seq == 0:
        made.chunk_fragment.metadata.mimetype = TEXT
    return made


def _payload(seq: int) -> bytes:
    return b"%0*d" % (SIZE, seq)


def replied(stream: Stream) -> bytes:
    """Return the bytes of node ``r`` in the messages that a stream has received.

    Raises:
        WrongReplyError: The session failed.
    """
    if stream.status not in ("", "0"):
        raise WrongReplyError(f"status {stream.status}")
    data, found = bytes(stream.kept or b""), b""
    while data:
        size = int.from_bytes(data[1:5], "big")
        for one in pb.SessionMessage.FromString(data[5 : 5 + size]).node_fragments:
            found += one.chunk_fragment.data if one.id == "r" else b""
        data = data[5 + size :]
    return found


def session(address: str, body: bytes) -> tuple[bytes, float]:
    """Run one session to its end; return the bytes of node ``r``, and the seconds of the session.

    Raises:
        WrongReplyError: The session failed.
    """
    connection = Connection(address, path=PATH)
    began = time.perf_counter()
    stream = connection.open(half_close=False)
    stream.kept = bytearray()
    connection.send(stream, body, half_close=True)
    while not stream.ended:
        connection.turn(20)
    took = time.perf_counter() - began
    connection.close()
    if stream.status != "0":
        raise WrongReplyError(f"status {stream.status}")
    return replied(stream), took


# Tables.


def _rates(series: Series, address: str, number: int) -> list[list[str]]:
    found: list[list[str]] = []
    for streams, each in _LOADS:
        calls = max(16, streams) * 2
        body = action(series.base, values="p") + fragments(FRAGMENTS, each=each)
        whole = b"".join(map(_payload, range(FRAGMENTS)))
        if session(address, body)[0] != whole:
            raise WrongReplyError("the session's echo differs from what was sent")
        row = Row("evergreen", "", streams, calls, Body(FRAGMENTS, b"x" * SIZE))
        frames, parts = [], []
        for _ in range(number):
            frames.append(row.rate(h2load(address, row)))
            seconds, data = loaded(f"http://{address}{PATH}", body, streams=streams, calls=calls)
            if data < calls * len(whole):
                raise WrongReplyError(f"{data} reply bytes, at least {calls * len(whole)} expected")
            parts.append(row.rate(seconds))
        say(f"evergreen {series.name} {streams}x{each}: {median(frames):,.0f} {median(parts):,.0f}")
        figures = [spread(frames), spread(parts), f"{ratio(parts, frames):.2f}"]
        found.append([series.label, str(streams), str(each), *figures])
    return found


def _first(series: Series, address: str, *, quick: bool) -> list[list[str]]:
    count = 100 if quick else 400
    start = framed(riff.InputSignal(start=riff.StartFrame(expectedContentTypes=[TEXT])).SerializeToString())
    frame = riff.InputSignal(data=riff.InputFrame(payload=b"x" * SIZE, contentType=TEXT))
    one = _first_of(Connection(address), start, framed(frame.SerializeToString()), count)
    begun = action(series.base, values="p")
    fragment = framed(pb.SessionMessage(node_fragments=[_fragment("p", 0, is_last=False)]).SerializeToString())
    other = _first_of(Connection(address, path=PATH), begun, fragment, count)
    return [[series.label, f"{one * 1e6:,.0f}", f"{other * 1e6:,.0f}", f"{other / one:.2f}"]]


def _first_of(connection: Connection, start: bytes, first: bytes, count: int) -> float:
    """Return the median seconds from a stream's first value to its reply; the stream's function waits already."""
    took: list[float] = []
    for _ in range(count):
        stream = connection.open(start)
        connection.flush()
        time.sleep(0.002)  # by now the function waits for its first value
        began = time.perf_counter()
        connection.send(stream, first)
        while not stream.received:
            connection.turn()
            if stream.ended:
                raise WrongReplyError(f"status {stream.status}")
        took.append(time.perf_counter() - began)
        connection.send(stream, half_close=True)
        connection.flush()
    connection.close()
    return median(took[count // 10 :])


def _memory(count: int) -> str:
    """Measure the memory of a session with many small nodes."""
    with serving(ours("agen", driver="auto")) as (address, pid):
        session(address, action("agen", values="p") + fragments(10))
        before = resident_mib(pid)
        connection = Connection(address, path=PATH)
        began = time.perf_counter()
        stream = connection.open()
        for at in range(0, count - 2, _PER_MESSAGE):  # the input and the output are nodes too
            names = range(at, min(at + _PER_MESSAGE, count - 2))
            parts = [_fragment(f"node-{name}", 0, is_last=True) for name in names]
            connection.send(stream, framed(pb.SessionMessage(node_fragments=parts).SerializeToString()))
        connection.send(stream, action("agen", values="p") + fragments(2))
        while not stream.received:
            connection.turn(20)
            if stream.ended:
                raise WrongReplyError(f"status {stream.status}")
        took, held = time.perf_counter() - began, resident_mib(pid) - before
        connection.send(stream, half_close=True)
        while not stream.ended:
            connection.turn(20)
        connection.close()
        session(address, action("agen", values="p") + fragments(10))
        after = resident_mib(pid) - before
    cells = [f"{count:,}", f"{took:.1f}", f"{held:.0f}", f"{held * 1024 * 1024 / count:,.0f}", f"{after:.0f}"]
    return table("Evergreen: one session with many nodes", ("nodes", "s", "MiB", "B a node", "MiB after it"), [cells])


def _disorder(number: int) -> str:
    """Compare one leaf's many fragments in order with the same fragments shuffled."""
    order = list(range(SHUFFLED))
    random.Random(7).shuffle(order)
    ordered, shuffled = [], []
    with serving(ours("reply", driver="auto")) as (address, _):
        for _ in range(number * 3):
            straight, first = session(address, action("reply", value="p") + fragments(SHUFFLED))
            mixed, second = session(address, action("reply", value="p") + fragments(SHUFFLED, order=order))
            if straight != mixed or len(straight) != SHUFFLED * SIZE:
                raise WrongReplyError("the order of delivery changed the outcome")
            ordered.append(first * 1e3)
            shuffled.append(second * 1e3)
    cells = [spread(ordered), spread(shuffled), f"{ratio(shuffled, ordered):.2f}"]
    head = ("in order, ms", "shuffled, ms", "ratio")
    return table(f"Evergreen: {SHUFFLED:,} fragments of one leaf", head, [cells])
