"""`invoker.protocols.web.http`: lists in, lists out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from invoker.core.http import BodyChunk, RequestHead, Response
from invoker.core.steps import ALL, Cancel, Close, Emitted, EndInput, Feed, Finished, Open, Send
from invoker.errors import (
    CallError,
    DeadlineExceeded,
    DecodeError,
    FunctionError,
    InternalError,
    InvocationError,
    LimitExceeded,
    NotAcceptable,
    Overloaded,
    ProtocolViolation,
    ShuttingDown,
    Status,
    StatusError,
    UnsupportedMediaType,
)
from invoker.errors.wording import Place
from invoker.message import Message
from invoker.protocols.web.fields import Field, Signature
from invoker.protocols.web.http import HttpSession, State
from tests.protocols.web.signed import signed

LIMIT = 64

ONE = signed(("x",))
TWO = signed(("left", "right"), fields=(Field("left"), Field("right")))


def served(name: str) -> Signature:
    """What a process serves that has one function."""
    if name in ("", "one"):
        return ONE
    raise StatusError(Status.NOT_FOUND, f"Invoker: Not Found: {name}")


def opened(signature: Signature = ONE, *, limit: int = LIMIT) -> HttpSession:
    return HttpSession(lambda _: signature, max_body_bytes=limit)


def post(*headers: tuple[str, str], path: str = "/", query: str = "", version: str = "1.1") -> RequestHead:
    return RequestHead("POST", path, query, version, headers)


def told(session: HttpSession, *frames: Any) -> list[Any]:
    """The steps of a whole request."""
    steps: list[Any] = []
    for frame in frames:
        steps.extend(session.receive(frame))
    steps.extend(session.half_close())
    return steps


def running(*headers: tuple[str, str]) -> HttpSession:
    session = opened()
    told(session, post(*headers), BodyChunk(b"1"))
    return session


def responded(steps: Iterable[Any]) -> Response:
    """The one response among steps that end the conversation."""
    send, close = steps
    assert isinstance(send, Send)
    assert isinstance(close, Close)
    assert isinstance(send.frame, Response)
    return send.frame


def finished(session: HttpSession, *payloads: bytes, error: InvocationError | None = None, **headers: str) -> Response:
    """What a request is answered whose function gives these payloads."""
    for payload in payloads:
        assert session.deliver(Emitted("http", 0, Message(payload, headers, "text/plain"))) == ()
    return responded(session.deliver(Finished("http", error)))


def test_R141_a_post_to_the_root_invokes() -> None:
    """The query string is allowed and no part of the path."""
    steps = told(opened(), post(query="a=1&b=%20"), BodyChunk(b"x"))
    assert [type(step) for step in steps] == [Open, Feed, EndInput]


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "post", ""])
def test_R142_other_methods_are_405_and_allow_post(method: str) -> None:
    """Another method is refused at its head."""
    session = HttpSession(served, max_body_bytes=LIMIT)
    response = responded(session.receive(RequestHead(method, "/")))
    assert response.status == 405
    assert ("Allow", "POST") in response.headers


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
def test_R142_who_reads_the_root_is_told_of_the_page(method: str) -> None:
    """A person with a browser; no other path has one, and no other method asks for it."""
    for path in ("/", "/one"):
        response = responded(HttpSession(served, max_body_bytes=LIMIT).receive(RequestHead(method, path)))
        assert response.status == 405
        assert (b"--page on" in response.body) is (path == "/" and method != "DELETE")


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_who_reads_the_root_of_several_functions_is_told_of_the_page(method: str) -> None:
    """Beside their names; a program that posts there has no use for it."""

    def none_named(name: str) -> Signature:
        raise StatusError(Status.INVALID_ARGUMENT, f"name one, not {name!r}")

    session = HttpSession(none_named, max_body_bytes=LIMIT)
    response = responded(session.receive(RequestHead(method, "/")))
    assert response.status == 400
    assert (b"--page on" in response.body) is (method != "POST")


def test_R142_the_method_counts_before_the_name_of_a_function() -> None:
    """At /, whichever function would be called."""
    session = HttpSession(lambda _: served("nobody"), max_body_bytes=LIMIT)
    assert responded(session.receive(RequestHead("PUT", "/"))).status == 405


@pytest.mark.parametrize("path", ["/nope", "//", "", "*", "/index.html"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_R142_other_paths_are_404(path: str, method: str) -> None:
    """A path that names no function is refused at its head, whatever the method."""
    session = HttpSession(served, max_body_bytes=LIMIT)
    assert responded(session.receive(RequestHead(method, path))).status == 404
    assert session.state is State.CLOSED


@pytest.mark.parametrize("coding", ["gzip", "GZIP", "br", "identity, gzip", "gzip, identity", "x"])
def test_R144_packed_bodies_are_415_at_their_head(coding: str) -> None:
    """The function would take the packed bytes for its value; the answer says that bodies come plain."""
    session = HttpSession(served, max_body_bytes=LIMIT)
    response = responded(session.receive(RequestHead("POST", "/", headers=[("Content-Encoding", coding)])))
    assert response.status == 415
    assert ("Accept-Encoding", "identity") in response.headers
    assert b"Content-Encoding" in response.body


@pytest.mark.parametrize("coding", ["", "identity", "Identity"])
def test_R144_plain_bodies_may_say_so(coding: str) -> None:
    """`identity` means that nothing was done."""
    assert opened().receive(RequestHead("POST", "/", headers=[("Content-Encoding", coding)])) == ()


def test_R143_missing_types_have_defaults() -> None:
    """No Content-Type is octet-stream, no Accept is */*."""
    start, feed, _ = told(opened(), post(), BodyChunk(b"\x00"))
    assert start.accepts == ("*/*",)
    assert feed.message.media_type == "application/octet-stream"


