"""One world for each kind of store: its time stands still until it is moved, and who asks gets the answer at once."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from invoker.core.spaces import MemoryStore, StoreLimits
from invoker.core.store import Change, Create, Drop, News, Put, Question, Refused, Store
from invoker.stores.backend import Asked, Backend, Beat, Sweep
from invoker.stores.shared import SharedStore
from tests.conftest import SLOW

SECOND = 1_000_000_000
_BARRIER = "~barrier"


class Subscriber:
    """A conversation that asks one thing after another."""

    def __init__(self, world: World, store: Store) -> None:
        self.world = world
        self.store = store
        self.answers: dict[str, Any] = {}
        self.told: list[News] = []
        self._asked = 0

    def answered(self, key: str, value: Any) -> None:
        assert key not in self.answers, "an answer comes once"
        self.answers[key] = value

    def has_news(self, news: News) -> None:
        self.told.append(news)

    def later(self, question: Question) -> str:
        """Ask without waiting; gives the key of the answer."""
        self._asked += 1
        key = f"q{self._asked}"
        self.store.ask(self, key, question)
        return key

    def ask(self, question: Question) -> Any:
        return self.answer(self.later(question))

    def answer(self, key: str) -> Any:
        self.world.until(lambda: key in self.answers)
        return self.answers[key]

    def hear(self, space: str = "s", *names: str, has_initial: bool = False) -> News:
        news = News(space, names or None, self.has_news, has_initial=has_initial)
        self.store.subscribe(self, news)
        return news

    def leave(self) -> None:
        self.store.leave(self)


class World:
    """A store and one guest."""

    tick_ns = 1
    """By how much the version of an item grows at least."""

    def __init__(self, **limits: int) -> None:
        self.now_ns = 5 * SECOND
        self.limits = StoreLimits(**limits)
        self.loop = asyncio.new_event_loop()
        self.stores: list[Store] = []
        self.store = self.another()
        self.subscriber = Subscriber(self, self.store)

    def make(self) -> Store:
        """A store over what all stores of this world share."""
        raise NotImplementedError

    def another(self) -> Store:
        """One more process."""
        store = self.make()
        self.stores.append(store)
        self.run(lambda: store.start(self.later))
        return store

    def new_subscriber(self, store: Store | None = None) -> Subscriber:
        return Subscriber(self, store or self.store)

    def ask(self, question: Question) -> Any:
        return self.subscriber.ask(question)

    def wait(self, seconds: float) -> None:
        self.now_ns += int(seconds * SECOND)

    def settle(self) -> None:
        """Let all that was asked and told arrive."""

    def taken(self, news: News) -> list[Change | Refused]:
        self.settle()
        return list(iter(news.take, None))

    def later(self, delay_s: float, call: Callable[[], None]) -> object:
        return self.loop.call_later(delay_s, call)

    def swept(self) -> None:
        """Let a second pass, in which each store forgets what has expired."""
        raise NotImplementedError

    def names(self) -> list[str]:
        """The spaces that there are, though nobody asks the store."""
        raise NotImplementedError

    def until(self, is_true: Callable[[], bool]) -> None:
        """Run the loop until something is so."""

        async def look() -> None:
            async with asyncio.timeout(4 * SLOW):
                while not is_true():  # noqa: ASYNC110 - answers come from threads
                    await asyncio.sleep(0.001)

        if not is_true():
            self.loop.run_until_complete(look())

    def run(self, function: Callable[[], Any]) -> Any:
        async def call() -> Any:
            return function()

        return self.loop.run_until_complete(call())

    def close(self) -> None:
        """End all processes. Idempotent."""
        if self.loop.is_closed():
            return
        for store in self.stores:
            store.close()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()


class MemoryWorld(World):
    """The store of one process."""

    def __init__(self, **limits: int) -> None:
        self._timers: list[tuple[int, Callable[[], None]]] = []
        super().__init__(**limits)

    def make(self) -> Store:
        return MemoryStore(self.limits, lambda: self.now_ns)

    def later(self, delay_s: float, call: Callable[[], None]) -> object:
        return self._timers.append((self.now_ns + int(delay_s * SECOND), call))

    def swept(self) -> None:
        self.wait(1)
        timers, self._timers = self._timers, []
        for at, call in timers:
            assert at <= self.now_ns, "a sweep is due within a second"
            call()

    def names(self) -> list[str]:
        assert isinstance(self.store, MemoryStore)
        if self._timers:
            self.swept()
        return list(self.store._spaces)


class SharedWorld(World):
    """Stores of several processes, which live as long as nobody says otherwise."""

    def backend(self) -> Backend:
        raise NotImplementedError

    def make(self) -> Store:
        return SharedStore(self.backend())

    def wait(self, seconds: float) -> None:
        self.beat()  # what was asked is done before
        super().wait(seconds)
        self.beat()

    def beat(self, *stores: Store) -> None:
        """Renew the lease of some processes, or of all."""
        self.asked(Beat(), *(stores or self.stores))

    def asked(self, asked: Asked, *stores: Store) -> list[Any]:
        """What the processes answer to a question of their own."""
        said: list[Any] = []
        for store in stores:
            assert isinstance(store, SharedStore)
            store.asking.put(asked, said.append)
        self.until(lambda: len(said) == len(stores))
        return said

    def swept(self) -> None:
        self.wait(1)
        self.asked(Sweep(), *self.stores)
        self.settle()

    def settle(self) -> None:
        for store in self.stores:
            self._settle(store)

    def _settle(self, store: Store) -> None:
        """What is told of one space after all else was has come, so all else has, too."""
        subscriber = Subscriber(self, store)
        subscriber.ask(Create(_BARRIER, 1_000_000))
        news = subscriber.hear(_BARRIER)
        subscriber.ask(Put(_BARRIER, "a", b""))
        self.until(lambda: news in subscriber.told)
        subscriber.ask(Drop(_BARRIER))
        subscriber.leave()


class SqliteWorld(SharedWorld):
    """A file."""

    def __init__(self, path: Path, **limits: int) -> None:
        self.path = path
        super().__init__(**limits)

    def backend(self) -> Backend:
        from invoker.stores.sqlite import SqliteBackend

        return SqliteBackend(self.path, self.limits, lambda: self.now_ns)

    def names(self) -> list[str]:
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            return [name for (name,) in db.execute("SELECT name FROM spaces")]


class RedisWorld(SharedWorld):
    """A server."""

    tick_ns = 1000

    def __init__(self, url: str, **limits: int) -> None:
        self.url = url
        super().__init__(**limits)

    def backend(self) -> Backend:
        from invoker.stores.redis import RedisBackend

        return RedisBackend(self.url, self.limits, lambda: self.now_ns)

    def names(self) -> list[str]:
        import redis

        with redis.Redis.from_url(self.url, decode_responses=True) as client:
            return [name.removeprefix("invoker:s:") for name in client.keys("invoker:s:*")]
