"""Measures the tree: files, lines and AST statements of each folder, the longest files, and long functions."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path
from typing import Any

LONG_FILE, LONG_FUNCTION = 400, 40
_LONGEST = 10


def size(root: Path) -> dict[str, Any]:
    """Measure ``rooms`` (folders, and the tests), the ``longest`` files, and how many files and functions are too long.

    Args:
        root: The root of the tree.
    """
    rooms: dict[str, dict[str, int]] = defaultdict(lambda: {"files": 0, "lines": 0, "statements": 0})
    lengths: dict[str, int] = {}
    functions: list[str] = []
    for path in sorted((*root.glob("invoker/**/*.py"), *root.glob("conformance/**/*.py"), *root.glob("tests/**/*.py"))):
        name, text = path.relative_to(root), path.read_text(encoding="utf-8")
        nodes, lines = list(ast.walk(ast.parse(text))), text.count("\n")
        statements = sum(isinstance(one, ast.stmt) for one in nodes)
        for room in {_room(name), name.parts[0]}:
            rooms[room]["files"] += 1
            rooms[room]["lines"] += lines
            rooms[room]["statements"] += statements
        if "_pb" in name.parts:
            continue
        lengths[name.as_posix()] = lines
        if name.parts[0] != "tests":
            functions += [f"{name.as_posix()}:{one.name}" for one in nodes if _is_long(one)]
    longest = sorted(lengths, key=lambda name: -lengths[name])[:_LONGEST]
    return {
        "rooms": {name: rooms[name] for name in sorted(rooms)},
        "longest": {name: lengths[name] for name in longest},
        "files too long": sum(lines > LONG_FILE for lines in lengths.values()),
        "functions too long": len(functions),
        "such functions": functions,
    }


def _room(name: Path) -> str:
    if name.parts[0] != "invoker":
        return name.parts[0]
    return f"invoker/{name.parts[1]}" if len(name.parts) > 2 else "invoker/ modules of the root"


def _is_long(node: ast.AST) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return (node.end_lineno or node.lineno) - node.lineno + 1 > LONG_FUNCTION
