"""`Cache`: keeps values by keys that peers choose, within a limit of memory.

The values are in two generations, which are bounded in number and in bytes. A value that is used moves to the younger
generation. When that is full it becomes the older one, and the values of the older one are forgotten. A flood of new
keys therefore costs memory up to the limit, and pushes out only values that were not used while a whole generation was
filled.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cache(Generic[K, V]):
    """A bounded mapping from keys to values.

    Args:
        most: How many values one generation may have.
        most_bytes: The most bytes of one generation, as given to `keep`; a value of more than an eighth of this is not
            kept.
        lock: Held while values are kept or forgotten; `find` needs no lock.
    """

    def __init__(self, most: int, most_bytes: int, lock: AbstractContextManager[Any] | None = None) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._lock = lock or nullcontext()
        self._young: dict[K, tuple[V, int]] = {}
        self._old: dict[K, tuple[V, int]] = {}
        self._young_bytes = 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def find(self, key: K) -> V | None:
        """The value of a key; None if it is not in the cache."""
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is None:
                return None
            self.keep(key, *found)
        return found[0]

    def keep(self, key: K, value: V, size: int) -> None:
        """Keep a value.

        Args:
            key: The key of the value.
            value: The value.
            size: The bytes that the value and its key may take.
        """
        if size > self._most_bytes // 8:
            return
        with self._lock:
            if len(self._young) >= self._most or self._young_bytes + size > self._most_bytes:
                self._old, self._young, self._young_bytes = self._young, {}, 0
            if key not in self._young:
                self._young_bytes += size
            self._young[key] = (value, size)
