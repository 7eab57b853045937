"""`HostKeeper`: keeps `HostSessions` of the tool bridge and the store true to each other, on the loop.

It is a subscriber of the store for each host session that this process knows: it is notified of the end of the
session's space, and holds the space while something runs in it. It asks the store about a session at most once a
second, however many calls run, so what it does comes up to a second late:

* a use here reaches the store a second later at most, and counts from then on;
* the space is held, or let go of, by then as well; a call that is shorter than that costs no question;
* before a space is dropped, `settle` makes this certain.

When a space is gone, what still runs in its session is asked to end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from invoker.core.store import Hold, Look, News, Reason, Refused
from invoker.execution.bodies.runner import later
from invoker.execution.driver import Driver
from invoker.protocols.toolbridge.errors import session_gone
from invoker.protocols.toolbridge.host_sessions import HostSession, HostSessions, Operation, space_of

__all__ = ["HostKeeper"]

_DELAY_S = 1.0
_PARTS = 4
"""How many times the store is asked during the time to live of a session that lives for some seconds only."""


class HostKeeper:
    """The loop's side of `HostSessions`.

    Args:
        host_sessions: The host sessions of this process.
        driver: Knows the loop, the store, and what runs.
    """

    def __init__(self, host_sessions: HostSessions, driver: Driver) -> None:
        self._host_sessions = host_sessions
        self._driver = driver
        self._posts: dict[HostSession, _Post] = {}
        self._waiting: dict[HostSession, set[asyncio.Future[None]]] = {}

    def watch(self, session: HostSession) -> None:
        """A session has become known here; from any thread."""
        self._on_loop(self._watch, session)

    def touch(self, session: HostSession) -> None:
        """A session is in use; from any thread."""
        self._on_loop(self._touch, session)

    def idle(self, session: HostSession) -> None:
        """Nothing runs any more in a session that is closing or gone; from any thread."""
        self._on_loop(self._idle, session)

    def freed(self, session: HostSession) -> None:
        """A tool call has ended for which somebody waits; from any thread."""
        self._on_loop(self._wake, session)

    async def room(self, session: HostSession, within_s: float) -> None:
        """Wait until one more tool call may begin in a session, or the time is over, or the session is gone."""
        with self._host_sessions.lock:
            session.waits += 1  # count, then look; the end of a call does the reverse
        waiting = self._waiting.setdefault(session, set())
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(within_s):
                while session.gone is None and 0 < session.max_tools <= session.tools:
                    waiter = loop.create_future()
                    waiting.add(waiter)
                    await waiter
        except TimeoutError:
            return
        finally:
            with self._host_sessions.lock:
                session.waits -= 1
                if not session.waits:
                    self._waiting.pop(session, None)

    def settle(self, session: HostSession) -> None:
        """Hold the session's space if something runs in it, else let go of it; on the loop."""
        post = self._posts.get(session)
        if post is not None:
            post.hold(is_wanted=bool(session.operations))
            self._driver.sweep_store()

    def close(self) -> None:
        """Leave the store; on the loop."""
        posts, self._posts = self._posts, {}
        for post in posts.values():
            post.leave()

    def _on_loop(self, call: Callable[[HostSession], None], session: HostSession) -> None:
        running = asyncio._get_running_loop()  # noqa: SLF001 - asks what get_running_loop answers by raising
        if running is not None:
            call(session)
        elif self._driver.loop is not None:
            later(self._driver.loop, call, session)

    def _watch(self, session: HostSession) -> None:
        self._posts[session] = _Post(session, self._driver, self._gone)
        self._driver.sweep_store()

    def _touch(self, session: HostSession) -> None:
        delay_s = min(_DELAY_S, session.ttl_ns / 1e9 / _PARTS)
        asyncio.get_running_loop().call_later(delay_s, self._tick, session)

    def _tick(self, session: HostSession) -> None:
        """Report to the store that a session was used."""
        session.is_stale = False
        post = self._posts.get(session)
        if post is None or session.gone is not None:
            return
        post.use(is_running=bool(session.operations))
        self._driver.sweep_store()

    def _wake(self, session: HostSession) -> None:
        """Wake the callers that wait for a place in a session."""
        waiting = self._waiting.get(session, set())
        for one in waiting:
            if not one.done():
                one.set_result(None)
        waiting.clear()

    def _idle(self, session: HostSession) -> None:
        post = self._posts.get(session)
        if post is not None:
            post.hold(is_wanted=False)
            if session.id not in self._host_sessions.sessions:
                self._leave(session)

    def _gone(self, session: HostSession, reason: Reason) -> None:
        """The space of a session is gone: end what runs in it."""
        self._host_sessions.remove(session, reason)
        self._wake(session)
        operations = set(session.operations)
        if not operations:
            self._leave(session)
            return
        for one in operations:
            if one.cancel is not None:
                one.cancel(session_gone(session.id, reason))
        engine = self._driver.engine
        with engine.lock:
            running = list(engine.running.values())
        for invocation in running:
            if any(isinstance(one, Operation) and one in operations for one in invocation.context.configs):
                invocation.stop(session_gone(session.id, reason))

    def _leave(self, session: HostSession) -> None:
        post = self._posts.pop(session, None)
        if post is not None:
            post.leave()


