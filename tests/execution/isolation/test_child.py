"""A child process as the serving process sees it."""

from __future__ import annotations

import asyncio
import signal

import pytest

from invoker.execution.isolation.child import Child, ended_by
from invoker.execution.isolation.frames import Hello, Loaded


class Pool:
    """Notes what a child tells."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.came = asyncio.Event()

    def ready(self, child: Child, problem: str) -> None:
        self.told.append(problem or "ready")
        self.came.set()

    def left(self, child: Child, *, is_worn: bool) -> None:
        raise AssertionError("nothing ran")

    def ended(self, child: Child) -> None:
        self.told.append("ended")


@pytest.mark.parametrize(
    ("code", "words"),
    [(0, "ended with the exit code 0"), (-signal.SIGSEGV, "was ended by SIGSEGV"), (-99, "was ended by signal 99")],
)
def test_an_end_is_told_in_words(code: int, words: str) -> None:
    """Of exit codes and of signals."""
    assert ended_by(code) == words


@pytest.mark.parametrize("way", ["close", "kill"])
async def test_a_child_starts_and_ends(way: str) -> None:
    """By itself when its pipe is closed; at once when it is killed."""
    import sys

    pool = Pool()
    child = Child(pool, asyncio.get_running_loop())
    child.start(Hello(list(sys.path), [Loaded("square", "tests.execution.isolation.functions:square")], {}))
    assert child.has_room
    await pool.came.wait()
    assert (child.is_ready, child.pid > 0) == (True, True)
    getattr(child, way)()
    await child.over(10.0)
    await asyncio.sleep(0)
    assert pool.told == ["ready", "ended"]


async def test_a_child_says_why_it_cannot_serve() -> None:
    """One sentence, as serving would give."""
    import sys

    pool = Pool()
    child = Child(pool, asyncio.get_running_loop())
    child.start(Hello(list(sys.path), [Loaded("f", "tests.nothing:f")], {}))
    await child.over(20.0)
    await asyncio.sleep(0)
    assert pool.told[0].startswith("module 'tests.nothing'") or "tests.nothing" in pool.told[0]
    assert pool.told[-1] == "ended"
