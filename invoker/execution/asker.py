"""`Asker`: sends the questions of a service or a function to the store, and is notified when a space ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from invoker.core.store import News, Question, Refused, Store


class Asker:
    """A subscriber of a store; called on the loop of the store.

    Args:
        store: The store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._keys = count()
        self._waiting: dict[str, Callable[[Any], None]] = {}
        self._ends: dict[str, Callable[[Refused], None]] = {}

    def later(self, question: Question, answer: Callable[[Any], None] | None = None) -> None:
        """Ask a question without waiting; ``answer`` is called with the answer, at once or later."""
        key = str(next(self._keys))
        if answer is not None:
            self._waiting[key] = answer
        self._store.ask(self, key, question)

    async def ask(self, question: Question) -> Any:
        """Ask, and wait for the answer."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.later(question, partial(_resolve, future))
        return await future

    def on_end(self, space: str, end: Callable[[Refused], None]) -> None:
        """Call ``end`` when the space has ended, or when the store can no longer notify this subscriber of its end."""
        self._ends[space] = end
        self._store.subscribe(self, News(space, (), self.has_news))

    def leave(self) -> None:
        """Release the held spaces; the callbacks of open questions are not called any more."""
        self._waiting.clear()
        self._ends.clear()
        self._store.leave(self)

    # The methods of `Subscriber`, which the store calls.

    def answered(self, key: str, value: Any) -> None:
        """Give the answer to the code that asked."""
        if (answer := self._waiting.pop(key, None)) is not None:
            answer(value)

    def has_news(self, news: News) -> None:
        """Call the callback for the space of ``news``, because the space has ended."""
        while (change := news.take()) is not None:
            if isinstance(change, Refused) and (end := self._ends.pop(news.space, None)) is not None:
                end(change)


def _resolve(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)
