"""`HostKeeper`: keeps `HostSessions` of the tool bridge consistent with the store, on the event loop.

It subscribes to the store for each host session of this process: it is notified when the session's space ends, and
holds the space while a call runs in it. It makes at most one request to the store per session and second, so its
actions are up to a second late:

* a use of a session in this process reaches the store within a second, and extends the session from then on;
* the space is held or released within a second too; a shorter call needs no request;
* before a space is dropped, `settle` waits for these requests.

When a space is gone, the calls that still run in its session are cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from invoker.core.store import Hold, Look, Reason, Refused, Store
from invoker.execution.asker import Asker
from invoker.execution.bodies.runner import later
from invoker.execution.driver import Driver
from invoker.protocols.toolbridge.errors import session_gone
from invoker.protocols.toolbridge.host_sessions import HostSession, HostSessions, Operation, space_of

_DELAY_S = 1.0
_PARTS = 4
"""How many times the store is asked during the time to live of a session that lives for some seconds only."""


class HostKeeper:
    """Keeps `HostSessions` consistent with the store; its state belongs to the event loop.

    Args:
        host_sessions: The host sessions of this process.
        driver: The driver, with the event loop, the store, and the running invocations.
    """

    def __init__(self, host_sessions: HostSessions, driver: Driver) -> None:
        self._host_sessions = host_sessions
        self._driver = driver
        self._posts: dict[HostSession, _Post] = {}
        self._waiting: dict[HostSession, set[asyncio.Future[None]]] = {}
        self._expiring: dict[HostSession, asyncio.TimerHandle] = {}  # sessions with results that will expire

    def watch(self, session: HostSession) -> None:
        """Watch a session of which this process has just learned; may be called from any thread."""
        self._on_loop(self._watch, session)

    def touch(self, session: HostSession) -> None:
        """Note that a session is in use; the store learns of it within a second. May be called from any thread."""
        self._on_loop(self._touch, session)

    def idle(self, session: HostSession) -> None:
        """Note that no call runs any more in a session that is closing or gone; may be called from any thread."""
        self._on_loop(self._idle, session)

    def freed(self, session: HostSession) -> None:
        """Note that a tool call has ended for which another call waits; may be called from any thread."""
        self._on_loop(self._wake, session)

    async def room(self, session: HostSession, within_s: float) -> None:
        """Wait until one more tool call may begin in a session, or the time is over, or the session is gone."""
        with self._host_sessions.lock:
            session.waits += 1  # before `tools` is read: the end of a call writes `tools`, then reads `waits`
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
        """Hold the session's space if a call runs in it, otherwise release it; on the loop."""
        post = self._posts.get(session)
        if post is not None:
            post.hold(is_wanted=bool(session.operations))

    def close(self) -> None:
        """Leave the store; on the loop."""
        for session in tuple(self._posts):
            self._leave(session)

    def _on_loop(self, call: Callable[[HostSession], None], session: HostSession) -> None:
        running = asyncio._get_running_loop()  # noqa: SLF001 - asks what get_running_loop answers by raising
        if running is not None:
            call(session)
        elif self._driver.loop is not None:
            later(self._driver.loop, call, session)

    def _watch(self, session: HostSession) -> None:
        self._posts[session] = _Post(session, self._driver.store, self._gone)

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
        if session not in self._expiring:
            self._expire(session)

    def _expire(self, session: HostSession) -> None:
        """Forget the expired results of a session, now and whenever others expire."""
        self._expiring.pop(session, None)
        results = session.results
        due_s = None if results is None else results.expire(self._host_sessions.now_ns())
        if due_s is not None:
            loop = asyncio.get_running_loop()
            self._expiring[session] = loop.call_later(max(_DELAY_S, due_s), self._expire, session)

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
        """End the operations of a session whose space is gone."""
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
        if (timer := self._expiring.pop(session, None)) is not None:
            timer.cancel()


class _Post:
    """Asks the store about one host session.

    Args:
        session: The host session.
        store: The store.
        gone: Called in a later turn when its space is gone.
    """

    def __init__(self, session: HostSession, store: Store, gone: Callable[[HostSession, Reason], None]) -> None:
        self._space = space_of(session.id)
        self._store = store
        self._gone = partial(gone, session)
        self._holder: Asker | None = None
        self._has_left = False
        self._listen()

    def use(self, *, is_running: bool) -> None:
        """Report to the store that the space is in use."""
        self.hold(is_wanted=is_running)
        if not is_running:
            self._asker.later(Look(self._space))

    def hold(self, *, is_wanted: bool) -> None:
        """Hold the space, or release it."""
        if is_wanted and self._holder is None:
            self._holder = Asker(self._store)
            self._holder.later(Hold(self._space))
        elif not is_wanted and self._holder is not None:
            self._holder.leave()
            self._holder = None

    def leave(self) -> None:
        """Release the space, and end the subscription to it."""
        self._has_left = True
        self.hold(is_wanted=False)
        self._asker.leave()

    def _listen(self) -> None:
        self._asker = Asker(self._store)
        self._asker.on_end(self._space, self._ended)

    def _ended(self, why: Refused) -> None:
        """Report the end in a later turn, since the store is still in the middle of a change."""
        if why.reason is Reason.UNAVAILABLE:
            asyncio.get_running_loop().call_later(_DELAY_S, self._listen_again)
        else:
            asyncio.get_running_loop().call_soon(self._gone, why.reason)

    def _listen_again(self) -> None:
        """Subscribe and hold again, since the store could not be reached; `_ended` is called if the space is gone."""
        if self._has_left:
            return
        is_held = self._holder is not None
        self.hold(is_wanted=False)
        self._asker.leave()
        self._listen()
        self.hold(is_wanted=is_held)
