"""Which interpreter is taken for a version."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.interpreters import found

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


def program(path: Path, said: str, code: int = 0) -> str:
    """Write a program that says a version, whatever it is asked."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {said}\nexit {code}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A home and a PATH with nothing in them."""
    return {"HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "bin")}


def test_the_one_on_path_is_taken(tmp_path: Path, environ: dict[str, str]) -> None:
    """It comes before those of pyenv."""
    program(tmp_path / "home/.pyenv/versions/3.98.1/bin/python", "3.98")
    program(tmp_path / "bin/python3.98", "3.98")
    assert found("3.98", environ) == str(tmp_path / "bin/python3.98")


@pytest.mark.parametrize(("said", "code"), [("3.98", 127), ("3.97", 0)])
def test_a_shim_that_does_not_run_it_is_passed_over(
    said: str, code: int, tmp_path: Path, environ: dict[str, str]
) -> None:
    """The newest of pyenv's folders is taken then, by its number."""
    program(tmp_path / "bin/python3.98", said, code)
    program(tmp_path / "home/.pyenv/versions/3.98.9/bin/python", "3.98")
    newest = program(tmp_path / "home/.pyenv/versions/3.98.10/bin/python", "3.98")
    assert found("3.98", environ) == newest


def test_where_there_is_none(environ: dict[str, str]) -> None:
    """Nobody has one, and a folder that is empty is none."""
    Path(environ["HOME"], ".pyenv/versions/3.98.1").mkdir(parents=True)
    assert found("3.98", environ) is None


def test_a_real_one_answers() -> None:
    """The one that runs the tests is of its version, whatever its name is."""
    environ = {"HOME": "/nowhere", "PATH": str(Path(sys.executable).resolve().parent)}
    assert found(HERE, environ) is not None
    assert found("3.98", environ) is None
