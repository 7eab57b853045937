"""`Forked`: a ``python -m invoker`` for tests that does not import the house again.

A server takes half a second of the processor to start, nearly all of it for imports, and tests start hundreds. One
process for each process of tests imports what a server imports and waits; each server is a fork of it, with its own
arguments, folder, environment and log. What a fork cannot show starts as everywhere else: see `is_forkable`.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent

# What is loaded when a server with default settings is ready, as far as its importers do not bring it along.
PRELOADED = (
    "invoker.cli.main",
    "invoker.cli.variables",
    "invoker.server.server",
    "invoker.server.life",
    "invoker.server.reload",
    "invoker.author.loader",
    "invoker.author.prepare",
    "invoker.server.endpoints.health",
    "invoker.server.endpoints.pages",
    "invoker.server.endpoints.reflection",
    "invoker.server.endpoints.statuses",
    "invoker.protocols.evergreen.service.action_engine",
    "invoker.protocols.evergreen.service.attach",
    "invoker.protocols.evergreen.service.sessions",
    "invoker.protocols.federated.service.attach",
    "invoker.protocols.graphpipe.service.attach",
    "invoker.protocols.riff.service.attach",
    "invoker.protocols.riff.service.describe",
    "invoker.protocols.riff.service.method",
    "invoker.protocols.toolbridge.service.attach",
    "invoker.protocols.toolbridge.service.bridge",
    "invoker.protocols.toolbridge.service.rpcs",
    "invoker.protocols.typed.codec",
    "invoker.protocols.typed.service.attach",
    "invoker.protocols.typed.service.web",
    "invoker.protocols.typed.session",
    "invoker.protocols.web.service.attach",
    "invoker.protocols.web.service.functions",
    "invoker.protocols.web.service.http",
    "invoker.protocols.web.service.page.attach",
    "invoker.protocols.web.service.sockets",
    "invoker.transports.grpc.fast",
    "invoker.transports.http.transport",
    "prometheus_client",
    "grpc._channel",
    "importlib.metadata",
    "encodings.idna",
)

# How the tests were started. What invoker reads from the environment it reads late, and the search path is set anew.
# gRPC reads its verbosity when it is imported, which `python -m invoker` does after it has chosen this one.
_CHOSEN = {"GRPC_VERBOSITY": "NONE"}
_AT_START = {**_CHOSEN, **os.environ}
_FOLLOWED = ("INVOKER_", "PORT", "GRPC_PORT", "PATH", "PYTEST_")
_LARGEST = 1 << 20


def is_forkable(environment: Mapping[str, str]) -> bool:
    """Whether only invoker itself reads what is different from the environment of the tests.

    The interpreter, the allocator, locales and libraries read theirs when a process starts or imports.
    """
    return sys.platform == "linux" and not _beyond(environment)


def _beyond(environment: Mapping[str, str]) -> set[str]:
    """The variables for whose sake it is not."""
    environment = {**_CHOSEN, **environment}
    changed = {name for name in {*environment, *_AT_START} if environment.get(name) != _AT_START.get(name)}
    if environment.get("PYTHONPATH") == str(ROOT):
        changed.discard("PYTHONPATH")
    return {name for name in changed if not name.startswith(_FOLLOWED)}


class Forked:
    """A process, with that part of `subprocess.Popen` that tests of servers use.

    Args:
        args: Of the command line.
        cwd: Its folder.
        env: Its environment.
        stdin: What it reads; None: nothing.
        stdout: Where it prints to; None: nowhere.
        stderr: Where it logs to; None: a pipe.
        on_warning: What it does with warnings, as ``-W`` has it.

    Attributes:
        pid: Its id.
        stderr: What it logs, if that goes to a pipe.
        returncode: As Popen has it; None while it runs.
    """

    def __init__(
        self,
        args: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: IO[Any] | None = None,
        stdout: IO[Any] | None = None,
        stderr: IO[Any] | None = None,
        on_warning: str = "",
    ) -> None:
        self.returncode: int | None = None
        self._ending, told = socket.socketpair()
        log, theirs = os.pipe()
        with told, Path(os.devnull).open("r+b") as nothing, os.fdopen(theirs, "wb") as pipe:
            request = {"args": [*args], "cwd": str(cwd), "env": {**env}, "warnings": on_warning}
            streams = (stdin or nothing, stdout or nothing, stderr or pipe, told)
            _server().start(request, [one.fileno() for one in streams])
        self.stderr = os.fdopen(log, encoding="utf-8")
        if stderr is not None:
            self.stderr.close()
        self.pid = int.from_bytes(self._told(), "big")

    def poll(self) -> int | None:
        """Its exit code if it has ended."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"python -m invoker, pid {self.pid}", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM, unless it has ended."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL, unless it has ended."""
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout_s: float | None) -> int | None:
        if self.returncode is None and select.select([self._ending], [], [], timeout_s)[0]:
            self.returncode = int.from_bytes(self._told(), "big", signed=True)
            self._ending.close()
        return self.returncode

    def _told(self) -> bytes:
        if not (number := self._ending.recv(4)):
            raise RuntimeError("the process that starts and watches servers for tests has ended")
        return number


class _Server:
    """The process that forks, as the tests see it."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            fd = theirs.fileno()
            command = [sys.executable, "-m", "tests.forkserver", str(fd)]
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=_AT_START, pass_fds=[fd], stdin=subprocess.DEVNULL, start_new_session=True
            )

    def start(self, request: Mapping[str, Any], fds: Sequence[int]) -> None:
        socket.send_fds(self._requests, [json.dumps(request).encode()], [*fds])


