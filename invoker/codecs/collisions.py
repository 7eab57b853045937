"""Refuses sets and dicts with many keys of the same hash, which a caller can choose, before they are made.

Theory. Python hashes texts with a secret that no caller knows. The hashes of decimals, UUIDs and large integers are
their value modulo a prime, so a caller can send a hundred thousand different keys with the same hash, and each is then
compared with all earlier ones: 780 KiB took ten seconds, during which no other thread of Python ran. So if an
annotation has such keys, the pairs with the same hash are counted in the plain values first, separately for each list
and each object.
"""

from __future__ import annotations

import typing
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from uuid import UUID

_SMALL: Final = 100
"""Lists and objects with fewer elements are not checked."""

_MOST_PAIRS: Final = 500_000
"""The most pairs of values with the same hash; comparing them takes a tenth of a second."""

_PRIME: Final = (1 << 61) - 1
_LARGE: Final = 1 << 61

Check = Callable[[Any], None]
Within = Callable[[Any], Iterable[Any]]
_Hash = Callable[[str], int | None]


def checks(type_: Any, within: Within) -> Check | None:
    """A check that raises ValueError for plain values whose conversion to this type takes too long; None if none does.

    Args:
        type_: The annotation.
        within: Yields an annotation and all annotations inside it.
    """
    hashes = tuple(dict.fromkeys(one for key in _keys(within(type_)) for one in _hashes(within(key))))
    if not hashes:
        return None

    def check(value: Any) -> None:
        left = [value]
        while left:
            one = left.pop()
            if isinstance(one, Mapping):
                keys: Iterable[Any] = one.keys()
                left += one.values()
            elif isinstance(one, (list, tuple)):
                keys = one
                left += (inner for inner in one if isinstance(inner, (list, tuple, Mapping)))
            else:
                continue
            if len(one) > _SMALL:
                _count(keys, hashes)

    return check


def checking(parse: Callable[[Any], Any], plain: Callable[[Any], Any], check: Check | None) -> Callable[[Any], Any]:
    """A parser that checks the plain values first; the parser itself if nothing has to be checked.

    Args:
        parse: Makes the value from a payload.
        plain: Makes plain lists, dicts, texts and numbers from it.
        check: The check for the type that ``parse`` makes.
    """
    if check is None:
        return parse

    def checked(payload: Any) -> Any:
        if not isinstance(payload, (bytes, str)) or len(payload) > _SMALL:
            check(plain(payload))
        return parse(payload)

    return checked


def refuse_alike(made: Iterable[Any]) -> None:
    """Refuse values that would take too long to become a set, even if they are made already.

    Raises:
        ValueError: Too many values have the same hash.
    """
    _refuse({str(one): hash(one) for one in made if type(one) in (Decimal, UUID, int)}.values())


def _keys(annotations: Iterable[Any]) -> Iterable[Any]:
    """The annotations of the elements of sets and of the keys of dicts."""
    for one in annotations:
        origin = typing.get_origin(one) or one
        if isinstance(origin, type) and issubclass(origin, AbstractSet):
            yield from typing.get_args(one)[:1] or (Any,)
        elif isinstance(origin, type) and issubclass(origin, Mapping):
            # Keys without a type are texts, or numbers of 64 bits; few of these can have the same hash.
            yield from (key for key in typing.get_args(one)[:1] if key not in (Any, object))


def _hashes(annotations: Iterable[Any]) -> Iterable[_Hash]:
    for one in annotations:
        if one is Decimal:
            yield _decimal
        elif one is UUID:
            yield _uuid
        elif one in (int, Any, object):
            yield _integer


def _count(given: Iterable[Any], hashes: Iterable[_Hash]) -> None:
    # The numbers are counted by their texts, since a set of the numbers would be as slow as the attack that is
    # prevented here.
    texts = {one if type(one) is str else str(one): one for one in given}
    for make in hashes:
        _refuse(found for one in texts.values() if (found := _hashed(one, make)) is not None)


def _hashed(one: Any, make: _Hash) -> Hashable:
    """A key that is equal for values of the same hash; for a tuple, the keys of its elements.

    None: a text, or a small number.
    """
    if isinstance(one, (list, tuple)):
        parts = tuple(_hashed(inner, make) for inner in one)
        return parts if any(part is not None for part in parts) else None
    return make(one if type(one) is str else str(one))


def _refuse(hashes: Iterable[Hashable]) -> None:
    found = Counter(hashes)
    if sum(many * (many - 1) // 2 for many in found.values()) > _MOST_PAIRS:
        raise ValueError(f"{max(found.values())} different values have one hash; comparing them would take too long")


def _decimal(text: str) -> int | None:
    try:
        return hash(Decimal(text))
    except (InvalidOperation, TypeError):
        return None


def _uuid(text: str) -> int | None:
    try:
        return UUID(text).int % _PRIME
    except ValueError:
        return None


def _integer(text: str) -> int | None:
    if len(text) < 19 or not text.lstrip("-").isdecimal():
        return None
    number = int(text)
    return hash(number) if abs(number) >= _LARGE else None