class _Post:
    """The place of one host session at the store.

    Args:
        session: The host session.
        driver: Knows the store.
        gone: Called when its space is gone.
    """

    def __init__(self, session: HostSession, driver: Driver, gone: Callable[[HostSession, Reason], None]) -> None:
        self._space = space_of(session.id)
        self._store = driver.store
        self._gone = partial(gone, session)
        self._holder: _Holder | None = None
        self._has_left = False
        self._loop = asyncio.get_running_loop()
        self._store.subscribe(self, News(self._space, (), self.has_news))

    def use(self, *, is_running: bool) -> None:
        """Report to the store that the space is in use."""
        self.hold(is_wanted=is_running)
        if not is_running:
            self._store.ask(self, "use", Look(self._space))

    def hold(self, *, is_wanted: bool) -> None:
        """Hold the space, or let go of it."""
        if is_wanted and self._holder is None:
            self._holder = _Holder()
            self._store.ask(self._holder, "hold", Hold(self._space))
        elif not is_wanted and self._holder is not None:
            holder, self._holder = self._holder, None
            self._store.leave(holder)

    def leave(self) -> None:
        """Release the space, and end the subscription to it."""
        self._has_left = True
        self._let_go()

    # The methods of `Subscriber`, which the store calls.

    def answered(self, key: str, value: Any) -> None:
        """Ignore the answer: that the space is gone comes as news."""

    def has_news(self, news: News) -> None:
        """Take the news in a later turn, since the store is still working on something."""
        self._loop.call_soon(self._take, news)

    def _take(self, news: News) -> None:
        while (change := news.take()) is not None:
            if isinstance(change, Refused) and change.reason is Reason.UNAVAILABLE:
                self._loop.call_later(_DELAY_S, self._listen_again)
            elif isinstance(change, Refused):
                self._gone(change.reason)

    def _listen_again(self) -> None:
        """Subscribe and hold anew, since the store could not be reached; it then reports whether the space is gone."""
        if self._has_left:
            return
        is_held = self._holder is not None
        self._let_go()
        self._store.subscribe(self, News(self._space, (), self.has_news))
        self.hold(is_wanted=is_held)

    def _let_go(self) -> None:
        self.hold(is_wanted=False)
        self._store.leave(self)


class _Holder:
    """A subscriber of the store that holds one space until it leaves."""

    def answered(self, key: str, value: Any) -> None:
        """Ignore the answer: that the space is gone comes as news."""

    def has_news(self, news: News) -> None:
        raise AssertionError(f"it has subscribed to nothing, but hears of {news.space}")
