"""Named rules for values: the built-in ones, and the ones that function authors register with `rule`.

A rule is a function that returns True for valid values. ``Field(rules=("email",))`` selects rules by name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from invoker.errors import SpecError
from invoker.errors.wording import suggestion

Rule: TypeAlias = Callable[[Any], Any]
"""Returns True for values that follow the rule; an exception means that the value does not follow it."""

R = TypeVar("R", bound=Rule)

_LONGEST: Final = 65_536
"""How many characters of a text are checked."""


def rule(name: str) -> Callable[[R], R]:
    """Register a rule for ``Field(rules=(name,))``, as a decorator that returns the function unchanged.

    Args:
        name: The name of the rule, other than those of built-in rules. A module that is loaded again replaces its
            rules.

    Raises:
        SpecError: The name is taken by a built-in rule, or is not a name.
    """
    if not name or name in _BUILT_IN:
        why = f"is built in; take another name than {', '.join(_BUILT_IN)}" if name in _BUILT_IN else "is not a name"
        raise SpecError(f"@rule({name!r}): {name!r} {why}")

    def register(check: R) -> R:
        if not callable(check):
            raise SpecError(f"@rule({name!r}) is for a function, and this is of type {type(check).__name__}")
        _registered[name] = check
        return check

    return register


def rule_named(name: str) -> Rule:
    """The rule of this name.

    Raises:
        SpecError: There is no such rule.
    """
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    if name in _registered:
        return _registered[name]
    hint = suggestion(name, known_rules())
    raise SpecError(f"no rule is named {name!r} ({hint}); register a rule of your own with @invoker.rule({name!r})")


def known_rules() -> list[str]:
    """The names of all registered rules."""
    return [*_BUILT_IN, *_registered]


def _non_empty(value: Any) -> bool:
    return bool(value.strip() if isinstance(value, str) else len(value))


def _finite(value: Any) -> bool:
    return all(map(math.isfinite, value)) if isinstance(value, (list, tuple)) else math.isfinite(value)


def _email(value: str) -> bool:
    return len(value) <= 254 and _EMAIL(value) is not None


def _url(value: str) -> bool:
    from urllib.parse import urlsplit  # the import takes 3 ms, which not every process needs at its start

    if len(value) > _LONGEST or any(sign.isspace() or not sign.isprintable() for sign in value):
        return False
    parts = urlsplit(value)
    _ = parts.port  # raises for an invalid port
    return bool(parts.scheme in ("http", "https", "ftp", "ws", "wss") and parts.hostname)


def _uuid(value: str) -> bool:
    return _UUID(value) is not None


def _json(value: str) -> bool:
    msgspec.json.decode(value)
    return True


def _unique_items(value: Iterable[Any]) -> bool:
    seen = set()
    for one in value:
        mark = one if isinstance(one, (str, int, float, bytes)) else repr(one)
        key = (type(one), mark)
        if key in seen:
            return False
        seen.add(key)
    return True


_EMAIL: Final = re.compile(r"[^@\s\"(),:;<>\[\\\]]{1,64}@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)+[^\W\d_]{2,63}").fullmatch
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch

_BUILT_IN: Final[dict[str, Rule]] = {
    "non_empty": _non_empty,
    "finite": _finite,
    "positive": lambda value: value > 0,
    "non_negative": lambda value: value >= 0,
    "email": _email,
    "url": _url,
    "uuid": _uuid,
    "json": _json,
    "unique_items": _unique_items,
}
_registered: dict[str, Rule] = {}
