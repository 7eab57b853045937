"""`invoker.codecs.schema.fitting`: whether defaults fit their schemas."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from invoker.codecs.schema import schema_of
from invoker.codecs.schema.fitting import fits
from tests.codecs.schema.kinds import KINDS
from tests.codecs.schema.test_schemas import TREES

DEFINITIONS = {"Color": {"type": "string", "enum": ["red"]}}


def fit(schema: Any, value: Any) -> bool:
    return fits(schema, value, lambda ref: DEFINITIONS[ref.rpartition("/")[2]])


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"type": "string"}, "a", None),
        ({"type": "integer"}, 1, True),
        ({"type": "integer"}, 1.0, 1.5),
        ({"type": "number"}, 1, "1"),
        ({"type": ["string", "null"]}, None, 1),
        ({"enum": [1, 2]}, 1, 3),
        ({"const": "a"}, "a", "b"),
        ({"$ref": "#/$defs/Color"}, "red", "blue"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, None, "a"),
        ({"type": "integer", "minimum": 1, "exclusiveMaximum": 3}, 2, 3),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 1}, 1, 0),
        ({"type": "string", "minLength": 1, "maxLength": 2}, "a", ""),
        ({"type": "string", "pattern": "^a"}, "ab", "b"),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 1}, [1], []),
        ({"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "string"}}, [1, "a"], [1, 2]),
        ({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"a": 1, "b": 2}, {"a": "b"}),
        ({"type": "object", "required": ["a"]}, {"a": 1}, {}),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}, {"a": "b"}),
    ],
)
def test_H065_values_fit_or_do_not(schema: Any, right: Any, wrong: Any) -> None:
    """As JSON Schema says."""
    assert fit(schema, right)
    assert not fit(schema, wrong)


def test_H065_what_is_not_known_allows_everything() -> None:
    """A default is told rather than hidden."""
    assert fit({"x-python": "Odd"}, object())
    assert fit(True, 1)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([one for one, _ in KINDS]), TREES)
def test_H065_it_refuses_nothing_that_fits(annotation: Any, value: Any) -> None:
    """What jsonschema takes is taken."""
    schema = schema_of(annotation)
    if jsonschema.Draft202012Validator(schema).is_valid(value):
        assert fits(schema, value, lambda ref: schema["$defs"][ref.rpartition("/")[2]])
