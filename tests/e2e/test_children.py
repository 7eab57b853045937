"""What isolated children leave: no programs that they have started, and nothing of one call for the next."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from invoker.client import CallFailed, SyncRiffClient
from tests.conftest import SLOW
from tests.e2e.process import Process, started

pytestmark = pytest.mark.timeout(30)

JSON = "application/json"
MODULE = """
import os, signal, subprocess, time
from collections.abc import Iterator
from invoker import function

def program() -> int:
    return subprocess.Popen(["sleep", "300"]).pid

@function(isolation="process")
def starts(x: int) -> int:
    return program()

@function(isolation="process")
def holds(xs: Iterator[int]) -> Iterator[int]:
    yield program()
    time.sleep(300)

@function(isolation="process", timeout_s=0.5)
def late(xs: Iterator[int]) -> Iterator[int]:
    yield program()
    time.sleep(300)

@function(isolation="process")
def dies(xs: Iterator[int]) -> Iterator[int]:
    yield program()
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGKILL)

@function(isolation="process", memory_bytes=1 << 30)
def bounded(x: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)

@function(isolation="process")
def surroundings(x: int) -> list[str]:
    mask = os.umask(0o77)
    found = [os.getcwd(), str(os.environ.get("LEFT")), str(os.environ.get("KEPT")), oct(mask), str(os.getpid())]
    os.chdir("/")
    os.environ["LEFT"] = "left"
    os.environ.pop("KEPT", None)
    return found
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    (tmp_path / "author.py").write_text(MODULE)
    return tmp_path


def call(client: SyncRiffClient, name: str) -> list[object]:
    return [one.value for one in client.invoke([[1]], accept=JSON, content_type=JSON, function=name)]


def is_gone(pid: int) -> bool:
    """Whether a process has ended; a zombie has, too."""
    until = time.monotonic() + SLOW
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):  # the second if it goes while it is read
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def one_child(module: Path) -> Process:
    settings = {"INVOKER_LAME_DUCK_S": "0", "INVOKER_DRAIN_S": "0", "INVOKER_GRACE_S": "0.1"}
    return started("author", cwd=module, env={**settings, "TEST_REAL_CHILDREN": "1"})


@pytest.mark.parametrize("name", ["late", "dies"])
def test_a_child_that_is_killed_takes_its_programs_with_it(module: Path, name: str) -> None:
    """By us, because it does not leave in time, or by somebody else."""
    with one_child(module) as process, SyncRiffClient(process.ready()[0]) as client:
        running = iter(client.invoke([[1]], accept=JSON, content_type=JSON, function=name))
        pid = next(running).value
        with pytest.raises(CallFailed):
            list(running)
        assert is_gone(pid)
        process.wait_for("invocation ended")  # a call that still runs is cut, which is exit code 1
        process.send(signal.SIGTERM)
        assert process.exit_code() == 0, process.log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("name", ["starts", "holds"])
def test_no_program_outlives_the_server(module: Path, name: str, number: signal.Signals) -> None:
    """Of a call that is over and of one that is not; however the server ends."""
    with one_child(module) as process, SyncRiffClient(process.ready()[0]) as client:
        running = iter(client.invoke([[1]], accept=JSON, content_type=JSON, function=name))
        pid = next(running).value
        if name == "starts":
            assert list(running) == []
        os.kill(pid, 0)
        process.send(number)
        process.exit_code()
        assert is_gone(pid)
        if name == "holds":
            with pytest.raises(CallFailed):
                list(running)


def test_a_child_that_kills_itself_has_not_lacked_memory(module: Path) -> None:
    """Though its memory is bounded."""
    with (
        one_child(module) as process,
        SyncRiffClient(process.ready()[0]) as client,
        pytest.raises(CallFailed, match="was ended by SIGKILL"),
    ):
        call(client, "bounded")


def test_each_call_finds_its_process_as_the_start_has_left_it(module: Path) -> None:
    """Folder, environment and file mode; in the same process."""
    with started("author", cwd=module, env={"KEPT": "kept"}) as process, SyncRiffClient(process.ready()[0]) as client:
        found = [call(client, "surroundings")[0] for _ in range(6)]
        assert len({one[4] for one in found}) < 6
        assert {tuple(one[:3]) for one in found} == {(str(module), "None", "kept")}
        assert len({one[3] for one in found}) == 1
