"""`misspelt`: finds a key from a caller that is similar to a name that the caller did not give (H-201, R-171).

Keys that are not similar to any name are ignored: a link may contain tracking parameters, and an object keys for other
readers.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

_NEAR: Final = 0.8
"""The least similarity of a key to a name at which it counts as misspelt; 1 means equal."""

_MOST_CHECKED: Final = 8
_LONGEST_CHECKED: Final = 64
_LONG_ENOUGH: Final = 4


def misspelt(strangers: Iterable[str], missing: Iterable[str]) -> tuple[str, str] | None:
    """The first key that is similar to a name, and the name; None if there is none. Only a few keys are checked.

    Args:
        strangers: Keys that were given and are not known names.
        missing: Names that were not given.
    """
    names = tuple(missing)
    if not names:
        return None
    for key in [one for one in strangers if len(one) <= _LONGEST_CHECKED][:_MOST_CHECKED]:
        if near := _near(key, names):
            return key, near
    return None


def is_slip(text: str, meant: str) -> bool:
    """Whether one typing error turns one text into the other, of the same length.

    Two letters have changed places, or, in a name of at least four letters, one is wrong; `get_close_matches` finds
    neither case in short names.
    """
    if len(text) != len(meant):
        return False
    wrong = [at for at, (one, other) in enumerate(zip(text, meant, strict=True)) if one != other]
    if len(wrong) == 2:
        return wrong[1] == wrong[0] + 1 and text[wrong[0]] == meant[wrong[1]] and text[wrong[1]] == meant[wrong[0]]
    return len(wrong) == 1 and len(meant) >= _LONG_ENOUGH


@lru_cache(maxsize=512)  # callers that send unknown keys send the same ones each time
def _near(key: str, names: tuple[str, ...]) -> str:
    plain, known = _plain(key), {_plain(name): name for name in names}
    near = get_close_matches(plain, known, n=1, cutoff=_NEAR) or [one for one in known if is_slip(plain, one)]
    return known[near[0]] if near else ""


def _plain(name: str) -> str:
    return name.casefold().replace("-", "_")