def test_R143_empty_types_count_as_missing() -> None:
    """A header without a value says nothing."""
    start, feed, _ = told(opened(), post(("content-type", ""), ("accept", " ")), BodyChunk(b""))
    assert (start.accepts, feed.message.media_type) == (("*/*",), "application/octet-stream")


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (UnsupportedMediaType("'a/b'"), 415, "Invoker: Unsupported Media Type: 'a/b'"),
        (
            NotAcceptable("'a/b'"),
            406,
            (
                "Invoker: Not Acceptable: 'a/b'; without Accept, the function's value comes in the type that suits it; "
                "a stream is text/event-stream, application/x-ndjson or multipart/mixed"
            ),
        ),
        (DecodeError("{"), 400, "Invoker: Bad Input Signal: {"),
        (FunctionError("boom"), 500, "Invoker: Unexpected Error: boom"),
        (CallError("boom"), 500, "Invoker: Unexpected Invocation Error: boom"),
        (ProtocolViolation("2 inputs"), 500, "Invoker: Protocol Violation: 2 inputs"),
        (InternalError(), 500, "Invoker: Internal Error"),
        (DeadlineExceeded("late"), 504, "Invoker: Deadline Exceeded: late"),
        (Overloaded("full"), 503, "Invoker: Limit Exceeded: full"),
        (LimitExceeded("long"), 413, "Invoker: Limit Exceeded: long"),
        (ShuttingDown("bye"), 503, "Invoker: Shutting Down: bye"),
        (StatusError(Status.NOT_FOUND, "no such row"), 404, "no such row"),
    ],
)
def test_R154_an_ending_has_its_status(error: InvocationError, status: int, text: str) -> None:
    """Each ending of the invocation becomes one response, whose body is the error's text."""
    response = finished(running(), error=error)
    assert response.status == status
    assert response.body == f"{text}\n".encode()


def test_R145_undecodable_input_is_400() -> None:
    """What a client sent is no error of the server; the parameter is called by its name."""
    session = opened(signed(("x",), fields=(Field("x"), Field("k", is_option=True))))
    told(session, post(query="k=1"), BodyChunk(b"1"))
    error = DecodeError(" cannot become list: expected an array", place=Place("input", 1, "y"), met="text/plain")
    response = finished(session, error=error)
    assert response.status == 400
    assert b"Bad Input Signal: parameter 'k': text/plain cannot become list: expected an array" in response.body


def test_R147_a_raising_function_is_500_even_after_a_value() -> None:
    """A value that came before the failure is dropped."""
    response = finished(running(), b"early", error=FunctionError("boom"))
    assert response.status == 500
    assert b"early" not in response.body


def test_R148_success_is_200_with_type_and_payload() -> None:
    """The response carries the selected type and the payload."""
    assert finished(running(), b"49") == Response(200, (("Content-Type", "text/plain"),), b"49")


