"""`invoker.protocols.web.reply`: statuses, error bodies and header hygiene."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.core.http import Response
from invoker.core.limits import LimitReached
from invoker.errors import Cancelled, EncodeError, FunctionError, Overloaded, ShuttingDown, Status, StatusError
from invoker.errors.http import HTTP_STATUS
from invoker.message import Message
from invoker.protocols.web.reply import HOP_BY_HOP, answer, fit, refusal, status_of


@pytest.mark.parametrize("status", [one for one in Status if one is not Status.OK])
def test_a_status_error_has_the_status_of_the_table(status: Status) -> None:
    """A function's choice is obeyed."""
    assert status_of(StatusError(status, "x")) == HTTP_STATUS[status]


def test_a_client_that_is_gone_counts_as_499() -> None:
    """The log tells it from a failure of ours."""
    assert status_of(Cancelled()) == 499


def test_R149_an_error_of_the_function_is_500() -> None:
    """Whatever is not in the table is a server error."""
    assert status_of(FunctionError("boom")) == 500


@pytest.mark.parametrize("error", [Overloaded("full"), ShuttingDown("bye")])
def test_R154_a_server_without_room_says_when_to_come_back(error: Overloaded | ShuttingDown) -> None:
    """503 carries Retry-After."""
    response = refusal(error)
    assert response.status == 503
    assert ("Retry-After", "1") in response.headers


@given(st.text(alphabet=st.characters(codec=None), max_size=20))
def test_R153_any_text_makes_a_body(text: str) -> None:
    """A JSON body parses, also of what JSON cannot carry as it is."""
    response = refusal(FunctionError(text), "application/json")
    assert json.loads(response.body)["error"].startswith("Invoker: Unexpected Error")
    assert refusal(FunctionError(text)).body.endswith(b"\n")


def test_R152_what_belongs_to_the_connection_is_dropped() -> None:
    """Hop-by-hop names, and those that Connection names, stay inside."""
    headers = dict.fromkeys(HOP_BY_HOP, "x") | {
        "Connection": "close, X-Mine",
        "X-Mine": "1",
        "Date": "now",
        "X-Kept": "1",
    }
    assert answer(Message(b"", headers, "a/b")).headers == (("Content-Type", "a/b"), ("X-Kept", "1"))


@pytest.mark.parametrize("name", ["", "a b", "a:b", ":status", "X-A: 1\r\nX-Evil", "naïve", "a\n"])
def test_R152_a_name_that_is_no_token_is_refused(name: str) -> None:
    """Header names are tokens (RFC 9110, 5.6.2)."""
    with pytest.raises(EncodeError, match="not a token"):
        answer(Message(b"", {name: "1"}, "a/b"))


def test_R152_a_media_type_with_a_line_break_is_refused() -> None:
    """A function that chooses the type cannot split the response either."""
    with pytest.raises(EncodeError, match="control character"):
        answer(Message(b"", {}, "a/b\r\nX-Evil: 1"))


def test_values_beyond_ascii_leave_as_they_are() -> None:
    """The transport writes them as UTF-8; blanks around them are no part of a value."""
    assert answer(Message(b"", {"X-A": " 日本 "}, "a/b")).headers[1] == ("X-A", "日本")


@pytest.mark.parametrize("status", ["204", "205", "304"])
def test_R148_a_status_without_a_body_has_none(status: str) -> None:
    """No Content may not have one, whatever the function gave."""
    assert answer(Message(b"x", {"X-Http-Status": status}, "a/b")) == Response(int(status), (), b"")


def test_a_message_without_a_type_is_octets() -> None:
    """A response always says its type."""
    assert answer(Message(b"x")).headers == (("Content-Type", "application/octet-stream"),)


def test_T059_a_limit_of_a_function_is_429_and_says_when_to_come_again() -> None:
    """In whole seconds, rounded up; one where nobody knows."""
    rate = LimitReached("too many", code="rate_limit", scope="party", limit=2, retry_after_s=12.2)
    full = LimitReached("full", code="concurrency", scope="function", limit=2)
    for error, after in ((rate, "13"), (full, "1")):
        response = refusal(error)
        assert response.status == 429
        assert ("Retry-After", after) in response.headers


@pytest.mark.parametrize("name", ["Location", "location", "Content-Location"])
def test_H247_what_is_not_ascii_in_a_uri_is_percent_encoded(name):
    """What is ASCII stays as it is, also what is encoded already; other headers are the function's business."""
    given = {name: "/grüße/Ω 1?a=b%20c&q=ü#x", "X-Name": "Jürgen"}
    assert dict(fit(given)) == {name: "/gr%C3%BC%C3%9Fe/%CE%A9 1?a=b%20c&q=%C3%BC#x", "X-Name": "Jürgen"}
    assert dict(fit({name: "/a b?x=[1]"})) == {name: "/a b?x=[1]"}
