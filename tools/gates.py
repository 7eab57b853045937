"""``python -m tools gates``: compares the figures of the tree with those that tools/gates.json records.

It prints all figures, and which got worse; if any did, the exit code is 1. ``--write`` records the figures instead.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tools.compare import worse
from tools.server import ROOT

RECORD = Path(__file__).parent / "gates.json"


def main(arguments: Sequence[str], record: Path = RECORD) -> int:
    """Measure and print the figures, compare or record them, and return the exit code."""
    options = argparse.ArgumentParser(prog="python -m tools gates", description=__doc__)
    options.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)}; default: all")
    options.add_argument("--write", action="store_true", help="record the figures")
    args = options.parse_args(arguments)
    if unknown := set(args.parts) - PARTS.keys():
        options.error(f"there is no part {', '.join(sorted(unknown))}")
    recorded: dict[str, Any] = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    found = {name: PARTS[name](_note) for name in args.parts or PARTS}
    found["python"] = python = f"{sys.version_info.major}.{sys.version_info.minor}"
    print(json.dumps(found, indent=1))
    if args.write:
        record.write_text(json.dumps({**recorded, **found}, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        return 0
    if recorded.get("python", python) != python:
        print(f"the record is of Python {recorded['python']}, and this is {python}", file=sys.stderr)
        return 2
    faults = worse(recorded, found)
    print("\n".join(faults) or "No figure got worse.", file=sys.stderr)
    return 1 if faults else 0


def _calls(note: Callable[[str], None]) -> Any:
    from tools.calls import counts

    return counts(note)


def _imports(note: Callable[[str], None]) -> Any:
    from tools.imports import imports

    return imports(note)


def _size(note: Callable[[str], None]) -> Any:
    from tools.size import size

    note("measuring the tree")
    return size(ROOT)


def _coverage(note: Callable[[str], None]) -> Any:
    from tools.covered import covered

    return covered(ROOT, note)


PARTS: dict[str, Callable[[Callable[[str], None]], Any]] = {
    "calls": _calls,
    "imports": _imports,
    "size": _size,
    "coverage": _coverage,
}


def _note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
