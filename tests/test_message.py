"""Messages and headers."""

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
    assert headers["x-A"] == headers["x-a"] == "large"


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
