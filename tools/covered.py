"""Measures how much of the core, of execution and of the protocols is covered by their own tests.

The figure is that of coverage.py: statements and branches together, in percent. Every driver and every process of a
test counts; code that only foreign clients or attacks reach does not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOMS = ("core", "execution", "protocols")
_CONFIG = """
[run]
branch = true
parallel = true
patch = subprocess, fork, _exit
source = {source}
data_file = {data}
[report]
exclude_also =
    if TYPE_CHECKING:
    @overload
    ^\\s*\\.\\.\\.$
"""


def covered(root: Path, note: Callable[[str], None]) -> dict[str, float]:
    """Measure the percentage of each folder, and of each protocol.

    Args:
        root: The root of the tree.
        note: Called with a line about the progress.

    A test that fails is run once more, alone, since measuring makes tests slow, and some have time limits.

    Raises:
        RuntimeError: A test failed twice, so the figures would be meaningless.
    """
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "coveragerc")
        source = ",".join(str(root / "invoker" / room) for room in ROOMS)
        config.write_text(_CONFIG.format(source=source, data=Path(folder, "data")), encoding="utf-8")
        run = [sys.executable, "-m", "coverage"]
        tests = ["pytest", "-q", "-m", "not slow", "-o", f"cache_dir={Path(folder, 'cache')}"]
        tests += [*(f"tests/{room}" for room in ROOMS), "tests/reference"]
        slow = os.environ.get("INVOKER_TEST_SLOW", "4")
        note("running the tests of these rooms, which takes some minutes")
        for chosen in ["-n", "2", "--dist", "worksteal"], ["--last-failed", "--last-failed-no-failures", "none"]:
            done = subprocess.run(
                [*run, "run", f"--rcfile={config}", "-m", *tests, *chosen],
                cwd=root, check=False, stdout=sys.stderr, env={**os.environ, "INVOKER_TEST_SLOW": str(2 * float(slow))},
            )  # fmt: skip
            if not done.returncode:
                break
        else:
            raise RuntimeError("a test failed twice under coverage, so its figures say nothing")
        found = Path(folder, "found.json")
        for command in ("combine", "--quiet"), ("json", "--quiet", "-o", str(found)):
            subprocess.run([*run, command[0], f"--rcfile={config}", *command[1:]], cwd=root, check=True)
        return shares(json.loads(found.read_text(encoding="utf-8"))["files"])


def shares(files: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Compute the percentage of each folder, and of each protocol, from coverage.py's figures of files."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, figures in files.items():
        parts = name.replace("\\", "/").partition("invoker/")[2].split("/")
        summary = figures["summary"]
        for room in {parts[0], "/".join(parts[:2]) if parts[0] == "protocols" and len(parts) > 2 else parts[0]}:
            counts[room][0] += summary["covered_lines"] + summary["covered_branches"]
            counts[room][1] += summary["num_statements"] + summary["num_branches"]
    return {room: round(100 * taken / there, 1) for room, (taken, there) in sorted(counts.items()) if there}
