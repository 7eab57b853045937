r"""Runs patterns with RE2 instead of Python's `re`: RE2's time is linear in the length of the text.

Theory. RE2 (the extra ``re2``) does not backtrack, so no text makes it slow. Its language differs from Python's: its
``\d``, ``\w`` and ``\s`` match only ASCII, its ``$`` does not match before a final newline, and it has no lookaround.
So a pattern is translated: Python's own parser reads it, and it is written anew from the parsed form, with Python's
character classes as ranges of characters, if each part of it has the same meaning in both. Patterns with lookaround,
back-references, possessive repeats, ignored case, or repeats of a part that may be empty stay with `re`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from typing import Any, Final

_MOST_PLACES: Final = 300
"""The most characters and classes of a pattern whose repeats are expanded: RE2 may check each of them for each
character of a text."""

_CATEGORIES: Final = {"DIGIT": r"\d", "NOT_DIGIT": r"\D", "SPACE": r"\s", "NOT_SPACE": r"\S"} | {
    "WORD": r"\w",
    "NOT_WORD": r"\W",
}


class _OnlyPythonError(Exception):
    """Raised if a pattern has a part that RE2 does not support, or that has another meaning in RE2."""


@lru_cache(maxsize=512)
def linear_search(pattern: str) -> Callable[[str], bool] | None:
    """A function that returns whether a pattern matches in a text.

    None if RE2 is not installed or does not support this pattern.

    A text with an unpaired surrogate, which is not valid Unicode, never matches.
    """
    if find_spec("re2") is None or (written := written_for_re2(pattern)) is None:
        return None
    re2 = import_module("re2")
    if not hasattr(re2, "Options"):  # another package has this name
        return None
    options = re2.Options()
    options.log_errors = False
    try:
        search = re2.compile(written, options).search
    except re2.error:  # the pattern is too large for RE2
        return None

    def is_in(text: str) -> bool:
        try:
            return search(text) is not None
        except UnicodeEncodeError:
            return False

    return is_in


def written_for_re2(pattern: str) -> str | None:
    """The pattern in the language of RE2, with the same meaning for every text; None if there is none."""
    parser = import_module("re._parser")
    try:
        parsed = parser.parse(pattern)
        if parsed.state.flags != re.UNICODE:
            return None
        written, places = _sequence(parsed, is_last=True)
    except _OnlyPythonError:
        return None
    return written if places <= _MOST_PLACES else None


def _sequence(items: Any, *, is_last: bool) -> tuple[str, int]:
    """Write items that follow each other.

    Args:
        items: The items that Python's parser has returned.
        is_last: Whether nothing follows them in the pattern, so that ``$`` may consume a final newline.

    Raises:
        _OnlyPythonError: An item cannot be written for RE2.
    """
    made = [_item(*one, is_last=is_last and index == len(items) - 1) for index, one in enumerate(items)]
    return "".join(text for text, _ in made), sum(places for _, places in made)


def _item(op: Any, said: Any, *, is_last: bool) -> tuple[str, int]:
    match op.name:
        case "LITERAL":
            return _sign(said), 1
        case "NOT_LITERAL":
            return f"[^{_sign(said)}]", 1
        case "ANY":
            return r"[^\n]", 1
        case "IN":
            return _set(said), 1
        case "BRANCH":
            made = [_sequence(one, is_last=is_last) for one in said[1]]
            return f"(?:{'|'.join(text for text, _ in made)})", sum(places for _, places in made)
        case "SUBPATTERN" if not (said[1] or said[2]):  # the group has flags of its own
            text, places = _sequence(said[3], is_last=is_last)
            return f"(?:{text})", places
        case "MAX_REPEAT" | "MIN_REPEAT":
            return _repeat(*said)
        case "AT":
            return _place(said.name, is_last=is_last), 0
    raise _OnlyPythonError


def _repeat(least: int, most: int, item: Any) -> tuple[str, int]:
    if most > 1 and item.getwidth()[0] == 0:
        raise _OnlyPythonError  # Python continues after an empty repeat in ways of its own
    text, places = _sequence(item, is_last=False)
    if most == import_module("re._parser").MAXREPEAT:
        return f"(?:{text}){{{least},}}", places * max(least, 1)
    return f"(?:{text}){{{least},{most}}}", places * most


def _place(name: str, *, is_last: bool) -> str:
    if name in ("AT_BEGINNING", "AT_BEGINNING_STRING"):
        return r"\A"
    if name == "AT_END_STRING":
        return r"\z"
    if name == "AT_END" and is_last:
        return r"\n?\z"
    raise _OnlyPythonError


def _set(members: Sequence[tuple[Any, Any]]) -> str:
    made = ""
    for op, said in members:
        match op.name:
            case "NEGATE":
                made += "^"
            case "LITERAL":
                made += _sign(said)
            case "RANGE":
                made += f"{_sign(said[0])}-{_sign(said[1])}"
            case "CATEGORY":
                made += _class(_CATEGORIES[said.name.removeprefix("CATEGORY_")])
            case _:
                raise _OnlyPythonError
    return f"[{made}]"


def _sign(code: int) -> str:
    return f"\\x{{{code:x}}}"


@cache
def _class(written: str) -> str:
    """The characters that belong to a class in Python, as ranges."""
    runs = (found[0] for found in re.finditer(f"{written}+", _every_sign()))
    return "".join(f"{_sign(ord(run[0]))}-{_sign(ord(run[-1]))}" for run in runs)


def _every_sign() -> str:
    return "".join(map(chr, chain(range(0xD800), range(0xE000, 0x110000))))  # halves of surrogate pairs are left out
