"""The servers under test, each pinned to core 0: bare servers, C++, invoker, other frameworks, and a running peer."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

from benchmarks.http2 import AGENT
from benchmarks.rows import Row

SERVER_CORE, DRIVER_CORE = 0, 1
CPP_ECHO = Path(__file__).parent.parent / "build" / "bench" / "echo"
STYLES = {
    "gen": "sync generator",
    "agen": "async generator",
    "reply": "sync request/reply",
    "areply": "async request/reply",
}
PEERS = {
    "fastapi": "FastAPI on uvicorn, def",
    "afastapi": "FastAPI on uvicorn, async def",
    "uvicorn": "bare ASGI echo on uvicorn",
    "starlette": "Starlette on uvicorn, def",
    "astarlette": "Starlette on uvicorn, async def",
    "functions": "functions-framework on gunicorn",
    "litserve": "LitServe",
}
PEER_PYTHON = Path(__file__).parent.parent / "build" / "peers" / "bin" / "python"
_ECHOES = ("echo", "json", "zip", "headers")
# The works that some of PEERS can do; the others do all.
_SERVED = {"functions": ("square", "echo"), "litserve": ("square", "tensor"), "starlette": (), "astarlette": ()}
_STREAMS = {"items": "items", "paced": "paced", "open": "open", "lines": "json"}
"""Works of rows of streams, with the suffix of the function's name."""
_STREAMERS = ("limit", "gen", "agen", "starlette", "astarlette")
_ONLY = {"paced": ("agen", "astarlette"), "lines": ("limit", "gen", "agen", "astarlette")}
_TALKERS = ("limit", "agen", "astarlette")
_ARRAYS = {"reply": "benchmarks.models:same", "areply": "benchmarks.models:asame"}
_MANY_ITEMS = 1000
# Factors for a row's number of requests, since HTTP servers differ in speed by more than ten times.
_POST_WEIGHTS = {"uvicorn": 5.0, "reply": 5.0, "areply": 5.0, "litserve": 0.5, "functions": 0.5}


class StartError(Exception):
    """A server did not become ready."""


@dataclass(frozen=True, slots=True)
class Series:
    """One column of the tables: a server, or a style of function on invoker.

    ``base`` is bare, cpp, limit, peer, a style or one of PEERS; ``driver`` is invoker's ``--grpc-driver``. ``program``
    is the command of an older invoker for comparison.
    """

    name: str
    label: str
    base: str
    driver: str = ""
    address: str = ""
    program: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether the server is invoker with benchmarks/functions.py."""
        return self.base in STYLES

    def weight(self, row: Row) -> float:
        """Return the factor for a row's number of calls, so that every server takes a similar time."""
        if row.each > _MANY_ITEMS and self.base == "starlette":
            return 0.25  # it calls a thread for each item
        if row.driver != "h2load":
            return 1.0
        if row.mode == "posts":
            return 1.0 if self.program else _POST_WEIGHTS.get(self.base, 1.0)
        return {"cpp": 4.0, "bare": 1.0, "peer": 2.0}.get(self.base, 1.0 if self.driver == "aio" else 2.0)

    def serves(self, row: Row) -> bool:
        """Whether this server can do a row's work; a peer only gets rows that half-close late."""
        if row.is_stream:
            return self._streams(row)
        if row.mode == "posts":
            if self.base in PEERS:
                return row.work in _SERVED.get(self.base, (row.work,))
            return self.base in _ARRAYS and self.driver == "auto"
        if (
            self.base == "limit"
            or self.base in PEERS
            or (self.driver == "aio" and (row.mode == "calls" or row.agent != AGENT))
        ):
            return False
        if self.base == "bare":
            return True
        if self.base == "cpp":
            return row.work in _ECHOES
        if self.base == "peer":
            return row.work == "echo" and (row.driver == "client" or row.mode == "pingpong")
        return row.work in _ECHOES or self.base == "agen"

    def _streams(self, row: Row) -> bool:
        """Whether this server can do a row of streams; some works are for async functions only."""
        if self.program or self.driver == "aio":
            return False
        return self.base in (_TALKERS if row.mode == "talk" else _ONLY.get(row.work, _STREAMERS))

    def command(self, work: str, extra: Sequence[str] = ()) -> list[str]:
        """Return the command that starts the server."""
        plain = "echo" if work == "json" else work
        if self.base in {"bare", "limit"}:
            return [sys.executable, "-m", f"benchmarks.{'bare_http' if self.base == 'limit' else 'bare'}", plain]
        if self.base == "cpp":
            return [str(CPP_ECHO), plain]
        if self.base in PEERS:
            return [str(PEER_PYTHON), str(Path(__file__).parent / "peer.py"), self.base, work]
        name = self.base if work == "echo" else f"{self.base}_{_STREAMS.get(work, work)}"
        return ours(
            _ARRAYS[self.base] if work == "tensor" else name, driver=self.driver, extra=extra, program=self.program
        )


