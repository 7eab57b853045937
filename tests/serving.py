"""`serving`: a real ``python -m invoker`` process on free loopback ports, for tests that judge from outside."""

from __future__ import annotations

import atexit
import functools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from invoker import testing
from tests.conftest import SLOW
from tests.forkserver import Forked, install, is_forkable

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
    process = start([entrypoint, *args], cwd=ROOT, env={**os.environ, **settings})
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


def start(
    args: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdout: IO[str] | None = None
) -> subprocess.Popen[str] | Forked:
    """``python -m invoker ARGS`` in a session of its own; its log is to be read from ``stderr``."""
    if is_forkable(env):
        return Forked(args, cwd=cwd, env=env, stdout=stdout)
    return subprocess.Popen(
        [sys.executable, "-m", "invoker", *args],
        cwd=cwd,
        env=env,
        stdout=stdout or subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )


def run(
    *args: str,
    stdin: bytes = b"",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    on_warning: str = "error",
    timeout_s: float = 20.0,
) -> subprocess.CompletedProcess[bytes]:
    """What ``python -m invoker ARGS`` prints, and its exit code; stdin, stdout and stderr are files."""
    wanted = {**os.environ, **(env or {})}
    with ExitStack() as stack:
        given, printed, logged = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        given.write(stdin)
        given.seek(0)
        streams = {"stdin": given, "stdout": printed, "stderr": logged}
        made: Forked | subprocess.Popen[bytes]
        if is_forkable(wanted):
            made = Forked(args, cwd=cwd or Path.cwd(), env=wanted, on_warning=on_warning, **streams)
        else:
            flags = ["-W", on_warning] if on_warning else []
            command = [sys.executable, *flags, "-m", "invoker", *args]
            made = subprocess.Popen(command, cwd=cwd, env=wanted, **streams)
        try:
            code = made.wait(timeout_s)
        finally:
            made.kill()
        for one in (printed, logged):
            one.seek(0)
        return subprocess.CompletedProcess(args, code, printed.read(), logged.read())


@functools.cache
def forked_python() -> str:
    """A ``python`` whose programs are forks: see `tests.forkserver.install`."""
    folder = tempfile.mkdtemp(prefix="invoker-python-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return str(install(Path(folder)))


class TestServer(testing.TestServer):
    """The harness of authors, which starts by a fork where that shows the same."""

    def _started(self, arguments: Sequence[str]) -> Any:
        if not is_forkable(os.environ):
            return super()._started(arguments)
        return Forked(arguments, cwd=Path.cwd(), env=os.environ, stdout=self._log, stderr=self._log)


def _read(process: subprocess.Popen[str] | Forked, served: Served, settled: threading.Event) -> None:
    assert process.stderr is not None
    with process.stderr as lines:
        for line in lines:
            served.lines.append(line)
            if not settled.is_set() and (match := READY.search(line)):
                served.grpc, served.http = match[1], match[2] or ""
                settled.set()
    settled.set()
