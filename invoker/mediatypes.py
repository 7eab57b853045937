"""Media types: parse one, match a range, rank what a caller accepts.

The ranking is the riff protocol's own (R-095 to R-102): quality first, then the *caller's* order, then ours; general purpose
libraries put the server's order second.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

__all__ = ["MediaType", "Range", "parse", "rank", "ranges"]

_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_ESSENCE = re.compile(rf"[ \t]*({_TOKEN})/({_TOKEN})[ \t]*")
_PARAMETER = re.compile(rf';[ \t]*(?:({_TOKEN})[ \t]*=[ \t]*({_TOKEN}|"(?:[^"\\]|\\.)*")[ \t]*)?', re.DOTALL)
_ELEMENT = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*"|")+', re.DOTALL)
_PLAIN = re.compile(rf"{_TOKEN}\Z")


class MediaType(msgspec.Struct, frozen=True):
    """A media type or range.

    Attributes:
        type: Lower case; ``*`` in ``*/*``.
        subtype: Lower case; ``*`` in a range.
        params: Names in lower case and values as they came, without quotes, in their order.
    """

    type: str
    subtype: str
    params: tuple[tuple[str, str], ...] = ()

    @property
    def essence(self) -> str:
        """``type/subtype``."""
        return f"{self.type}/{self.subtype}"

    @property
    def is_wildcard(self) -> bool:
        """Whether it is a range and not a concrete type."""
        return self.type == "*" or self.subtype == "*"

    @property
    def suffix(self) -> str:
        """``json`` of ``application/problem+json``; empty without one."""
        return self.subtype.rpartition("+")[2] if "+" in self.subtype else ""

    @property
    def charset(self) -> str | None:
        """The charset parameter, in lower case."""
        value = self.param("charset")
        return value.lower() if value is not None else None

    def param(self, name: str) -> str | None:
        """The first parameter of that name."""
        for key, value in self.params:
            if key == name:
                return value
        return None

    def __str__(self) -> str:
        return self.essence + "".join(f"; {name}={_quoted(value)}" for name, value in self.params)


class Range(msgspec.Struct, frozen=True):
    """One element of an Accept list.

    Attributes:
        media_type: Without its ``q``.
        q: 0 to 1; what cannot be read counts as 1.
        position: In the list, from 0.
    """

    media_type: MediaType
    q: float
    position: int

    @property
    def specificity(self) -> int:
        """0 for ``*/*``, 1 for ``type/*``, 2 for a concrete type."""
        return (self.media_type.type != "*") + (self.media_type.subtype != "*")

    def matches(self, essence: str) -> bool:
        """Whether a concrete type lies in this range."""
        wanted = self.media_type
        if wanted.type == "*":
            return True
        if wanted.subtype == "*":
            return essence.startswith(wanted.type + "/")
        return essence == wanted.essence


@lru_cache(maxsize=1024)
def parse(text: str) -> MediaType:
    """Parse one media type or range; names are compared without regard to case, values may be quoted (R-060).

    Raises:
        ValueError: It is malformed.
    """
    found = _ESSENCE.match(text)
    if found is None:
        raise ValueError(f"{text!r} is not a media type")
    kind, subtype = found[1].lower(), found[2].lower()
    if kind == "*" and subtype != "*":
        raise ValueError(f"{text!r} is not a media type: '*' may stand before '/' only in '*/*'")
    params: list[tuple[str, str]] = []
    at = found.end()
    while at < len(text):
        found = _PARAMETER.match(text, at)
        if found is None:
            raise ValueError(f"{text!r} is not a media type: bad parameter at position {at}")
        if found[1]:
            params.append((found[1].lower(), _unquoted(found[2])))
        at = found.end()
    return MediaType(kind, subtype, tuple(params))


@lru_cache(maxsize=1024)
def ranges(accept: str) -> tuple[Range, ...]:
    """Read an Accept list, in its order; empty and malformed elements are skipped (R-101).

    Nothing at all means no preference: ``*/*``.
    """
    if not accept.strip():
        accept = "*/*"
    found: list[Range] = []
    for position, element in enumerate(_ELEMENT.findall(accept)):
        text = element.strip()
        if text == "*" or text.startswith("*;"):
            text = "*/*" + text[1:]  # old Java clients send a lone star
        try:
            media_type = parse(text)
        except ValueError:
            continue
        q = _quality(media_type.param("q"))
        params = tuple(pair for pair in media_type.params if pair[0] != "q")
        found.append(Range(MediaType(media_type.type, media_type.subtype, params), q, position))
    return tuple(found)


def rank(accept: str, available: Sequence[str]) -> list[tuple[str, Range]]:
    """Rank concrete types by what a caller accepts.

    A type's quality is that of the most specific range it lies in; 0 excludes it. Higher quality comes first, then the
    range that was listed earlier, then the order of ``available``.

    Args:
        accept: Comma list of ranges.
        available: Essences, in our own order of preference.

    Returns:
        Each accepted essence with the range that decided.

    Source: riff streaming specification, "StartFrame"; R-095 to R-097.
    """
    listed = ranges(accept)
    found: list[tuple[float, int, int, str, Range]] = []
    for order, essence in enumerate(available):
        deciding = max(
            (one for one in listed if one.matches(essence)),
            key=lambda one: (one.specificity, one.q, -one.position),
            default=None,
        )
        if deciding is not None and deciding.q > 0:
            found.append((-deciding.q, deciding.position, order, essence, deciding))
    found.sort(key=lambda one: one[:3])
    return [(essence, deciding) for *_, essence, deciding in found]


def _quality(text: str | None) -> float:
    if text is None:
        return 1.0
    try:
        q = float(text)
    except ValueError:
        return 1.0
    return q if 0 <= q <= 1 else 1.0


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1], flags=re.DOTALL) if value.startswith('"') else value


def _quoted(value: str) -> str:
    if _PLAIN.match(value):
        return value
    return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'