def _server(_made: list[_Server] = [], _lock: threading.Lock = threading.Lock()) -> _Server:  # noqa: B006, B008
    """The one of this process. A second one, made by another thread, would end the first with all that it started."""
    with _lock:
        if not _made or _made[0].owner != os.getpid():
            _made[:] = [_Server()]
        return _made[0]


def serve(requests: socket.socket) -> None:
    """Fork for each request, and report each end, until nobody asks any more; then kill what still runs."""
    poll = select.poll()
    poll.register(requests, select.POLLIN)
    running: dict[int, tuple[int, socket.socket]] = {}
    while True:
        for fd, _ in poll.poll():
            if fd in running:
                poll.unregister(fd)
                _report(fd, *running.pop(fd))
                continue
            text, fds, _, _ = socket.recv_fds(requests, _LARGEST, 4)
            if not text:
                for pid, _ in running.values():
                    os.kill(pid, signal.SIGKILL)
                return
            pid = os.fork()
            if pid == 0:
                for one in (requests, *(ending for _, ending in running.values())):
                    one.detach()  # the descriptors are closed below, and may then be others
                _become(json.loads(text), *fds)
            watch = os.pidfd_open(pid)
            running[watch] = pid, socket.socket(fileno=fds[3])
            running[watch][1].send(pid.to_bytes(4, "big"))
            poll.register(watch, select.POLLIN)
            for one in fds[:3]:
                os.close(one)


def _report(watch: int, pid: int, ending: socket.socket) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(watch)
    with ending, contextlib.suppress(OSError):
        ending.send(code.to_bytes(4, "big", signed=True))


def _become(request: Mapping[str, Any], *fds: int) -> NoReturn:
    """Turn into the program that was asked for."""
    os.setsid()
    for number, fd in enumerate(fds[:3]):
        os.dup2(fd, number)
    os.closerange(3, max(int(one.name) for one in Path("/proc/self/fd").iterdir()) + 1)
    sys.stdin = sys.__stdin__ = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", 1, "utf-8", "backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    path = request["env"].get("PYTHONPATH", "")
    sys.path[:1] = [request["cwd"], *filter(None, path.split(os.pathsep))]
    if request["warnings"]:
        warnings.simplefilter(request["warnings"])
    sys.argv[:] = ["invoker", *request["args"]]
    runpy.run_module("invoker", run_name="__main__", alter_sys=True)
    sys.exit(0)


if __name__ == "__main__":
    for module in PRELOADED:
        import_module(module)
    serve(socket.socket(fileno=int(sys.argv[1])))
