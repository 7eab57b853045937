"""`Field`: limits the values of a parameter, in its annotation; `Constraints`: the limits that an annotation sets.

::

    def resize(width: Annotated[int, Field(ge=1, le=4096)], name: Annotated[str, Field(pattern="^[a-z]+$")]): ...

Constraints on the parameter itself are checked after its value was decoded, by any codec, so they apply to every
protocol; the tool bridge reports all violations. A Field is a `msgspec.Meta`, so msgspec checks constraints deeper
within an annotation, as in ``list[Annotated[int, Field(ge=0)]]`` or in a dataclass. `msgspec.Meta` itself, the
constraints of `annotated_types` and pydantic's ``Field`` are understood, too, without importing these libraries.
"""

from __future__ import annotations

import math
import re
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Final

import msgspec

from invoker.errors import SpecError
from invoker.fields.aliases import UNIONS, unaliased
from invoker.fields.backtracking import LONGEST_MATCHED, doubling_text, longest_matched
from invoker.fields.linear import linear_search
from invoker.fields.marks import SCALARS, fits, kinds_of, pattern_text
from invoker.fields.rules import rule_named

FIELD_RULES: Final = "invoker.fields.rules"
"""The key in the ``extra`` of a Field's Meta for the names of its rules."""

FIELD_LENGTH: Final = "invoker.max_length"
"""The key in ``extra`` for the author's own ``max_length``, if the Meta has another one."""


def Field(  # noqa: N802, PLR0913 - other libraries have a class of this name; each argument is a keyword for authors
    *,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
    pattern: str | re.Pattern[str] | None = None,
    min_length: int | None = None,
    max_length: int | None = None,
    rules: str | Sequence[str] = (),
    description: str = "",
) -> Any:
    """Limits the values of a parameter, within ``Annotated[...]``; other values are refused before the function runs.

    Args:
        ge: Numbers are at least this.
        gt: Numbers are above this.
        le: Numbers are at most this.
        lt: Numbers are below this.
        pattern: A regular expression, or a compiled one with its flags, that matches somewhere in the text;
            write ``^`` and ``$`` for all of it.
        min_length: The least number of characters of a text, of bytes, or of items of a list or a dict.
        max_length: The greatest number of these.
        rules: Names of rules: non_empty, finite, positive, non_negative, email, url, uuid, json, unique_items, or of
            your own (see `rule`).
        description: A description for readers, instead of the one in the docstring.

    Raises:
        SpecError: The limits contradict each other, the pattern is not a regular expression, or a rule does not exist.
    """
    names = (rules,) if isinstance(rules, str) else tuple(rules)
    for name in names:
        rule_named(name)
    pattern = None if pattern is None else pattern_text(pattern)
    said = {"ge": ge, "gt": gt, "le": le, "lt": lt, "pattern": pattern, "min_length": min_length}
    said |= {"max_length": max_length, "description": description or None}
    extra: dict[str, Any] = {FIELD_RULES: names} if names else {}
    capped = max_length
    try:
        if pattern is not None and (longest := _longest(pattern)) < (math.inf if max_length is None else max_length):
            # msgspec matches patterns deeper within an annotation, and compares lengths before (T-043).
            extra[FIELD_LENGTH], capped = max_length, longest
        made = msgspec.Meta(**{**said, "max_length": capped}, extra=extra or None)  # type: ignore[arg-type]  # by name
    except re.error as error:
        raise SpecError(f"Field(pattern={pattern!r}) is not a regular expression: {error}") from None
    except (TypeError, ValueError) as error:
        raise SpecError(
            f"Field({', '.join(f'{k}={v!r}' for k, v in said.items() if v is not None)}): {error}"
        ) from None
    _agree(
        "gt" if ge is None else "ge", gt if ge is None else ge, "lt" if le is None else "le", lt if le is None else le
    )
    _agree("min_length", min_length, "max_length", max_length)
    return made


def _longest(pattern: str) -> int:
    """The length in characters up to which `re` may match texts with a pattern.

    Raises:
        SpecError: With this pattern a caller could block the process, and RE2 does not support it.
    """
    if not (problem := _doubling(pattern)):
        return longest_matched(pattern)
    if linear_search(pattern) is None:
        raise SpecError(problem)
    return LONGEST_MATCHED  # the pattern is on the parameter itself; deeper in an annotation `slow_pattern` refuses it


def _doubling(pattern: str) -> str:
    """A sentence about a pattern whose time doubles with each repeat in a text; empty if none was found."""
    if not (text := doubling_text(pattern)):
        return ""
    return (
        f"the pattern {pattern!r} takes twice as long with each repetition in a text such as {text!r}, so a caller "
        "could hold up the process; do not repeat a part that itself repeats, or make the inner repeat possessive, "
        "as in (a++)+"
    )


