"""Parses media types and Accept lists, and ranks the types that a peer accepts.

Theory. A peer lists media *ranges* (``text/plain;q=0.2, application/*, */*;q=0``). The server has a list of *available*
essences in its own order, where a family such as ``application/*+json`` stands for every concrete type that matches it.
Ranking answers in three steps (R-095 to R-102):

1. The most specific range that matches an essence sets its q: an exact type before ``type/*+suffix`` before ``type/*``
   before ``*/*``. Parameters other than q do not take part in matching. Of equally specific ranges the highest q
   counts.
2. q=0 excludes. The rest is sorted by q, highest first.
3. Of equal q, the earliest range that gives this q wins; within one range the server's own order decides.

In the last step riff differs from servers that follow their own order on equal q: it follows the caller's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import msgspec

MAX_RANGES = 256
"""How many elements of an Accept list are read; the rest of a longer list is ignored, since it may be an attack."""

_CACHED_LENGTH = 512
"""The most characters of a text whose result is cached; longer texts are parsed each time."""

_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # noqa: S105 - a token of RFC 9110
_QUOTED = r'"(?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[^\x00-\x08\x0a-\x1f\x7f])*+"'
_ESSENCE = re.compile(rf"[ \t]*+({_TOKEN})/({_TOKEN})[ \t]*+")
_PARAMETER = re.compile(rf";[ \t]*+(?:({_TOKEN})[ \t]*+=[ \t]*+({_TOKEN}|{_QUOTED})[ \t]*+)?")
_ELEMENT = re.compile(r'(?:"(?:[^"\\]|\\.)*+"|[^",])*+', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)")
_IS_TOKEN = re.compile(rf"{_TOKEN}\Z")
_Q = re.compile(r"(?:0(?:\.\d*)?|1(?:\.0*)?|\.\d+)\Z", re.ASCII)


class MediaType(msgspec.Struct, frozen=True):
    """A parsed media type or range.

    Attributes:
        type: The part before the slash, in lower case.
        subtype: The part after the slash, in lower case.
        params: Pairs of a name in lower case and an unquoted value, in their original order.
    """

    type: str
    subtype: str
    params: tuple[tuple[str, str], ...] = ()

    @property
    def essence(self) -> str:
        """``type/subtype`` in lower case, without parameters."""
        return f"{self.type}/{self.subtype}"

    @property
    def suffix(self) -> str:
        """The part after the last plus of the subtype (``"json"`` of ``application/problem+json``), or empty."""
        return self.subtype.rpartition("+")[2] if "+" in self.subtype else ""

    @property
    def charset(self) -> str | None:
        """The charset parameter as it was sent."""
        return self.param("charset")

    @property
    def is_wildcard(self) -> bool:
        """Whether this is a range, not a concrete type."""
        return self.type == "*" or self.subtype == "*" or self.subtype.startswith("*+")

    def param(self, name: str) -> str | None:
        """The first parameter of this (lower-case) name."""
        for key, value in self.params:
            if key == name:
                return value
        return None

    def only(self, *names: str) -> MediaType:
        """The same type with only these parameters; of a repeated parameter the first counts."""
        kept: dict[str, str] = {}
        for name, value in self.params:
            if name in names:
                kept.setdefault(name, value)
        return MediaType(self.type, self.subtype, tuple(kept.items()))

    def __str__(self) -> str:
        return self.essence + "".join(f";{name}={_quoted(value)}" for name, value in self.params)


class Range(msgspec.Struct, frozen=True):
    """One element of an Accept list.

    Attributes:
        media_type: Type and parameters without q.
        q: The quality, 0 to 1; 1 if it is missing or invalid.
        position: The position in the list, counted over well-formed elements.
    """

    media_type: MediaType
    q: float = 1.0
    position: int = 0

    @property
    def specificity(self) -> int:
        """3 for a concrete type, 2 for ``type/*+suffix``, 1 for ``type/*``, 0 for ``*/*``."""
        one = self.media_type
        if not one.is_wildcard:
            return 3
        return 0 if one.type == "*" and one.subtype == "*" else 2 if one.subtype != "*" else 1


ANY: tuple[Range, ...] = (Range(MediaType("*", "*")),)
"""The parsed Accept list of a peer without a preference."""


def parse(text: str) -> MediaType:
    """Parse a media type or range, with quoted values and spaces (R-060).

    Raises:
        ValueError: The text is malformed.
    """
    return _parse_cached(text) if len(text) <= _CACHED_LENGTH else _parse(text)


def ranges(accept: str) -> tuple[Range, ...]:
    """Parse an Accept list in listing order; blank means ``*/*``, empty and malformed elements are skipped (R-101).

    Returns:
        The well-formed elements; none if the list has only malformed ones.
    """
    return _ranges_cached(accept) if len(accept) <= _CACHED_LENGTH else _ranges(accept)


def matches(pattern: MediaType, essence: MediaType) -> bool:
    """Whether a range or family covers a concrete type; parameters do not count."""
    if pattern.type not in ("*", essence.type):
        return False
    if pattern.subtype in ("*", essence.subtype):
        return True
    return pattern.subtype.startswith("*+") and essence.subtype.endswith(pattern.subtype[1:])


def rank(
    accept: str | Sequence[Range],
    available: Sequence[str],
    *,
    accepts: Callable[[str, Range], bool] | None = None,
) -> list[tuple[str, Range]]:
    """Sort the available types by what a peer accepts (R-095 to R-102).

    Args:
        accept: The list, or its parsed ranges.
        available: Essences and families in our own order. A family is matched by concrete ranges only, under their own
            name.
        accepts: Says whether an essence can satisfy the parameters of a range (its charset, for example); a range that
            cannot be satisfied is ignored.

    Returns:
        Essences, best first, each with the range that sets its q and its parameters. Excluded ones are left out.
    """
    listed = ranges(accept) if isinstance(accept, str) else accept
    found: list[tuple[float, int, int, str, Range]] = []
    for order, essence in enumerate(_essences(listed, available)):
        concrete = parse(essence)
        fits = [one for one in listed if matches(one.media_type, concrete)]
        if accepts is not None:
            fits = [one for one in fits if one.q == 0 or accepts(essence, one)]
        if not fits:
            continue
        best = max(fits, key=lambda one: (one.specificity, one.q, -one.position))
        if best.q > 0:
            position = min(one.position for one in fits if one.q == best.q)
            found.append((-best.q, position, order, essence, best))
    found.sort(key=lambda item: item[:3])
    return [(essence, best) for *_, essence, best in found]


def _essences(listed: Sequence[Range], available: Sequence[str]) -> Iterator[str]:
    """Every concrete type that may be offered: the available ones, then those of a family that the peer names."""
    families = [family for one in available if (family := parse(one)).is_wildcard]
    concrete = dict.fromkeys(one for one in available if not parse(one).is_wildcard)
    yield from concrete
    if families:
        named = (one.media_type for one in listed if not one.media_type.is_wildcard)
        yield from dict.fromkeys(
            one.essence
            for one in named
            if one.essence not in concrete and any(matches(family, one) for family in families)
        )


def _parse(text: str) -> MediaType:
    head = _ESSENCE.match(text)
    if head is None:
        raise ValueError("a media type looks like type/subtype")
    position = head.end()
    params: list[tuple[str, str]] = []
    while position < len(text):
        parameter = _PARAMETER.match(text, position)
        if parameter is None:
            raise ValueError(f"malformed parameters at character {position}")
        name, value = parameter.groups()
        if name is not None:
            params.append((name.lower(), _unquoted(value)))
        position = parameter.end()
    kind, subtype = head.group(1).lower(), head.group(2).lower()
    if kind == "*" and not (subtype == "*" or subtype.startswith("*+")):
        raise ValueError("a wildcard type needs a wildcard subtype")
    return MediaType(kind, subtype, tuple(params))


def _ranges(accept: str) -> tuple[Range, ...]:
    if not accept.strip(" \t"):
        return ANY
    found: list[Range] = []
    for seen, element in enumerate(_elements(accept)):
        if seen >= MAX_RANGES:
            break
        text = element.strip()
        if text == "*" or text.startswith("*;"):
            text = "*/*" + text[1:]  # old Java clients send only `*`
        try:
            one = _parse(text)
        except ValueError:
            continue
        q = one.param("q")
        params = tuple(pair for pair in one.params if pair[0] != "q")
        found.append(Range(MediaType(one.type, one.subtype, params), _quality(q), len(found)))
    return tuple(found)


def _elements(accept: str) -> Iterator[str]:
    """Split a list at commas outside of quotes; empty elements are left out."""
    position = 0
    while position < len(accept):
        element = _ELEMENT.match(accept, position)
        assert element is not None, "the pattern matches the empty string"
        end = element.end()
        if accept[end : end + 1] == '"':  # a quote that is never closed does not swallow the rest
            yield from filter(str.strip, accept[position:].split(",", MAX_RANGES))
            return
        if element.group().strip():
            yield element.group()
        position = end + 1


def _quality(text: str | None) -> float:
    """R-096: Read the q of a range; an invalid one counts as 1."""
    return float(text) if text is not None and _Q.match(text) else 1.0


def _unquoted(value: str) -> str:
    return _ESCAPE.sub(r"\1", value[1:-1]) if value.startswith('"') else value


def _quoted(value: str) -> str:
    if _IS_TOKEN.match(value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


_parse_cached = lru_cache(maxsize=1024)(_parse)
_ranges_cached = lru_cache(maxsize=1024)(_ranges)
