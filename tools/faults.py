"""``python -m tools faults``: plants each recorded fault in a copy of the tree, and runs the test that must fail
because of it.

A record in tools/faults.txt names a file and a test, and has the original lines (``- ``) and the lines that replace
them (``+ ``). Blank lines separate records. A fault is killed if its test fails. The exit code is 1 if a fault
survives, or if a record does not fit the tree any more.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tools.server import ROOT

RECORDS = Path(__file__).parent / "faults.txt"
KILLED, SURVIVES, UNFIT, NO_TEST = "killed", "SURVIVES", "DOES NOT FIT", "ITS TEST DOES NOT RUN"
_LIMIT_S = 300
_COPIED = (
    "invoker",
    "conformance",
    "tests",
    "functions",
    "benchmarks",
    "tools",
    "proto",
    "docs",
    "setup.cfg",
    "pyproject.toml",
)
_SECONDS = itertools.count(1_000_000_000)
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", "node_modules")


@dataclass(frozen=True, slots=True)
class Fault:
    """One recorded fault.

    Attributes:
        number: The number of the record in the file, from 1.
        file: The file in which it is planted, relative to the root of the tree.
        test: The pytest id of the test that must fail.
        old: The original text, which must occur exactly once.
        new: The text that replaces it.
    """

    number: int
    file: str
    test: str
    old: str
    new: str


def main(arguments: Sequence[str]) -> int:
    """Plant faults, and return the exit code."""
    options = argparse.ArgumentParser(prog="python -m tools faults", description=__doc__)
    options.add_argument("chosen", nargs="*", metavar="FAULT", help="a number, or a part of a file's name; default all")
    options.add_argument("--jobs", type=int, default=2, metavar="N")
    options.add_argument("--records", type=Path, default=RECORDS, metavar="FILE")
    args = options.parse_args(arguments)
    faults = [one for one in read(args.records.read_text(encoding="utf-8")) if _is_chosen(one, args.chosen)]
    outcomes = dict.fromkeys(faults, "")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.jobs) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(args.jobs):
            copies.put(_copied(Path(folder, str(number))))
        print("running the tests without a fault", flush=True)
        is_sound = _run(Path(folder, "0"), *dict.fromkeys(one.test for one in faults)) == 0

        def judge(fault: Fault) -> str:
            copy = copies.get()
            try:
                return judged(fault, copy, is_sound=is_sound)
            finally:
                copies.put(copy)

        for fault, outcome in zip(faults, pool.map(judge, faults), strict=True):
            outcomes[fault] = outcome
            print(f"{fault.number:3} {outcome}: {fault.file}, {fault.test}", flush=True)
    left = [one for one in faults if outcomes[one] != KILLED]
    print(f"{len(faults) - len(left)} of {len(faults)} faults are killed.")
    return 1 if left else 0


def read(text: str) -> list[Fault]:
    """Parse the records of a file.

    Raises:
        ValueError: A record has an unknown line, or lacks a required one.
    """
    blocks = [[line for line in block.splitlines() if not line.startswith("#")] for block in text.split("\n\n")]
    return [_one(number, block) for number, block in enumerate(filter(None, blocks), 1)]


def judged(fault: Fault, root: Path, *, is_sound: bool = False) -> str:
    """Plant a fault in a tree, run its test, and remove the fault; returns the outcome.

    Args:
        fault: The fault.
        root: The root of a copy of the tree.
        is_sound: Whether the test is known to pass without the fault; if not, it is run without the fault first.
    """
    if not is_sound and _run(root, fault.test) != 0:
        return NO_TEST
    path = root / fault.file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if text.count(fault.old) != 1:
        return UNFIT
    with _written(path, text, text.replace(fault.old, fault.new)):
        code = _run(root, fault.test)
    return {0: SURVIVES, 1: KILLED}.get(code, NO_TEST)


def _one(number: int, lines: Sequence[str]) -> Fault:
    fields = {"file": "", "test": ""}
    sides: dict[str, list[str]] = {"-": [], "+": []}
    for line in lines:
        name, colon, value = line.partition(": ")
        if line[:1] in sides and line[1:2] in ("", " "):
            sides[line[0]].append(line[2:])
        elif colon and name in fields:
            fields[name] = value
        else:
            raise ValueError(f"record {number} of faults has an unknown line: {line!r}")
    if not (fields["file"] and fields["test"] and sides["-"]):
        raise ValueError(f"record {number} of faults needs a file, a test, and a line to be replaced")
    old, new = ("".join(f"{line}\n" for line in sides[side]) for side in "-+")
    return Fault(number, fields["file"], fields["test"], old, new)


def _is_chosen(fault: Fault, chosen: Sequence[str]) -> bool:
    return not chosen or any(one == str(fault.number) or (not one.isdigit() and one in fault.file) for one in chosen)


def _copied(root: Path) -> Path:
    """Copy the files of the tree that tests need."""
    root.mkdir()
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=_LEFT_OUT)
        else:
            shutil.copy2(source, root / name)
    return root


@contextmanager
def _written(path: Path, before: str, text: str) -> Iterator[None]:
    """A context in which a file has another text."""
    _write(path, text)
    try:
        yield
    finally:
        _write(path, before)


def _write(path: Path, text: str) -> None:
    """Write a file with a new modification time in seconds, since bytecode is reused for the same size and second."""
    path.write_text(text, encoding="utf-8")
    second = next(_SECONDS)
    os.utime(path, (second, second))


def _run(root: Path, *tests: str) -> int:
    """Run tests, and return the exit code of pytest, which is 1 if a test fails; a test that hangs fails."""
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    # for processes that the tests start in other folders
    path = os.pathsep.join(map(str, (root, root / "conformance")))
    env = {**os.environ, "INVOKER_HOST": "127.0.0.1", "PYTHONPATH": path}
    try:
        ended = subprocess.run(command, cwd=root, env=env, capture_output=True, timeout=_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return 1
    return ended.returncode
