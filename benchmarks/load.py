"""Measures one row with the driver it names, pinned to core 1; `benchmarks.client` is used if h2load is not installed.

The reply bytes are counted, since h2load itself checks only the HTTP status.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence

from benchmarks import callers, client
from benchmarks.bodies import WrongReplyError
from benchmarks.http2 import AGENT
from benchmarks.posts import Question
from benchmarks.rows import Row
from benchmarks.servers import DRIVER_CORE, pinned

_FINISHED = re.compile(r"finished in ([0-9.]+)(us|ms|s)\b")
_DATA = re.compile(r"\((\d+)\) data")
_RIGHT = re.compile(r"^status codes: (\d+) 2xx", re.MULTILINE)
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


def measure(address: str, row: Row, asked: Question | None = None) -> dict[str, float]:
    """Measure a row; return ``rate`` of a load, and ``p50`` and ``p99`` in microseconds where single calls are timed.

    Raises:
        WrongReplyError: A reply is not the one that the row expects.
    """
    if row.mode == "pingpong":
        return client.run("pingpong", address, row)
    if asked is not None:
        found = _posted(address, row, asked)
    elif row.mode == "calls":
        sent, reply = [row.body.start[5:], row.body.round[5:]], client.first_reply(address, row.body)[5:]
        found = callers.run(row.driver, address, sent, reply, streams=row.streams, calls=row.calls)
    elif row.driver == "client" or shutil.which("h2load") is None:
        found = client.run("load", address, row)
    else:
        found = {"seconds": h2load(address, row)}
    return {"rate": row.rate(found.pop("seconds")), **found}


def _posted(address: str, row: Row, asked: Question) -> dict[str, float]:
    """Send the same HTTP request over kept connections."""
    reply = asked.ask(address)
    if row.driver != "h2load":
        more = {"path": asked.path, "headers": asked.headers}
        return callers.run(row.driver, address, [asked.body], reply, streams=1, calls=row.calls, **more)
    url, headers = f"http://{address}{asked.path}", [f"{name}: {value}" for name, value in asked.headers.items()]
    text = _h2load(url, asked.body, ["--h1", "-c", str(row.streams), "-n", str(row.calls)], headers)
    seconds, data = parse(text)
    right = _RIGHT.search(text)
    if right is None or int(right[1]) != row.calls or data != row.calls * len(reply):
        raise WrongReplyError(f"{data} reply bytes, {row.calls * len(reply)} expected:\n{text}")
    return {"seconds": seconds}


def h2load(address: str, row: Row, *, connections: int = 1, core: int | None = DRIVER_CORE) -> float:
    """Run a row's calls by h2load and return the seconds; the row's ``streams`` are for each connection.

    Raises:
        WrongReplyError: The number of reply bytes is not calls x frames x (5 + frame length).
    """
    url = f"http://{address}/streaming.Riff/Invoke"
    flags = ["-c", str(connections), "-m", str(row.streams), "-n", str(row.calls)]
    seconds, data = parse(_h2load(url, row.body.data, flags, _headers(row.agent), core=core))
    check(row, data)
    return seconds


def loaded(url: str, body: bytes, *, streams: int, calls: int) -> tuple[float, int]:
    """Run h2load; return the seconds, and the bytes of DATA payload."""
    return parse(_h2load(url, body, ["-m", str(streams), "-n", str(calls)], _headers(AGENT)))


def _headers(agent: str) -> list[str]:
    return ["content-type: application/grpc", "te: trailers", f"user-agent: {agent}"]


def _h2load(
    url: str, body: bytes, flags: Sequence[str], headers: Sequence[str], *, core: int | None = DRIVER_CORE
) -> str:
    """Run h2load and return its report."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(body)
        file.flush()
        command = ["h2load", "-d", file.name, *flags]
        for header in headers:
            command += ["-H", header]
        done = subprocess.run(pinned(core, [*command, url]), capture_output=True, text=True, check=True, timeout=120)
    return done.stdout


def parse(text: str) -> tuple[float, int]:
    """Return the seconds and the bytes of DATA payload of an h2load report.

    Raises:
        ValueError: The text is not a report of h2load.
    """
    finished, data = _FINISHED.search(text), _DATA.search(text)
    if finished is None or data is None:
        raise ValueError(f"not a report of h2load:\n{text}")
    return float(finished[1]) * _SECONDS[finished[2]], int(data[1])


def check(row: Row, data: int) -> None:
    """Compare the number of reply bytes with the number that a row expects.

    Raises:
        WrongReplyError: The numbers differ.
    """
    if data != row.calls * row.body.expected:
        raise WrongReplyError(f"{data} reply bytes, {row.calls * row.body.expected} expected")
