"""`Asker`: asks the store what its service wants to know, and hears of the end of spaces."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from invoker.core.store import News, Question, Refused
from invoker.execution.driver import Driver

__all__ = ["Asker"]


class Asker:
    """A subscriber of the store.

    Args:
        driver: Has the store.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._keys = count()
        self._waiting: dict[str, Callable[[Any], None]] = {}
        self._ends: dict[str, Callable[[Refused], None]] = {}

    def later(self, question: Question, answer: Callable[[Any], None]) -> None:
        """Ask without waiting; ``answer`` is called with the answer, at once or later."""
        key = str(next(self._keys))
        self._waiting[key] = answer
        self._driver.store.ask(self, key, question)
        self._driver.sweep_store()

    async def ask(self, question: Question) -> Any:
        """Ask, and wait for the answer."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.later(question, partial(_resolve, future))
        return await future

    def on_end(self, space: str, end: Callable[[Refused], None]) -> None:
        """Call ``end`` when the space is gone, or may be gone without a notice."""
        self._ends[space] = end
        self._driver.store.subscribe(self, News(space, (), self.has_news))

    def leave(self) -> None:
        """Let go of what is held; nothing that was asked is answered any more."""
        self._waiting.clear()
        self._ends.clear()
        self._driver.store.leave(self)

    # The methods of `Subscriber`, which the store calls.

    def answered(self, key: str, value: Any) -> None:
        """Give the answer to the code that asked."""
        if (answer := self._waiting.pop(key, None)) is not None:
            answer(value)

    def has_news(self, news: News) -> None:
        """Call the callback of a space that has ended."""
        while (change := news.take()) is not None:
            if isinstance(change, Refused) and (end := self._ends.pop(news.space, None)) is not None:
                end(change)


def _resolve(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)
