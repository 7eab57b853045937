"""`serving`: a real ``python -m invoker`` process on free loopback ports, for tests that judge from outside."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import SLOW

ROOT = Path(__file__).resolve().parent.parent
READY = re.compile(r"\bgrpc=(\S+?:\d+)(?: http=(\S+?:\d+))?")
START_S = 10.0
STOP_S = 10.0


@dataclass
class Served:
    """A running server.

    Attributes:
        grpc: ``host:port``.
        http: ``host:port``, or empty when that transport is closed.
        lines: What it has logged so far.
        exit_code: Once it has ended.
    """

    grpc: str = ""
    http: str = ""
    lines: list[str] = field(default_factory=list)
    exit_code: int | None = None


@contextmanager
def serving(entrypoint: str, *args: str, env: Mapping[str, str] | None = None) -> Iterator[Served]:
    """Serve an entrypoint of this tree until the block ends.

    Raises:
        RuntimeError: It does not become ready, or does not end with exit code 0.
    """
    settings = {"INVOKER_HOST": "127.0.0.1", "GRPC_PORT": "0", "PORT": "0", **(env or {})}
    process = subprocess.Popen(
        [sys.executable, "-m", "invoker", entrypoint, *args],
        cwd=ROOT,
        env={**os.environ, **settings},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    served, settled = Served(), threading.Event()
    reader = threading.Thread(target=_read, args=(process, served, settled), name=f"log of {process.pid}")
    reader.start()
    try:
        if not settled.wait(START_S * SLOW) or not served.grpc:
            raise RuntimeError(f"{entrypoint} did not become ready:\n" + "".join(served.lines))
        yield served
        process.send_signal(signal.SIGTERM)
        served.exit_code = process.wait(STOP_S * SLOW)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        reader.join()
    if served.exit_code != 0:
        raise RuntimeError(f"{entrypoint} ended with exit code {served.exit_code}:\n" + "".join(served.lines))


def _read(process: subprocess.Popen[str], served: Served, settled: threading.Event) -> None:
    assert process.stderr is not None
    with process.stderr as lines:
        for line in lines:
            served.lines.append(line)
            if not settled.is_set() and (match := READY.search(line)):
                served.grpc, served.http = match[1], match[2] or ""
                settled.set()
    settled.set()
