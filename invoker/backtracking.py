"""Patterns that take twice as long with each character of some texts are found when a function is read.

Theory. Python's regular expressions try one way after the other, and the ways to split a text between a repeat and the
repeats in it double with each character: ``^(a+)+$`` takes seconds for 28 of them, in which no other thread of Python
runs. So each pattern is tried with short texts that do not match: a beginning that it names, one or two signs over and
over, and an end that it does not take. A pattern whose time grows like that is a fault of the function, which a caller
would find. One that passes may still be slow with signs that were not tried.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

__all__ = ["doubling_text"]

_LONGEST: Final = 40
_STEP: Final = 2
_SLOW_S: Final = 0.003
"""Of processor time for one try with a text of some dozen characters, which nearly all patterns match in 10 µs."""

_GROWTH: Final = 3.0
"""With four repeats more; a power of the length grows by half at most."""

_SIGNS: Final = "aA0_ -."
_ENDS: Final = ("\0", "\n\n\0")
_BEGINNING: Final = re.compile(r"\^?((?:[\w@#:/ -]|\\[^\w])*)")
_MOST_LITERALS: Final = 6


@lru_cache(maxsize=512)
def doubling_text(pattern: str) -> str:
    """A text for which a pattern takes much longer with each repeat in it; empty if none was found."""
    search = re.compile(pattern).search
    for beginning, pump, end in _tries(pattern):
        if _doubles(search, beginning, pump, end):
            return f"{beginning}{pump * 12}{end}"
    return ""


def _tries(pattern: str) -> Iterator[tuple[str, str, str]]:
    if not any(sign in pattern for sign in "*+{"):
        return
    literals = list(dict.fromkeys(sign for sign in pattern if sign.isalnum() or sign in "_-.@/:,; "))[:_MOST_LITERALS]
    signs = list(dict.fromkeys([*literals, *_SIGNS]))
    pairs = ["".join(two) for two in itertools.permutations(literals, 2)]
    found = _BEGINNING.match(pattern)
    named = re.sub(r"\\(.)", r"\1", found[1]) if found is not None else ""
    beginnings = dict.fromkeys(("", named, named[:-1]))
    yield from itertools.product(beginnings, [*signs, *pairs], _ENDS)


def _doubles(search: Callable[[str], Any], beginning: str, pump: str, end: str) -> bool:
    for many in range(6, _LONGEST, _STEP):
        if _taken_s(search, f"{beginning}{pump * many}{end}") > _SLOW_S:
            # The machine may have been busy with something else, so both are looked at again.
            longer, shorter = (
                min(_taken_s(search, f"{beginning}{pump * count}{end}") for _ in range(2)) for count in (many, many - 4)
            )
            return longer > _SLOW_S / 2 and longer > _GROWTH * shorter
    return False


def _taken_s(search: Callable[[str], Any], text: str) -> float:
    began = time.thread_time()
    search(text)
    return time.thread_time() - began
