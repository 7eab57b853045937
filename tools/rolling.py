"""``python -m tools rolling BEFORE``: replaces the code of a running server, and counts what was lost.

Two workers serve the tree of a commit through a symbolic link. Clients call functions over riff and HTTP, and keep
sessions of the tool bridge with variables of every kind. Then the link is changed to this tree, and the supervisor gets
SIGHUP, as docs/how-to/workers.md describes. No call may fail, and each session must keep its variables. This is done
once with sessions in an SQLite file, and once with sessions in Redis, if `redis-server` is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from invoker.client import SyncRiffClient, SyncToolBridge

__all__ = ["VALUES", "main"]

ROOT: Final = Path(__file__).resolve().parent.parent

VALUES: Final[dict[str, Any]] = {
    "text": "wörter",
    "number": 2**53 + 1,
    "fraction": 0.1,
    "truth": True,
    "nothing": None,
    "bytes": b"\x00\xff",
    "list": [1, "two", [3.5, None]],
    "mapping": {"a": {"b": [1]}},
}
"""The variables that each session must keep while the code is replaced."""

_FUNCTIONS: Final = """
from invoker import Context, function

@function
def square(x: int) -> int:
    return x * x

@function(isolation="process")
def apart(x: int) -> int:
    return x + 1

@function
def append(word: str, ctx: Context) -> int:
    words = ctx.variables.get("words", [])
    ctx.variables.set("words", [*words, word])
    return len(words) + 1
