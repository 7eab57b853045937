"""`Forked`: a ``python -m invoker`` for tests that does not import the house again.

A server takes half a second of the processor to start, nearly all of it for imports, and tests start hundreds. One
process for each process of tests imports what a server imports and waits; each server is a fork of it, with its own
arguments, folder, environment and log. What a fork cannot show starts as everywhere else: see `is_forkable`.

`install` makes a ``python`` that shells and `subprocess` start, and that is such a fork as well.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import fcntl
import gc
import marshal
import os
import runpy
import select
import shlex
import signal
import socket
import subprocess
import sys
import threading
import types
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NoReturn

from tests.forkedchild import use
from tests.forkwarm import warm

ROOT = Path(__file__).resolve().parent.parent

# What is loaded when a server with default settings is ready, as far as its importers do not bring it along.
PRELOADED = (
    "invoker.cli.main",
    "invoker.cli.variables",
    "invoker.server.server",
    "invoker.server.life",
    "invoker.server.reload",
    "invoker.server.isolated",
    "invoker.server.supervisor",
    "invoker.author.loader",
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

# How the tests were started. What invoker and functions read from it they read late, and the search path is set anew.
# gRPC reads its verbosity when it is imported, which `python -m invoker` does after it has chosen this one.
_CHOSEN = {"GRPC_VERBOSITY": "NONE"}
_AT_START = {**_CHOSEN, **os.environ}
_FOLLOWED = ("INVOKER_", "PORT", "GRPC_PORT", "PATH", "PYTEST_", "TEST_", "OPENAI_")
_OF_SHELLS = {"_", "COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL"}


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
            flags = ["-W", on_warning] if on_warning else []
            request = {"args": [*flags, "-m", "invoker", *args], "cwd": str(cwd), "env": {**env}, "open": [0, 1, 2]}
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


def address() -> bytes:
    """Where others ask for forks: the process that forks for this one."""
    return _server().address


def install(folder: Path) -> Path:
    """Make a ``python`` and an ``invoker`` in a folder that are forks: see `tests.forkclient`.

    What the caller limits, such as ``ulimit -v``, does not limit a fork.
    """
    hexed = address().hex()
    for name, args in (("python", ""), ("invoker", "-m invoker ")):
        words = [sys.executable, "-I", "-S", str(Path(__file__).with_name("forkclient.py")), sys.executable, hexed]
        (folder / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} {args}"$@"\n')
        (folder / name).chmod(0o755)
    return folder / "python"


class _Server:
    """The process that forks, as the tests see it.

    Attributes:
        owner: The process that started it.
        address: Where others ask it for forks.
    """

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(b"")  # the system chooses a name that nobody has
            listener.listen()
            self.address: bytes = listener.getsockname()
            fds = [theirs.fileno(), listener.fileno()]
            command = [sys.executable, "-m", "tests.forkserver", *map(str, fds)]
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=_AT_START, pass_fds=fds, stdin=subprocess.DEVNULL, start_new_session=True
            )

    def start(self, request: Mapping[str, Any], fds: Sequence[int]) -> None:
        socket.send_fds(self._requests, [marshal.dumps(request)], [*fds])


def _server(_made: list[_Server] = [], _lock: threading.Lock = threading.Lock()) -> _Server:  # noqa: B006, B008
    """The one of this process. A second one, made by another thread, would end the first with all that it started."""
    with _lock:
        if not _made or _made[0].owner != os.getpid():
            _made[:] = [_Server()]
        return _made[0]


def serve(requests: socket.socket, listener: socket.socket) -> None:
    """Fork for each request, and report each end, until the tests are over; then kill what still runs."""
    poll = select.poll()
    for one in (requests, listener):
        poll.register(one, select.POLLIN)
    running: dict[int, tuple[int, socket.socket]] = {}
    bound: dict[int, int] = {}  # by the descriptor that closes: whom that kills
    while True:
        for fd, _ in poll.poll():
            if fd in bound:
                poll.unregister(fd)
                os.kill(bound.pop(fd), signal.SIGKILL)
                continue
            if fd in running:
                poll.unregister(fd)
                pid, ending = running.pop(fd)
                if bound.pop(ending.fileno(), None):
                    poll.unregister(ending)
                _report(fd, pid, ending)
                continue
            if fd not in (requests.fileno(), listener.fileno()):
                continue  # it was closed by what came before it
            asked = listener.accept()[0] if fd == listener.fileno() else requests
            text, fds, _, _ = socket.recv_fds(asked, 1 << 20, 5)
            if asked is not requests and (not text or not _is_served(marshal.loads(text))):
                asked.close()
                _close(fds)
                continue
            if not text:
                for pid, _ in running.values():
                    os.kill(pid, signal.SIGKILL)
                return
            request = marshal.loads(text)
            ending = socket.socket(fileno=fds.pop()) if asked is requests else asked
            pid = _forked(request, fds, listener, (requests, ending, *(ending for _, ending in running.values())))
            watch = os.pidfd_open(pid)
            running[watch] = pid, ending
            ending.send(pid.to_bytes(4, "big"))
            poll.register(watch, select.POLLIN)
            if request.get("bound"):
                bound[ending.fileno()] = pid
                poll.register(ending, 0)  # no event but that the other end is closed
            _close(fds)


def _forked(request: Mapping[str, Any], fds: list[int], listener: socket.socket, ours: Sequence[socket.socket]) -> int:
    """The id of a fork, which becomes what was asked for."""
    pid = os.fork()
    if pid == 0:
        use(listener.getsockname())
        for one in (listener, *ours):
            one.detach()  # the descriptors are closed below, and may then be others
        _become(request, fds)
    return pid


def _close(fds: Sequence[int]) -> None:
    for one in fds:
        os.close(one)


def _report(watch: int, pid: int, ending: socket.socket) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(watch)
    with ending, contextlib.suppress(OSError):
        ending.send(code.to_bytes(4, "big", signed=True))


def _is_served(request: Mapping[str, Any]) -> bool:
    """Whether a fork shows what somebody starts by a command line of Python."""
    warned, args = _split(request["args"])
    is_known = bool(args) and (args[0] in ("-c", "-m") or not args[0].startswith("-"))
    return is_known and all(one.isalpha() for one in warned) and not _beyond(request["env"]) - _OF_SHELLS


def _split(args: list[str]) -> tuple[list[str], list[str]]:
    """What ``-W`` says, and the rest."""
    warned = []
    while args[:1] == ["-W"]:
        warned.append(args[1])
        args = args[2:]
    return warned, args


def _become(request: Mapping[str, Any], fds: list[int]) -> NoReturn:
    """Turn into the program that was asked for.

    Where it ends by itself, what is left of it is not taken apart, which takes ten times as long as the fork did. Only
    those that have to show what is left do so: commands for which warnings are errors, and whatever has daemon threads.
    """
    try:
        _turn(request, fds)
    except SystemExit as ended:
        if isinstance(ended.code, int | None) and "-W" not in request["args"]:
            _ending[os.getpid()] = ended.code or 0
        raise


_ending: dict[int, int] = {}
"""The code with which this process ends, by its id, since its own forks are others."""


def _leave() -> None:
    """End at once, when all else is done that is to be done at the end of a process."""
    code = _ending.get(os.getpid())
    if code is None or threading.active_count() > 1:
        return
    gc.collect()
    with contextlib.suppress(OSError, ValueError):
        for one in filter(None, (sys.stdout, sys.stderr)):
            one.flush()
        os._exit(code & 0xFF)


def _turn(request: Mapping[str, Any], fds: list[int]) -> NoReturn:
    os.setsid()
    _take_streams(dict(zip(request["open"], fds, strict=True)))
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    warned, args = _split(request["args"])
    for one in warned:
        warnings.simplefilter(one)  # type: ignore[arg-type]  # `_is_served` has looked
    path = filter(None, request["env"].get("PYTHONPATH", "").split(os.pathsep))
    if args[0] == "-m":
        sys.path[:1] = [request["cwd"], *path]
        sys.argv[:] = args[1:]
        runpy.run_module(args[1], run_name="__main__", alter_sys=True)
        sys.exit(0)
    is_text = args[0] == "-c"
    sys.path[:1] = ["" if is_text else str(Path(args[0]).resolve().parent), *path]
    sys.argv[:] = ["-c", *args[2:]] if is_text else args
    program = sys.modules["__main__"] = types.ModuleType("__main__")
    program.__dict__.update({"__builtins__": builtins, **({} if is_text else {"__file__": args[0]})})
    text: str | bytes = args[1] if is_text else Path(args[0]).read_bytes()
    exec(compile(text, "<string>" if is_text else args[0], "exec", dont_inherit=True), program.__dict__)
    sys.exit(0)


def _take_streams(given: Mapping[int, int]) -> None:
    """Have these descriptors, and no other; a standard stream that is not given is closed, as Python has it: None."""
    first = 1 + max({2, *given})
    for number, fd in [(number, fcntl.fcntl(fd, fcntl.F_DUPFD, first)) for number, fd in given.items()]:
        os.dup2(fd, number)
    for number in {*range(first)} - given.keys():
        with contextlib.suppress(OSError):
            os.close(number)
    os.closerange(first, max(int(one.name) for one in Path("/proc/self/fd").iterdir()) + 1)
    modes = {0: ("r", -1, "strict"), 1: ("w", -1, "strict"), 2: ("w", 1, "backslashreplace")}
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        mode, buffering, errors = modes[number]
        one = os.fdopen(number, mode, buffering, "utf-8", errors, closefd=False) if number in given else None
        setattr(sys, name, one)
        setattr(sys, f"__{name}__", one)


if __name__ == "__main__":
    atexit.register(_leave)  # the first that is registered comes last
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored if the tests run in the background
    for module in PRELOADED:
        import_module(module)
    warm([str(ROOT), *filter(None, _AT_START.get("PYTHONPATH", "").split(os.pathsep))])
    gc.collect()
    gc.freeze()  # the collector of a fork looks at what the fork has made, and not at what it shares
    serve(*(socket.socket(fileno=int(one)) for one in sys.argv[1:]))
