"""`Backend`: the interface of a storage for spaces that several processes share, with further kinds of questions.

A backend is called in one thread (`invoker.stores.asking`), with many questions at a time. `SharedStore` makes an
`invoker.core.store.Store` from it: the store serves conversations, the backend only serves its process as a whole.

Theory. Each process is an *owner*. It reports regularly that it lives, which renews its lease. Its holds are valid
until the lease ends, so the holds of a killed process end soon. A space has a *key*, which is never used again, not
even for a later space of the same name. Changes are numbered in the order in which they were made. A new listener gets
the existing items and the number of the last change in them; the changes with higher numbers follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from invoker.core.store import Change, Item, Question, Reason, Refused, Space

LEASE_S = 10.0
"""Seconds for which a process counts as alive after its last report."""

SWEPT = 1000
"""How many expired spaces are forgotten at once; the storage is locked for other processes meanwhile."""

UNAVAILABLE = Refused(Reason.UNAVAILABLE)


class Listen(msgspec.Struct, frozen=True):
    """Begin to listen to a space; answered by `Listening`. The fields are as in `News`."""

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
    """The answer to `Listen`: the existing items, and the number of the last change that they include.

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
    """Keeps spaces outside the process. All methods but ``open`` are called in one thread."""

    @property
    def epoch(self) -> int:
        """A number that grows each time changes may have been missed, before ``lose`` is called."""

    def open(self, tell: Tell, lose: Lose) -> None:
        """Open the storage.

        Args:
            tell: Called with each event, from any thread.
            lose: Called when changes may have been missed, from any thread.

        Raises:
            StartupError: The backend cannot be opened.
        """

    def perform(self, asked: Sequence[Asked]) -> list[Any]:
        """Answer all questions in order, without raising; a question that cannot be answered gets `UNAVAILABLE`."""

    def look(self) -> float:
        """Poll for changes of other processes, if necessary; returns the seconds until the next call."""

    def close(self) -> None:
        """Record that this process has ended, and close the storage."""
