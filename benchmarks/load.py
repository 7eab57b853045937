"""One measurement: by h2load, or by our own client where h2load is missing or the row asks for it, pinned to core 1.

Every reply byte is counted, since h2load looks at the HTTP status only.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile

from benchmarks import client
from benchmarks.bodies import WrongReplyError
from benchmarks.http2 import AGENT
from benchmarks.rows import Row
from benchmarks.servers import DRIVER_CORE, pinned

_FINISHED = re.compile(r"finished in ([0-9.]+)(us|ms|s)\b")
_DATA = re.compile(r"\((\d+)\) data")
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


def measure(address: str, row: Row) -> dict[str, float]:
    """``rate`` of a load; ``p50`` and ``p99`` of a ping-pong in microseconds.

    Raises:
        WrongReplyError: The reply bytes are not those that the row expects.
    """
    if row.mode == "pingpong":
        return client.run("pingpong", address, row)
    if row.driver == "client" or shutil.which("h2load") is None:
        return {"rate": row.rate(client.run("load", address, row)["seconds"])}
    return {"rate": row.rate(h2load(address, row))}


def h2load(address: str, row: Row, *, connections: int = 1, core: int | None = DRIVER_CORE) -> float:
    """Seconds that h2load needs for a row; ``streams`` is for each connection.

    Raises:
        WrongReplyError: The reply bytes are not calls x frames x (5 + frame length).
    """
    url = f"http://{address}/streaming.Riff/Invoke"
    seconds, data = loaded(url, row.body.data, streams=row.streams, calls=row.calls, connections=connections, core=core)
    check(row, data)
    return seconds


def loaded(
    url: str, body: bytes, *, streams: int, calls: int, connections: int = 1, core: int | None = DRIVER_CORE
) -> tuple[float, int]:
    """Run h2load: seconds, and bytes of DATA payload."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(body)
        file.flush()
        command = ["h2load", "-c", str(connections), "-m", str(streams), "-n", str(calls), "-d", file.name]
        command += ["-H", "content-type: application/grpc", "-H", "te: trailers", "-H", f"user-agent: {AGENT}", url]
        text = subprocess.run(pinned(core, command), capture_output=True, text=True, check=True, timeout=120).stdout
    return parse(text)


def parse(text: str) -> tuple[float, int]:
    """h2load's report: seconds, and bytes of DATA payload.

    Raises:
        ValueError: It is no such report.
    """
    finished, data = _FINISHED.search(text), _DATA.search(text)
    if finished is None or data is None:
        raise ValueError(f"not a report of h2load:\n{text}")
    return float(finished[1]) * _SECONDS[finished[2]], int(data[1])


def check(row: Row, data: int) -> None:
    """Compare reply bytes with what a row expects.

    Raises:
        WrongReplyError: There are more or less.
    """
    if data != row.calls * row.body.expected:
        raise WrongReplyError(f"{data} reply bytes, {row.calls * row.body.expected} expected")