def slow_pattern(pattern: str, max_length: int | None) -> str:
    """The reason why Python's `re` must not match texts of any length with a pattern; empty if it may.

    Args:
        pattern: A pattern that msgspec or pydantic applies, without the bounds of `Constraints`.
        max_length: The most characters of a text; longer texts are refused before they are matched.
    """
    if problem := _doubling(pattern):
        return problem
    longest = longest_matched(pattern)
    if longest == LONGEST_MATCHED or (max_length is not None and max_length <= longest):
        return ""
    return (
        f"the time to match the pattern {pattern!r} grows faster than the length of the text, so a "
        f"caller could hold up the process; begin it with ^, as in ^a+$, or add max_length={longest}"
    )


def _agree(lower: str, least: float | None, upper: str, most: float | None) -> None:
    """Refuse two bounds that no value can satisfy."""
    if least is not None and most is not None and least > most:
        raise SpecError(f"Field({lower}={least!r}, {upper}={most!r}) allows no value, as {least!r} is above {most!r}")


@dataclass(frozen=True, slots=True)
class Problem:
    """The reason why a value is refused.

    Attributes:
        code: ``pattern``, ``pattern_input_too_long``, ``range``, ``length`` or ``custom_rule``.
        text: What was expected and what was met; the text follows the name of the parameter.
        details: Further facts, under the keys ``expected``, ``actual`` and ``rule``.
    """

    code: str
    text: str
    details: dict[str, str]


@dataclass(frozen=True, slots=True)
class Constraints:
    """The constraints on values that an annotation sets besides the type.

    Attributes:
        min_value, max_value: Inclusive bounds; an exclusive bound is stored as the next number of the type.
        pattern: A pattern that matches somewhere in the text.
        min_length, max_length: Length of texts, bytes, lists and dicts.
        rules: The names of the rules.
        description: A description for readers; may be empty.
    """

    min_value: float | None = None
    max_value: float | None = None
    pattern: str = ""
    min_length: int | None = None
    max_length: int | None = None
    rules: tuple[str, ...] = ()
    description: str = ""

    def __bool__(self) -> bool:
        return any(
            check is not None for check in (self.min_value, self.max_value, self.min_length, self.max_length)
        ) or (bool(self.pattern) or bool(self.rules))

    def checker(self) -> Callable[[Any], Iterator[Problem]] | None:
        """A function that returns the problems of a value; None if no value can have one."""
        if not self:
            return None
        search, longest = self._search()
        rules = [(name, rule_named(name)) for name in self.rules]

        def check(value: Any) -> Iterator[Problem]:
            if value is None:
                return
            yield from self._of_number(value)
            yield from self._of_size(value)
            if search is not None and isinstance(value, str):
                yield from self._of_text(value, search, longest)
            for name, follows in rules:
                yield from _of_rule(name, follows, value)

        return check

    def _of_number(self, value: Any) -> Iterator[Problem]:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return
        low, high = self.min_value, self.max_value
        # NaN compares as neither above nor below, so it satisfies no bound (T-044).
        if (low is not None and not value >= low) or (high is not None and not value <= high):
            expected = _between(low, high)
            yield Problem("range", f"must be {expected}, and is {value}", {"expected": expected, "actual": str(value)})

    def _of_size(self, value: Any) -> Iterator[Problem]:
        low, high = self.min_length, self.max_length
        if (low is None and high is None) or not hasattr(value, "__len__"):
            return
        size = len(value)
        if (low is not None and size < low) or (high is not None and size > high):
            unit = "characters" if isinstance(value, str) else "bytes" if isinstance(value, bytes) else "items"
            expected = f"{_between(low, high)} {unit}"
            yield Problem(
                "length", f"must have {expected}, and has {size}", {"expected": expected, "actual": str(size)}
            )

    def _search(self) -> tuple[Callable[[str], Any] | None, int]:
        """The function that finds the pattern in a text, and how long the text may be."""
        if not self.pattern:
            return None, 0
        if (found := linear_search(self.pattern)) is not None:
            return found, LONGEST_MATCHED
        return re.compile(self.pattern).search, longest_matched(self.pattern)

    def _of_text(self, value: str, search: Callable[[str], Any], longest: int) -> Iterator[Problem]:
        expected = {"expected": self.pattern}
        if len(value) > longest:
            text = (
                f"has {len(value)} characters, and the pattern {_short(self.pattern)} is matched with {longest} at most"
            )
            yield Problem("pattern_input_too_long", text, {**expected, "actual": str(len(value))})
        elif not search(value):
            text = f"must match the pattern {self.pattern!r}, and is {_short(value)}"
            yield Problem("pattern", text, {**expected, "actual": _short(value)})


UNBOUND: Final = Constraints()
"""The constraints of an annotation without any."""


