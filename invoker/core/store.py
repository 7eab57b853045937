"""`Store`: state that outlives a conversation: the questions to a store, its interface, and the queue of changes.

Theory. State lies in *spaces*. A space has a name, a text about itself, and named items of bytes. It expires when it
was not used for its time to live; a conversation that *holds* it keeps it from expiring until the conversation is over.
Each item says when it was written. That time is its version and grows with each write, so a write may demand that the
item is unchanged (`Put.expects`). A conversation that subscribes to a space gets each change, in the order in which
they were made, and without a gap after the items that it gets first. The last change says why the space is gone.

A store answers each question once, now or later, and raises nothing: a question that fails is answered by `Refused`.
All questions are asked on one loop. A question about a space counts as a use of it, unless its class says otherwise.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import msgspec

from invoker.moved import lead_names

__all__ = [
    "ABSENT",
    "PRESENT",
    "Change",
    "Create",
    "Drop",
    "Get",
    "Hold",
    "Item",
    "Later",
    "Look",
    "News",
    "Put",
    "Question",
    "Reason",
    "Refused",
    "Scan",
    "Space",
    "Store",
    "Subscriber",
]

ABSENT = 0
"""The value of `Put.expects` for an item that must not be there."""

PRESENT = -1
"""The value of `Put.expects` for an item that must be there, in any version."""

_NEWS = 1024
_NEWS_BYTES = 16 * 1024 * 1024
"""How many changes may wait, and how many bytes; when there are more, only the last change of each item is kept."""


class Create(msgspec.Struct, frozen=True):
    """Make a space unless it exists; answered by `Space`, whose ``about`` is the text given when it was made."""

    space: str
    ttl_s: float
    about: bytes = b""


class Look(msgspec.Struct, frozen=True):
    """Ask for the state of a space; answered by `Space`."""

    space: str


class Hold(msgspec.Struct, frozen=True):
    """Keep a space from expiring until the asking conversation is over; answered by `Space`."""

    space: str


class Drop(msgspec.Struct, frozen=True):
    """Delete a space; answered by None once no conversation holds it any more, also if there is none.

    Unless ``is_forced``, a space that is held stays and the answer is `Refused`. Its subscribers are notified at once.
    """

    space: str
    is_forced: bool = False


class Get(msgspec.Struct, frozen=True):
    """Read an item; answered by `Item`, or None if there is none."""

    space: str
    name: str


class Scan(msgspec.Struct, frozen=True):
    """Read the items whose names begin with ``prefix`` and sort after ``after``; answered by a tuple of `Item`."""

    space: str
    prefix: str = ""
    after: str = ""
    most: int = 1000


class Put(msgspec.Struct, frozen=True):
    """Write an item, or delete it by None; answered by the `Item`, or by None when it is not there any more.

    ``expects`` is the version that it must have, or `ABSENT`, or `PRESENT`; None: any version, also of a missing item.
    ``about`` is a text about the item; if ``keeps_about`` is set, an existing item keeps its text. The answer to a
    `Put` that ``is_durable`` comes once the item would survive a crash of the machine, if the store can give that.
    """

    space: str
    name: str
    value: bytes | None
    expects: int | None = None
    about: bytes = b""
    keeps_about: bool = False
    is_durable: bool = False


Question: TypeAlias = Create | Look | Hold | Drop | Get | Scan | Put


class Space(msgspec.Struct, frozen=True):
    """The state of a space.

    ``created_ns`` and ``used_ns`` are in nanoseconds since the epoch, ``size`` is in bytes, and ``holds`` is the number
    of conversations that hold the space.
    """

    name: str
    about: bytes
    ttl_s: float
    created_ns: int
    used_ns: int
    items: int
    size: int
    holds: int
    is_new: bool = False


class Item(msgspec.Struct, frozen=True):
    """An item; ``updated_ns`` is its version."""

    name: str
    value: bytes
    created_ns: int
    updated_ns: int
    about: bytes = b""


class Change(msgspec.Struct, frozen=True):
    """An item was written, or deleted (``value`` is None); ``is_new`` says that the item did not exist before."""

    name: str
    value: bytes | None
    updated_ns: int
    is_new: bool = False


class Reason(enum.Enum):
    """The reasons why a question is refused, or why a space has ended."""

    UNKNOWN = "there is no such space"
    EXPIRED = "the space was not used for too long"
    DROPPED = "the space was deleted"
    HELD = "the space is in use"
    CHANGED = "the item has another version"
    SPACES = "there are too many spaces"
    ITEMS = "the space has too many items"
    BYTES = "the space, or all of them together, would be too large"
    UNAVAILABLE = "the store cannot be reached"


class Refused(msgspec.Struct, frozen=True):
    """The answer to a question that cannot be fulfilled, and the last news of a space.

    ``count`` is how many spaces, items, bytes or holders there are now, for the reasons that concern a number.
    """

    reason: Reason
    count: int = 0


class Subscriber(Protocol):
    """A conversation as the store sees it: it asks questions, holds spaces and subscribes to them.

    Its methods are called on the loop.
    """

    def answered(self, key: str, value: Any) -> None:
        """Take the answer to the question ``key``."""

    def has_news(self, news: News) -> None:
        """Note that ``news``, which was empty, has a change to take."""


Later: TypeAlias = Callable[[float, Callable[[], None]], object]
"""Calls a function after some seconds, on the loop."""


class Store(Protocol):
    """Keeps spaces; in memory (`invoker.core.spaces`), or shared by several processes (`invoker.stores`).

    It forgets expired spaces by itself, at most a second late.
    """

    def start(self, later: Later) -> None:
        """Open the storage of the spaces; called once, on the loop, before the first question.

        Raises:
            StartupError: The storage cannot be opened.
        """

    def ask(self, subscriber: Subscriber, key: str, question: Question) -> None:
        """Answer a question, now or later, by ``subscriber.answered``; a subscriber that has left ignores it."""

    def subscribe(self, subscriber: Subscriber, news: News) -> None:
        """Put the changes from now on into ``news``, until the subscriber leaves or the space is gone."""

    def leave(self, subscriber: Subscriber) -> None:
        """Release what the subscriber held and subscribed to, because its conversation is over."""

    def close(self) -> None:
        """Release everything, because the process ends; no question comes any more. Idempotent."""


class News:
    """The changes of one space that are not yet taken, in order.

    A subscriber that takes too slowly gets the last change of each item only; that an item was deleted is never lost.

    Args:
        space: The name of the space.
        names: Items of interest; None: all. If empty, only the end of the space is reported.
        has_initial: Whether the existing items come first.
        told: Called when a change is added and no other change waits.
    """

    __slots__ = ("_changes", "_is_over", "_mark", "_size", "_told", "has_initial", "names", "space")

    def __init__(
        self, space: str, names: tuple[str, ...] | None, told: Callable[[News], None], *, has_initial: bool = False
    ) -> None:
        self.space = space
        self.names = None if names is None else frozenset(names)
        self.has_initial = has_initial
        self._told = told
        self._changes: deque[Change | Refused] = deque()
        self._size = 0
        self._mark = (_NEWS, _NEWS_BYTES)
        self._is_over = False

    def put(self, change: Change | Refused) -> None:
        """Add a change, if it is of interest; after a `Refused` no change follows."""
        if self._is_over:
            return
        if isinstance(change, Refused):
            self._is_over = True
        elif self.names is not None and change.name not in self.names:
            return
        else:
            self._size += len(change.value or b"")
        self._changes.append(change)
        if len(self._changes) > self._mark[0] or self._size > self._mark[1]:
            self._join()
        if len(self._changes) == 1:
            self._told(self)

    def take(self) -> Change | Refused | None:
        """The next change; None when no change waits."""
        if not self._changes:
            return None
        change = self._changes.popleft()
        if isinstance(change, Change):
            self._size -= len(change.value or b"")
        if not self._changes:
            self._mark = (_NEWS, _NEWS_BYTES)
        return change

    def _join(self) -> None:
        """Keep only the last change of each item, in order; repeated whenever the changes have doubled."""
        last: dict[str, Change] = {}
        end: list[Refused] = []
        for one in self._changes:
            if isinstance(one, Refused):
                end.append(one)
                continue
            first = last.pop(one.name, one)
            last[one.name] = one if first.is_new == one.is_new else msgspec.structs.replace(one, is_new=first.is_new)
        self._changes = deque([*last.values(), *end])
        self._size = sum(len(one.value or b"") for one in last.values())
        self._mark = (max(_NEWS, 2 * len(self._changes)), max(_NEWS_BYTES, 2 * self._size))


lead_names(__name__)
