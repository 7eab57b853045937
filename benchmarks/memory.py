"""The server's memory for streams: slow readers, a flooded function that sleeps, and up to 10,000 idle calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from benchmarks.bodies import OCTETS, Body, WrongReplyError, framed
from benchmarks.http2 import DEFAULT_WINDOW, Connection, Stream, WireError
from benchmarks.measure import FAILURES, say
from benchmarks.process import forget_peak, peak_mib, processor_s, resident_mib, status
from benchmarks.report import table
from benchmarks.servers import Series, ours, serving
from invoker._pb.riff import riff_rpc_pb2 as pb

READERS = 64
PER_CONNECTION = 1000
_PAUSE_S = 0.25
_MIB = 1 << 20


def slow_readers(columns: Sequence[Series], *, quick: bool) -> str:
    """Call an endless function on 64 connections, each of which reads 64 KiB four times a second."""
    seconds = 2 if quick else 5
    found = _each(columns, lambda one: _slow(one, seconds), ("gen", "agen"))
    title = f"{READERS} slow readers of 64 KiB frames, peak growth within {seconds} s"
    return table(title, ("server", "MiB", "KiB a stream", "MiB read"), found)


def flooded(columns: Sequence[Series], *, quick: bool) -> str:
    """Send 1 MiB frames to a function that sleeps, until the server's window is closed."""
    offered = 64 if quick else 1024
    found = _each(columns, lambda one: _flooded(one, offered), ("gen", "agen"))
    return table(f"{offered} MiB offered to a sleeping function", ("server", "MiB taken", "MiB growth"), found)


def idle_sync(columns: Sequence[Series], *, quick: bool) -> str:
    """Measure calls of a sync generator that have answered one frame and wait for the next."""
    count = 200 if quick else 1000
    return _idle_table(count, columns, ("gen",))


def idle_async(columns: Sequence[Series], *, quick: bool) -> str:
    """Measure calls of an async generator that have answered one frame and wait for the next."""
    count = 1000 if quick else 10_000
    return _idle_table(count, columns, ("agen", "bare", "cpp"))


def _idle_table(count: int, columns: Sequence[Series], bases: tuple[str, ...]) -> str:
    found = _each(columns, lambda one: _idle(one, count), bases)
    head = ("server", "MiB before", "MiB growth", "KiB a stream", "threads", "of a core", "s to open")
    return table(f"{count:,} idle streams", head, found)


def _each(columns: Sequence[Series], do: Callable[[Series], list[str]], bases: tuple[str, ...]) -> list[list[str]]:
    rows = []
    for one in columns:
        if one.base in bases:
            try:
                rows.append([one.label, *do(one)])
            except FAILURES as error:
                say(f"{one.name} fails: {error}")
                rows.append([one.label, "fails"])
    return rows


def _start() -> bytes:
    return framed(pb.InputSignal(start=pb.StartFrame(expectedContentTypes=[OCTETS])).SerializeToString())


def _slow(series: Series, seconds: float) -> list[str]:
    function = "flood" if series.base == "gen" else "async_flood"
    with serving(ours(function, driver=series.driver, program=series.program)) as (address, pid):
        before = resident_mib(pid)
        forget_peak(pid)
        readers = [Connection(address, stream_window=DEFAULT_WINDOW, window=DEFAULT_WINDOW) for _ in range(READERS)]
        calls = [one.open(_start()) for one in readers]
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for connection, call in zip(readers, calls, strict=True):
                connection.drain()
                connection.grant(DEFAULT_WINDOW)
                connection.grant(DEFAULT_WINDOW, call.id)
                connection.flush()
            time.sleep(_PAUSE_S)
        growth = peak_mib(pid) - before
        if any(call.ended or not call.received for call in calls):
            raise WrongReplyError("a call ended, or got nothing")
        read = sum(call.received for call in calls) / _MIB
        for connection in readers:
            connection.close()
    return [f"{growth:.0f}", f"{growth * 1024 / READERS:,.0f}", f"{read:,.0f}"]


def _flooded(series: Series, offered_mib: int) -> list[str]:
    function = "sleeper" if series.base == "gen" else "async_sleeper"
    data = framed(pb.InputSignal(data=pb.InputFrame(payload=bytes(_MIB), contentType=OCTETS)).SerializeToString())
    with serving(ours(function, driver=series.driver, program=series.program)) as (address, pid):
        before = resident_mib(pid)
        forget_peak(pid)
        connection = Connection(address)
        call = connection.open(_start())
        for _ in range(offered_mib):
            connection.send(call, data)
        try:
            while not call.ended and call.pending:
                connection.turn(2)
        except WireError:
            pass  # the server has closed its window
        if call.ended:
            raise WrongReplyError(f"the call ended with status {call.status}")
        left = sum(len(part) for part in call.pending)
        growth = peak_mib(pid) - before
        connection.close()
    return [f"{offered_mib - left / _MIB:.0f}", f"{growth:.0f}"]


def _idle(series: Series, count: int) -> list[str]:
    body = Body(1, b"x" * 16)
    with serving(series.command("echo")) as (address, pid):
        _answered(*_opened(address, 1, body), body)  # modules that the first call loads are not a cost of streams
        before, began = resident_mib(pid), time.monotonic()
        held = [_opened(address, min(PER_CONNECTION, count - at), body) for at in range(0, count, PER_CONNECTION)]
        for connection, streams in held:
            _answered(connection, streams, body)
        took = time.monotonic() - began
        used = processor_s(pid)
        time.sleep(1)
        share, growth, threads = processor_s(pid) - used, resident_mib(pid) - before, status(pid, "Threads")
        for connection, streams in held:
            _ended(connection, streams)
    cells = [f"{before:.0f}", f"{growth:.0f}", f"{growth * 1024 / count:.1f}"]
    return [*cells, f"{threads:,}", f"{share:.2f}", f"{took:.1f}"]


def _opened(address: str, count: int, body: Body) -> tuple[Connection, list[Stream]]:
    connection = Connection(address)
    connection.settle()
    if connection.most_streams < count:
        raise WrongReplyError(f"the server allows {connection.most_streams} streams per connection")
    return connection, [connection.open(body.data) for _ in range(count)]


def _answered(connection: Connection, streams: Sequence[Stream], body: Body) -> None:
    """Wait until each stream has one reply."""
    while any(one.received < body.expected for one in streams):
        for one in connection.turn():
            if one.ended:
                raise WrongReplyError(f"a stream ended with status {one.status!r}")


def _ended(connection: Connection, streams: Sequence[Stream]) -> None:
    """Half-close all streams and check that each ends with status OK."""
    for one in streams:
        connection.send(one, half_close=True)
    while not all(one.ended for one in streams):
        connection.turn()
    if wrong := {one.status for one in streams} - {"0"}:
        raise WrongReplyError(f"streams ended with status {', '.join(sorted(wrong))}")
    connection.close()
