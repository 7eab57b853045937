"""AgentSignature: what an agent takes and gives (T-133, T-146)."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.signature import AgentSignature


def test_T133_fields_are_text_unless_they_have_a_type() -> None:
    made = AgentSignature.parse("question, year: int -> answer, sources: list[str]")
    assert made.inputs == {"question": str, "year": int}
    assert made.outputs == {"answer": str, "sources": list[str]}


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("dict[str, list[float]]", dict[str, list[float]]),
        ("Literal['a, b', \"c\"]", Literal["a, b", "c"]),
        ("Optional[int]", int | None),
        ("int | None", int | None),
        ("bool", bool),
        ("Any", Any),
        ("List[Dict[str, int]]", list[dict[str, int]]),
    ],
)
def test_T133_types(text: str, type_: Any) -> None:
    assert AgentSignature.parse(f"q -> a: {text}").outputs == {"a": type_}


@pytest.mark.parametrize(
    "text",
    [
        *("", "->", "q ->", "-> a", "q", "q -> a -> b", "q, -> a", "q, q -> a", "q -> a, a", "a -> a", "1q -> a"),
        *(
            "q: -> a",
            "q: int int -> a",
            "q -> a: foo",
            "q -> a: os.system",
            "q -> a: __import__('os')",
            "q -> a: (",
            "é -> a",
        ),
        *("q -> a: " + "list[" * 100 + "int" + "]" * 100, "q -> a: " + "(" * 3000, "q" * 5000 + " -> a", "_q -> a"),
        *("q -> a: list[int] | list[str]", "q -> a: dict[int, str]", "q -> a: Literal[1.5]", "q -> a: lambda: 1"),
        ", ".join(f"q{n}" for n in range(33)) + " -> a",
    ],
)
def test_T133_a_malformed_signature_is_refused(text: str) -> None:
    with pytest.raises(BridgeError, match="malformed") as caught:
        AgentSignature.parse(text)
    assert caught.value.kind is Kind.VALIDATION
    assert caught.value.details["field"] == "signature"


@pytest.mark.parametrize(
    "name", ["max_iters", "lm", "config", "demos", "signature", "trajectory", "model_config", "self"]
)
def test_T133_names_that_mean_something_to_DSPy_are_refused(name: str) -> None:
    """A value for `config` would be taken for options of the model."""
    for text in (f"{name} -> a", f"q -> {name}"):
        with pytest.raises(BridgeError, match=name):
            AgentSignature.parse(text)


def test_T146_inputs_have_their_types() -> None:
    made = AgentSignature.parse("q, n: int, x: float, more: dict -> a")
    assert made.given({"q": "?", "n": 3, "x": 3, "more": {"k": [1]}}) == {
        "q": "?",
        "n": 3,
        "x": 3.0,
        "more": {"k": [1]},
    }


@pytest.mark.parametrize(
    ("values", "code", "field"),
    [
        ({}, "missing", "input.q"),
        ({"q": "?", "z": 1}, "unknown", "input.z"),
        ({"q": 1}, "type", "input.q"),
    ],
)
def test_T146_wrong_inputs_are_named(values: dict[str, Any], code: str, field: str) -> None:
    with pytest.raises(BridgeError) as caught:
        AgentSignature.parse("q -> a").given(values)
    assert caught.value.kind is Kind.VALIDATION
    assert (caught.value.details["code"], caught.value.details["field"]) == (code, field)