def ours(function: str, *, driver: str = "", extra: Sequence[str] = (), program: str = "") -> list[str]:
    """Return the command that serves a function of benchmarks/functions.py, or another ``module:function``."""
    entrypoint = function if ":" in function else f"benchmarks.functions:{function}"
    command = [*([program] if program else [sys.executable, "-m", "invoker"]), entrypoint]
    command += ["--host", "127.0.0.1", "--grpc-port", "0", "--port", "0", *extra]
    if driver and has_flag("--grpc-driver"):
        command += ["--grpc-driver", driver]
    return command


@cache
def has_flag(flag: str) -> bool:
    """Whether this version of invoker has a flag."""
    text = subprocess.run([sys.executable, "-m", "invoker", "--help"], capture_output=True, text=True, check=True)
    return flag in text.stdout


def all_series(peer: str, before: str = "") -> list[Series]:
    """Return all columns in the order of the tables, with those that `absences` lists.

    Args:
        peer: ``host:port`` of a running server, or "".
        before: The folder of an older checkout that has a .venv, or "".
    """
    found = [Series("bare", "bare grpc.aio echo", "bare"), Series("cpp", "C++ callback echo", "cpp")]
    found += [Series(style, label, style, "auto") for style, label in STYLES.items()]
    found += [Series(f"{style}-aio", f"{label}, aio", style, "aio") for style, label in STYLES.items()]
    found += [Series(base, label, base) for base, label in PEERS.items()]
    found.append(Series("limit", "prepared bytes: the limit of the client", "limit"))
    if before:
        program = str(Path(before) / ".venv" / "bin" / "invoker")
        found += [
            Series(f"{style}-before", f"{label}, before", style, "auto", program=program)
            for style, label in STYLES.items()
        ]
    if peer:
        found.append(Series("peer", f"peer {peer}", "peer", address=peer))
    return found


def absences() -> dict[str, str]:
    """Return the bases and drivers of columns that cannot be measured here, each with the reason."""
    missing = {}
    if not CPP_ECHO.exists():
        missing["cpp"] = "no C++ echo (Debian: libgrpc++-dev libprotobuf-dev protobuf-compiler-grpc; then `make bench`)"
    if not PEER_PYTHON.exists():
        reason = "no FastAPI, uvicorn, functions-framework, LitServe: they are not installed (`make bench`)"
        missing |= dict.fromkeys(PEERS, reason)
    if not has_flag("--grpc-driver"):
        missing["aio"] = "this invoker has no --grpc-driver: one driver only"
    return missing


def pinned(core: int | None, command: list[str]) -> list[str]:
    """Pin a command to one core, if taskset is installed."""
    return ["taskset", "-c", str(core), *command] if core is not None and shutil.which("taskset") else command


def end_with_servers() -> None:
    """Turn SIGTERM and SIGHUP into SystemExit, so that the servers are stopped."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))


@contextmanager
def serving(
    command: list[str], *, core: int | None = SERVER_CORE, transport: str = "grpc"
) -> Iterator[tuple[str, int]]:
    """Run a server during the block, which gets the address of ``transport`` and the process id."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(pinned(core, command), stdout=log, stderr=log, start_new_session=True)
        try:
            yield _address(process, log, transport), process.pid
        finally:
            with suppress(ProcessLookupError):
                # kills workers too, and does not wait for calls that a row left open on purpose
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _address(process: subprocess.Popen[bytes], log: IO[bytes], transport: str) -> str:
    ready = re.compile(rf"{transport}=([^\s,\"]+)")
    until = time.monotonic() + 30
    while time.monotonic() < until and process.poll() is None:
        if found := ready.search(_written(log)):
            return found[1]
        time.sleep(0.01)
    raise StartError(f"{process.args!r} did not start\n{_written(log)}")


def _written(log: IO[bytes]) -> str:
    """Return the log's text without moving the file offset, which the server shares."""
    return os.pread(log.fileno(), 1 << 20, 0).decode("utf-8", "replace")
