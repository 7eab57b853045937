"""Tests that run in forks of the process that has collected them fail, pass and end as they would there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.forkpool import Pieces

ROOT = Path(__file__).resolve().parent.parent

MIXED = """
import os, pathlib, pytest, time

HERE = pathlib.Path(__file__).parent

@pytest.fixture(scope="module")
def opened():
    (HERE / f"opened-{os.getpid()}").touch()
    yield
    (HERE / f"closed-{os.getpid()}").touch()

def test_right(opened, tmp_path):
    print("said by what is right")
    (HERE / f"folder-{tmp_path.parent.name}").touch()

def test_wrong(opened):
    print("said by what is wrong")
    assert 1 == 2

@pytest.mark.skip(reason="it is skipped")
def test_skipped():
    pass

@pytest.mark.xfail(strict=True)
def test_expected():
    assert 0

def test_gone():
    os._exit(3)

@pytest.mark.timeout(0.1)
def test_late():
    time.sleep(9)

def test_killed():
    os.kill(os.getpid(), 9)

def test_after(opened):
    pass

@pytest.fixture
def broken():
    yield
    raise ValueError("its end fails")

def test_end(broken):
    pass
"""


def _run(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.forkpool",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:asyncio",
        "-rA",
        *args,
    ]
    command += ["--rootdir", str(folder), "-c", str(folder / "pytest.ini"), "--basetemp", str(folder / "temp")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*command, str(folder)], cwd=ROOT, env=environment, check=False, capture_output=True, text=True, timeout=60
    )


def _outcomes(text: str) -> set[tuple[str, str]]:
    return set(re.findall(r"^([A-Z]+) .*::(test_\w+)", text, re.MULTILINE))


@pytest.mark.timeout(15)
@pytest.mark.parametrize("count", ["1", "3"])
def test_each_test_ends_as_it_would_elsewhere(tmp_path: Path, count: str) -> None:
    """One that ends its process has failed, and what comes after it runs."""
    (tmp_path / "test_mixed.py").write_text(MIXED)
    ended = _run(tmp_path, "--processes", count)
    assert _outcomes(ended.stdout) == {
        ("PASSED", "test_right"),
        ("FAILED", "test_wrong"),
        ("XFAIL", "test_expected"),
        ("FAILED", "test_gone"),
        ("FAILED", "test_late"),
        ("FAILED", "test_killed"),
        ("PASSED", "test_after"),
        ("PASSED", "test_end"),
        ("ERROR", "test_end"),
    }
    assert "4 failed, 3 passed, 1 skipped, 1 xfailed, 1 error" in ended.stdout
    assert "the process that ran this test has ended: exit code 3" in ended.stdout
    assert "Timeout (>0.1s) from pytest-timeout" in ended.stdout
    assert "the process that ran this test has ended: signal 9" in ended.stdout
    assert "said by what is wrong" in ended.stdout
    assert "its end fails" in ended.stdout
    assert ended.returncode == 1
    assert not ended.stderr


@pytest.mark.timeout(15)
def test_fixtures_end_with_the_last_test_of_a_file_in_each_process(tmp_path: Path) -> None:
    """Each process that begins a file ends what it has begun, and has a folder for temporary files of its own."""
    text = MIXED.partition("@pytest.mark.skip")[0].replace("assert 1 == 2", "pass")
    for number in range(6):
        (tmp_path / f"test_{number}.py").write_text(text)
    ended = _run(tmp_path, "--processes", "2")
    assert "12 passed" in ended.stdout
    opened = {one.name.split("-")[1] for one in tmp_path.glob("opened-*")}
    assert opened == {one.name.split("-")[1] for one in tmp_path.glob("closed-*")}
    assert str(os.getpid()) not in opened
    assert {one.name for one in tmp_path.glob("folder-*")} <= {"folder-p0", "folder-p1"}


@pytest.mark.timeout(15)
def test_it_stops_at_the_first_failure_that_is_asked_for(tmp_path: Path) -> None:
    """With one process, no test runs after it; a fixture that is open ends nevertheless."""
    (tmp_path / "test_mixed.py").write_text(MIXED)
    ended = _run(tmp_path, "--processes", "1", "-x")
    assert "1 failed, 1 passed" in ended.stdout
    assert len([*tmp_path.glob("closed-*")]) == 1
    assert ended.returncode == 1


@pytest.mark.timeout(15)
def test_a_process_that_ends_between_two_tests_is_an_error(tmp_path: Path) -> None:
    """No test has failed then, and yet something did: here what a process does at its end."""
    text = "import atexit, os\ndef test_it():\n    atexit.register(os._exit, 5)\n"
    (tmp_path / "test_exit.py").write_text(text)
    ended = _run(tmp_path, "--processes", "1")
    assert "has ended with exit code 5 between two tests" in ended.stdout + ended.stderr
    assert ended.returncode == 3


def test_two_ways_at_once_are_refused(tmp_path: Path) -> None:
    """With pytest-xdist, each worker would have processes of its own."""
    (tmp_path / "test_it.py").write_text("def test_it():\n    pass\n")
    ended = _run(tmp_path, "--processes", "2", "-n", "2")
    assert "give one of them" in ended.stdout + ended.stderr
    assert ended.returncode


def test_a_share_that_fails_is_an_error() -> None:
    """Whatever process it is of.

    This has a process of its own, since other tests leave threads, and a process with threads does not fork.
    """
    text = "import os, sys\nfrom tests.forkpool import shared_out\n"
    text += "shared_out(3, lambda number: os._exit(1) if number == int(sys.argv[1]) else None)\n"
    for bad in range(1, 3):
        command = [sys.executable, "-c", text, str(bad)]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert "has failed" in ended.stderr
        assert ended.returncode == 1


def _items(*files: tuple[str, int, bool]) -> Any:
    def item(name: str, *, is_long: bool) -> Any:
        return SimpleNamespace(nodeid=name, iter_markers=lambda _: iter([1, 2] if is_long else [1]))

    return [item(f"{name}::{number}", is_long=is_long) for name, count, is_long in files for number in range(count)]


def _taken(pieces: Pieces) -> list[Sequence[int]]:
    return [*iter(pieces.take, [])]


def test_every_test_is_handed_out_once() -> None:
    """In pieces of one file each, in the order of that file; files with a test that may take long come first."""
    items = _items(("a", 50, False), ("b", 1, False), ("c", 30, True), ("d", 7, False))
    taken = _taken(Pieces(items, 2))
    assert sorted(index for piece in taken for index in piece) == [*range(len(items))]
    assert all(list(piece) == [*range(piece[0], piece[0] + len(piece))] for piece in taken)
    assert all(len({items[index].nodeid.partition("::")[0] for index in piece}) == 1 for piece in taken)
    assert items[taken[0][0]].nodeid.startswith("c::")
    assert len(taken[-1]) < 10  # nobody begins much when all others are at their last


def test_what_comes_back_is_handed_out_again() -> None:
    """As after the end of a process."""
    pieces = Pieces(_items(("a", 3, False), ("b", 3, False)), 1)
    first = pieces.take()
    pieces.give_back(first[1:])
    assert sorted(index for piece in _taken(pieces) for index in piece) == sorted({*range(6)} - {first[0]})
