"""`invoker.codecs.schema.foreign`: what pydantic says of its classes."""

from __future__ import annotations

import re

import pydantic
import pytest

from invoker.codecs.schema.foreign import pydantic_schema, reached


class Leaf(pydantic.BaseModel):
    a: int = pydantic.Field(default=1, ge=1, alias="A")


class Tree(pydantic.BaseModel):
    leaf: Leaf
    more: list[Tree] = []


class Computed(pydantic.BaseModel):
    a: int = 1

    @pydantic.computed_field
    def twice(self) -> int:
        return 2 * self.a


def test_H065_a_model_and_what_it_holds() -> None:
    """Members have the names that JSON has."""
    schema, definitions = pydantic_schema(Tree, gives=False)
    assert schema == {"$ref": "#/$defs/Tree"}
    assert definitions.keys() == {"Tree", "Leaf"}
    assert definitions["Leaf"]["properties"]["A"] == {"default": 1, "minimum": 1, "title": "A", "type": "integer"}


def test_H065_what_is_given_may_have_more_than_what_is_taken() -> None:
    """Computed fields are given only; where the two differ just in what may be left out, one serves both."""
    taken, given = pydantic_schema(Computed, gives=False)[0], pydantic_schema(Computed, gives=True)[0]
    assert taken["properties"].keys() == {"a"}
    assert given["properties"].keys() == {"a", "twice"}
    assert pydantic_schema(Leaf, gives=True) == pydantic_schema(Leaf, gives=False)


def test_H065_what_pydantic_cannot_describe_raises() -> None:
    """The caller then says that nobody can."""

    class Odd: ...

    with pytest.raises(TypeError):
        pydantic_schema(Odd, gives=False)


def test_H065_definitions_that_are_reached() -> None:
    """Over any number of references, which may go in circles."""
    definitions = {"A": {"x": [{"$ref": "#/$defs/B"}]}, "B": {"$ref": "#/$defs/A"}, "C": {}, "D": {"$ref": "#/x"}}
    assert reached({"$ref": "#/$defs/A"}, definitions).keys() == {"A", "B"}
    assert reached(definitions["D"], definitions) == {}


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("^a$", {"pattern": "^a$"}),
        (re.compile("^a$"), {"pattern": "^a$"}),
        (re.compile("^a$", re.IGNORECASE), {"x-pattern": "(?i)^a$"}),
    ],
)
@pytest.mark.parametrize("gives", [False, True])
def test_H065_flags_of_a_compiled_pattern_are_told(
    pattern: str | re.Pattern[str], said: dict[str, str], gives: bool
) -> None:
    """As of a parameter; a client that takes the pattern without them refuses what the server takes."""
    made = pydantic.create_model("Made", text=(str, pydantic.Field(pattern=pattern)))
    schema, _ = pydantic_schema(made, gives=gives)
    assert schema["properties"]["text"] == {"title": "Text", "type": "string", **said}
