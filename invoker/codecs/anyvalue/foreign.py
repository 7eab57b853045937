"""Reads values that Snakepit sends: JSON, under its own type names or under those of protobuf (T-111, T-112)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

from invoker.codecs.anyvalue.errors import TooComplex
from invoker.codecs.anyvalue.names import MOST_ELEMENTS, MOST_LEVELS
from invoker.codecs.exponents import json_value


def snakepit(name: str) -> Callable[[bytes], Any] | None:
    """The reader of a Snakepit type, by the last part of its URL; None if Snakepit has no such type."""
    kind = name.removeprefix("snakepit.")
    if kind == "float":
        return _float
    if kind == "integer":
        return _integer
    return parse_json if kind != name or kind in _KINDS else None


def parse_json(content: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        TooComplex: The text is larger than a value may be.
        ValueError: The text is not JSON.
    """
    if content.count(b",") + content.count(b"[") + content.count(b"{") > MOST_LEVELS:
        _check(content)
    return json_value(content)


def _check(content: bytes) -> None:
    """Refuse content that would become too many objects, or objects nested too deeply, before any is made."""
    signs = _STRINGS.sub(b"", content).translate(None, _NO_SIGNS)
    if len(signs) - signs.count(b"]") - signs.count(b"}") > MOST_ELEMENTS:
        raise TooComplex(f"has more than {MOST_ELEMENTS} elements")
    signs = signs.translate(_ONE_KIND, b",")
    for _ in range(MOST_LEVELS):  # each pass removes all innermost lists at once
        size = len(signs)
        signs = signs.replace(b"[]", b"")
        if len(signs) == size:
            break
    if b"[]" in signs or signs.count(b"[") > MOST_LEVELS:  # the remaining text has no end, or too many levels
        raise TooComplex(f"is nested in more than {MOST_LEVELS} lists and dicts")


def _float(content: bytes) -> Any:
    found = parse_json(content)
    if isinstance(found, str) and found in _WORDS:
        return _WORDS[found]
    return float(found) if type(found) is int else found


def _integer(content: bytes) -> Any:
    found = parse_json(content)
    return int(found) if isinstance(found, float) and found.is_integer() else found


_KINDS: Final = frozenset({"string", "boolean", "choice", "module", "embedding", "tensor", "list", "map", "null"})
"""Further names after ``dspex.variables/``; the JSON contains the same information."""

_WORDS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_STRINGS: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_NO_SIGNS: Final = bytes(one for one in range(256) if one not in b"[]{},")
_ONE_KIND: Final = bytes.maketrans(b"{}", b"[]")
