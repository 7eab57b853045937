"""Properties are tried with the same examples each time, unless somebody explores."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

_PROPERTIES = """
import hypothesis
from hypothesis import strategies as st

SEEN = {"plain": [], "few": []}


@hypothesis.given(st.integers())
def test_plain(number):
    SEEN["plain"].append(number)


@hypothesis.settings(max_examples=7, derandomize=True)
@hypothesis.given(st.integers())
def test_few(number):
    SEEN["few"].append(number)


def test_tells():
    print(SEEN)
"""


def _seen(path: Path, explore: str) -> dict[str, list[int]]:
    command = (sys.executable, "-m", "pytest", "-q", "-s", "-p", "tests.conftest", "-p", "no:cacheprovider", str(path))
    env = {**os.environ, "INVOKER_TEST_EXPLORE": explore}
    said = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout
    told = said[said.index("{") : said.index("}") + 1]
    found: dict[str, list[int]] = eval(told)
    return found


@pytest.mark.timeout(30)
def test_examples_are_the_same_each_time_unless_one_explores(tmp_path: Path) -> None:
    """Then there are as many times more, also of a property that says how many it wants, and others."""
    path = tmp_path / "test_properties.py"
    path.write_text(_PROPERTIES)
    usual, again, explored = (_seen(path, explore) for explore in ("0", "0", "3"))
    assert usual == again
    assert {name: len(numbers) for name, numbers in usual.items()} == {"plain": 100, "few": 7}
    assert {name: len(numbers) for name, numbers in explored.items()} == {"plain": 300, "few": 21}
    assert all(explored[name][: len(numbers)] != numbers for name, numbers in usual.items())
