"""Starts servers of this tree as processes, on free ports of the loopback interface."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.process import processor_s

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = (sys.executable, "-m", "invoker")
_READY = re.compile(r"\bgrpc=(\S+?:\d+) http=(\S+?:\d+)")
_START_S, _STOP_S, _POLL_S = 60.0, 20.0, 0.001


@dataclass(frozen=True, slots=True)
class Server:
    """A server that is ready.

    Attributes:
        grpc: The gRPC address, ``host:port``.
        http: The HTTP address, ``host:port``.
        pid: The id of its process.
        ready_s: The time from its start to its ready line, in seconds.
        processor_s: The processor time of this start, in seconds.
    """

    grpc: str
    http: str
    pid: int
    ready_s: float
    processor_s: float


@contextmanager
def serving(
    entrypoint: str, *, program: Sequence[str] = PROGRAM, env: Mapping[str, str] | None = None, log: Path | None = None
) -> Iterator[Server]:
    """A context in which an entrypoint is served with all default protocols.

    Args:
        entrypoint: The entrypoint.
        program: The command to which the entrypoint is appended.
        env: Environment variables, in addition to those of this process.
        log: The file for its output; a temporary file by default.

    Raises:
        RuntimeError: The server did not become ready.
    """
    command = [*program, entrypoint, "--host", "127.0.0.1", "--grpc-port", "0", "--port", "0"]
    with tempfile.TemporaryDirectory() as folder:
        file = log or Path(folder, "log")
        began = time.perf_counter()
        with file.open("wb") as out:
            process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **(env or {})}, stdout=out, stderr=out)
        try:
            grpc, http = _addresses(process, file)
            yield Server(grpc, http, process.pid, time.perf_counter() - began, processor_s(process.pid))
        finally:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _addresses(process: subprocess.Popen[bytes], log: Path) -> tuple[str, str]:
    until = time.monotonic() + _START_S
    while time.monotonic() < until and process.poll() is None:
        if found := _READY.search(log.read_text(encoding="utf-8", errors="replace")):
            return found[1], found[2]
        time.sleep(_POLL_S)
    raise RuntimeError(f"{process.args!r} did not become ready: {log.read_text(errors='replace')[-2000:]}")
