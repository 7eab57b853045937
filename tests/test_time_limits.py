"""The limit of a test counts the factor of a slow machine once: tests/conftest.py multiplies what the mark says."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent
FACTOR = "SLOW"


def counted_twice(source: str) -> list[int]:
    """The lines of ``timeout`` marks whose seconds have the factor in them, by any name that the module gives it."""
    tree = ast.parse(source)
    known = {FACTOR}
    known |= {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name == FACTOR and alias.asname
    }
    for node in tree.body:
        if isinstance(node, ast.Assign) and not _marks(node) and known & _names(node.value):
            known |= {one.id for one in node.targets if isinstance(one, ast.Name)}
    return [mark.lineno for mark in _marks(tree) if known & {name for one in _given(mark) for name in _names(one)}]


def _marks(tree: ast.AST) -> list[ast.Call]:
    """The calls of ``pytest.mark.timeout``."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [one for one in calls if ast.unparse(one.func).endswith("mark.timeout")]


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(one.value for one in call.keywords)]


def _names(tree: ast.AST) -> set[str]:
    """Names, and attributes such as ``conftest.SLOW``."""
    return {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(tree)}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("@pytest.mark.timeout(30 * SLOW)\ndef test(): ...", [1]),
        ("pytestmark = pytest.mark.timeout(30 * SLOW)", [1]),
        ("pytestmark = [pytest.mark.timeout(timeout=SLOW * 30), other]", [1]),
        ("x = 1\n@mark.timeout(conftest.SLOW)\ndef test(): ...", [2]),
        ("LIMIT_S = 5 * SLOW\nMORE_S = LIMIT_S + 1\n@pytest.mark.timeout(MORE_S)\ndef test(): ...", [3]),
        ("from tests.conftest import SLOW as FACTOR_\npytestmark = pytest.mark.timeout(9 * FACTOR_)", [2]),
        ("pytest.param(1, marks=pytest.mark.timeout(int(SLOW)))", [1]),
        ("LIMIT_S = 5 * SLOW\npytestmark = pytest.mark.timeout(30)", []),
        ("async def test():\n    async with asyncio.timeout(30 * SLOW): ...", []),
    ],
)
def test_a_factor_in_a_mark_is_found(source: str, lines: list[int]) -> None:
    """Whatever it is called; limits within a test are none of marks."""
    assert counted_twice(source) == lines


def test_no_limit_counts_the_factor_twice() -> None:
    """A hang would be seen after sixteen times as long as was meant, where the factor is four."""
    found = {
        str(path.relative_to(ROOT)): lines
        for path in sorted(ROOT.rglob("*.py"))
        if path != Path(__file__).resolve()
        and "mark.timeout" in (source := path.read_text(encoding="utf-8"))
        and (lines := counted_twice(source))
    }
    assert found == {}
