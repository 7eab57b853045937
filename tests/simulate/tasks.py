"""Coroutines that are stepped by hand: each waits for a fact, and the scheduler chooses among those whose fact is true."""  # noqa: E501

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any

__all__ = ["Interrupted", "Sleep", "Task", "Until"]

Fact = Callable[[], bool]


class Interrupted(BaseException):
    """What a cancelled task sees; in the place of ``asyncio.CancelledError``."""


class Until:
    """Awaited: wait until a fact is true."""

    __slots__ = ("fact",)

    def __init__(self, fact: Fact) -> None:
        self.fact = fact

    def __await__(self) -> Generator[Fact, None, None]:
        yield self.fact


class Sleep:
    """Awaited: wait for some ticks of virtual time."""

    __slots__ = ("ticks",)

    def __init__(self, ticks: int) -> None:
        self.ticks = ticks

    def __await__(self) -> Generator[Sleep, None, None]:
        yield self


class Task:
    """One coroutine and what it waits for."""

    __slots__ = ("_coroutine", "_fact", "is_done", "is_interrupted", "name", "wakes_at")

    def __init__(self, name: str, coroutine: Coroutine[Any, Any, None]) -> None:
        self.name = name
        self.is_done = False
        self.is_interrupted = False
        self.wakes_at: int | None = None
        self._fact: Fact | None = None
        self._coroutine = coroutine

    def interrupt(self) -> None:
        """Raise `Interrupted` at the task's next step."""
        self.is_interrupted = not self.is_done

    def is_ready(self, now: int) -> bool:
        """Whether it can take a step."""
        if self.is_interrupted:
            return True
        if self.wakes_at is not None:
            return now >= self.wakes_at
        return self._fact is None or self._fact()

    def step(self, now: int) -> None:
        """Run to the next `await` that has to wait."""
        self.wakes_at = self._fact = None
        try:
            if self.is_interrupted:
                self.is_interrupted = False
                wanted = self._coroutine.throw(Interrupted())
            else:
                wanted = self._coroutine.send(None)
        except (StopIteration, Interrupted):
            self.is_done = True
            return
        if isinstance(wanted, Sleep):
            self.wakes_at = now + wanted.ticks
        else:
            self._fact = wanted

    def discard(self) -> None:
        """Close the coroutine of a run that failed."""
        try:
            self._coroutine.close()
        except BaseException:
            self.is_done = True
