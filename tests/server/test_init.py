"""The first process of a container, in a namespace of its own; needs the right to make one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import SLOW
from tests.serving import READY

pytestmark = pytest.mark.timeout(30)

UNSHARE = ["unshare", "--pid", "--fork", "--mount-proc"]
MODULE = """
import os, signal, subprocess, time
from invoker import function

@function
def orphans(x: int) -> int:
    for _ in range(x):
        subprocess.run(["sh", "-c", "sleep 0.05 &"], check=True)
    until = time.monotonic() + 10
    while (left := sleepers()) and time.monotonic() < until:
        time.sleep(0.01)
    return left

def sleepers() -> int:
    # Of the programs above, those that run, and those that have ended and are zombies.
    found = 0
    for one in os.listdir("/proc"):
        try:
            with open(f"/proc/{one}/comm") as file:
                found += file.read() == "sleep\\n"
        except OSError:
            pass  # no process, or none any more
    return found

@function
def own(x: int) -> int:
    return subprocess.run(["sh", "-c", f"exit {x}"], check=False).returncode

@function
def dies(x: int) -> int:
    os.kill(os.getpid(), x)
    time.sleep(5)
"""


def can_unshare() -> bool:
    try:
        return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@contextmanager
def first(folder: Path, *args: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """An invoker that is the first process of a namespace, and its HTTP address."""
    (folder / "author.py").write_text(MODULE)
    process = subprocess.Popen(
        [*UNSHARE, "--kill-child", sys.executable, "-m", "invoker", "author", *args],
        cwd=folder,
        env={**os.environ, "INVOKER_HOST": "127.0.0.1", "GRPC_PORT": "0", "PORT": "0", "INVOKER_LAME_DUCK_S": "0"},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        encoding="utf-8",
    )
    assert process.stderr is not None
    try:
        found = next(found for line in process.stderr if (found := READY.search(line)))
        yield process, found[2]
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def call(address: str, name: str, value: int) -> str:
    with urllib.request.urlopen(f"http://{address}/{name}", str(value).encode(), timeout=10 * SLOW) as answer:
        return str(answer.read().decode())


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


@pytest.mark.skipif("not can_unshare()", reason="no namespaces here")
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_process_reaps_and_passes_signals_on(tmp_path: Path, workers: str, number: signal.Signals) -> None:
    """No zombie is left, the author's own children keep their exit codes, and a signal drains: the exit code is 0."""
    with first(tmp_path, "--workers", workers) as (process, address):
        assert call(address, "orphans", 20) == "0"
        assert call(address, "own", 7) == "7"
        os.kill(child_of(process.pid), number)
        assert process.wait(5 * SLOW) == 0


@pytest.mark.skipif("not can_unshare()", reason="no namespaces here")
def test_the_end_of_the_serving_process_is_that_of_the_first(tmp_path: Path) -> None:
    """With the exit code that a shell gives to a signal."""
    with first(tmp_path) as (process, address):
        with pytest.raises(ConnectionError):
            call(address, "dies", signal.SIGKILL)
        assert process.wait(5 * SLOW) == 128 + signal.SIGKILL


def test_any_other_process_goes_on_as_it_is() -> None:
    """Nothing is forked."""
    code = "import os; from invoker.server.init import as_init; before = os.getpid(); as_init(); "
    ended = subprocess.run(
        [sys.executable, "-c", code + "print(before == os.getpid())"], capture_output=True, check=True
    )
    assert ended.stdout == b"True\n"