@pytest.mark.parametrize("name", ["X-Http-Status", "x-http-status", "X-HTTP-STATUS"])
def test_R148_the_function_chooses_the_status(name: str) -> None:
    """X-Http-Status sets the status, and does not leave."""
    response = finished(running(), b"made", **{name: "201", "X-Other": "1"})
    assert response == Response(201, (("Content-Type", "text/plain"), ("X-Other", "1")), b"made")


@pytest.mark.parametrize("value", ["99", "100", "199", "600", "teapot", "", "2e2", " 200", "+200", "٢٠٠"])
def test_R148_an_invalid_status_is_500(value: str) -> None:
    """What is not a final HTTP status is the function's mistake."""
    assert finished(running(), b"made", **{"X-Http-Status": value}).status == 500


def test_R149_no_value_is_500() -> None:
    """A function that gives nothing has no answer."""
    response = finished(running())
    assert response.status == 500
    assert b"no value" in response.body


def test_R149_a_second_value_cancels_the_function() -> None:
    """The second value is not awaited to the end: the function is cancelled, the answer is 500."""
    session = running()
    assert session.deliver(Emitted("http", 0, Message(b"1", media_type="text/plain"))) == ()
    (cancel,) = session.deliver(Emitted("http", 0, Message(b"2", media_type="text/plain")))
    assert isinstance(cancel, Cancel)
    response = responded(session.deliver(Finished("http", cancel.error)))
    assert response.status == 500
    assert b"second value" in response.body


def test_R150_one_input_and_one_output_are_asked_for() -> None:
    """The function sees Accept as it came, and the names in and out."""
    accept = "application/json, text/plain;q=0.5"
    start, feed, end = told(opened(), post(("Accept", accept)), BodyChunk(b"x"))
    assert (start.accepts, start.input_names, start.output_names) == ((accept,), ("in",), ("out",))
    assert feed.index == 0
    assert end == EndInput("http", ALL)


def test_R151_request_headers_reach_the_function() -> None:
    """All but Content-Type and Accept, several values joined; lookups ignore case."""
    given_headers = [("x-many", "1"), ("Content-Type", "text/plain"), ("ACCEPT", "*/*"), ("X-Many", "2"), ("a", "")]
    start, feed, _ = told(opened(), post(*given_headers), BodyChunk(b"x"))
    headers = feed.message.headers
    assert headers["X-MANY"] == "1, 2"
    assert headers["a"] == ""
    assert {"content-type", "accept"}.isdisjoint(name.lower() for name in headers)
    assert dict(start.metadata) == dict(headers)


def test_H209_a_body_says_what_it_was_sent_as() -> None:
    """As it came; a client that sends the header itself is not believed."""
    forged = ("x-http-content-type", "FORGED")
    _, feed, _ = told(opened(), post(forged, ("Content-Type", "Image/PNG; q=1")), BodyChunk(b"x"))
    assert feed.message.headers["X-Http-Content-Type"] == "Image/PNG; q=1"
    _, feed, _ = told(opened(), post(forged), BodyChunk(b"x"))
    assert "X-Http-Content-Type" not in feed.message.headers


def test_R151_cookies_are_joined_as_cookies() -> None:
    """HTTP/2 may split a Cookie header, whose separator is not the comma (RFC 9113, 8.2.3)."""
    _, feed, _ = told(opened(), post(("cookie", "a=1"), ("cookie", "b=2")))
    assert feed.message.headers["Cookie"] == "a=1; b=2"


@pytest.mark.parametrize(("version", "proto"), [("1.0", "HTTP/1.0"), ("1.1", "HTTP/1.1"), ("2", "HTTP/2.0")])
def test_R151_the_request_line_cannot_be_forged(version: str, proto: str) -> None:
    """X-Http-Method, -Path, -Query and -Proto are ours, whatever the client sends in any spelling."""
    forged = [(name, "FORGED") for name in ("x-http-method", "X-HTTP-PATH", "X-Http-Query", "x-Http-Proto")]
    _, feed, _ = told(opened(), post(*forged, ("x-http-method-override", "kept"), query="a=1", version=version))
    headers = feed.message.headers
    wanted = {"X-Http-Method": "POST", "X-Http-Path": "/", "X-Http-Query": "a=1", "X-Http-Proto": proto}
    assert {name: headers[name] for name in wanted} == wanted
    assert "FORGED" not in headers.values()
    assert headers["X-Http-Method-Override"] == "kept"


