"""Throughput by h2load, pinned to core 1; every reply byte is counted, since h2load looks at the HTTP status only."""

from __future__ import annotations

import re
import subprocess
import tempfile

from benchmarks.rows import Row
from benchmarks.servers import DRIVER_CORE, pinned

_FINISHED = re.compile(r"finished in ([0-9.]+)(us|ms|s)\b")
_DATA = re.compile(r"\((\d+)\) data")
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


class WrongReplyError(Exception):
    """Other bytes came back than the row expects."""


def load(address: str, row: Row, *, core: int | None = DRIVER_CORE) -> float:
    """Seconds that h2load needs for a row.

    Raises:
        WrongReplyError: The reply bytes are not calls x frames x (5 + frame length).
    """
    with tempfile.NamedTemporaryFile() as body:
        body.write(row.body.data)
        body.flush()
        command = ["h2load", "-c", str(row.connections), "-m", str(row.streams), "-n", str(row.calls), "-d", body.name]
        command += ["-H", "content-type: application/grpc", "-H", "te: trailers"]
        command += [f"http://{address}/streaming.Riff/Invoke"]
        text = subprocess.run(pinned(core, command), capture_output=True, text=True, check=True).stdout
    seconds, data = parse(text)
    if data != row.calls * row.body.expected:
        raise WrongReplyError(f"{row.name}: {data} reply bytes, {row.calls * row.body.expected} expected\n{text}")
    return seconds


def parse(text: str) -> tuple[float, int]:
    """h2load's report: seconds, and bytes of DATA payload.

    Raises:
        ValueError: It is no such report.
    """
    finished, data = _FINISHED.search(text), _DATA.search(text)
    if finished is None or data is None:
        raise ValueError(f"not a report of h2load:\n{text}")
    return float(finished[1]) * _SECONDS[finished[2]], int(data[1])
