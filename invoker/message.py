"""`Message` is a payload with its media type and headers; `Headers` is how functions look headers up.

Inside the house a message always carries bytes (``Message[bytes]``); next to the user's function it carries the decoded
value. Messages are never changed after they were made, so they may be shared freely between threads.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from typing import Generic, TypeVar

import msgspec

__all__ = ["EMPTY", "Headers", "Message", "Output", "as_headers"]

T = TypeVar("T")


class Headers(Mapping[str, str]):
    """Headers of a message: looked up without regard to case, iterated in their original spelling.

    Two names that differ only in case are both kept; a lookup gives the first of them in sorted order (R-073, R-074).

    Args:
        items: A mapping or pairs of names and values.
    """

    __slots__ = ("_folded", "_items")

    def __init__(self, items: Mapping[str, str] | Iterable[tuple[str, str]] = ()) -> None:
        self._items: dict[str, str] = dict(items)
        self._folded: dict[str, str] | None = None

    def __getitem__(self, name: str) -> str:
        if self._folded is None:
            folded: dict[str, str] = {}
            for key in sorted(self._items):
                folded.setdefault(key.lower(), self._items[key])
            self._folded = folded
        return self._folded[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def items(self) -> ItemsView[str, str]:
        """Names and values as they came, also those whose names differ only in case."""
        return self._items.items()

    def values(self) -> ValuesView[str]:
        """Values as they came."""
        return self._items.values()

    def __repr__(self) -> str:
        return f"Headers({self._items!r})"


EMPTY: Headers = Headers()


def as_headers(items: Mapping[str, str]) -> Headers:
    """Headers as functions see them; an empty mapping costs nothing."""
    if isinstance(items, Headers):
        return items
    return Headers(items) if items else EMPTY


class Message(msgspec.Struct, Generic[T], frozen=True):
    """A payload, with headers and media type.

    Attributes:
        payload: ``bytes`` inside the house; the decoded value next to a function.
        headers: Names and values as the peer sent them, or as the peer shall see them.
        media_type: Of the payload; empty when the negotiated one shall be used.
    """

    payload: T
    headers: Mapping[str, str] = EMPTY
    media_type: str = ""


class Output(msgspec.Struct, frozen=True):
    """A value for one of several outputs, by index or by name; yielded by a generator.

    Attributes:
        target: Index (``0 <= target < len(outputs)``) or name of the output.
        value: The value, or a `Message` that carries headers.
    """

    target: int | str
    value: object