@pytest.mark.parametrize("value", ["1\r\nX-Evil: 1", "1\nX-Evil: 1", "1\r", "nul\x00"])
def test_R152_line_breaks_in_output_headers_are_500(value: str) -> None:
    """A header value that would split the response is refused, and nothing of it leaves."""
    response = finished(running(), b"x", **{"X-A": value})
    assert response.status == 500
    assert not any("Evil" in name or "Evil" in text for name, text in response.headers)


def test_R152_output_headers_do_not_clash() -> None:
    """Content-Type, Content-Length and what belongs to the connection stay inside."""
    clashing = {"content-type": "text/csv", "Content-Length": "9", "Keep-Alive": "1", "Transfer-Encoding": "gzip"}
    response = finished(running(), b"x", **clashing, **{"X-Other": "1"})
    assert response.headers == (("Content-Type", "text/plain"), ("X-Other", "1"))


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("something/madeup;q=0.5, application/json; charset=utf-8, text/plain", "application/json"),
        ("application/json", "application/json"),
        ("text/plain;q=0.3, application/json;q=0.4", "application/json"),
        ("text/plain, application/json", "text/plain"),
        ("application/json;q=0.3, text/plain;q=0.4", "text/plain"),
        ("application/json;q=0", "text/plain"),
        ("*/*", "text/plain"),
        ("", "text/plain"),
        ("!!, ;;", "text/plain"),
    ],
)
def test_R153_error_bodies_follow_accept(accept: str, media_type: str) -> None:
    """A JSON object if JSON ranks best, else text with a final newline."""
    response = finished(running(("accept", accept)), error=UnsupportedMediaType("x"))
    assert response.headers[0] == ("Content-Type", media_type)
    text = "Invoker: Unsupported Media Type: x"
    assert response.body == (f'{{"error":"{text}"}}' if media_type == "application/json" else f"{text}\n").encode()


def test_R162_the_function_opens_only_with_its_input_complete() -> None:
    """No step comes before the end of the body; then the input is there as a whole, and ended."""
    session = opened()
    for frame in (post(), BodyChunk(b"a"), BodyChunk(b"b")):
        assert session.receive(frame) == ()
    start, feed, end = session.half_close()
    assert isinstance(start, Open)
    assert feed.message.payload == b"ab"
    assert isinstance(end, EndInput)


def test_R163_the_media_type_reaches_the_machinery_unchanged() -> None:
    """Decoding is the machinery's business, as on gRPC."""
    _, feed, _ = told(opened(), post(("Content-Type", "Text/Plain; charset=UTF-16")), BodyChunk(b"x"))
    assert feed.message.media_type == "Text/Plain; charset=UTF-16"


def test_the_header_selects_a_function_of_a_catalogue() -> None:
    """Invoker-Function names it; the session asks for its signature by that name."""
    asked: list[str] = []

    def signature(name: str) -> Signature:
        asked.append(name)
        return ONE

    start, *_ = told(HttpSession(signature, max_body_bytes=LIMIT), post(("Invoker-Function", " square ")))
    assert asked == ["square"]
    assert start.function == "square"


def test_an_unknown_function_is_404() -> None:
    """What the look-up raises is the answer."""

    def signature(name: str) -> Signature:
        raise StatusError(Status.NOT_FOUND, f"no {name}")

    session = HttpSession(signature, max_body_bytes=LIMIT)
    assert responded(session.receive(post(("invoker-function", "nope")))).body == b"no nope\n"


def test_frames_out_of_order_are_violations() -> None:
    """The grammar is a head, then chunks."""
    with pytest.raises(ProtocolViolation):
        opened().receive(BodyChunk(b""))
    with pytest.raises(ProtocolViolation):
        opened().half_close()
    session = opened()
    session.receive(post())
    with pytest.raises(ProtocolViolation):
        session.receive(post())


def test_the_transport_can_refuse_in_the_sessions_words() -> None:
    """For endings that only the transport sees."""
    session = opened()
    session.receive(post(("accept", "application/json")))
    response = session.refusal(DeadlineExceeded("slow"), status=408)
    assert (response.status, response.body) == (408, b'{"error":"Invoker: Deadline Exceeded: slow"}')
