"""The server's memory for a thousand open streams of server-sent events, compared with Starlette."""

from __future__ import annotations

import resource
import selectors
import socket
import time
from collections.abc import Sequence

from benchmarks.bodies import JSON, WrongReplyError
from benchmarks.http1 import connect, request
from benchmarks.items import SSE, encoded, item
from benchmarks.measure import FAILURES, say
from benchmarks.process import processor_s, resident_mib, status
from benchmarks.report import table
from benchmarks.servers import Series, serving

STREAMS = 1000
_FILES = 8192
_SILENCE_S = 20.0
_FIRST = b"data: " + encoded(item(0)) + b"\n\n"


def open_streams(columns: Sequence[Series], *, quick: bool) -> str:
    """Open streams that have sent one item and never send another; return the table."""
    count = STREAMS // 5 if quick else STREAMS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < _FILES:
        # invoker limits its connections to a part of the open files allowed; servers inherit this process's limit.
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(_FILES, hard), hard))
    rows = []
    for one in columns:
        if one.name in {"agen", "astarlette"}:
            try:
                rows.append([one.label, *_figures(one, count)])
            except FAILURES as error:
                say(f"{one.name} fails: {error}")
                rows.append([one.label, "fails"])
    head = ("server", "MiB before", "MiB growth", "KiB a stream", "threads", "of a core", "s to open")
    return table(f"{count:,} open streams of SSE, each behind its first item", head, rows)


def _figures(series: Series, count: int) -> list[str]:
    with serving(series.command("open"), transport="http") as (address, pid):
        _close(_opened(address, 1))  # modules that the first stream loads are not a cost of streams
        before, began = resident_mib(pid), time.monotonic()
        held = _opened(address, count)
        took, used = time.monotonic() - began, processor_s(pid)
        time.sleep(1)
        share, growth, threads = processor_s(pid) - used, resident_mib(pid) - before, status(pid, "Threads")
        _all_open(held)
        _close(held)
    cells = [f"{before:.0f}", f"{growth:.0f}", f"{growth * 1024 / count:.1f}"]
    return [*cells, f"{threads:,}", f"{share:.2f}", f"{took:.1f}"]


def _opened(address: str, count: int) -> list[socket.socket]:
    """Open ``count`` connections with one stream each, and wait for the first item of each.

    Raises:
        WrongReplyError: A stream has ended, or has sent no item for 20 s.
    """
    asked = request(address, b"1", path="/", headers={"content-type": JSON, "accept": SSE})
    socks, came = [connect(address) for _ in range(count)], dict[socket.socket, bytes]()
    with selectors.DefaultSelector() as selector:
        for sock in socks:
            selector.register(sock, selectors.EVENT_READ)
            sock.sendall(asked)
        left = count
        while left:
            ready = selector.select(_SILENCE_S)
            if not ready:
                raise WrongReplyError(f"{left} of {count} streams have no item")
            for key, _ in ready:
                assert isinstance(key.fileobj, socket.socket)
                data = key.fileobj.recv(1 << 16)
                came[key.fileobj] = came.get(key.fileobj, b"") + data
                if not data:
                    raise WrongReplyError(f"a stream has ended: {came[key.fileobj]!r:.300}")
                if _FIRST in came[key.fileobj]:
                    left -= 1
                    selector.unregister(key.fileobj)
    return socks


def _all_open(socks: Sequence[socket.socket]) -> None:
    """Check that all streams are still open.

    Raises:
        WrongReplyError: A stream has ended.
    """
    for sock in socks:
        sock.setblocking(False)
        try:
            if not sock.recv(1 << 16):
                raise WrongReplyError("a stream has ended")
        except BlockingIOError:
            pass


def _close(socks: Sequence[socket.socket]) -> None:
    for sock in socks:
        sock.close()
