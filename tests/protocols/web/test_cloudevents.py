"""`invoker.protocols.web.cloudevents`: events in both modes, in and out."""

from __future__ import annotations

import base64
import contextlib
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.errors import DecodeError, EncodeError
from invoker.message import Headers, Message
from invoker.protocols.web.cloudevents import (
    BATCH,
    EVENT,
    asks_for_events,
    binary,
    is_packed,
    prefers_events,
    received,
    structured,
    unpacked,
    without_events,
)

NEEDED = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "shop.sold"}
NEEDED_HEADERS = {f"ce-{name}": value for name, value in NEEDED.items()}


def event(**members: Any) -> bytes:
    return json.dumps(NEEDED | members).encode()


def one(**members: Any) -> Message[bytes]:
    (message,) = unpacked(EVENT, event(**members), Headers({"X-Shop": "a", "CE-id": "of a header"}))
    return message


# In.


def test_H140_attributes_in_binary_mode_are_decoded() -> None:
    """Percent-encoding is read once, quotes are taken off; other headers stay as they are."""
    sent = {"CE-SpecVersion": "1.0", "ce-id": "1%2525", "ce-source": "/a%20b".replace("%20", "-"), "Ce-Type": '"a\\"b"'}
    got = received(Headers({**sent, "X-Rate": "5%25", "ce-subject": "Euro%20%E2%82%AC%20%F0%9F%98%80", "ce-n": "5"}))
    assert dict(got) == {
        "X-Rate": "5%25", "ce-specversion": "1.0", "ce-id": "1%25", "ce-source": "/a-b", "ce-type": 'a"b',
        "ce-subject": "Euro € 😀", "ce-n": "5",
    }  # fmt: skip


def test_H140_headers_without_specversion_are_no_event() -> None:
    """They are left as they are, whatever they are called."""
    headers = Headers({"ce-type": "a%20b", "ce-X_Y": "z"})
    assert received(headers) is headers


@pytest.mark.parametrize("gone", ["id", "source", "type"])
def test_H141_what_an_event_lacks_is_named(gone: str) -> None:
    """In both modes; an empty text counts as missing, and so does null."""
    with pytest.raises(DecodeError, match=f"the event has no {gone}; it needs specversion, id, source, type"):
        received(Headers({name: value for name, value in NEEDED_HEADERS.items() if name != f"ce-{gone}"}))
    for value in ("", None):
        with pytest.raises(DecodeError, match=f"the event has no {gone};"):
            one(**{gone: value})
    with pytest.raises(DecodeError, match="no specversion, id, source, type"):
        unpacked(EVENT, b"{}", Headers())


INVALID = {
    "an attribute .*'Sub'.*lower-case letters": {"Sub": "x"},
    "an attribute .*'a_b'": {"a_b": "x"},
    "specversion '0.3'; expected 1.0": {"specversion": "0.3"},
    "'time' of the event is 'yesterday'": {"time": "yesterday"},
    "'time' of the event is '2024-13-01": {"time": "2024-13-01T00:00:00Z"},
    "'time' of the event is '2024-01-01T00:00:00'": {"time": "2024-01-01T00:00:00"},
    "'source' of the event is 'a b'": {"source": "a b"},
    "'dataschema' of the event is ''": {"dataschema": ""},
    "'subject' of the event has a control character": {"subject": "a\nb"},
}


@pytest.mark.parametrize("why", INVALID)
def test_H141_an_invalid_attribute_is_refused(why: str) -> None:
    """In both modes; the text names it, what was met and what is expected."""
    with pytest.raises(DecodeError, match=why):
        one(**INVALID[why])
    headers = NEEDED_HEADERS | {f"ce-{name}": value.replace("\n", "%0A") for name, value in INVALID[why].items()}
    if "'Sub'" not in why:  # the case of a header's name says nothing
        with pytest.raises(DecodeError, match=why):
            received(Headers(headers))


def test_H141_a_header_that_is_no_utf8_is_refused() -> None:
    """Nobody could pass it on as it was meant."""
    with pytest.raises(DecodeError, match="ce-subject is not percent-encoded UTF-8"):
        received(Headers({**NEEDED_HEADERS, "ce-subject": "%FF"}))


