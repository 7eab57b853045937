"""Measures, when a function is read, how long a text may be that Python's `re` matches with a pattern.

Theory. Python's `re` backtracks, and no other thread of Python runs meanwhile. With nested repeats the time doubles
with each character: ``^(a+)+$`` takes seconds for 28 characters. With repeats that follow each other, or may begin
anywhere, the time is a power of the length: ``a+$`` takes seconds for 64 KiB. So each pattern is tried with texts that
do not match: a beginning from the pattern, one or two repeated characters, and an end that it does not match. If the
time doubles, the function is refused; if it grows faster than the text, the length of texts is limited. The bounds are
fixed, so that they are the same on every machine. A pattern that passes may still be slow with characters that were not
tried; RE2 (`invoker.fields.linear`) never is.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

LONGEST_MATCHED: Final = 65_536
"""The most characters of a text that is matched with any pattern; longer texts are refused (T-043)."""

_LONGEST: Final = 40
_STEP: Final = 2
_SLOW_S: Final = 0.003
"""Seconds of processor time from which one try with a text of some dozen characters is slow; nearly all patterns take
10 µs."""

_GROWTH: Final = 3.0
"""By how much a try must take longer with four more repeats for its time to count as doubling; with a power of the
length, the time grows by half at most."""

_SQUARE: Final = 2048
"""The longest text for a pattern whose time grows with the square of the length; it takes some 20 ms."""

_STEEP: Final = 256
"""The longest text for a pattern whose time grows faster than the square."""

_STEEPEST: Final = 32
"""The longest text for a pattern that is slow already with 64 characters."""

_SHORT: Final = (32, 64, 128, 256)
_LONG: Final = (512, 1024, 2048, 4096)

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


@lru_cache(maxsize=512)
def longest_matched(pattern: str) -> int:
    """The longest text, in characters, that a pattern matches without blocking the process for long."""
    search = re.compile(pattern).search
    steep = [size for one in _tries(pattern) if (size := _grows(search, one, _SHORT, 0.0005, 5.6))]
    if steep:
        return _STEEP if min(steep) > 64 else _STEEPEST
    return _SQUARE if any(_grows(search, one, _LONG, 0.002, 2.8) for one in _tries(pattern)) else LONGEST_MATCHED


def _grows(
    search: Callable[[str], Any], one: tuple[str, str, str], sizes: Sequence[int], slow_s: float, growth: float
) -> int:
    """The first size at which a text is slow, and ``growth`` times as slow as one of half the size; or 0."""
    beginning, pump, end = one

    def taken_s(size: int) -> float:
        return _taken_s(search, f"{beginning}{pump * (size // len(pump))}{end}")

    for size in sizes:
        if taken_s(size) > slow_s:
            longer, shorter = (min(taken_s(many) for _ in range(3)) for many in (size, size // 2))
            if longer > slow_s / 2:  # otherwise the machine was busy with other work
                return size if longer > growth * shorter else 0
    return 0


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
            # The machine may have been busy with other work, so both times are measured again.
            longer, shorter = (
                min(_taken_s(search, f"{beginning}{pump * count}{end}") for _ in range(2)) for count in (many, many - 4)
            )
            return longer > _SLOW_S / 2 and longer > _GROWTH * shorter
    return False


def _taken_s(search: Callable[[str], Any], text: str) -> float:
    began = time.thread_time()
    search(text)
    return time.thread_time() - began
