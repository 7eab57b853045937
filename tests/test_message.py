"""Messages and headers."""

import copy
import json
import pickle

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.message import EMPTY, Headers, Message, Output, as_headers


def test_R073_headers_are_looked_up_without_regard_to_case():
    """The original spelling is what iteration gives."""
    headers = Headers({"X-Custom": "1"})
    assert headers["x-custom"] == headers["X-CUSTOM"] == "1"
    assert list(headers) == ["X-Custom"]
    assert "x-CUSTOM" in headers
    assert headers.get("other") is None
    with pytest.raises(KeyError):
        headers["other"]


def test_R074_names_that_differ_only_in_case_are_both_kept():
    """Iteration gives both; a lookup gives the first in sorted order, whatever the spelling."""
    headers = Headers({"x-a": "small", "X-A": "large"})
    assert dict(headers.items()) == {"x-a": "small", "X-A": "large"}
    assert list(headers.values()) == ["small", "large"]
    assert headers["x-A"] == headers["x-a"] == headers.get("X-A") == "large"


@pytest.mark.parametrize("names", [("x-a", "X-A"), ("X-A", "x-a"), ("x-a", "X-a", "X-A", "b")])
def test_R074_every_kind_of_copy_is_exact(names):
    """dict(), unpacking, merging, copying and pickling give each name its own value, and the copy is a copy."""
    items = {name: str(index) for index, name in enumerate(names)}
    headers = Headers(items)
    assert headers["X-a"] == items["X-A"]  # a lookup has been made, and changes nothing
    merged: dict[str, str] = {}
    merged.update(headers)
    for found in (dict(headers), {**headers}, merged, headers | {}, dict(Headers(headers)), headers.copy()):
        assert list(found.items()) == list(items.items())
    found["new"] = "1"
    assert "new" not in headers
    for twin in (copy.copy(headers), copy.deepcopy(headers), pickle.loads(pickle.dumps(headers))):
        assert type(twin) is Headers
        assert twin == headers
        assert twin["X-a"] == items["X-A"]
    assert json.loads(msgspec.json.encode(headers)) == items


def test_R073_membership_does_not_regard_case():
    """Also among the keys; what is no text is no name."""
    headers = Headers([("X-A", "1")])
    assert "x-a" in headers
    assert "x-a" in headers.keys()  # noqa: SIM118 - the view is what is tested
    assert list(headers.keys()) == ["X-A"]
    assert 5 not in headers
    assert headers.get("y", "other") == "other"
    assert repr(headers) == "Headers({'X-A': '1'})"


@pytest.mark.parametrize(
    "change",
    [
        lambda headers: headers.__setitem__("a", "1"),
        lambda headers: headers.__delitem__("a"),
        lambda headers: headers.__ior__({"b": "2"}),
        lambda headers: headers.update(b="2"),
        lambda headers: headers.setdefault("b", "2"),
        lambda headers: headers.pop("a"),
        lambda headers: headers.popitem(),
        lambda headers: headers.clear(),
    ],
)
def test_headers_cannot_be_changed(change):
    """They are shared between threads; the text says what to do instead."""
    headers = Headers({"a": "1"})
    with pytest.raises(TypeError, match=r"change dict\(headers\)"):
        change(headers)
    assert headers == {"a": "1"}


@given(st.dictionaries(st.text(max_size=4), st.text(max_size=4)))
def test_headers_keep_what_they_were_given(items):
    """Nothing is lost, renamed or reordered."""
    headers = Headers(items)
    assert dict(headers.items()) == items
    assert list(headers) == list(items)
    assert len(headers) == len(items)


def test_messages_are_values():
    """Headers and media type may be left out; nothing can be changed."""
    message = Message(5)
    assert message.headers is EMPTY
    assert message.media_type == ""
    with pytest.raises(AttributeError):
        message.payload = 6
    assert Output("x", 1) == Output("x", 1)


def test_empty_headers_cost_nothing():
    """The shared empty instance stands for all of them."""
    assert as_headers({}) is EMPTY
    given_headers = Headers({"a": "b"})
    assert as_headers(given_headers) is given_headers
    assert as_headers({"a": "b"})["A"] == "b"
