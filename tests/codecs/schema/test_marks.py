"""`invoker.codecs.schema.marks`: what `Annotated` says, in the words of JSON Schema."""

from __future__ import annotations

import re
from typing import Annotated, Any

import annotated_types
import msgspec
import pydantic
import pytest

from invoker import Field, rule
from invoker.codecs.schema.marks import bounded, marked
from invoker.fields.constraints import Constraints, constraints_of

TEXT, NUMBER, WHOLE = {"type": "string"}, {"type": "number"}, {"type": "integer"}
LIST, DICT = {"type": "array"}, {"type": "object"}


@rule("even")
def is_even(value: Any) -> bool:
    return bool(value % 2 == 0)


@pytest.mark.parametrize(
    ("schema", "mark", "more"),
    [
        (WHOLE, Field(ge=1, le=5), {"minimum": 1, "maximum": 5}),
        (NUMBER, Field(gt=0, lt=0.5), {"exclusiveMinimum": 0, "exclusiveMaximum": 0.5}),
        (TEXT, Field(min_length=1, max_length=3), {"minLength": 1, "maxLength": 3}),
        (LIST, Field(min_length=1, max_length=3), {"minItems": 1, "maxItems": 3}),
        (DICT, Field(min_length=1), {"minProperties": 1}),
        (NUMBER, Field(description="Words."), {"description": "Words."}),
        (TEXT, Field(pattern="^a+$"), {"pattern": "^a+$"}),
        (TEXT, Field(pattern="^a+$", max_length=3), {"pattern": "^a+$", "maxLength": 3}),
        (TEXT, Field(rules=("email", "non_empty")), {"format": "email", "minLength": 1}),
        (NUMBER, Field(rules=("positive", "finite", "even")), {"exclusiveMinimum": 0, "x-rules": ["even"]}),
        (LIST, Field(rules=("unique_items", "non_empty")), {"uniqueItems": True, "minItems": 1}),
        (LIST, Field(rules="non_empty", min_length=3), {"minItems": 3}),
        (WHOLE, msgspec.Meta(multiple_of=2, title="T", examples=[2]), {"multipleOf": 2, "title": "T", "examples": [2]}),
        (WHOLE, msgspec.Meta(extra_json_schema={"x-unit": "m"}), {"x-unit": "m"}),
        (WHOLE, annotated_types.Ge(3), {"minimum": 3}),
        (TEXT, annotated_types.MinLen(3), {"minLength": 3}),
        (WHOLE, pydantic.Field(gt=3, description="D"), {"exclusiveMinimum": 3, "description": "D"}),
        (WHOLE, pydantic.Field(examples=[4]), {"examples": [4]}),
        (TEXT, pydantic.Field(min_length=3, pattern="a"), {"minLength": 3, "pattern": "a"}),
        (TEXT, pydantic.Field(pattern=re.compile("a")), {"pattern": "a"}),
        (TEXT, pydantic.Field(pattern=re.compile("a", re.IGNORECASE)), {"x-pattern": "(?i)a"}),
        (TEXT, Field(pattern=re.compile("a", re.IGNORECASE)), {"x-pattern": "(?i)a"}),
        (TEXT, re.compile("a"), {}),
        (TEXT, "words", {}),
        (TEXT, object(), {}),
    ],
)  # fmt: skip
def test_H065_marks_become_words(schema: dict[str, Any], mark: Any, more: dict[str, Any]) -> None:
    """Each for the kind of values that it is about."""
    assert marked(schema, (mark,)) == schema | more


def test_H065_a_length_is_said_of_every_kind_that_has_one() -> None:
    """Of bytes it is not, since base64 has another length than what it stands for."""
    several = {"anyOf": [TEXT, LIST, {"type": "null"}, {"type": "string", "contentEncoding": "base64"}]}
    assert marked(several, (Field(min_length=2),)) == {**several, "minLength": 2, "minItems": 2}
    only = {"type": "string", "contentEncoding": "base64"}
    assert marked(only, (Field(min_length=2),)) == only


@pytest.mark.parametrize("pattern", [r"\Aab", r"ab\Z", "(?P<name>a)", "(?i)a", "a++", "(?>a)", "(?x: a)"])
def test_H065_patterns_of_python_only_are_not_said_as_patterns(pattern: str) -> None:
    """A client of another language could not read them."""
    assert marked(TEXT, (Field(pattern=pattern),)) == {**TEXT, "x-pattern": pattern}


@pytest.mark.parametrize("pattern", ["^[a-z]+$", r"\d{3}", "(?:a|b)", "(?=a)", "(?!a)", "(?<=a)b", "(?<!a)b"])
def test_H065_patterns_that_all_have_are_said(pattern: str) -> None:
    """Groups that do not capture, and looking around."""
    assert marked(TEXT, (Field(pattern=pattern),)) == {**TEXT, "pattern": pattern}


@pytest.mark.parametrize(
    ("annotation", "schema", "more"),
    [
        (Annotated[int, Field(gt=0)], WHOLE, {"minimum": 1}),
        (Annotated[float, Field(gt=0)], NUMBER, {"exclusiveMinimum": 0}),
        (Annotated[float, Field(gt=0.1, lt=2.5)], NUMBER, {"exclusiveMinimum": 0.1, "exclusiveMaximum": 2.5}),
        (Annotated[float, Field(ge=0.1, le=2.5)], NUMBER, {"minimum": 0.1, "maximum": 2.5}),
        (Annotated[float, Field(ge=0, le=1 / 3)], NUMBER, {"minimum": 0, "maximum": 1 / 3}),
        (Annotated[str, Field(pattern="a", max_length=3, rules="url", description="D")], TEXT,
         {"pattern": "a", "maxLength": 3, "format": "uri", "description": "D"}),
    ],
)  # fmt: skip
def test_H065_what_was_read_of_marks_is_said_as_it_was_written(annotation: Any, schema: Any, more: Any) -> None:
    """Exclusive bounds of floats, which were made inclusive, are exclusive again."""
    assert bounded(schema, constraints_of(annotation)) == schema | more


def test_H065_nothing_is_added_where_nothing_is_said() -> None:
    """And the schema that was given is not changed."""
    schema: dict[str, Any] = {"type": "string"}
    assert bounded(schema, Constraints()) == schema
    bounded(schema, Constraints(min_length=1))
    assert schema == {"type": "string"}
