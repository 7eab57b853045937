"""What annotations say of values besides their type."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

import annotated_types
import msgspec
import pydantic
import pytest

from invoker.errors import SpecError
from invoker.fields.constraints import UNBOUND, Constraints, Field, constraints_of
from invoker.fields.marks import unmarked


@pytest.mark.parametrize(
    ("type_", "said"),
    [
        (int, UNBOUND),
        (Annotated[int, "words"], UNBOUND),
        (Annotated[int, Field(ge=1, le=5)], Constraints(1, 5)),
        (Annotated[int, Field(gt=1, lt=5)], Constraints(2, 4)),
        (Annotated[int, Field(gt=1.5, lt=4.5)], Constraints(2, 4)),
        (Annotated[float, Field(gt=1, lt=5)], Constraints(math.nextafter(1, 2), math.nextafter(5, 4))),
        (Annotated[str, Field(pattern="a", rules="email")], Constraints(pattern="a", rules=("email",))),
        (Annotated[str, Field(pattern="a", max_length=100_000)], Constraints(pattern="a", max_length=100_000)),
        (Annotated[int | None, Field(ge=0)], Constraints(0)),
        (Annotated[int, Field(ge=0)] | None, Constraints(0)),
        (Annotated[Annotated[int, Field(ge=0)], Field(le=9, description="x")], Constraints(0, 9, description="x")),
        (Annotated[list[int], Field(min_length=1, max_length=2)], Constraints(min_length=1, max_length=2)),
        (Annotated[Any, Field(ge=1)], Constraints(1)),
        (Annotated[int, msgspec.Meta(ge=1, multiple_of=2)], Constraints(1)),
        (Annotated[int, annotated_types.Ge(1), annotated_types.Lt(5)], Constraints(1, 4)),
        (Annotated[int, annotated_types.Interval(ge=1, lt=5)], Constraints(1, 4)),
        (Annotated[str, annotated_types.Len(1, 5)], Constraints(min_length=1, max_length=5)),
        (Annotated[str, annotated_types.MinLen(2)], Constraints(min_length=2)),
        (Annotated[int, annotated_types.MultipleOf(2)], UNBOUND),
        (Annotated[int, pydantic.Field(ge=1, le=5, description="x")], Constraints(1, 5, description="x")),
        (Annotated[str, pydantic.Field(pattern="^a", max_length=3)], Constraints(pattern="^a", max_length=3)),
        (
            Annotated[str, pydantic.StringConstraints(pattern="^a", min_length=3)],
            Constraints(pattern="^a", min_length=3),
        ),
    ],
)
def test_what_annotations_say(type_: Any, said: Constraints) -> None:
    """Our own Field, msgspec's Meta, annotated_types and pydantic say the same in their words."""
    assert constraints_of(type_) == said
    assert bool(said) == (said.checker() is not None)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Field(pattern="("), r"Field\(pattern='\('\) is not a regular expression: missing \)"),
        (lambda: Field(ge=1, gt=0), "Cannot specify both"),
        (lambda: Field(ge=9, le=1), r"Field\(ge=9, le=1\) allows no value, as 9 is above 1"),
        (lambda: Field(gt=9, lt=1), r"Field\(gt=9, lt=1\) allows no value"),
        (lambda: Field(min_length=2, max_length=1), r"Field\(min_length=2, max_length=1\) allows no value"),
        (lambda: Field(min_length=-1), "must be >= 0"),
        (lambda: Field(ge="a"), "must be an int or float"),
        (lambda: Field(rules=("nope",)), "no rule is named 'nope'"),
        (
            lambda: constraints_of(Annotated[str, Field(ge=1)]),
            "ge, gt, le and lt are for numbers, and the annotation is str",
        ),
        (
            lambda: constraints_of(Annotated[int | None, Field(pattern="a")]),
            "pattern is for text, and the annotation is int",
        ),
        (
            lambda: constraints_of(Annotated[float, Field(min_length=1)]),
            "min_length and max_length are for text, bytes",
        ),
        (
            lambda: constraints_of(Annotated[str, pydantic.Field(pattern="(")]),
            r"the pattern '\(' is not a regular expression",
        ),
    ],
)
def test_T042_what_cannot_be_is_a_load_error(make: Any, words: str) -> None:
    """A wrong pattern, rule or bound stops the process at load and not at a call."""
    with pytest.raises(SpecError, match=words):
        make()