"""


@dataclass
class Counts:
    """The results of all callers.

    Attributes:
        calls: The number of calls that were answered, by the kind of caller.
        failures: A sentence for each call that failed or had a wrong answer.
        slowest_s: The duration of the longest call, in seconds.
    """

    calls: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    slowest_s: float = 0.0


class Callers:
    """Threads that make calls until they are stopped, each calls of one kind."""

    def __init__(self) -> None:
        self.counts = Counts()
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self, kind: str, call: Callable[[int], bool]) -> None:
        """Start a thread that makes calls, with the number of the call as argument; False means a wrong answer."""
        thread = threading.Thread(target=self._run, args=(kind, call), name=kind)
        self._threads.append(thread)
        thread.start()

    def stop(self) -> Counts:
        """Let each thread finish its current call, and stop."""
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        return self.counts

    def _run(self, kind: str, call: Callable[[int], bool]) -> None:
        number = 0
        while not self._is_over.is_set():
            number += 1
            began = time.monotonic()
            try:
                failure = "" if call(number) else "another answer"
            except Exception as error:  # noqa: BLE001 - every failure is counted
                failure = f"{type(error).__name__}: {error}"
            took_s = time.monotonic() - began
            with self._lock:
                self.counts.slowest_s = max(self.counts.slowest_s, took_s)
                if failure:
                    self.counts.failures.append(f"{kind}, call {number} after {took_s:.2f} s: {failure}")
                else:
                    self.counts.calls[kind] = self.counts.calls.get(kind, 0) + 1


class Server:
    """The process ``python -m invoker rolled --workers 2``, run from the folder to which a link leads.

    Args:
        work: The folder with the functions and the log.
        tree: The symbolic link.
        store: The value of INVOKER_STORE.
    """

    def __init__(self, work: Path, tree: Path, store: str) -> None:
        self.grpc, self.http = _free_port(), _free_port()
        self.log = work / "log"
        environment = {
            "PYTHONPATH": str(tree),
            "INVOKER_HOST": "127.0.0.1",
            "INVOKER_STORE": store,
            "INVOKER_CONNECTION_AGE_S": "2",
            "INVOKER_LOG_FORMAT": "text",
            "GRPC_PORT": str(self.grpc),
            "PORT": str(self.http),
        }
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "invoker", "rolled", "--workers", "2"],
                cwd=work, env=os.environ | environment, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def wait_for(self, text: str, count: int, limit_s: float = 60.0) -> None:
        """Wait until ``count`` lines of the log contain a text."""
        until = time.monotonic() + limit_s
        while self.log.read_text(encoding="utf-8").count(text) < count:
            if time.monotonic() > until or self._process.poll() is not None:
                raise SystemExit(f"no {count} lines with {text!r}:\n{self.log.read_text(encoding='utf-8')}")
            time.sleep(0.05)

    def reload(self) -> None:
        """Replace the workers."""
        self._process.send_signal(signal.SIGHUP)

    def close(self) -> int:
        """Stop the server, and return its exit code."""
        self._process.terminate()
        try:
            return self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


def roll(before: Path, store: str, *, sessions: int, settle_s: float) -> Counts:
    """Serve one tree, replace it by this one, and make calls before, during and after that.

    Args:
        before: The folder of the first tree.
        store: The value of INVOKER_STORE.
        sessions: The number of tool bridge sessions.
        settle_s: For how many seconds to make calls before and after the tree is replaced.
    """
    with ExitStack() as opened:
        work = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="rolling")))
        (work / "rolled.py").write_text(_FUNCTIONS, encoding="utf-8")
        tree = work / "current"
        tree.symlink_to(before)
        server = Server(work, tree, store)
        callers = Callers()
        try:
            server.wait_for("is ready", 2)
            checks = [opened.enter_context(_session(server, number, callers)) for number in range(sessions)]
            _call_functions(server, callers, opened)
            time.sleep(settle_s)
            (work / "next").symlink_to(ROOT)
            (work / "next").replace(tree)
            server.reload()
            server.wait_for("reloaded: 2 workers", 1)
            server.wait_for("has retired", 2)
            time.sleep(settle_s)
            counts = callers.stop()
            for check in checks:
                check()
        finally:
            callers.stop()
            code = server.close()
            shown = server.log.read_text(encoding="utf-8")
        if code or "Traceback" in shown:
            callers.counts.failures.append(f"the server ended with {code}; its log:\n{shown}")
        return counts


@contextmanager
def _session(server: Server, number: int, callers: Callers) -> Iterator[Callable[[], None]]:
    """Make a session with variables, and a thread that adds words to one; returns a final check of the variables."""
    name = f"session {number}"
    with SyncToolBridge(f"127.0.0.1:{server.grpc}") as bridge, bridge.session(name, keep=True) as session:
        for key, value in VALUES.items():
            session.variables.set(key, value)
        told = 0

        def append(call: int) -> bool:
            nonlocal told
            told += 1
            return bool(session.call("append", f"word {call}") == told)

        def check() -> None:
            with SyncToolBridge(f"127.0.0.1:{server.grpc}") as other, other.session(name) as again:
                for key, value in VALUES.items():
                    if (found := again.variables.get(key)) != value:
                        callers.counts.failures.append(f"{name}: '{key}' is {found!r}, not {value!r}")
                words = again.variables.get("words")
                if words != [f"word {call}" for call in range(1, told + 1)]:
                    callers.counts.failures.append(f"{name}: {len(words)} words of {told}, or in another order")

        callers.start("tool", append)
        yield check


def _call_functions(server: Server, callers: Callers, opened: ExitStack) -> None:
    client = opened.enter_context(SyncRiffClient(f"127.0.0.1:{server.grpc}"))

    def http(number: int) -> bool:
        request = urllib.request.Request(
            f"http://127.0.0.1:{server.http}/square",
            json.dumps({"x": number}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            return bool(json.load(response) == number * number)

    callers.start("http", http)

    def riff(function: str, number: int) -> int:
        return int(client.invoke([[number]], function=function).value())

    callers.start("riff", lambda number: riff("square", number) == number * number)
    callers.start("isolated", lambda number: riff("apart", number) == number + 1)


def main(arguments: list[str]) -> int:
    """Replace the tree of a commit by this one, with each store; returns 1 if anything was lost."""
    parser = argparse.ArgumentParser(prog="python -m tools rolling", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("before", help="a commit or tag whose tree is served first")
    parser.add_argument("--sessions", type=int, default=8, help="sessions of the tool bridge")
    parser.add_argument("--settle-s", type=float, default=3.0, help="seconds of calls before and after")
    said = parser.parse_args(arguments)
    is_lost = False
    with tempfile.TemporaryDirectory(prefix="before") as folder:
        packed = subprocess.run(
            ["git", "archive", said.before], cwd=ROOT, stdout=subprocess.PIPE, check=True
        ).stdout  # fmt: skip
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        for kind, store in _stores(Path(folder)):
            with store as url:
                counts = roll(Path(folder), url, sessions=said.sessions, settle_s=said.settle_s)
            is_lost |= bool(counts.failures)
            calls = ", ".join(f"{count} {name}" for name, count in sorted(counts.calls.items()))
            print(f"{kind}: {calls}; {len(counts.failures)} lost; the slowest took {counts.slowest_s:.2f} s")
            print("".join(f"  {one}\n" for one in counts.failures[:20]), end="", flush=True)
    return int(is_lost)


def _stores(folder: Path) -> Iterator[tuple[str, Any]]:
    yield "sqlite", _file(folder / "store.db")
    if program := shutil.which("redis-server"):
        yield "redis", _redis(program, folder / "redis.sock")
    else:
        print("redis: redis-server is not installed")


@contextmanager
def _file(path: Path) -> Iterator[str]:
    yield f"sqlite:{path}"


@contextmanager
def _redis(program: str, path: Path) -> Iterator[str]:
    served = subprocess.Popen(
        [program, "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(path.parent)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert served.stdout is not None
    with served.stdout as lines:
        if not any("ready to accept connections" in line for line in lines):
            raise SystemExit("redis-server has ended")
        yield f"unix://{path}"
        served.terminate()
        served.wait()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
