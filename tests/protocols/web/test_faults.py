"""`invoker.protocols.web.faults`: parameters have their names, and a body that was misunderstood gets a hint."""

from __future__ import annotations

import pytest

from invoker.errors import DecodeError, FunctionError
from invoker.errors.wording import Place
from invoker.protocols.web.faults import at_fault, hint, named
from invoker.protocols.web.fields import Field, Signature

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
ADD = Signature(
    ("a", "b"), fields=(Field("a", is_value=True, is_scalar=True, takes_object=False), Field("b", is_value=True))
)
WEIGHTS = Signature(("w",), fields=(Field("w", is_value=True), Field("mode", is_option=True, is_value=True)))
TOPK = Signature(("items", "k"), fields=(Field("items", takes_object=False), Field("k", is_value=True)))


def test_R145_a_parameter_has_its_name_and_not_its_number() -> None:
    """Whatever its input is called on the way; other errors stay what they are."""
    error = DecodeError(" is no int", place=Place("input", 0))
    assert at_fault(error, ADD, ("in", "b")) == "a"
    assert str(named(error, "a")) == "Invoker: Bad Input Signal: parameter 'a' is no int"
    assert at_fault(DecodeError("cut short"), ADD, ("in",)) == ""
    assert at_fault(DecodeError("", place=Place("output", 0)), ADD, ("in",)) == ""
    raised = FunctionError("no")
    assert named(raised, "a") is raised


@pytest.mark.parametrize(
    ("content_type", "met"), [(FORM, "Content-Type is 'application/x-www"), ("", "no Content-Type")]
)
def test_H204_an_object_that_came_as_text_is_told_how_it_is_sent(content_type: str, met: str) -> None:
    """`curl -d '{"a": 1}'` and `fetch` with a string have forgotten the header."""
    told = hint(ADD, "a", content_type, b"{")
    assert met in told
    assert told.endswith("send Content-Type: application/json")
    assert "the body was taken for 'a'" in told


def test_H204_no_other_body_is_told_so() -> None:
    """One that says that it is JSON, another text, none at all, or a parameter that takes objects."""
    assert hint(ADD, "a", JSON, b"{") == ""
    assert hint(ADD, "a", FORM, b"s") == ""
    assert hint(ADD, "a", FORM, b"") == ""
    assert hint(ADD, "b", FORM, b"{") == ""
    assert hint(ADD, "", FORM, b"{") == ""


def test_H012_a_list_for_an_input_of_many_values_is_told_how_they_come() -> None:
    """Not for a parameter of one value, and not where there was no such body."""
    assert "takes many values, each as a line (Content-Type: application/x-ndjson)" in hint(TOPK, "items", JSON, b"[")
    assert hint(TOPK, "k", JSON, b"[") == ""
    assert hint(TOPK, "items", JSON, b"") == ""


def test_H204_an_object_that_was_taken_whole_is_told_so() -> None:
    """A `dict` takes the names of other parameters for keys of its own."""
    assert hint(WEIGHTS, "w", JSON, b"{").endswith("taken for 'w', which takes any object; give others as ?mode=...")
    assert hint(WEIGHTS, "w", JSON, b"[") == ""
    assert hint(Signature(("w",), fields=WEIGHTS.fields[:1]), "w", JSON, b"{") == ""
