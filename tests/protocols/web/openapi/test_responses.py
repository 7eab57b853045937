"""`invoker.protocols.web.openapi.responses`: what a function answers."""

from __future__ import annotations

from typing import Any

from invoker import Message
from invoker.protocols.web.openapi.responses import ERRORS
from tests.protocols.web.openapi.made import catalogue, post

DOCUMENT = catalogue()
FAILURE = {"$ref": "#/components/schemas/InvokerFailure"}
PACKED = {"$ref": "#/components/schemas/InvokerPacked"}


def responses(name: str) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][f"/{name}"]["post"]["responses"]
    return found


def content(name: str) -> dict[str, Any]:
    found: dict[str, Any] = responses(name)["200"]["content"]
    return found


def test_H067_one_value_has_its_media_types() -> None:
    """The schema is of JSON; text is text, and bytes are as they are."""
    assert responses("square")["200"]["description"] == "The square."
    assert content("square")["application/json"] == {"schema": {"type": "integer", "description": "The square."}}
    assert content("square")["text/plain"] == {"schema": {"type": "string"}}
    assert content("gray")["application/octet-stream"]["schema"]["format"] == "binary"
    assert "application/json" not in content("gray")
    assert content("paint")["image/png"] == {"schema": {"type": "string", "format": "binary"}}


def test_H067_streams_have_a_schema_of_their_items() -> None:
    """Of several values, all three formats, behind what comes without Accept; of one, lines of NDJSON."""
    assert list(content("echo")) == ["text/plain", "application/x-ndjson", "text/event-stream", "multipart/mixed"]
    assert content("echo")["text/event-stream"]["x-itemSchema"] == {"type": "string"}
    assert content("echo")["application/x-ndjson"]["x-itemSchema"] == {"anyOf": [{"type": "string"}, FAILURE]}
    assert content("square").keys() == {"application/json", "text/plain", "application/x-ndjson"}
    assert all(one["schema"]["type"] == "string" for one in content("echo").values())


def test_H067_several_outputs_are_told_apart() -> None:
    """Lines are objects with the name, events have it beside the value; one value is never the answer."""
    assert content("split").keys() == {"text/event-stream", "application/x-ndjson", "multipart/mixed"}
    value, failure = content("split")["application/x-ndjson"]["x-itemSchema"]["anyOf"]
    assert value["properties"] == {"even": {"type": "integer"}, "odd": {"type": "integer"}}
    assert (value["maxProperties"], failure) == (1, FAILURE)
    assert content("split")["text/event-stream"]["x-itemSchema"] == {"type": "integer"}
    assert "name is that of the output" in content("split")["text/event-stream"]["schema"]["description"]


def test_H067_a_function_that_gives_nothing_gives_an_empty_stream() -> None:
    """There is no value that could be the body."""
    assert content("store").keys() == {"text/event-stream", "application/x-ndjson", "multipart/mixed"}
    assert "x-itemSchema" not in content("store")["text/event-stream"]
    assert "content" not in responses("store")["204"]
    assert "204" not in responses("square")


def test_H067_what_is_no_json_is_packed_within_json() -> None:
    """With its media type and in base64; where it may be either, both are said."""
    assert content("gray")["application/x-ndjson"]["x-itemSchema"] == {"anyOf": [PACKED, FAILURE]}

    def f(x: int) -> bytes | int:
        return x

    both = post(f)["responses"]["200"]["content"]["application/x-ndjson"]["x-itemSchema"]["anyOf"][0]
    assert PACKED in both["anyOf"]


def test_H067_messages_may_choose_the_status() -> None:
    """So any status of success has this content."""
    assert responses("created")["2XX"] == responses("created")["200"]
    assert "2XX" not in responses("square")

    def f(x: int) -> Message[int]:
        return Message(x)

    assert "2XX" in post(f)["responses"]


def test_H067_errors_are_shared() -> None:
    """As text, which clients get that accept anything, as an object, and as a problem of RFC 9457."""
    shared = DOCUMENT["components"]["responses"]
    for status in ERRORS:
        name = responses("square")[status]["$ref"].rpartition("/")[2]
        assert list(shared[name]["content"]) == ["text/plain", "application/json", "application/problem+json"]
    assert shared["Error503"]["headers"].keys() == {"Retry-After"}
    assert responses("square")["default"] == {"$ref": "#/components/responses/Error"}
