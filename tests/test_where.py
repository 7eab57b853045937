"""docs/explanation/where-to-change-what.md: each row names a file that is there, and a name that it defines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/explanation/where-to-change-what.md"
ROW = re.compile(r"^\| (?P<what>[^|]+) \| \[`(?P<text>[^`]+)`\]\((?P<link>[^)]+)\) \| `(?P<name>[^`]+)` \|$")


def rows(text: str) -> list[re.Match[str]]:
    """The rows of the table below its head.

    Raises:
        AssertionError: A row does not look as the others do.
    """
    lines = [line for line in text.splitlines() if line.startswith("|")][2:]
    found = [ROW.match(line) for line in lines]
    assert None not in found, lines[found.index(None)]
    return [one for one in found if one is not None]


def defined(nodes: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """The names that statements define; those of a class stand behind its own name and a dot."""
    for node in nodes:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name
        if isinstance(node, ast.ClassDef):
            yield from defined(node.body, f"{node.name}.")
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (prefix + one.id for one in targets if isinstance(one, ast.Name))


@pytest.mark.parametrize("row", rows(PAGE.read_text()), ids=lambda row: f"{row['text']}:{row['name']}")
def test_the_file_and_the_name_exist(row: re.Match[str]) -> None:
    """The link leads to the file that the row shows, and the file defines the name."""
    path = (PAGE.parent / row["link"]).resolve()
    assert path == ROOT / "invoker" / row["text"]
    assert row["name"] in set(defined(ast.parse(path.read_text()).body))


def test_there_are_twenty_rows_and_none_comes_twice() -> None:
    """A reader finds each wish once."""
    wishes = [row["what"] for row in rows(PAGE.read_text())]
    assert len(wishes) >= 20
    assert len(set(wishes)) == len(wishes)


def test_a_name_that_is_only_used_is_not_found() -> None:
    """An import, a call or a local variable defines nothing that a reader could change there."""
    text = "from a import B\nC = B()\nclass D:\n    e: int = 0\n    def f(self):\n        g = 1\n"
    assert set(defined(ast.parse(text).body)) == {"C", "D", "D.e", "D.f"}
