"""How a plan of steps runs: what waits for what, and what is said of it."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from tools import running, steps
from tools.running import Run, Task, run_all, tasks
from tools.steps import PLANS, STEPS, Step


class Machine:
    """Runs tasks that meet each other or note what runs beside them."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.beside: dict[str, set[str]] = {}
        self._running: set[str] = set()
        self._lock = threading.Lock()

    def task(self, name: str, code: int = 0, meets: threading.Barrier | None = None) -> Run:
        """What a task runs: it ends with a code, after it has met the others of a barrier."""

        def run(out: int) -> int:
            with self._lock:
                self.began.append(name)
                self._running.add(name)
                for one in self._running:
                    self.beside.setdefault(one, set()).update(self._running)
            if meets is not None:
                meets.wait(5)
            os.write(out, f"{name} speaks\n".encode())
            with self._lock:
                self._running.remove(name)
            return code

        return run


@pytest.fixture
def machine() -> Machine:
    """One that has run nothing."""
    return Machine()


def test_two_steps_run_side_by_side(machine: Machine, tmp_path: Path) -> None:
    """Each waits until the other runs, and a third until one has ended; what they print is shown in one piece."""
    both = threading.Barrier(2)
    planned = [Task(name, machine.task(name, 0, both)) for name in ("a", "b")]
    assert run_all([*planned, Task("c", machine.task("c"))], tmp_path) == 0
    assert "c" not in machine.beside["a"] & machine.beside["b"]


def test_a_failure_stops_only_what_needs_it(
    machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All others run, the exit code is 1, and the last line names what failed."""
    planned = [
        Task("env", machine.task("env", 3)),
        Task("step", machine.task("step"), after=("env",)),
        Task("next", machine.task("next"), after=("step",)),
        Task("env2", machine.task("env2"), later=("env",)),
    ]
    assert run_all(planned, tmp_path) == 1
    assert machine.began == ["env", "env2"]
    said = capsys.readouterr().out
    assert "env speaks\n== env: failed with 3" in said
    assert "== next: not run, since step failed" in said
    assert said.endswith("1 passed, 3 failed: env, next, step\n")


def test_a_step_stops_at_its_first_command_that_fails(tmp_path: Path) -> None:
    """What is given goes to the last command, instead of what it is given by default."""
    note = (
        sys.executable,
        "-c",
        "import sys; open(sys.argv[1], 'a').write(' '.join(sys.argv[2:]) + ';')",
        str(tmp_path / "n"),
    )
    with (tmp_path / "out").open("w") as out:
        assert running.run_step(Step("", ((*note, "one"), note), ("by default",)), (), out.fileno()) == 0
        assert running.run_step(Step("", (note,), ("by default",)), ("given", "words"), out.fileno()) == 0
        assert running.run_step(Step("", (("sh", "-c", "exit 7"), note)), (), out.fileno()) == 7
    assert (tmp_path / "n").read_text() == "one;by default;given words;"


def test_a_step_says_how_long_its_commands_kept_a_core_busy(tmp_path: Path) -> None:
    """Also what they have started; a command that is killed has failed."""
    busy = "import time\nwhile time.process_time() < 1.2: pass"
    started = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    killed = (sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")
    with (tmp_path / "out").open("w+") as out:
        assert running.run_step(Step("", ((sys.executable, "-c", started), killed)), (), out.fileno()) == -9
        out.seek(0)
        assert out.read() == "-- 1 s of CPU\n-- 0 s of CPU\n"


@pytest.mark.parametrize("path", ["/opt/python3.13", None])
def test_the_second_environment_takes_another_python_where_there_is_one(
    path: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Else that of all, and it says so."""
    commands = list[Sequence[str]]()
    monkeypatch.setattr(running, "found", lambda version: path)
    monkeypatch.setattr(running, "_call", lambda command, out: commands.append(command) or 0)
    with (tmp_path / "out").open("w+") as out:
        assert running.make(steps.SECOND, out.fileno()) == 0
        out.seek(0)
        said = out.read()
    assert commands == [["make", "--no-print-directory", steps.SECOND, *([f"PYTHON={path}"] if path else [])]]
    assert bool(re.search(r"has a Python 3\.\d+ that runs, so that of \.venv is taken", said)) is (path is None)


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_makes_each_environment_once_before_it_is_needed(name: str) -> None:
    """Those that write into the tree wait for each other."""
    planned = tasks(PLANS[name], STEPS)
    names = [task.name for task in planned]
    assert len(names) == len(set(names))
    for at, task in enumerate(planned):
        assert set(task.after + task.later) <= set(names[:at])
    writers = [task for task in planned if task.name in steps.ONE_AT_A_TIME]
    assert [task.later for task in writers] == [(), *((one.name,) for one in writers)][: len(writers)]


def test_what_a_step_names_is_there() -> None:
    """Paths of tests exist; each environment has a rule in the Makefile."""
    makefile = (steps.ROOT / "Makefile").read_text()
    for step in STEPS.values():
        for word in step.defaults:
            assert not word.startswith("tests/") or (steps.ROOT / word.partition("::")[0]).exists()
        for stamp in step.needs:
            assert re.search(rf"^(?:\S+ )*{re.escape(stamp)}(?: \S+)*:", makefile, re.MULTILINE), stamp
