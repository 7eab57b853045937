"""Measures what programs load: modules, heavy libraries, processor time, and the time of a start until it is ready.

Modules that an empty interpreter loads are not counted. The processor time is the median of several runs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tools.server import ROOT, serving

HEAVY = ("asyncio", "grpc", "numpy", "pydantic")
_PROGRAMS = {
    "import invoker": ("-c", "import invoker"),
    "import invoker.client": ("-c", "import invoker.client"),
    "help": ("-m", "invoker", "--help"),
}
_SERVED = "functions.running_mean:running_mean"
_RUNS = 5
_LINE = re.compile(r"^import time:\s+\d+ \|\s+\d+ \|\s*([\w.]+)$", re.MULTILINE)


def imports(note: Callable[[str], None]) -> dict[str, dict[str, Any]]:
    """Measure ``modules``, ``loads`` (those of `HEAVY` that are loaded) and ``ms``, by program.

    Args:
        note: Called with a line about the progress.
    """
    empty = set(_LINE.findall(_run(("-X", "importtime", "-c", "pass"))[1]))
    found: dict[str, dict[str, Any]] = {}
    for name, arguments in _PROGRAMS.items():
        note(f"importing: {name}")
        times = [_run(arguments)[0] - _run(("-c", "pass"))[0] for _ in range(_RUNS)]
        found[name] = {**_loaded(_run(("-X", "importtime", *arguments))[1], empty), "ms": _ms(times)}
    note("starting a server")
    starts = [_start() for _ in range(_RUNS)]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        with serving(_SERVED, program=(sys.executable, "-X", "importtime", "-m", "invoker"), log=log):
            text = log.read_text(encoding="utf-8", errors="replace")
    found["ready"] = {**_loaded(text, empty), "ms": _ms([used for used, _ in starts])}
    found["ready"]["wall_ms"] = _ms([took for _, took in starts])
    return found


def _start() -> tuple[float, float]:
    with serving(_SERVED) as server:
        return server.processor_s, server.ready_s


def _loaded(text: str, empty: set[str]) -> dict[str, Any]:
    names = set(_LINE.findall(text)) - empty
    return {"modules": len(names), "loads": [one for one in HEAVY if one in names]}


def _run(arguments: Sequence[str]) -> tuple[float, str]:
    """Run Python; returns the processor time in seconds, and the text on stderr."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=out)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{arguments!r} ends with {process.returncode}")
        out.seek(0)
        return used.ru_utime + used.ru_stime, out.read().decode("utf-8", "replace")


def _ms(seconds: Sequence[float]) -> int:
    return round(median(seconds) * 1000)