@pytest.mark.parametrize(
    ("members", "media_type", "payload"),
    [
        ({"data": {"a": [1, 2]}}, "application/json", b'{"a": [1, 2]}'),
        ({"data": "text"}, "application/json", b'"text"'),
        ({"data": 3, "datacontenttype": "application/vnd.shop+json"}, "application/vnd.shop+json", b"3"),
        ({"data": "<a/>", "datacontenttype": "application/xml"}, "application/xml", b"<a/>"),
        ({"data": "ä", "datacontenttype": "text/plain;charset=latin-1"}, "text/plain;charset=latin-1", b"\xe4"),
        ({"data_base64": "AAEC"}, "application/octet-stream", b"\0\1\2"),
        ({"data_base64": "AAEC", "datacontenttype": "image/png", "data": None}, "image/png", b"\0\1\2"),
        ({"data_base64": "MQ==", "datacontenttype": "application/json"}, "application/json", b"1"),
        ({}, "", b""), ({"data": None, "datacontenttype": "text/plain"}, "text/plain", b""),
    ],
)  # fmt: skip
def test_H142_data_of_the_structured_mode_is_the_payload(members: Any, media_type: str, payload: bytes) -> None:
    """With its media type; the attributes are headers, and those of the request that look so do not count."""
    message = one(**members, time="2024-01-31T09:30:00.5+01:00", n=5, yes=True, no=None)
    assert (message.media_type, message.payload) == (media_type, payload)
    assert dict(message.headers) == {
        "X-Shop": "a", **NEEDED_HEADERS, "ce-time": "2024-01-31T09:30:00.5+01:00", "ce-n": "5", "ce-yes": "true",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "an event must be a JSON object"), (b"[]", "must be a JSON object"), (b"{", "must be a JSON object"),
        (b"[" * 100_000, "an event must be a JSON object"), (b'{"a":' * 100_000, "an event must be a JSON object"),
        (event(data=1, data_base64="MQ=="), "has both"), (event(data_base64="M"), "not text in Base64"),
        (event(data_base64=1), "not text in Base64"), (event(data_base64="M Q="), "not text in Base64"),
        (event(data=1, datacontenttype="text/plain"), "must be a text, or be given as data_base64"),
        (event(data="€", datacontenttype="text/plain;charset=latin-1"), "cannot be encoded"),
        (event(data="a", datacontenttype="text/plain;charset=none"), "cannot be encoded"),
        (event(n=1.5), "'n' is neither"), (event(n=2**31), "'n' is neither"), (event(n=[1]), "'n' is neither"),
        (b'{"specversion":"1.0","id":"1","source":"a","type":"\xff"}', "an event must be JSON in UTF-8"),
    ],
)  # fmt: skip
def test_H141_what_is_no_event_is_refused(body: bytes, why: str) -> None:
    """With what was met."""
    with pytest.raises(DecodeError, match=why):
        unpacked(EVENT, body, Headers())


@pytest.mark.parametrize("content_type", [f"{EVENT}; charset=utf-16", f"{EVENT}; =", f"{EVENT}; charset=none"])
def test_H141_an_event_is_utf8(content_type: str) -> None:
    """Another charset is refused."""
    with pytest.raises(DecodeError):
        unpacked(content_type, event(), Headers())
    assert unpacked(f"{EVENT.upper()} ; charset=UTF-8", event(), Headers())


def test_H143_a_batch_is_several_events() -> None:
    """Each with its own attributes; a fault names which one it is."""
    body = b"[%b, %b]" % (event(id="a", data=1), event(id="b", data=2))
    found = unpacked(BATCH, body, Headers())
    assert [(each.payload, each.headers["ce-id"]) for each in found] == [(b"1", "a"), (b"2", "b")]
    assert unpacked(BATCH, b"[]", Headers()) == []
    with pytest.raises(DecodeError, match="event 1 of the batch: the event has no id"):
        unpacked(BATCH, b"[%b, %b]" % (event(), event(id=None)), Headers())
    with pytest.raises(DecodeError, match="a batch of events must be an array"):
        unpacked(BATCH, event(), Headers())


# Out.


def test_H144_a_message_with_a_type_is_an_event() -> None:
    """What the function leaves out is added; other headers stay, and what has no type is no event."""
    got = dict(binary({"CE-Type": "shop.paid", "X-A": "%"}, source="/pay"))
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f-]{27}", got.pop("ce-id"))
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", got.pop("ce-time"))
    assert got == {"X-A": "%", "ce-specversion": "1.0", "ce-source": "/pay", "ce-type": "shop.paid"}
    plain = {"ce-id": "a b", "X-A": "%"}
    assert binary(plain, source="/pay") is plain


def test_H144_what_the_function_says_stays() -> None:
    """Percent-encoded as the binding wants it."""
    said = {"ce-type": "a", "ce-id": "7", "ce-source": "urn:x", "ce-time": "2024-01-31T09:30:00Z", "ce-subject": 'ü "%'}
    got = binary({**said, "ce-datacontenttype": "text/csv"}, source="/pay")
    assert got == {"ce-specversion": "1.0"} | said | {"ce-subject": "%C3%BC%20%22%25"}


@pytest.mark.parametrize(
    ("headers", "why"),
    [({"ce-type": ""}, "ce-type is empty"), ({"ce-type": "a", "ce-a_b": "c"}, "'a_b'"),
     ({"ce-type": "a", "ce-subject": "b\r\nSet-Cookie: c"}, "'subject' of the event has a control character"),
     ({"ce-type": "a", "ce-specversion": "2.0"}, "'2.0'"), ({"ce-type": "a", "ce-time": "now"}, "'time'")],
)  # fmt: skip
def test_H144_a_message_that_is_no_event_is_the_functions_fault(headers: dict[str, str], why: str) -> None:
    """In both modes."""
    with pytest.raises(EncodeError, match=why):
        binary(headers, source="/pay")
    with pytest.raises(EncodeError, match=why):
        structured(Message(b"1", headers, "application/json"), source="/pay", kind="paid")


