"""Actions that are all sync, for the fuzz; `actions` has the same and async ones."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from invoker import Message, function
from invoker.execution.bodies.pool import Threads

_WATCHED = ("EvergreenSession", "Graph", "Node", "SessionReactor", "LoopRunner", "ThreadRunner", "Invocation")

_marks: list[None] = []


@function
def upper(text: str) -> str:
    """A plain function."""
    return text.upper()


@function
def add(a: int, b: int) -> int:
    """A plain function of two inputs."""
    return a + b


@function
def relay(x: Iterator[str]) -> Iterator[str]:
    """Text as it comes."""
    yield from x


@function
def items(x: Iterator[Message[Any]]) -> Iterator[dict[str, Any]]:
    """What each leaf is."""
    for one in x:
        yield {"type": one.media_type, "headers": dict(one.headers)}


@function
def both(x: Iterator[str], y: Iterator[str]) -> Iterator[str]:
    """The second input first."""
    yield from y
    yield from x


@function
def fails(x: Iterator[str]) -> Iterator[str]:
    """One value, then an error."""
    yield "one"
    raise ValueError("on purpose")


@function
def endless() -> Iterator[str]:
    """Never ends."""
    while True:
        yield "x" * 10_000


@function
def dozes(x: Iterator[str]) -> Iterator[str]:
    """Blocks its thread for a while, whatever happens."""
    for one in x:
        time.sleep(0.05)
        yield one


@function
def gather(x: Iterator[str]) -> str:
    """Counts a normal end of its input, which only a half-close may be."""
    for _ in x:
        pass
    mark()
    return "all"


def mark() -> None:
    """One normal end more."""
    _marks.append(None)


def _is_idle(frame: FrameType | None) -> bool:
    """Whether a thread waits in the pool for work, which it does for some seconds."""
    while frame is not None:
        if frame.f_code is Threads._next.__code__:
            return True
        frame = frame.f_back
    return False


@function
def state() -> dict[str, int]:
    """What this process has: marks, threads, tasks, descriptors, resident bytes, objects of sessions."""
    gc.collect()
    found: Counter[str] = Counter()
    for one in gc.get_objects():
        kind = type(one)
        if kind.__name__ in _WATCHED and kind.__module__.startswith("invoker."):
            found[kind.__name__] += 1
        elif isinstance(one, asyncio.Task) and not one.done():
            found["tasks"] += 1
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        **{name: found[name] for name in (*_WATCHED, "tasks")},
        "marks": len(_marks),
        "threads": sum(not _is_idle(frame) for frame in sys._current_frames().values()),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "bytes": pages * os.sysconf("SC_PAGE_SIZE"),
    }
