"""`Backend`: keeps spaces that several processes share; and the questions that it takes beside `Question`.

A backend is asked in one thread (`invoker.stores.asking`), many questions at a time. `SharedStore` makes an
`invoker.core.store.Store` from it: that deals with conversations, a backend only with its own process.

Theory. Each process is an *owner*. It reports regularly that it lives, and each time gets a lease. Its holds are valid
while the lease runs; so a process that was killed holds nothing for long. A space has a *key*, which no other space
ever has, not even a later one of the same name. Changes are numbered in the order in which they were made. A new
listener gets the existing items and the number of the last change in them; the changes with higher numbers follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from invoker.core.store import Change, Item, Question, Reason, Refused, Space

LEASE_S = 10.0
"""How long a process counts as alive after it last said so."""

SWEPT = 1000
"""How many spaces expire at once; the storage is locked for others meanwhile."""

UNAVAILABLE = Refused(Reason.UNAVAILABLE)


class Listen(msgspec.Struct, frozen=True):
    """Begin to listen to a space; answered by `Listening`. The fields are those of `News`."""

    space: str
    names: frozenset[str] | None
    has_initial: bool


class Deafen(msgspec.Struct, frozen=True):
    """Note that this process has no listener of this space any more."""

    key: int


class Release(msgspec.Struct, frozen=True):
    """Release a space, which this process has held ``count`` times."""

    key: int
    count: int


class IsHeld(msgspec.Struct, frozen=True):
    """Ask whether a living process still holds a space, which may be deleted; answered by a bool."""

    key: int


class Sweep(msgspec.Struct, frozen=True):
    """Forget expired spaces, but only `SWEPT` at once; answered by whether there are more."""


class Beat(msgspec.Struct, frozen=True):
    """Note that this process lives, so that its holds stay valid as long as its lease runs."""

    lease_s: float = LEASE_S


Asked: TypeAlias = Question | Listen | Deafen | Release | IsHeld | Sweep | Beat


class Held(msgspec.Struct, frozen=True):
    """The answer to `Hold`: the space, and the key under which it is held."""

    space: Space
    key: int


class Dropped(msgspec.Struct, frozen=True):
    """The answer to a `Drop` of a space that others still hold."""

    key: int


class Listening(msgspec.Struct, frozen=True):
    """The existing items, and the number of the last change that they include.

    ``epoch`` is `Backend.epoch`, which grows each time changes may have been missed.
    """

    key: int
    since: int
    items: tuple[Item, ...]
    epoch: int


class Event(msgspec.Struct, frozen=True):
    """One change of a space, or its end."""

    key: int
    number: int
    what: Change | Refused


Tell: TypeAlias = Callable[[Sequence[Event]], None]
Lose: TypeAlias = Callable[[], None]


class Backend(Protocol):
    """Keeps spaces outside the process. Everything but ``open`` is called in the thread that asks it."""

    @property
    def epoch(self) -> int:
        """See `Listening`; it grows before ``lose`` is called."""

    def open(self, tell: Tell, lose: Lose) -> None:
        """Open it.

        Args:
            tell: Called with each event, from any thread.
            lose: Called when changes may have been missed, from any thread.

        Raises:
            StartupError: The backend cannot be opened.
        """

    def perform(self, asked: Sequence[Asked]) -> list[Any]:
        """Answer all questions in order, without raising; a question that cannot be answered gets `UNAVAILABLE`."""

    def look(self) -> float:
        """Read the changes of others, unless they come by themselves; returns the seconds until the next look."""

    def close(self) -> None:
        """Note that this process is over, and close the backend."""