@pytest.mark.parametrize(
    ("media_type", "payload", "data"),
    [
        ("application/json", b'{"a":\n 1}', {"data": {"a": 1}}), ("application/problem+json", b"null", {"data": None}),
        ("application/json", b"no JSON", {"data_base64": base64.b64encode(b"no JSON").decode()}),
        ("text/plain", "ä".encode(), {"data": "ä"}), ("text/plain;charset=latin-1", b"\xe4", {"data": "ä"}),
        ("text/plain", b"\xff", {"data_base64": "/w=="}), ("image/png", b"\0", {"data_base64": "AA=="}),
    ],
)  # fmt: skip
def test_H145_a_value_in_structured_mode_is_one_line_of_json(media_type: str, payload: bytes, data: Any) -> None:
    """Its data is JSON or text where it can be, else Base64; headers that are no attributes stay headers."""
    made = structured(Message(payload, {"X-A": "b", "ce-n": "1"}, media_type), source="/pay", kind="paid")
    assert made.media_type == EVENT
    assert dict(made.headers) == {"X-A": "b"}
    assert b"\n" not in made.payload
    found = json.loads(made.payload)
    assert found.pop("id")
    assert found.pop("time")
    assert (
        found
        == {"specversion": "1.0", "source": "/pay", "type": "paid", "n": "1", "datacontenttype": media_type} | data
    )


def test_H145_an_event_without_data_has_none() -> None:
    """Neither has it a media type."""
    made = structured(Message(b"", {"ce-type": "a"}), source="/pay", kind="paid")
    assert sorted(json.loads(made.payload)) == ["id", "source", "specversion", "time", "type"]


@pytest.mark.parametrize(
    ("accept", "prefers", "asks", "rest"),
    [
        (EVENT, True, True, "*/*"), (EVENT.upper(), True, True, "*/*"), (f"{EVENT};q=0", False, False, "*/*"),
        (f"{EVENT}, application/json;q=0.5", True, True, "application/json;q=0.5"),
        (f"application/x-ndjson, {EVENT}", False, True, "application/x-ndjson;q=1"),
        (f"text/plain;q=0.5, {EVENT};q=0.5", False, True, "text/plain;q=0.5"), ("*/*", False, False, "*/*;q=1"),
        ("", False, False, "*/*;q=1"), ("application/*", False, False, "application/*;q=1"),
    ],
)  # fmt: skip
def test_H145_an_accept_list_asks_for_events(accept: str, prefers: bool, asks: bool, rest: str) -> None:
    """By name only; a star takes whatever there is."""
    assert (prefers_events(accept), asks_for_events(accept), without_events(accept)) == (prefers, asks, rest)


def test_events_in_structured_mode_are_known_by_their_media_type() -> None:
    """Whatever its parameters and its case."""
    assert [is_packed(each) for each in (EVENT, f"{EVENT};x=y", BATCH.upper(), "application/json", "")] == [
        True, True, True, False, False,
    ]  # fmt: skip


TEXT = st.text(st.characters(exclude_categories=("Cc", "Cs", "Cn"), exclude_characters="\ufffe\uffff"), min_size=1)


@given(TEXT, st.binary(), st.sampled_from(["application/json", "text/plain", "image/png"]))
def test_H144_what_leaves_can_come_in_again(subject: str, payload: bytes, media_type: str) -> None:
    """In each mode, whatever the texts are."""
    sent = Message(payload, {**NEEDED_HEADERS, "ce-subject": subject}, media_type)
    coming = received(Headers(binary(sent.headers, source="/")))
    assert all(value.isascii() for value in binary(sent.headers, source="/").values())
    (packed,) = unpacked(EVENT, structured(sent, source="/", kind="a").payload, Headers())
    for headers in (coming, packed.headers):
        assert {name: headers[name] for name in sent.headers} == sent.headers
    if media_type == "image/png":
        assert (packed.payload, packed.media_type) == (payload, media_type)


@given(st.sampled_from([EVENT, BATCH]), st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from([*NEEDED, "data", "data_base64", "datacontenttype", "time"]), inner, max_size=9),
    max_leaves=12,
))  # fmt: skip
def test_any_json_is_an_event_or_refused(content_type: str, value: Any) -> None:
    """Nothing but DecodeError is raised."""
    try:
        found = unpacked(content_type, json.dumps(value).encode(), Headers())
    except DecodeError:
        return
    assert all(isinstance(each.payload, bytes) for each in found)


@given(
    st.sampled_from([EVENT, BATCH]), st.binary(max_size=80), st.dictionaries(st.text(max_size=8), st.text(max_size=8))
)
def test_any_bytes_are_an_event_or_refused(content_type: str, body: bytes, headers: dict[str, str]) -> None:
    """Nor at any headers."""
    for read in (
        lambda: unpacked(content_type, body, Headers(headers)),
        lambda: received(Headers(NEEDED_HEADERS | headers)),
    ):
        with contextlib.suppress(DecodeError):
            read()
