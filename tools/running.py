"""Runs one step, with arguments, or a plan of steps, two at a time.

Steps begin in the order of the plan, when their environments are made and fewer than two steps run. The output of a
step is printed in one piece when the step ends.

All steps run, even if one fails, except those whose environment could not be made.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from subprocess import STDOUT
from typing import TypeAlias

from tools.interpreters import found
from tools.steps import ONE_AT_A_TIME, ROOT, SECOND, SECOND_PYTHON, Step

AT_A_TIME = 2
"""Tests run in four processes, and most other steps in two; on two cores, more would disturb tests that measure
time."""

Run: TypeAlias = Callable[[int], int]  # takes a file descriptor for output, and returns an exit code


@dataclass(frozen=True, slots=True)
class Task:
    """A step of a plan, or a task that makes an environment.

    Attributes:
        name: The name of the step, or the path of the environment's stamp.
        run: Does the work, and returns the exit code.
        after: The names of tasks that must pass before.
        later: The names of tasks that must end before, even if they fail.
    """

    name: str
    run: Run
    after: tuple[str, ...] = ()
    later: tuple[str, ...] = ()


def run_one(step: Step, arguments: Sequence[str]) -> int:
    """Make the environments of a step, run it with direct output, and return the exit code."""
    stamps = [partial(make, stamp) for stamp in step.needs]
    for run in (*stamps, partial(run_step, step, arguments)):
        if code := run(sys.stdout.fileno()):
            return code
    return 0


def tasks(names: Sequence[str], steps: Mapping[str, Step]) -> list[Task]:
    """The tasks of a plan; each environment comes before the first step that needs it."""
    planned: dict[str, Task] = {}
    last: tuple[str, ...] = ()
    for name in names:
        step = steps[name]
        for task in (
            *(Task(stamp, partial(make, stamp)) for stamp in step.needs),
            Task(name, partial(run_step, step, ()), after=step.needs),
        ):
            if task.name not in planned:
                builds = task.name in ONE_AT_A_TIME
                planned[task.name] = replace(task, later=last) if builds else task
                last = (task.name,) if builds else last
    return list(planned.values())


def run_all(planned: Sequence[Task], folder: Path) -> int:
    """Run a plan, and print how each task ended and how long it took; returns 1 if one failed, otherwise 0."""
    began_s = time.monotonic()
    waiting, passed, failed = list(planned), set[str](), set[str]()
    running: dict[Future[tuple[int, float]], Task] = {}
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        while waiting or running:
            for task in [one for one in waiting if failed.intersection(one.after)]:
                waiting.remove(task)
                failed.add(task.name)
                print(f"== {task.name}: not run, since {', '.join(failed.intersection(task.after))} failed", flush=True)
            while len(running) < AT_A_TIME and (task := _next(waiting, passed, failed)):
                waiting.remove(task)
                running[pool.submit(_timed, task, folder / f"{task.name.replace('/', '-').lstrip('.')}.log")] = task
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                task = running.pop(done)
                code, took_s = done.result()
                (failed if code else passed).add(task.name)
                said = f"failed with {code}" if code else "passed"
                print(f"== {task.name}: {said} in {took_s:.0f} s, at {time.monotonic() - began_s:.0f} s", flush=True)
    print(f"{len(passed)} passed, {len(failed)} failed{': ' if failed else ''}{', '.join(sorted(failed))}")
    return 1 if failed else 0


def _next(waiting: Sequence[Task], passed: set[str], failed: set[str]) -> Task | None:
    """The first task that may begin; None: there is none."""
    for task in waiting:
        if passed.issuperset(task.after) and (passed | failed).issuperset(task.later):
            return task
    return None


def _timed(task: Task, log: Path) -> tuple[int, float]:
    began_s = time.monotonic()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        code = task.run(file.fileno())
    sys.stdout.write(log.read_text(encoding="utf-8", errors="replace"))
    return code, time.monotonic() - began_s


def run_step(step: Step, arguments: Sequence[str], out: int) -> int:
    """Run the commands of a step until one fails, and return the exit code."""
    *first, last = step.commands
    for command in (*first, (*last, *(arguments or step.defaults))):
        if code := _call(command, out):
            return code
    return 0


def make(stamp: str, out: int) -> int:
    """Make an environment unless it exists, and return the exit code of make."""
    command = ["make", "--no-print-directory", stamp]
    if stamp == SECOND:
        if path := found(SECOND_PYTHON):
            command.append(f"PYTHON={path}")
        else:
            said = f"Neither PATH nor pyenv has a Python {SECOND_PYTHON} that runs, so that of .venv is taken.\n"
            os.write(out, said.encode())
    return _call(command, out)


def _call(command: Sequence[str], out: int) -> int:
    """Run a command, and print its processor time, which depends less on other processes than its duration."""
    process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=STDOUT)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    os.write(out, f"-- {used.ru_utime + used.ru_stime:.0f} s of CPU\n".encode())
    return process.returncode
