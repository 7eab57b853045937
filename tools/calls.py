"""Counts how many Python calls within invoker's own files the server makes for one call of each kind, and in how many
files.

A server runs under `tools.counted` with all default protocols. Calls are made one after another on one connection, a
hundred at a time. Background work of the server (batches of log lines, clean-up, health checks) can only add to a
count, so the smallest of several counts is used, for each file. Resuming a generator or a coroutine counts as a call.
"""

from __future__ import annotations

import json
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeAlias

from tools.server import Server, serving
from tools.wires import CALLS, STREAMS, Ask, Opening

CATALOGUES = {"sync": "tools.served.sync", "mixed": "tools.served.mixed"}
"""The catalogues: one with sync functions only, and one with an async function in addition."""
_ASYNC = {"riff async", "http async", "http sync, read by the loop"}
_WARM, _EACH, _TIMES, _ITEMS = 30, 100, 7, 20
_REST_S, _SETTLE_S = 0.003, 2.0

Figures: TypeAlias = dict[str, dict[str, float]]
PerFile: TypeAlias = Counter[str]


def counts(note: Callable[[str], None]) -> dict[str, Figures]:
    """Count ``calls`` and ``files``, by catalogue and kind of call.

    Args:
        note: Called with a line about the progress.
    """
    found: dict[str, Figures] = {}
    for catalogue, module in CATALOGUES.items():
        note(f"counting the calls of {module}")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "counts")
            program = (sys.executable, "-m", "tools.counted")
            with serving(module, program=program, env={"COUNTS": str(path)}) as server, connected(path) as counted:
                found[catalogue] = _of(catalogue, module, server, counted)
    return found


def _of(catalogue: str, module: str, server: Server, counted: Counted) -> Figures:
    found: Figures = {}
    for kind, opening in CALLS.items():
        if catalogue == "mixed" or kind not in _ASYNC:
            with opening(server, module, 1) as ask:
                cost = counted.cost(ask)
            found[kind] = {"calls": cost.total(), "files": len(cost)}
    for kind, opening in STREAMS.items():
        found[kind] = _per_item(module, server, counted, opening)
    return found


def _per_item(module: str, server: Server, counted: Counted, opening: Opening) -> dict[str, float]:
    """Count what each item after the first one costs."""
    costs: list[PerFile] = []
    for items in (1, 1 + _ITEMS):
        with opening(server, module, items) as ask:
            costs.append(counted.cost(ask))
    first, more = costs
    # files with fewer calls are not used for each item
    passed = [file for file, calls in (more - first).items() if 2 * calls >= _ITEMS]
    return {"calls": round((more.total() - first.total()) / _ITEMS, 2), "files": len(passed)}


class Counted:
    """A connection to a server that reports its counts.

    Args:
        stream: The stream to the socket of the server.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def cost(self, ask: Ask, times: int = _TIMES) -> PerFile:
        """Count what one call costs, in the files that most calls use.

        Args:
            ask: Makes a call.
            times: How many times a hundred calls are made.
        """
        for _ in range(_WARM):
            ask()
        found: list[PerFile] = []
        for _ in range(times):
            before = self._rested()
            for _ in range(_EACH):
                ask()
            found.append(self._rested() - before)
        least = {file: min(one[file] for one in found) for file in found[0]}
        return Counter({file: whole for file, count in least.items() if (whole := round(count / _EACH))})

    def _rested(self) -> PerFile:
        """Wait until the server is idle, and return its counts.

        Raises:
            RuntimeError: The server does not become idle.
        """
        before, until = self._told(), time.monotonic() + _SETTLE_S
        while time.monotonic() < until:
            time.sleep(_REST_S)
            if (now := self._told()) == before:
                return now
            before = now
        raise RuntimeError("the server does not become idle after the calls")

    def _told(self) -> PerFile:
        self._stream.write(b"?")
        self._stream.flush()
        return Counter(json.loads(self._stream.readline()))


@contextmanager
def connected(path: Path) -> Iterator[Counted]:
    """Connect to a server that runs under `tools.counted`.

    Args:
        path: The path of its socket.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_SETTLE_S)
        connection.connect(str(path))
        with connection.makefile("rwb") as stream:
            yield Counted(stream)