def constraints_of(type_: Any, *, kept: bool = False) -> Constraints:
    """The constraints that an annotation sets on the values themselves, not on the values inside them.

    Args:
        type_: The annotation.
        kept: Whether the constraints stay in the annotation, because pydantic applies those that it supports, in their
            order.

    Raises:
        SpecError: A pattern is not a regular expression, or a rule does not exist.
    """
    found = UNBOUND
    for mark in _marks(type_):
        if isinstance(mark, msgspec.Meta) or not kept:
            found = _merged(found, _read(mark, type_))
    try:
        re.compile(found.pattern)
    except re.error as error:
        raise SpecError(f"the pattern {found.pattern!r} is not a regular expression: {error}") from None
    _longest(found.pattern)
    for name in found.rules:
        rule_named(name)
    _check_kinds(found, type_)
    return found


def _marks(type_: Any) -> Iterator[Any]:
    type_ = unaliased(type_)
    if typing.get_origin(type_) is Annotated:
        yield from _marks(type_.__origin__)
        yield from type_.__metadata__
    elif typing.get_origin(type_) in UNIONS:
        for one in typing.get_args(type_):
            yield from _marks(one)


def _read(mark: Any, type_: Any) -> Constraints:
    if not fits(mark, type_):
        return Constraints()
    if isinstance(mark, msgspec.Meta):
        extra = mark.extra or {}
        found = _bounded(mark, type_, rules=extra.get(FIELD_RULES, ()))
        return replace(found, max_length=extra[FIELD_LENGTH]) if FIELD_LENGTH in extra else found
    cls = type(mark)
    module = cls.__module__.partition(".")[0]
    if module == "pydantic" and cls.__name__ == "FieldInfo":
        found = Constraints(description=mark.description or "")
        for one in mark.metadata:
            found = _merged(found, _read(one, type_))
        return found
    if module in ("annotated_types", "pydantic"):
        return _bounded(mark, type_)
    return Constraints()


def _bounded(mark: Any, type_: Any, *, rules: tuple[str, ...] = ()) -> Constraints:
    """Read the bounds of one constraint; the attributes have the same names in every library."""

    def said(name: str) -> Any:
        return getattr(mark, name, None)

    low, high = said("ge"), said("le")
    is_whole = not _has_float(type_)
    if said("gt") is not None:
        low = math.floor(mark.gt) + 1 if is_whole else math.nextafter(mark.gt, math.inf)
    if said("lt") is not None:
        high = math.ceil(mark.lt) - 1 if is_whole else math.nextafter(mark.lt, -math.inf)
    words, pattern = said("description"), pattern_text(said("pattern"))
    return Constraints(
        low, high, pattern, said("min_length"), said("max_length"), rules,
        words if isinstance(words, str) else "",
    )  # fmt: skip


def _merged(one: Constraints, other: Constraints) -> Constraints:
    """Merge two constraints; where they differ, the later one counts."""
    said = {
        field.name: getattr(other, field.name)
        for field in fields(Constraints)
        if getattr(other, field.name) not in (None, "", ())
    }
    return replace(one, **said)


def _has_float(type_: Any) -> bool:
    return float in kinds_of(type_)


def _check_kinds(found: Constraints, type_: Any) -> None:
    """Refuse constraints that can never apply, such as the least number for a text."""
    members = [one for one in kinds_of(type_) if one is not type(None)]
    if any(not isinstance(one, type) or one not in SCALARS for one in members):
        return  # the kind of the values is not known here
    wanted = {
        "ge, gt, le and lt are for numbers": (found.min_value is not None or found.max_value is not None, (int, float)),
        "pattern is for text": (bool(found.pattern), (str,)),
        "min_length and max_length are for text, bytes, lists and dicts": (
            found.min_length is not None or found.max_length is not None,
            (str, bytes),
        ),
    }
    for text, (is_said, kinds) in wanted.items():
        if is_said and not any(one in kinds for one in members):
            raise SpecError(f"{text}, and the annotation is {' | '.join(one.__name__ for one in members)}")


def _of_rule(name: str, follows: Callable[[Any], Any], value: Any) -> Iterator[Problem]:
    try:
        if follows(value):
            return
        why = ""
    except Exception as error:  # noqa: BLE001 - a rule that raises has failed (T-048)
        why = f" ({type(error).__name__})"
    yield Problem("custom_rule", f"breaks the rule '{name}'{why}", {"rule": name, "actual": _short(value)})


def _between(low: Any, high: Any) -> str:
    if high is None:
        return f"at least {low}"
    return f"at most {high}" if low is None else f"{low} to {high}" if low != high else f"{low}"


def _short(value: Any) -> str:
    text = ascii(value) if isinstance(value, (str, bytes, int, float)) else type(value).__name__
    return text if len(text) <= 80 else f"{text[:80]}..."
