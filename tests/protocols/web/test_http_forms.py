"""`invoker.protocols.web.http`: forms for functions with several inputs, and frames in any order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.core.http import BodyChunk, RequestHead
from invoker.core.steps import Emitted, EndInput, Finished, Send
from invoker.errors import DecodeError, FunctionError, ProtocolViolation, Status, StatusError
from invoker.message import Message
from invoker.protocols.web.fields import Signature
from tests.protocols.web.signed import signed
from tests.protocols.web.test_http import ONE, TWO, opened, post, responded, told

FORM = ("Content-Type", "multipart/form-data; boundary=xyz")


def form(*parts: tuple[str, str, bytes]) -> bytes:
    """A body with parts of a name, further header lines, and a payload."""
    heads = (
        (f'--xyz\r\nContent-Disposition: form-data; name="{name}"\r\n{more}\r\n', data) for name, more, data in parts
    )
    return b"".join(head.encode() + data + b"\r\n" for head, data in heads) + b"--xyz--\r\n"


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_parts_go_to_the_inputs_of_their_names(size: int) -> None:
    """Each part has its own content type, text/plain by default; parts of one name are messages in order."""
    body = form(("right", "", b"1"), ("left", "Content-Type: application/json\r\n", b"{}"), ("right", "", b"2"))
    chunks = [BodyChunk(body[at : at + size]) for at in range(0, len(body), size)]
    start, *feeds, end = told(opened(TWO, limit=10_000), post(FORM), *chunks)
    assert start.input_names == ("left", "right")
    got = [(feed.index, feed.message.media_type, feed.message.payload) for feed in feeds]
    assert got == [(1, "text/plain", b"1"), (0, "application/json", b"{}"), (1, "text/plain", b"2")]
    assert isinstance(end, EndInput)


def test_parts_carry_their_headers_and_the_requests() -> None:
    """A part's own headers win over the request's, except for X-Http-*."""
    more = "X-A: part\r\nX-Http-Method: FORGED\r\n"
    _, feed, _ = told(
        opened(TWO, limit=10_000), post(FORM, ("x-a", "1"), ("X-B", "2")), BodyChunk(form(("left", more, b"")))
    )
    headers = feed.message.headers
    assert (headers["x-a"], headers["x-b"], headers["x-http-method"]) == ("part", "2", "POST")
    assert 'name="left"' in headers["content-disposition"]


@pytest.mark.parametrize("content_type", ["Multipart/Form-Data ;boundary=xyz", 'multipart/form-data; boundary="xyz"'])
def test_forms_are_known_by_their_type(content_type: str) -> None:
    """Parameters and case do not matter; a name may be anything that is UTF-8."""
    signature = signed(("xs",), is_open=True)
    body = form(("ü", "", b"1"))
    start, feed, _ = told(opened(signature, limit=10_000), post(("Content-Type", content_type)), BodyChunk(body))
    assert (start.input_names, feed.index) == (("ü",), 0)
    _, feed, _ = told(
        opened(TWO, limit=10_000), post(("Content-Type", "multipart/mixed; boundary=xyz")), BodyChunk(body)
    )
    assert feed.message.payload == body


def test_parts_of_a_function_with_any_number_of_inputs() -> None:
    """New names become further inputs, in the order in which they appear."""
    session = opened(signed(("xs",), is_open=True), limit=10_000)
    start, first, second, _ = told(session, post(FORM), BodyChunk(form(("b", "", b"1"), ("a", "", b"2"))))
    assert start.input_names == ("b", "a")
    assert (first.index, second.index) == (0, 1)


def test_a_form_for_a_function_with_one_input_is_one_message() -> None:
    """Its codec decodes the parts, not the front."""
    body = form(("x", "", b"1"))
    _, feed, _ = told(opened(limit=10_000), post(FORM), BodyChunk(body))
    assert (feed.message.media_type, feed.message.payload) == (FORM[1], body)


@pytest.mark.parametrize(
    ("content_type", "body", "text"),
    [
        (FORM[1], form(("nope", "", b"1")), "has no input 'nope'; it has left, right (--http-ignore-unknown ignores"),
        (FORM[1], form(("", "", b"1")), "has no input ''"),
        (FORM[1], form(("left", "", b"1")).replace(b"left", b"\xff"), "not valid utf-8"),
        (FORM[1], form(("left", "", b"1"))[:-9], "before its closing boundary"),
        (FORM[1], b"--xyz\r\nX-A: 1\r\n\r\nx\r\n--xyz--\r\n", "has no name"),
        (FORM[1], b"garbage", "is not multipart/form-data"),
        ("multipart/form-data", b"", "needs a boundary"),
    ],
)
def test_R145_a_broken_form_is_400(content_type: str, body: bytes, text: str) -> None:
    """It is a decode failure like any other."""
    response = responded(told(opened(TWO, limit=10_000), post(("content-type", content_type)), BodyChunk(body)))
    assert response.status == 400
    assert text in response.body.decode()


def test_R154_a_form_with_too_many_parts_is_413() -> None:
    """The number of parts is limited like their bytes."""
    body = form(*[("left", "", b"")] * 1001)
    assert responded(told(opened(TWO, limit=len(body)), post(FORM), BodyChunk(body))).status == 413


_NAMES = st.sampled_from(["content-type", "Accept", "content-length", "invoker-function", "X-Http-Status", "cookie"])
_VALUES = st.one_of(
    st.text(max_size=20), st.sampled_from([FORM[1], "multipart/form-data; boundary=" + "x" * 300, "12"])
)
_HEADS = st.builds(
    RequestHead,
    st.sampled_from(["POST", "GET", ""]),
    st.sampled_from(["/", "/x", ""]),
    st.text(max_size=5),
    st.sampled_from(["1.1", "2"]),
    st.lists(st.tuples(_NAMES | st.text(max_size=5), _VALUES), max_size=4),
)
_BODIES = st.one_of(st.binary(max_size=40), st.sampled_from([b"--xyz\r\n", form(("left", "", b"1")), b"\r\n--xyz--"]))
_MESSAGES = st.builds(
    Message,
    st.binary(max_size=5),
    st.dictionaries(_NAMES | st.text(max_size=5), st.text(max_size=5), max_size=3),
    st.text(max_size=10),
)
_ERRORS = st.sampled_from([None, FunctionError("\ud800"), StatusError(Status.ABORTED, ""), DecodeError("x")])
_MOVES = st.one_of(
    _HEADS,
    st.builds(BodyChunk, _BODIES),
    st.just(None),
    st.builds(Emitted, st.just("http"), st.just(0), _MESSAGES),
    st.builds(Finished, st.just("http"), _ERRORS),
)


@given(st.lists(_MOVES, max_size=8), st.sampled_from([ONE, TWO, signed(("xs",), is_open=True)]))
def test_any_frames_give_steps_or_a_violation(moves: list[Any], signature: Signature) -> None:
    """Nothing but ProtocolViolation is raised; at most one response leaves, and nothing after it."""
    session = opened(signature, limit=200)
    sent = 0
    for move in moves:
        try:
            if move is None:
                steps = session.half_close()
            elif isinstance(move, (Emitted, Finished)):
                steps = session.deliver(move)
            else:
                steps = session.receive(move)
        except ProtocolViolation:
            continue
        assert not (sent and steps)
        sent += sum(isinstance(step, Send) for step in steps)
        for step in steps:
            if isinstance(step, Send):
                assert 200 <= step.frame.status <= 599
                assert not any(sign in name + value for name, value in step.frame.headers for sign in "\r\n")
    assert sent <= 1
