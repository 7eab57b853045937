"""`SharedStore`: a store that several processes share, made from a `Backend`.

It tracks the spaces that each conversation of this process holds and listens to. The backend sees only the process, so
a thousand conversations that watch one space cost it no more than one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from invoker.core.store import Change, Drop, Hold, Later, News, Put, Question, Refused, Subscriber
from invoker.stores.asking import Asking
from invoker.stores.backend import (
    UNAVAILABLE,
    Backend,
    Deafen,
    Dropped,
    Event,
    Held,
    IsHeld,
    Listen,
    Listening,
    Release,
)

_LOOK_S = 0.05
"""Seconds between two checks whether the others have released a space that was deleted."""


@dataclass(slots=True, eq=False)
class _Subscription:
    """One subscription, which gets the changes with higher numbers than ``since``."""

    news: News
    key: int = -1
    since: int = -1
    has_left: bool = False


@dataclass(slots=True, eq=False)
class _Claims:
    """The spaces that a subscriber holds, by key and how often, and those that it listens to, until it leaves."""

    holds: dict[int, int] = field(default_factory=dict)
    subscriptions: list[_Subscription] = field(default_factory=list)
    has_left: bool = False


class SharedStore:
    """Keeps spaces in a backend; see `invoker.core.store.Store` for its methods.

    Args:
        backend: Keeps the spaces.
    """

    _later: Later

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.asking = Asking(backend, self._hear, self._lose, self._late)
        self._claims: dict[Subscriber, _Claims] = {}
        self._subscriptions: dict[int, list[_Subscription]] = {}
        self._listens = 0  # subscriptions that wait for an answer
        self._early: list[Event] = []  # changes that came while subscriptions waited, and may be for them
        self._deaf: set[int] = set()  # keys that may have no listener any more

    def start(self, later: Later) -> None:
        """Open the backend, and start the thread that sends it questions."""
        self._later = later
        self.asking.start()

    def close(self) -> None:
        """Close the backend, once all questions are answered."""
        self.asking.close()

    def ask(self, subscriber: Subscriber, key: str, question: Question) -> None:
        """Ask the backend; the subscriber gets the answer in a later turn."""
        answer: Callable[[Any], None] = partial(subscriber.answered, key)
        if isinstance(question, Hold):
            answer = partial(self._held, self._claims_of(subscriber), answer)
        elif isinstance(question, Drop):
            answer = partial(self._dropped, answer)
        # A hold must be released later, and a durable write may take long, so these have no time limit.
        is_patient = isinstance(question, Hold) or (isinstance(question, Put) and question.is_durable)
        self.asking.put(question, answer, is_waited_for=not is_patient)

    def subscribe(self, subscriber: Subscriber, news: News) -> None:
        """Report changes of a space from now on."""
        subscription = _Subscription(news)
        self._claims_of(subscriber).subscriptions.append(subscription)
        self._listens += 1
        listen = Listen(news.space, news.names, news.has_initial)
        self.asking.put(listen, partial(self._listening, subscription), is_waited_for=True)

    def leave(self, subscriber: Subscriber) -> None:
        """Release the spaces that a subscriber held and subscribed to."""
        claims = self._claims.pop(subscriber, None)
        if claims is None:
            return
        claims.has_left = True
        for key, count in claims.holds.items():
            self.asking.put(Release(key, count))
        for subscription in claims.subscriptions:
            subscription.has_left = True
            subscriptions = self._subscriptions.get(subscription.key, [])
            if subscription in subscriptions:
                subscriptions.remove(subscription)
                self._deaf.add(subscription.key)
        self._deafen()

    # Answers of the backend.

    def _held(self, claims: _Claims, answer: Callable[[Any], None], said: Any) -> None:
        if not isinstance(said, Held):
            answer(said)
        elif claims.has_left:
            self.asking.put(Release(said.key, 1))
        else:
            claims.holds[said.key] = claims.holds.get(said.key, 0) + 1
            answer(said.space)

    def _dropped(self, answer: Callable[[Any], None], said: Any) -> None:
        if isinstance(said, Dropped):
            self._look(said.key, answer)
        else:
            answer(said)

    def _look(self, key: int, answer: Callable[[Any], None]) -> None:
        """Check whether a process still holds a space; if none does, answer its `Drop`."""

        def seen(is_held: Any) -> None:
            if is_held is True:
                self._look(key, answer)
            else:
                answer(is_held or None)

        self._later(_LOOK_S, partial(self.asking.put, IsHeld(key), seen))

    def _listening(self, subscription: _Subscription, said: Listening | Refused) -> None:
        self._listens -= 1
        if isinstance(said, Listening) and said.epoch != self._backend.epoch:
            self._deaf.add(said.key)
            said = UNAVAILABLE
        if isinstance(said, Refused):
            subscription.news.put(said)
        elif subscription.has_left:
            self._deaf.add(said.key)
        else:
            subscription.key, subscription.since = said.key, said.since
            for item in said.items:
                subscription.news.put(Change(item.name, item.value, item.updated_ns, is_new=True))
            self._subscriptions.setdefault(said.key, []).append(subscription)
            for event in self._early:
                if event.key == said.key and event.number > said.since:
                    subscription.news.put(event.what)
        if not self._listens:
            self._early = []
        self._deafen()

    def _hear(self, events: Sequence[Event]) -> None:
        if self._listens:
            self._early.extend(events)
        for event in events:
            is_end = isinstance(event.what, Refused)
            subscriptions = self._subscriptions.pop(event.key, []) if is_end else self._subscriptions.get(event.key, [])
            for subscription in subscriptions:
                if event.number > subscription.since:
                    subscription.news.put(event.what)

    def _lose(self) -> None:
        """End all subscriptions, because changes may have been missed."""
        subscriptions, self._subscriptions, self._early = self._subscriptions, {}, []
        for one in subscriptions.values():
            for subscription in one:
                subscription.news.put(UNAVAILABLE)

    def _late(self, said: Any) -> None:
        """Handle an answer that came after its question had failed."""
        if isinstance(said, Listening):
            self._deaf.add(said.key)
            self._deafen()

    # Private helpers.

    def _claims_of(self, subscriber: Subscriber) -> _Claims:
        return self._claims.setdefault(subscriber, _Claims())

    def _deafen(self) -> None:
        """Let the backend stop its reports about spaces without a subscription."""
        if self._listens or not self._deaf:
            return
        deaf, self._deaf = self._deaf, set()
        for key in deaf:
            if not self._subscriptions.get(key):
                self._subscriptions.pop(key, None)
                self.asking.put(Deafen(key))
