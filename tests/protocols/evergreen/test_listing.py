"""`describe`: what clients may read of an action (E-123, E-125)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from invoker.author.decorator import function
from invoker.author.reader import read
from invoker.author.spec import StreamSpec, Take
from invoker.message import Message
from invoker.protocols.evergreen.listing import describe, type_name
from tests.protocols.evergreen.conversation import Conversation
from tests.protocols.evergreen.functions import constant, pick, relay, rows, scale, sink, split, upper
from tests.protocols.evergreen.notation import A, F


def test_E125_an_action_has_named_inputs_and_outputs_with_types_and_a_description():
    """As the signature and the docstring say."""
    assert describe("UP", read(upper)) == {
        "name": "UP",
        "description": "Capitals.",
        "inputs": [{"name": "x", "type": "text/plain"}],
        "outputs": [{"name": "out", "type": "text/plain"}],
    }


@pytest.mark.parametrize(
    ("one", "inputs"),
    [
        (scale, [{"name": "x", "type": "int"}, {"name": "by", "type": "int", "optional": True}]),
        (pick, [{"name": name, "type": "int", "optional": True} for name in ("first", "second")]),
        (constant, []),
        (rows, []),
        (relay, [{"name": "x", "type": "text/plain"}]),
    ],
)
def test_E125_optional_inputs_are_marked_and_those_that_are_none_are_left_out(one, inputs):
    """A function without parameters has none."""
    assert describe("f", read(one))["inputs"] == inputs


def test_E125_every_output_is_listed():
    """By its name; a sink has none."""
    assert [one["name"] for one in describe("f", read(split))["outputs"]] == ["left", "right"]
    assert describe("f", read(sink))["outputs"] == []


def test_E125_the_decorator_overrides_what_the_signature_says():
    """Names of outputs and media types."""

    @function(outputs=["picture"], output_types="image/png", input_types={"x": ["text/plain", "text/markdown"]})
    def draw(x: str) -> bytes: ...

    made = describe("draw", read(draw))
    assert made["inputs"] == [{"name": "x", "type": "text/plain, text/markdown"}]
    assert made["outputs"] == [{"name": "picture", "type": "image/png"}]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (StreamSpec("x", str), "text/plain"),
        (StreamSpec("x", bytes), "application/octet-stream"),
        (StreamSpec("x", memoryview), "application/octet-stream"),
        (StreamSpec("x", Any), "any"),
        (StreamSpec("x", object), "any"),
        (StreamSpec("x", str, take=Take.HEADERS), "any"),
        (StreamSpec("x", dict), "dict"),
        (StreamSpec("x", list[int] | None), "list[int] | None"),
        (StreamSpec("x", str, media_types=("text/csv",)), "text/csv"),
    ],
)
def test_E125_the_type_of_a_stream(stream, expected):
    """Declared media types, else what Python calls it."""
    assert type_name(stream) == expected


def test_E123_the_list_is_a_sequence_of_json_objects():
    """Configured names first; it can be read by another action (ET-91)."""

    def echo(x: Iterator[Message[bytes]]) -> Iterator[str]: ...

    c = Conversation(upper, echo, extensions="discovery", actions={"GENERATE": "upper"})
    c.send(A("echo", {"x": "list"}, {"y": "r"}), A("__list_actions", {}, {"actions": "list"}))
    leaves = c.sent.flatten("list")
    assert {leaf.media_type for leaf in leaves} == {"application/json"}
    assert [json.loads(leaf.data)["name"] for leaf in leaves] == ["GENERATE", "upper", "echo"]
    assert c.invocations["a1"].payloads() == [leaf.data for leaf in leaves]


@pytest.mark.parametrize(
    "action",
    [
        A("__list_actions"),
        A("__list_actions", {}, {"other": "r"}),
        A("__list_actions", {"x": "p"}, {"actions": "r"}),
        A("__list_actions", {}, [("actions", "r"), ("actions", "r2")]),
        A("__list_actions", {}, {"actions": "taken"}),
    ],
)
def test_E123_a_wish_for_the_list_that_is_wrong_aborts(action):
    """It has one output, whose id must be new."""
    Conversation(extensions="discovery").send(F("taken", 0, "x")).send(action).fails("ACT")


def test_E123_the_list_needs_an_id_for_its_output():
    """As any action (E-080)."""
    Conversation(extensions="discovery").send(A("__list_actions", {}, {"actions": ""})).fails("ACT")


def test_E118_without_negotiation_the_list_is_an_unknown_action():
    """Or a function of that name."""
    Conversation(upper).send(A("__list_actions", {}, {"actions": "r"})).fails("ANF")
