"""`MemoryStore`: the store of one process. It is pure: it uses no loop and no threads, and its clock is an argument.

It checks whether a space has expired whenever the space is named, and checks all of them each second, if one may be
due. It remembers as many names of deleted spaces as there may be spaces, so that it can say why one is missing.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from invoker.core.store import (
    ABSENT,
    PRESENT,
    Change,
    Create,
    Drop,
    Get,
    Hold,
    Item,
    Later,
    Look,
    News,
    Put,
    Question,
    Reason,
    Refused,
    Scan,
    Space,
    Subscriber,
)

OVERHEAD: Final = 256
"""Bytes that are counted for each item in addition to its name, text and value."""

_SWEEP_S: Final = 1.0
_NEVER: Final = 2**63
_SECOND: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """The limits of a store.

    Attributes:
        spaces: The most spaces at once.
        items: The items of one space.
        space_bytes: The most bytes of one space.
        total_bytes: The most bytes of all spaces.
    """

    spaces: int = 10_000
    items: int = 10_000
    space_bytes: int = 100 * 1024 * 1024
    total_bytes: int = 512 * 1024 * 1024


class MemoryStore:
    """Keeps spaces in memory; see `invoker.core.store.Store` for its methods.

    Args:
        limits: The limits of the store.
        clock: Nanoseconds of the epoch; never goes back.

    Attributes:
        size: Bytes that all spaces take.
    """

    def __init__(self, limits: StoreLimits | None = None, clock: Callable[[], int] | None = None) -> None:
        self.size = 0
        self._limits = limits or StoreLimits()
        self._clock = clock or _steady_clock()
        self._spaces: dict[str, _Space] = {}
        self._gone: dict[str, Reason] = {}
        self._claims: dict[Subscriber, _Claims] = {}
        self._due_ns = _NEVER  # no space expires before this time; a space that is used meanwhile expires later
        self._later: Later | None = None
        self._is_ticking = False

    def start(self, later: Later) -> None:
        """Begin to forget expired spaces regularly; until then a space expires only when it is used."""
        self._later = later

    def close(self) -> None:
        """Stop looking for expired spaces; the memory is freed with the process."""
        self._later = None

    def ask(self, subscriber: Subscriber, key: str, question: Question) -> None:
        """Answer a question: at once, except for a `Drop` of a space that others hold."""
        if isinstance(question, Create):
            subscriber.answered(key, self._create(question))
            return
        space = self._find(question.space)
        if isinstance(question, Drop):
            self._drop(space, question, partial(subscriber.answered, key))
        elif isinstance(space, Refused):
            subscriber.answered(key, space)
        else:
            space.used_ns = self._clock()
            subscriber.answered(key, self._answer(subscriber, space, question))

    def subscribe(self, subscriber: Subscriber, news: News) -> None:
        """Report changes of a space from now on."""
        space = self._find(news.space)
        if isinstance(space, Refused):
            news.put(space)
            return
        space.used_ns = self._clock()
        if news.has_initial:
            for name in space.names:
                item = space.items[name]
                news.put(Change(name, item.value, item.updated_ns, is_new=True))
        space.news.append(news)
        self._claims_of(subscriber).news.append((space, news))

    def leave(self, subscriber: Subscriber) -> None:
        """Release the spaces that a subscriber held or subscribed to."""
        claims = self._claims.pop(subscriber, None)
        if claims is None:
            return
        for space, news in claims.news:
            if news in space.news:
                space.news.remove(news)
        for space in claims.holds:
            space.holds -= 1
            space.used_ns = self._clock()
            self._due_ns = min(self._due_ns, space.expires_ns)
            space.let_go()

    def sweep(self) -> None:
        """Forget expired spaces; checks the spaces only if one may have expired."""
        if self._clock() >= self._due_ns:
            for name in list(self._spaces):
                self._find(name)
            self._due_ns = min((one.expires_ns for one in self._spaces.values() if not one.holds), default=_NEVER)

    # Private helpers.

    def _tick(self) -> None:
        """Forget expired spaces, each second while there is a space."""
        self.sweep()
        later = self._later if self._spaces else None
        self._is_ticking = later is not None
        if later is not None:
            later(_SWEEP_S, self._tick)

    def _claims_of(self, subscriber: Subscriber) -> _Claims:
        return self._claims.setdefault(subscriber, _Claims())

    def _find(self, name: str) -> _Space | Refused:
        space = self._spaces.get(name)
        if space is None:
            return Refused(self._gone.get(name, Reason.UNKNOWN))
        if not space.holds and self._clock() >= space.expires_ns:
            return self._end(space, Reason.EXPIRED)
        return space

    def _end(self, space: _Space, reason: Reason) -> Refused:
        del self._spaces[space.name]
        self.size -= space.size
        self._gone[space.name] = reason
        if len(self._gone) > self._limits.spaces:
            del self._gone[next(iter(self._gone))]
        news, space.news, space.items = space.news, [], {}
        for one in news:
            one.put(Refused(reason))
        return Refused(reason)

    def _create(self, question: Create) -> Space | Refused:
        space, now = self._find(question.space), self._clock()
        if not isinstance(space, Refused):
            space.used_ns = now
            return space.told()
        size, limits = OVERHEAD + len(question.space) + len(question.about), self._limits
        if len(self._spaces) >= limits.spaces or self.size + size > limits.total_bytes:
            self.sweep()
        if len(self._spaces) >= limits.spaces:
            return Refused(Reason.SPACES, len(self._spaces))
        if self.size + size > limits.total_bytes:
            return Refused(Reason.BYTES, self.size)
        self._gone.pop(question.space, None)
        space = _Space(question.space, question.about, question.ttl_s, now, now, size)
        self._spaces[space.name] = space
        self._due_ns = min(self._due_ns, space.expires_ns)
        if not self._is_ticking:
            self._tick()
        self.size += size
        return space.told(is_new=True)

    def _drop(self, space: _Space | Refused, question: Drop, answer: Callable[[Refused | None], None]) -> None:
        if isinstance(space, Refused):
            answer(None)
        elif space.holds and not question.is_forced:
            answer(Refused(Reason.HELD, space.holds))
        else:
            self._end(space, Reason.DROPPED)
            space.dropped.append(answer)
            space.let_go()

    def _answer(self, subscriber: Subscriber, space: _Space, question: Look | Hold | Get | Scan | Put) -> Any:
        if isinstance(question, Get):
            return space.items.get(question.name)
        if isinstance(question, Put):
            return self._put(space, question)
        if isinstance(question, Scan):
            return space.scan(question)
        if isinstance(question, Hold):
            space.holds += 1
            self._claims_of(subscriber).holds.append(space)
        return space.told()

    def _put(self, space: _Space, question: Put) -> Item | Refused | None:
        name, value, limits = question.name, question.value, self._limits
        old = space.items.get(name)
        version = ABSENT if old is None else old.updated_ns
        if question.expects not in (None, version) and not (question.expects == PRESENT and old is not None):
            return Refused(Reason.CHANGED)
        about = old.about if old is not None and question.keeps_about else question.about
        now = max(self._clock(), version + 1)
        growth = 0 if value is None else weight(name, value, about)
        growth -= 0 if old is None else weight(name, old.value, old.about)
        if value is None:
            if old is None:
                return None
            del space.items[name]
            space.names.remove(name)
        elif old is None and len(space.items) >= limits.items:
            return Refused(Reason.ITEMS, len(space.items))
        elif growth > 0 and (space.size + growth > limits.space_bytes or self.size + growth > limits.total_bytes):
            return Refused(Reason.BYTES, space.size)
        else:
            space.items[name] = Item(name, value, now if old is None else old.created_ns, now, about)
            if old is None:
                insort(space.names, name)
        space.size += growth
        self.size += growth
        for news in tuple(space.news):
            news.put(Change(name, value, now, is_new=old is None))
        return space.items.get(name)


@dataclass(slots=True, eq=False)
class _Space:
    """One space.

    ``names`` are the sorted names of its items; ``dropped`` are called once no subscriber holds it any more.
    """

    name: str
    about: bytes
    ttl_s: float
    created_ns: int
    used_ns: int
    size: int
    holds: int = 0
    items: dict[str, Item] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    news: list[News] = field(default_factory=list)
    dropped: list[Callable[[None], None]] = field(default_factory=list)

    @property
    def expires_ns(self) -> int:
        return self.used_ns + int(self.ttl_s * _SECOND)

    def let_go(self) -> None:
        """Answer the subscribers that deleted the space, once none holds it any more."""
        if not self.holds:
            dropped, self.dropped = self.dropped, []
            for answer in dropped:
                answer(None)

    def told(self, *, is_new: bool = False) -> Space:
        return Space(
            self.name, self.about, self.ttl_s, self.created_ns, self.used_ns, len(self.items), self.size, self.holds,
            is_new,
        )  # fmt: skip

    def scan(self, question: Scan) -> tuple[Item, ...]:
        names, prefix, after = self.names, question.prefix, question.after
        start = bisect_left(names, prefix) if after < prefix else bisect_right(names, after) if after else 0
        found: list[Item] = []
        for name in names[start : start + max(0, question.most)]:
            if not name.startswith(prefix):
                break
            found.append(self.items[name])
        return tuple(found)


@dataclass(slots=True)
class _Claims:
    """The spaces that a subscriber holds and has subscribed to, until it leaves."""

    holds: list[_Space] = field(default_factory=list)
    news: list[tuple[_Space, News]] = field(default_factory=list)


def weight(name: str, value: bytes, about: bytes) -> int:
    """How many bytes are counted for an item."""
    return OVERHEAD + len(name) + len(value) + len(about)


def _steady_clock() -> Callable[[], int]:
    """Make a clock that begins with the time of day and is monotonic, even if the system's clock is set."""
    began = time.time_ns() - time.monotonic_ns()
    return lambda: began + time.monotonic_ns()
