"""``python -m tools deletable [NAME...]``: tests that each protocol can be deleted from the tree without breaking
anything else.

The folder of each protocol, and its rows in `invoker.server.table`, are deleted from a copy of the tree. The tests and
the conformance suite, which use all protocols, are not copied. After that no remaining module except those in `LAZY`
may name the folder, and `tools.smoke` is run in the copy.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.server import ROOT

NAMES = ("evergreen", "graphpipe", "toolbridge", "federated", "typed")
"""All protocols except riff and web, which every process needs."""

LAZY = ("invoker/client/", "invoker/__init__.py", "invoker/moved.py")
"""Modules that may name a deleted protocol, since they import it only on demand."""

_PARTS = ("invoker", "functions", "tools", "benchmarks")
_TABLE = Path("invoker", "server", "table.py")
_LIMIT_S = 300.0


def main(arguments: Sequence[str]) -> int:
    """Delete each protocol, print what breaks, and return the exit code."""
    options = argparse.ArgumentParser(prog="python -m tools deletable", description=__doc__)
    options.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES)}; default: all")
    args = options.parse_args(arguments)
    if unknown := set(args.names) - set(NAMES):
        options.error(f"{', '.join(sorted(unknown))} cannot be deleted")
    names = args.names or NAMES
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(names, pool.map(faults, names), strict=True))
    for name, broken in found.items():
        print(f"{name}: " + ("\n  ".join(["breaks this:", *broken]) if broken else "nothing else breaks"))
    return int(any(found.values()))


def faults(name: str, root: Path = ROOT) -> list[str]:
    """Find what breaks without a protocol; returns a sentence for each fault.

    Args:
        name: The name of its folder.
        root: The root of the tree to copy.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in _PARTS:
            shutil.copytree(root / part, copy / part)  # including bytecode, which stays valid
        shutil.rmtree(copy / "invoker" / "protocols" / name)
        rows = (copy / _TABLE).read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in rows if f'"invoker.protocols.{name}.' not in line]
        (copy / _TABLE).write_text("".join(kept), encoding="utf-8")
        return [*_named(copy, name), *_smoke(copy, name)]


def _named(copy: Path, name: str) -> Iterator[str]:
    word = re.compile(rf"\binvoker[./]protocols[./]{name}\b")
    for path in sorted((copy / "invoker").rglob("*.py")):
        place = path.relative_to(copy).as_posix()
        if place.startswith(LAZY):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if word.search(line):
                yield f"{place}:{number} names it: {line.strip()}"


def _smoke(copy: Path, name: str) -> list[str]:
    command = (sys.executable, "-m", "tools.smoke", name)
    try:
        ended = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return [f"the smoke test takes more than {_LIMIT_S:.0f} s"]
    if not ended.returncode:
        return []
    return ended.stdout.splitlines() or [f"the smoke test ends with {ended.returncode}: {ended.stderr[-2000:]}"]
