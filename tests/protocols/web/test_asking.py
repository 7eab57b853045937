"""`invoker.protocols.web.asking`: what a head asks for, and why it is refused."""

from __future__ import annotations

import pytest

from invoker.core.http import RequestHead
from invoker.errors import FunctionError, InvocationError, Status, StatusError
from invoker.protocols.web.asking import Asked, RefusedError, ask
from invoker.protocols.web.fields import Field, Signature
from invoker.protocols.web.items import Reading
from tests.protocols.web.signed import signed

X = Field("x", is_value=True)
FUNCTIONS = {
    "square": signed(("x",), fields=(X,)),
    "split": signed(("x",), fields=(Field("x"),), outputs=("even", "odd"), is_streaming=True),
    "store": signed(("x",), fields=(Field("x"),), outputs=(), is_streaming=True),
    "count": signed(("x",), fields=(Field("x"),), is_streaming=True, is_safe=True),
}
FUNCTIONS["picture"] = signed((), plain_type="application/octet-stream")
LIMIT = 64


def signature(name: str) -> Signature:
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    raise StatusError(Status.NOT_FOUND if name else Status.INVALID_ARGUMENT, f"Invoker: no {name!a}")


def asked(method: str, path: str, query: str = "", **headers: str) -> Asked:
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return ask(RequestHead(method, path, query, "1.1", named), signature, most_bytes=LIMIT)


def refused(method: str, path: str, **headers: str) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        asked(method, path, **headers)
    return caught.value


def test_H005_a_path_names_a_function() -> None:
    """So does a header at /; both may, if they agree."""
    assert asked("POST", "/square").function == "square"
    assert asked("POST", "/", invoker_function="square").function == "square"
    assert asked("POST", "/square", invoker_function="square").function == "square"
    assert "Invoker-Function for 'count'" in str(refused("POST", "/square", invoker_function="count").error)
    for path in ("/nobody", "/square/", "//square", "/square/x"):
        for headers in ({}, {"invoker_function": "square"}):
            error: InvocationError = refused("POST", path, **headers).error
            assert error.status == Status.NOT_FOUND, path


def test_H007_get_calls_what_is_safe() -> None:
    """HEAD, too; others are told how the function can be called."""
    for method in ("GET", "HEAD", "POST"):
        assert asked(method, "/count").function == "count"
    for method, path, allow in (("GET", "/square", "POST"), ("PUT", "/count", "GET, HEAD, POST")):
        found = refused(method, path)
        assert (found.status, found.headers) == (405, (("Allow", allow),))
    assert "safe=True" in str(refused("GET", "/square").error)
    assert "-X POST" in str(refused("PUT", "/square").error)


def test_H007_a_get_has_no_body() -> None:
    """Whatever its headers say of one."""
    found = asked("GET", "/count", "x=1", content_type="application/x-ndjson", accept="text/event-stream")
    assert (found.is_bodiless, found.content_type, found.reading) == (True, "", Reading.WHOLE)
    assert (found.is_head, asked("HEAD", "/count").is_head) == (False, True)


def test_H010_a_browser_that_asks_again_is_known() -> None:
    """By the header that EventSource sends; only where events are asked for."""
    assert asked("GET", "/count", accept="text/event-stream", last_event_id="7").is_repeated
    assert not asked("GET", "/count", accept="text/event-stream").is_repeated
    assert not asked("GET", "/count", accept="application/json", last_event_id="7").is_repeated


def test_H009_what_streams_is_said() -> None:
    """The answer, the body, or neither."""
    one = asked("POST", "/square", content_type="application/json", content_length="1")
    assert (one.streams, one.stream, one.reading) == (False, None, Reading.WHOLE)
    lines = asked("POST", "/square", content_type="application/x-ndjson", content_length="1")
    assert (lines.is_implied, lines.reading) == (True, Reading.LINES)
    assert lines.stream is not None
    lines = asked("POST", "/", invoker_function="square", content_type="application/x-ndjson", content_length="1")
    assert (lines.streams, lines.stream, lines.reading) == (True, None, Reading.LINES)
    both = asked("POST", "/square", accept="application/x-ndjson")
    assert (both.streams, both.reading) == (True, Reading.TEXTS)
    assert both.stream is not None
    # Lines may bring several values, so a stream is meant wherever one is listed.
    listed = {"content_type": "application/x-ndjson", "accept": "application/json, text/event-stream"}
    assert asked("POST", "/square", **listed).stream is not None
    listed["content_type"] = "application/json"
    assert asked("POST", "/square", content_length="1", **listed).stream is None
    # A pipe into a function is one value unless a stream is the answer, of which its caller is told.
    piped = [("/", "*/*"), ("/", "application/x-ndjson"), ("/count", "*/*")]
    found = [asked("POST", path, accept=one, invoker_function="count").is_piped for path, one in piped]
    assert found == [True, False, False]
    assert not asked("POST", "/count", content_length="1").is_piped


def test_R154_a_body_that_announces_too_much_is_refused() -> None:
    """Unless it streams in: then only its items have a limit."""
    for length in ("65", "9" * 30):
        assert refused("POST", "/square", content_length=length).status == 413
        assert asked("POST", "/square", content_length=length, content_type="application/x-ndjson").streams
    assert asked("POST", "/square", content_length="64").function == "square"


def test_R149_a_function_of_several_outputs_answers_by_streams_only() -> None:
    """The text says what it has, and the way; with a stream it is served. One without outputs needs none (H-018)."""
    error = refused("POST", "/split").error
    assert isinstance(error, FunctionError)
    assert "the outputs even, odd" in error.detail
    assert "Accept: text/event-stream" in error.detail
    assert asked("POST", "/split", accept="application/x-ndjson").stream is not None
    assert asked("POST", "/store").outputs == ()


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("image/png", "image/png, application/octet-stream;q=0.001"),
        ("image/*, */*;q=0.5", "image/*, */*;q=0.5"),
        ("application/octet-stream;q=0.2", "application/octet-stream;q=0.2"),
        ("multipart/mixed, image/png;q=0.5", "image/png;q=0.5, application/octet-stream;q=0.001"),
    ],
)
def test_H208_any_accept_reaches_a_function_that_names_its_type(accept: str, wanted: str) -> None:
    """What it would be otherwise ranks last, and not below what the client says of it."""
    assert asked("POST", "/picture", accept=accept).wanted == wanted
    assert asked("POST", "/square", accept="image/png").wanted == "image/png"