MARKS: dict[str, Any] = {"ours": Field, "pydantic": pydantic.Field, "constraints": pydantic.StringConstraints}
FLAGS = [
    (re.compile("^ab$", re.IGNORECASE), "(?i)^ab$", "AB", "ac"),
    (re.compile("^b", re.MULTILINE), "(?m)^b", "a\nb", "ab"),
    (re.compile("^a.b$", re.DOTALL), "(?s)^a.b$", "a\nb", "ab"),
    (re.compile(r"^\w$", re.ASCII), r"(?a)^\w$", "a", "ä"),
    (re.compile("^a b$  # two letters", re.VERBOSE), "(?x)^a b$  # two letters", "ab", "a b"),
    (re.compile("(?i)^ab$", re.DOTALL), "(?is)(?i)^ab$", "AB", "ac"),
    (re.compile("(?i)^ab$"), "(?i)^ab$", "AB", "ac"),
    (re.compile("^ab$"), "^ab$", "ab", "AB"),
]


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize(("pattern", "text", "good", "bad"), FLAGS)
def test_flags_of_a_compiled_pattern_hold(mark: str, pattern: re.Pattern[str], text: str, good: str, bad: str) -> None:
    """Whoever's mark it is; they stand in the text of the pattern, so that errors and schemas tell them."""
    found = constraints_of(Annotated[str, MARKS[mark](pattern=pattern)])
    check = found.checker()
    assert found.pattern == text
    assert check is not None
    assert list(check(good)) == []
    assert [one.code for one in check(bad)] == ["pattern"]


@pytest.mark.parametrize("mark", MARKS)
def test_a_pattern_of_bytes_is_refused(mark: str) -> None:
    """With a sentence."""
    with pytest.raises(SpecError, match=r"the pattern re.compile\(b'a'\) is made of bytes"):
        constraints_of(Annotated[str, MARKS[mark](pattern=re.compile(b"a"))])


def test_problems_are_told_in_order() -> None:
    """All that is wrong with a value is told: number or size, pattern, then rules."""
    check = Constraints(pattern="b", min_length=3, rules=("email", "non_empty")).checker()
    assert check is not None
    assert [one.code for one in check("a")] == ["length", "pattern", "custom_rule"]
    assert list(check(None)) == []
    assert [one.details["rule"] for one in check(5)] == ["email", "non_empty"]


@pytest.mark.parametrize("said", [Field(ge=0), Field(le=0), Field(gt=-1, lt=1)])
def test_T044_no_bound_is_satisfied_by_nan(said: Any) -> None:
    """One bound is enough to refuse it (scenario 20)."""
    check = constraints_of(Annotated[float, said]).checker()
    assert check is not None
    assert [one.code for one in check(math.nan)] == ["range"]
    assert list(check(0.0)) == []


def test_bounds_are_for_numbers_only() -> None:
    """In a union they pass what they are not for."""
    check = Constraints(1, 2, min_length=1).checker()
    assert check is not None
    assert [list(check(one)) for one in (1, "a", True, 2.0)] == [[], [], [], []]
    assert [one.text for one in check(3)] == ["must be 1 to 2, and is 3"]


def test_what_is_left_without_marks() -> None:
    """`bare` strips them outside and in a union, not deeper."""
    assert unmarked(Annotated[int, Field(ge=1)]) is int
    assert unmarked(Annotated[Annotated[int, 1] | None, 2]) == (int | None)
    inner = list[Annotated[int, Field(ge=1)]]
    assert unmarked(inner) == inner
    assert unmarked(Literal["a"]) == Literal["a"]
