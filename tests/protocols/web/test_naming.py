"""`invoker.protocols.web.naming`: what the names of a request mean."""

from __future__ import annotations

import pytest

from invoker.errors import DecodeError
from invoker.protocols.web.fields import Field
from invoker.protocols.web.naming import bound, check_names, elements
from tests.protocols.web.signed import signed

VALUE = {"is_value": True, "needs_value": True}
ADD = signed(("a", "b"), fields=(Field("a", **VALUE), Field("b", **VALUE), Field("k", is_option=True, is_value=True)))
STREAM = signed(("xs", "n"), fields=(Field("xs"), Field("n", **VALUE), Field("more", is_option=True)))
VALUES = signed(("sep", "xs"), is_open=True, opens_values=True, options=(Field("k", is_option=True, is_value=True),))
STREAMS = signed(("xs",), is_open=True)
NAMES = signed(("sep", "xs"), is_open=True, opens_values=True, more=Field("", is_option=True))


def test_R169_names_are_bound_in_the_order_of_the_parameters() -> None:
    """Options that are not given are left out."""
    assert bound(ADD, ["b", "a"])[0] == {"a": 0, "b": 1}
    places, found = bound(ADD, ["k", "b", "a"])
    assert (places, found.names) == ({"a": 0, "b": 1, "k": 2}, ("a", "b", "k"))


def test_R168_a_stream_has_any_number_of_values() -> None:
    """None, too, if it has no default."""
    assert bound(STREAM, ["n"])[0] == {"xs": 0, "n": 1}
    assert bound(STREAM, ["xs", "n", "xs", "more", "more"])[0] == {"xs": 0, "n": 1, "more": 2}


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["a"], "needs its input 'b', which is not given; give it as the body, .* a JSON object: it was [{]$"),
        (["a", "b", "a"], "is given its input 'a' twice$"),
        (["a", "b", "k", "k"], "is given its input 'k' twice$"),
        (["a", "b", "c"], "has no input 'c'; it has a, b, k$"),
    ],
)
def test_R169_what_is_wrong_is_said_as_everywhere(names: list[str], text: str) -> None:
    """With the ways to give it, and a hint, where an input is missing."""
    with pytest.raises(DecodeError, match=text) as refused:
        bound(ADD, names, hint=": it was {")
    assert refused.value.detail.startswith("'' ")


def test_R169_what_comes_later_is_not_missing() -> None:
    """It may be there already, and come again."""
    assert bound(ADD, ["a", "a"], later=("a", "b"))[0] == {"a": 0, "b": 1}
    with pytest.raises(DecodeError, match="input 'k' twice"):
        bound(ADD, ["k", "k"], later=("a", "b"))


def test_H231_names_are_looked_at_before_all_are_there() -> None:
    """What is missing may still come, and an unknown name cannot become right."""
    check_names(ADD, ["b"])
    with pytest.raises(DecodeError, match=r"has no input 'zzz'; it has a, b, k \(drop it\)"):
        check_names(ADD, ["b", "zzz"], " (drop it)")
    with pytest.raises(DecodeError, match="input 'b' twice"):
        check_names(ADD, ["b", "b"])
    with pytest.raises(DecodeError, match="has no input '#1'; it has sep, xs, k"):
        check_names(VALUES, ["#1"])


def test_H210_each_value_of_args_is_an_element() -> None:
    """The function sees its own name, and those that clients chose; none means two elements."""
    assert elements(VALUES, ["xs", "sep", "xs1", "xs", "k", "a", "a"]) == (
        ["#0", "sep", "#1", "#2", "k", "#3", "#4"],
        {"#0": "xs", "#1": "xs1", "#2": "xs2", "#3": "a", "#4": "xs3"},
    )
    assert elements(STREAMS, ["xs", "a", "xs"]) == (["#0", "#1", "#0"], {"#0": "xs", "#1": "a"})
    keys = elements(VALUES, ["k", "xs", "sep", "xs"])[0]
    assert bound(VALUES, keys)[0] == {"sep": 0, "#0": 1, "#1": 2, "k": 3}
    assert bound(STREAMS, ["#0", "#1", "#0"])[0] == {"#0": 0, "#1": 1}


def test_H210_other_names_are_keyword_arguments_where_any_are_taken() -> None:
    """Behind ``*args``, whose own name stays that of its elements."""
    keys, labels = elements(NAMES, ["sep", "xs", "#0", "b"])
    assert (keys, labels) == (["sep", "#0", "**#0", "**b"], {"#0": "xs", "**#0": "#0", "**b": "b"})
    assert bound(NAMES, keys)[1].names == ("sep", "#0", "**#0", "**b")
