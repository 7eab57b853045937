"""`invoker.protocols.web.openapi.requests`: what a request may give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import invoker
from invoker.protocols.web.openapi.requests import items
from tests.protocols.web.openapi.made import catalogue, document, post

DOCUMENT = catalogue()


@dataclass
class Point:
    x: int


def body(name: str) -> dict[str, Any]:
    content: dict[str, Any] = DOCUMENT["paths"][f"/{name}"]["post"]["requestBody"]["content"]
    return content


def test_H067_a_body_is_the_object_or_the_first_value() -> None:
    """The object has a member for each parameter, and no others."""
    assert body("move")["application/json"]["schema"] == {
        "anyOf": [{"$ref": "#/components/schemas/move_input"}, {"$ref": "#/components/schemas/Point"}]
    }
    assert DOCUMENT["components"]["schemas"]["move_input"] == {
        "type": "object",
        "properties": {
            "point": {"$ref": "#/components/schemas/Point"},
            "by": {"type": "integer", "enum": [1, 2], "default": 1},
        },
        "required": ["point"],
        "additionalProperties": False,
    }


def test_H067_several_required_values_need_the_object() -> None:
    """The first one alone would not do."""

    def f(a: int, b: int) -> int:
        return a

    operation = post(f)
    assert operation["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/f_input"}
    assert operation["requestBody"]["required"]
    assert "text/plain" not in operation["requestBody"]["content"]
    assert "parameters" not in operation


def test_H067_a_value_that_takes_any_object_is_the_body() -> None:
    """An object is never spread then."""
    assert body("anything")["application/json"]["schema"] == {}
    assert body("scale")["application/json"]["schema"] == {"type": "object", "additionalProperties": {"type": "number"}}
    assert "scale_input" not in DOCUMENT["components"]["schemas"]


def test_H067_bytes_are_a_body_or_a_part() -> None:
    """No object gives them, so a function that needs them besides others takes a form."""
    assert body("gray").keys() == {"application/octet-stream", "text/plain"}
    assert body("paint").keys() == {"image/png"}
    assert body("upload").keys() == {"multipart/form-data"}
    form = DOCUMENT["components"]["schemas"]["upload_form"]
    assert form["properties"]["image"] == {
        "type": "string",
        "format": "binary",
        "contentMediaType": "application/octet-stream",
    }
    assert form["required"] == ["name", "image"]


def test_H067_an_option_that_is_bytes_is_left_out_of_the_object() -> None:
    """The object is there nevertheless."""

    def f(a: int, b: bytes = b"") -> int:
        return a

    schemas = document(f)["components"]["schemas"]
    assert schemas["f_input"]["properties"].keys() == {"a"}
    assert schemas["f_form"]["properties"].keys() == {"a", "b"}


def test_H067_forms_are_told_where_no_object_gives_all() -> None:
    """Generators get along with one class for a body, so others are not told, though they are taken."""
    forms = {"application/x-www-form-urlencoded", "multipart/form-data"}
    assert [name for name in ("square", "move", "total") if body(name).keys() & forms] == []

    def f(a: int, b: bytes = b"") -> int:
        return a

    assert post(f)["requestBody"]["content"].keys() & forms == {"multipart/form-data"}


def test_H067_lines_are_of_one_input_or_of_several() -> None:
    """With several, each line is an object that names its input."""
    assert body("echo")["application/x-ndjson"]["x-itemSchema"] == {"type": "string", "description": "Any."}
    several = body("repeat")["application/x-ndjson"]["x-itemSchema"]
    assert several["properties"].keys() == {"words", "counts", "sep"}
    assert several["minProperties"] == 1
    assert "application/x-ndjson" not in body("gray")
    assert "application/x-ndjson" not in body("named")


def test_H067_options_are_parameters_of_the_query() -> None:
    """Without their defaults, which clients would send beside those in the body."""
    operation = DOCUMENT["paths"]["/echo"]["post"]
    assert operation["parameters"] == [
        {"name": "prefix", "in": "query", "description": "Stands before each.", "schema": {"type": "string"}},
        {"name": "color", "in": "query", "schema": {"$ref": "#/components/schemas/Color"}},
    ]
    assert "not in both" in operation["requestBody"]["description"]
    assert "required" not in operation["requestBody"]


def test_H067_GET_has_all_parameters_in_the_query() -> None:
    """Those without default are required; what is no piece of text is JSON."""
    each = {one["name"]: one for one in DOCUMENT["paths"]["/total"]["get"]["parameters"]}
    assert each["xs"]["required"]
    assert each["xs"]["schema"] == {"type": "array", "items": {"type": "integer"}}
    assert each["tags"]["schema"]["default"] == []
    assert "application/json" in each["at"]["content"]
    assert each["when"]["schema"]["anyOf"][0] == {"type": "string", "format": "date"}

    @invoker.function(safe=True)
    def f(xs: Iterator[int], data: bytes = b"") -> Iterator[int]:
        return xs

    made = document(f)["paths"]["/f"]["get"]["parameters"]
    assert made == [
        {"name": "xs", "in": "query", "schema": {"type": "array", "items": {"type": "integer"}}},
        {"name": "data", "in": "query", "schema": {"type": "string"}},
    ]


def test_H067_any_name_and_any_number() -> None:
    """What `**` takes is said of further members; each of `*` is a part, and one alone may be the body."""
    assert DOCUMENT["components"]["schemas"]["named_input"]["additionalProperties"] == {"type": "number"}
    assert body("many").keys() == {"application/json", "text/plain", "multipart/form-data"}

    def only(**more: int) -> int:
        return 0

    content = post(only)["requestBody"]["content"]
    assert content == {"application/json": {"schema": {"type": "object", "additionalProperties": {"type": "integer"}}}}


def test_H067_nothing_is_sent_to_a_function_without_inputs() -> None:
    """Neither a body nor parameters."""
    assert DOCUMENT["paths"]["/now"]["post"].keys() == {"operationId", "tags", "summary", "responses"}


def test_H069_examples_are_bodies() -> None:
    """The first item of a stream stands for it; where the body is the value itself, so is the example."""
    assert body("square")["application/json"]["examples"] == {"example1": {"summary": "square(3)", "value": {"x": 3}}}
    assert body("repeat")["application/json"]["examples"]["example1"]["value"] == {"words": "a", "counts": 2}

    @invoker.function(examples=("f({'a': 1})",))
    def f(x: dict[str, int]) -> int:
        return 0

    assert post(f)["requestBody"]["content"]["application/json"]["examples"]["example1"]["value"] == {"a": 1}


def test_H067_sequences_are_texts_to_tools_of_openapi_31() -> None:
    """And say what each item is."""
    assert items({"type": "integer"}, "W.") == {
        "schema": {"type": "string", "description": "W."},
        "x-itemSchema": {"type": "integer"},
    }
    assert items({}, "W.").keys() == {"schema"}


def test_H210_any_number_of_values_is_a_list() -> None:
    """In an object, and in the query of a GET; those of a stream are not."""

    @invoker.function(safe=True)
    def joined(sep: str, *xs: int, scale: int = 1) -> str:
        return sep

    made = document(joined)
    assert made["paths"]["/joined"]["get"]["parameters"] == [
        {"name": "sep", "in": "query", "required": True, "schema": {"type": "string"}},
        {"name": "xs", "in": "query", "schema": {"type": "array", "items": {"type": "integer"}}},
        {"name": "scale", "in": "query", "schema": {"type": "integer", "default": 1}},
    ]
    assert made["components"]["schemas"]["joined_input"] == {
        "type": "object",
        "properties": {
            "sep": {"type": "string"},
            "xs": {"type": "array", "items": {"type": "integer"}},
            "scale": {"type": "integer", "default": 1},
        },
        "required": ["sep", "xs"],
        "additionalProperties": False,
    }
    content = made["paths"]["/joined"]["post"]["requestBody"]["content"]
    assert content["application/json"]["schema"] == {"$ref": "#/components/schemas/joined_input"}
    assert [one["name"] for one in made["paths"]["/joined"]["post"]["parameters"]] == ["scale"]

    def every(*xs: int, **names: float) -> int:
        return 0

    of_names = document(every)["components"]["schemas"]["every_input"]
    assert of_names["additionalProperties"] == {"type": "number"}

    def merged(*xs: Iterator[int]) -> Iterator[int]:
        yield from xs[0]

    of_streams = document(merged)["components"]["schemas"]["merged_input"]["properties"]
    assert of_streams == {"xs": {"type": "integer"}}

    def rows(*xs: Point) -> int:
        return len(xs)

    assert post(rows)["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Point"}
