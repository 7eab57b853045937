"""`StoreSubscription`: connects one conversation to the store that all conversations share.

It performs `Ask`, `Await` and `Subscribe`, and brings `Answered` and `StoreChanged`, each in a turn of its own: a
session is never called from within its own step, whether a store answers at once or late. News are delivered only while
the wire has room, so a slow peer makes them wait in `News`, which is bounded, and not in the wire.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from functools import partial
from typing import Any, Protocol

from invoker.core.steps import Answered, Ask, Await, Event, StoreChanged, Subscribe
from invoker.core.store import News
from invoker.errors import InternalError, InvocationError, ShuttingDown, let_go
from invoker.execution.driver import Driver
from invoker.execution.loop.wire import Wire

log = logging.getLogger(__name__)


class Subscribed(Protocol):
    """A conversation that subscribes to spaces of the store.

    Attributes:
        runners: The runners of its bodies.
        wire: Carries its frames.
    """

    runners: dict[str, Any]
    wire: Wire

    def tell(self, event: Event) -> bool:
        """Give the session an event; False when the wire has no room for another frame."""

    def fail(self, error: InvocationError) -> None:
        """End the conversation with this error."""


class StoreSubscription:
    """The subscriber of the store for one conversation.

    Args:
        driver: Has the store.
        subscribed: The conversation.
    """

    def __init__(self, driver: Driver, subscribed: Subscribed) -> None:
        self._driver = driver
        self._store = driver.store
        self._subscribed = subscribed
        self._tell = subscribed.tell
        self._loop = asyncio.get_running_loop()
        self._news: list[News] = []  # the `News` that hold changes to deliver; there are few of them
        self._telling: asyncio.Task[None] | None = None
        self._awaiting: list[asyncio.Future[Any]] = []
        self._has_left = False

    def perform(self, step: Ask | Await | Subscribe) -> None:
        """Ask the store, subscribe to one of its spaces, or await an awaitable for the session."""
        if isinstance(step, Await):
            self._begin(step)
        elif isinstance(step, Ask):
            self._store.ask(self, step.key, step.question)
        else:
            news = News(step.topic, step.names, self.has_news, has_initial=step.has_initial)
            self._store.subscribe(self, news)
            self._driver.drains.add(self._drained)
            if self._driver.engine.is_draining:
                self._loop.call_soon(self._drained)

    def leave(self) -> None:
        """Leave the store, because the conversation is over."""
        self._has_left = True
        self._driver.drains.discard(self._drained)
        if self._telling is not None:
            self._telling.cancel()
        for awaited in list(self._awaiting):
            awaited.cancel()
        self._store.leave(self)

    # The methods of `Subscriber`, which the store calls.

    def answered(self, key: str, value: Any) -> None:
        """Give the session an answer, in a later turn; it is dropped if the conversation is over by then."""
        self._loop.call_soon(self._tell, Answered(key, value))

    def has_news(self, news: News) -> None:
        """Deliver the waiting changes to the session, in a later turn."""
        self._news.append(news)
        if self._telling is None and not self._has_left:
            self._telling = self._loop.create_task(self._tell_news(), name="news")

    # Private helpers.

    def _drained(self) -> None:
        """End a conversation that only listens, since it would delay the end of the process."""
        if not self._subscribed.runners and not self._has_left:
            self._subscribed.fail(ShuttingDown("this invoker is draining; listen again elsewhere"))

    def _begin(self, step: Await) -> None:
        """Await the awaitable of a step.

        A future needs no task, which a conversation that waits for long would keep.
        """
        awaited = step.begin()
        if not isinstance(awaited, asyncio.Future):
            awaited = self._loop.create_task(_awaited(awaited), name=f"await {step.key}")
        self._awaiting.append(awaited)
        awaited.add_done_callback(partial(self._ended, step.key))

    def _ended(self, key: str, awaited: asyncio.Future[Any]) -> None:
        self._awaiting.remove(awaited)
        if awaited.cancelled():
            return
        value = awaited.exception()
        if value is None:
            value = awaited.result()
        elif not isinstance(value, InvocationError):
            log.error("an operation that a session waited for has failed", exc_info=value)
            value = InternalError()
        self._tell(Answered(key, value))
        if isinstance(value, InvocationError):
            let_go(value)  # the error's frames refer to the awaitable, and form a cycle with it

    async def _tell_news(self) -> None:
        """Deliver all news, one of each space in turn, and wait for room on the wire between them."""
        while self._news:
            for news in list(self._news):
                change = news.take()
                if change is None:
                    self._news.remove(news)
                elif not self._tell(StoreChanged(news.space, change)):
                    await self._subscribed.wire.room()
            await asyncio.sleep(0)  # give other tasks a turn even if the session writes for each change
        self._telling = None


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
