"""`invoker.protocols.web.values`: which media types values have, and whose they are."""

from __future__ import annotations

import pytest

from invoker.codecs import Part
from invoker.errors import DecodeError
from invoker.message import Headers
from invoker.protocols.web.fields import Field
from invoker.protocols.web.values import from_parts, from_texts, message_of, typed

HEADERS = Headers({"X-A": "1"})


def test_H019_bytes_take_what_nobody_else_reads() -> None:
    """A known type stays what it is, and so does what is no concrete type."""
    one = Field("x", known=lambda media_type: media_type == "image/bmp")
    for given, expected in (
        ("image/png", "application/octet-stream"),
        (" Image/PNG; q=1 ", "application/octet-stream"),
        ("image/bmp", "image/bmp"),
        ("image/*", "image/*"),
        ("image", "image"),
        ("", ""),
    ):
        assert typed(one, given) == expected, given
    assert typed(Field("x"), "image/png") == "image/png"


def test_R093_further_texts_are_plain_text() -> None:
    """With the charset that they came with."""
    one = Field("x", texts=frozenset({"text/csv"}))
    assert typed(one, "Text/CSV; charset=latin-1") == "text/plain; charset=latin-1"


def test_texts_of_a_list_are_one_value() -> None:
    """Whether they come one by one or as JSON; a name that is no parameter's is dropped."""
    fields = (Field("tags", is_list=True), Field("n"))
    got = from_texts(fields, [("tags", "a"), ("n", "1"), ("tags", "b"), ("other", "x")], HEADERS)
    assert [(name, one.payload, one.media_type) for name, one in got] == [
        ("tags", b'["a","b"]', "application/json"),
        ("n", b"1", "text/plain"),
    ]
    assert [one.payload for _, one in from_texts(fields, [("tags", '["a"]')], HEADERS)] == [b'["a"]']


def test_parts_keep_their_own_headers() -> None:
    """Which win over those of the request."""
    message = message_of(Part("x", b"1", "", None, Headers({"X-A": "2", "X-B": "3"})), HEADERS)
    assert (message.headers["x-a"], message.headers["x-b"], message.media_type) == ("2", "3", "text/plain")


def test_H209_a_part_says_what_it_was_sent_as() -> None:
    """Also where bytes are all that its parameter knows; never what the form is, and never what a client makes up."""
    form = Headers({"X-Http-Content-Type": "multipart/form-data; boundary=x"})
    one = Field("x", known=lambda _: False)
    forged = Headers({"X-HTTP-CONTENT-TYPE": "text/forged"})
    message = message_of(Part("x", b"1", "image/png", "a.png", forged), form, one)
    assert (message.media_type, message.headers["x-http-content-type"]) == ("application/octet-stream", "image/png")
    assert "x-http-content-type" not in message_of(Part("x", b"1", "", None, forged), form, one).headers


def test_a_field_of_a_form_that_is_no_text_is_refused() -> None:
    """With its name."""
    with pytest.raises(DecodeError, match="parameter 'tags'"):
        from_parts((Field("tags", is_list=True),), [Part("tags", b"\xff")], HEADERS)
