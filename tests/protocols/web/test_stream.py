"""`invoker.protocols.web.stream`: lists in, lists out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from invoker.core.http import BodyChunk, RequestHead, Response, ResponseHead
from invoker.core.steps import ALL, Cancel, Close, Elapsed, Emitted, EndInput, Feed, Finished, Open, OutputEnded, Send
from invoker.errors import (
    DecodeError,
    FunctionError,
    InternalError,
    InvocationError,
    LimitExceeded,
    NotAcceptable,
    Overloaded,
    ProtocolViolation,
)
from invoker.errors.wording import Place
from invoker.message import Headers, Message
from invoker.protocols.web.asking import ask
from invoker.protocols.web.fields import Field, Signature
from invoker.protocols.web.stream import StreamSession
from tests.protocols.web.signed import signed
from tests.protocols.web.test_http_forms import form

LIMIT = 1000
EVENTS, LINES = "text/event-stream", "application/x-ndjson"

STREAM = signed(("xs",), fields=(Field("xs"),), is_streaming=True, is_safe=True)
OPTION = signed(
    ("xs",),
    fields=(Field("xs"), Field("temperature", is_option=True, is_value=True, is_scalar=True)),
    is_streaming=True,
)
TWO = signed(
    ("words", "counts"),
    fields=(Field("words"), Field("counts"), Field("sep", is_option=True, is_value=True, is_text=True)),
    is_streaming=True,
)
SPLIT = signed(("xs",), fields=(Field("xs"),), is_streaming=True, outputs=("even", "odd"))


def session(
    signature: Signature = STREAM, *, accept: str = LINES, method: str = "POST", query: str = "", **headers: str
) -> tuple[StreamSession, RequestHead]:
    named = [(name.replace("_", "-"), value) for name, value in {"accept": accept, **headers}.items()]
    head = RequestHead(method, "/", query, "1.1", named)
    return StreamSession(ask(head, lambda _: signature, most_bytes=LIMIT), most_bytes=LIMIT), head


def begun(signature: Signature = STREAM, **said: Any) -> tuple[StreamSession, list[Any]]:
    """A session and what its head makes it do."""
    one, head = session(signature, **said)
    return one, list(one.receive(head))


def lined(signature: Signature = STREAM, **said: Any) -> tuple[StreamSession, list[Any]]:
    return begun(signature, content_type=LINES, **said)


def chunk(one: StreamSession, data: bytes) -> list[Any]:
    return list(one.receive(BodyChunk(data)))


def fed(steps: Iterable[Any]) -> list[tuple[int, bytes]]:
    return [(step.index, step.message.payload) for step in steps if isinstance(step, Feed)]


def sent(steps: Iterable[Any]) -> list[Any]:
    """Heads and responses as they are, pieces as bytes."""
    frames = [step.frame for step in steps if isinstance(step, Send)]
    return [one.payload if isinstance(one, BodyChunk) else one for one in frames]


def emitted(one: StreamSession, payload: bytes, index: int = 0, media_type: str = "application/json") -> list[Any]:
    return list(one.deliver(Emitted("http", index, Message(payload, Headers(), media_type))))


def finished(one: StreamSession, error: InvocationError | None = None) -> list[Any]:
    return list(one.deliver(Finished("http", error)))


def test_H009_items_are_fed_as_they_come() -> None:
    """The function opens with the head, and its input ends with the body."""
    one, steps = lined()
    (opening,) = steps
    assert isinstance(opening, Open)
    assert (opening.input_names, opening.output_names) == (("in",), ("out",))
    assert opening.accepts == ("application/json, */*;q=0.1",)
    assert fed(chunk(one, b"1\n2")) == [(0, b"1")]
    assert fed(chunk(one, b"3\n4")) == [(0, b"23")]
    last = list(one.half_close())
    assert fed(last) == [(0, b"4")]
    assert last[-1] == EndInput("http", ALL)
    assert list(one.half_close()) == []


def test_H008_items_leave_as_they_are_given() -> None:
    """The head goes before the first; each output's end is nothing of its own; the end closes."""
    one, _ = lined(accept=EVENTS)
    head, item = sent(emitted(one, b"4"))
    assert isinstance(head, ResponseHead)
    assert head.status == 200
    assert dict(head.headers)["Content-Type"] == EVENTS
    assert dict(head.headers)["Vary"] == "Accept"
    assert item == b"id: 1\ndata: 4\n\n"
    assert sent(emitted(one, b"9")) == [b"id: 2\ndata: 9\n\n"]
    assert list(one.deliver(OutputEnded("http", 0))) == []
    *last, close = finished(one)
    assert sent(last) == [b"event: end\ndata: {}\n\n"]
    assert close == Close()
    assert one.is_told
    assert emitted(one, b"1") == finished(one) == chunk(one, b"2\n") == list(one.half_close()) == []


def test_H008_several_outputs_are_told_apart() -> None:
    """All of them are asked for, by name."""
    one, (opening,) = lined(SPLIT)
    assert opening.output_names == ("even", "odd")
    assert len(opening.accepts) == 2
    assert sent(emitted(one, b"3", 1))[1] == b'{"odd":3}\n'


def test_H008_a_stream_of_nothing_is_a_stream() -> None:
    """Its head and its end are told."""
    one, _ = begun(accept=EVENTS)
    one.half_close()
    head, end = sent(finished(one))
    assert isinstance(head, ResponseHead)
    assert end == b"event: end\ndata: {}\n\n"


def test_H012_a_list_for_an_input_of_many_values_is_told_how_they_come() -> None:
    """Where the body was one value; not where its lines were read, and not for a parameter of one value."""

    def told(one: StreamSession, index: int = 0) -> str:
        chunk(one, b"[1, 2]")
        one.half_close()
        response = sent(finished(one, DecodeError("", place=Place("input", index))))[-1]
        return str((response if isinstance(response, bytes) else response.body).decode())

    json = {"content_type": "application/json"}
    assert "takes many values, each as a line (Content-Type: application/x-ndjson)" in told(begun(OPTION, **json)[0])
    assert "takes many values" not in told(begun(OPTION, **json)[0], 1)
    assert "takes many values" not in told(lined(OPTION)[0])


def test_H012_an_error_behind_the_first_item_is_an_item() -> None:
    """And the status of the conversation; nothing follows it."""
    one, _ = lined()
    emitted(one, b"4")
    error = FunctionError("boom")
    *told, close = finished(one, error)
    (line,) = sent(told)
    assert json.loads(line) == {
        "error": {
            "type": "about:blank",
            "title": "Internal Server Error",
            "status": 500,
            "detail": "Invoker: Unexpected Error: boom",
            "code": "UNKNOWN",
        }
    }
    assert close == Close(error)


def test_H012_an_error_before_the_first_item_has_its_status() -> None:
    """As where one value is asked for."""
    one, _ = lined()
    response, *_ = sent(finished(one, NotAcceptable("no")))
    assert isinstance(response, Response)
    assert response.status == 406


@pytest.mark.parametrize(("has_begun", "status"), [(False, 400), (True, 0)])
def test_H012_a_bad_body_ends_the_response_in_the_same_way(*, has_begun: bool, status: int) -> None:
    """What runs is ended by the end of the conversation."""
    one, _ = lined(TWO)
    chunk(one, b'{"words":1}\n')
    if has_begun:
        emitted(one, b"4")
    steps = chunk(one, b"3\n")
    (frame,) = sent(steps)
    assert isinstance(steps[-1].error, DecodeError)
    if has_begun:
        assert json.loads(frame)["error"]["status"] == 400
        assert json.loads(frame)["error"]["code"] == "INVALID_ARGUMENT"
    else:
        assert frame.status == status
    assert chunk(one, b"{}\n") == []


def test_H011_too_long_an_item_is_413() -> None:
    """Or a body that is read as one and has not told its length."""
    one, _ = lined()
    (frame,) = sent(chunk(one, bytes(LIMIT + 1)))
    assert frame.status == 413
    one, _ = begun(content_type="application/json")
    assert chunk(one, bytes(LIMIT)) == []
    (frame,) = sent(chunk(one, b"x"))
    assert frame.status == 413
    assert b"--max-message-bytes" in frame.body


def test_an_item_too_many_is_a_bad_request() -> None:
    """A second frame for a single value is the caller's fault, which HTTP says by 400."""
    one, _ = lined()
    (frame,) = sent(finished(one, ProtocolViolation("a second frame")))
    assert frame.status == 400


def test_H013_the_head_leaves_after_a_while_and_then_heartbeats_do() -> None:
    """So that a client, and everybody between, sees that somebody is there."""
    one, _ = lined(accept=EVENTS)
    head, beat = sent(one.deliver(Elapsed()))
    assert isinstance(head, ResponseHead)
    assert beat == b":\n\n"
    assert one.has_begun
    assert sent(one.deliver(Elapsed())) == [b":\n\n"]
    one, _ = lined()
    assert len(sent(one.deliver(Elapsed()))) == 1
    assert sent(one.deliver(Elapsed())) == []  # a blank line would be no JSON


def test_H010_a_browser_that_asks_again_is_told_to_stop() -> None:
    """EventSource reconnects when a stream ends; 204 ends that, and nothing is called."""
    _, steps = begun(accept=EVENTS, method="GET", last_event_id="3")
    (response,) = sent(steps)
    assert response.status == 204
    assert steps[-1] == Close()


def test_H203_an_error_as_an_item_names_the_parameter() -> None:
    """In its text and in a member."""
    one, _ = lined(TWO)
    chunk(one, b'{"words":1}\n')
    emitted(one, b"4")
    (line,) = sent(finished(one, DecodeError(" is no str", place=Place("input", 0)))[:-1])
    told = json.loads(line)["error"]
    assert (told["parameter"], told["detail"]) == ("words", "Invoker: Bad Input Signal: parameter 'words' is no str")


def test_R149_no_value_where_one_is_due_names_the_way() -> None:
    """As a second one does."""
    one, _ = lined(accept="*/*")
    one.half_close()
    (response,) = sent(finished(one)[:-1])
    assert (response.status, "Accept: text/event-stream" in response.body.decode()) == (500, True)


def test_H014_options_come_before_the_first_item() -> None:
    """Of a function with several inputs: it opens with the first of an input; later they are refused."""
    one, steps = lined(TWO)
    assert steps == []
    assert chunk(one, b'{"sep": "-"}\n') == []
    opening, *feeds = chunk(one, b'{"words": "a"}\n{"counts": 2}\n')
    assert opening.input_names == ("words", "counts", "sep")
    assert fed(feeds) == [(2, b'"-"'), (0, b'"a"'), (1, b"2")]
    assert fed(chunk(one, b'{"sep": "+"}\n')) == [(2, b'"+"')]  # the invocation refuses it
    one, _ = lined(TWO)
    chunk(one, b'{"words": "a"}\n')
    (frame,) = sent(chunk(one, b'{"sep": "+"}\n'))
    assert b"its value came too late" in frame.body


def test_a_body_without_an_input_opens_all_the_same() -> None:
    """An end is enough: the inputs are empty then."""
    one, _ = lined(TWO)
    opening, *rest = one.half_close()
    assert opening.input_names == ("words", "counts")
    assert rest == [EndInput("http", ALL)]


def test_R149_one_value_of_a_streamed_body() -> None:
    """It is the response; a second one ends the function."""
    one, _ = lined(accept="application/json")
    assert emitted(one, b"6") == []
    assert list(one.deliver(Elapsed())) == []
    (response,) = sent(finished(one))
    assert (response.status, response.body) == (200, b"6")
    one, _ = lined(accept="application/json")
    emitted(one, b"6")
    (step,) = emitted(one, b"7")
    assert isinstance(step, Cancel)
    assert "text/event-stream" in str(step.error)
    one, _ = lined(accept="application/json")
    (response,) = sent(finished(one))
    assert response.status == 500


def test_an_item_that_does_not_fit_ends_the_function() -> None:
    """With the error as the last item."""
    one, _ = lined()
    (step,) = emitted(one, b"{\n", media_type="application/json")
    assert isinstance(step, Cancel)


def test_what_the_session_is_not_told_is_said_for_it() -> None:
    """A fault of ours ends a stream by an item, too; or it is a response."""
    one, _ = lined()
    assert one.refusal(InternalError()).status == 500
    assert one.refusal(LimitExceeded("x"), status=408).status == 408
    emitted(one, b"1")
    assert json.loads(one.farewell(InternalError()))["error"]["status"] == 500


def test_frames_out_of_order_are_violations() -> None:
    """They are mistakes of a transport."""
    one, head = session()
    for wrong in (lambda: one.receive(BodyChunk(b"")), one.half_close):
        with pytest.raises(ProtocolViolation):
            wrong()
    one.receive(head)
    with pytest.raises(ProtocolViolation):
        one.receive(head)


def test_H011_options_without_end_are_refused() -> None:
    """They are kept until the first item of an input comes."""
    one, _ = lined(TWO)
    (frame,) = sent(chunk(one, b'{"sep":1}\n' * 10))
    assert (frame.status, b"options" in frame.body) == (413, True)


def test_H162_what_is_held_is_told_until_the_end() -> None:
    """A line that is not complete, and options before the first item; a conversation that is over holds nothing."""
    one, _ = lined()
    chunk(one, b"1\n23")
    assert one.held == 2
    finished(one)
    assert one.held == 0
    one, _ = lined(TWO)
    chunk(one, b'{"sep": "-"}\n{"words"')
    assert one.held > len(b'"-"{"words"')
    broken, _ = lined()
    chunk(broken, b"4" * (LIMIT + 1))
    assert (broken.is_told, broken.held) == (True, 0)


PARTS = "multipart/form-data; boundary=xyz"
LATE = [
    (LINES, b'{"words": "a"}\n{"sep": "-"}\n{"counts": 2}\n', "'sep' is an option of"),
    (LINES, b'{"sep": "-"}\n{"words": "a"}\n{"counts": 2}', None),
    (LINES, b'{"words": "a", "sep": "-"}\n{"counts": 2}\n', None),
    (LINES, b'{"words": "a"}\n{"counts": 2, "sep": "-"}', "'sep' is an option of"),
    (PARTS, form(("words", "", b"a"), ("sep", "", b"-"), ("counts", "", b"2")), "'sep' is an option of"),
    (PARTS, form(("words", "", b"a"), ("counts", "", b"2"), ("sep", "", b"-")), "'sep' is an option of"),
    (PARTS, form(("sep", "", b"-"), ("words", "", b"a"), ("counts", "", b"2")), None),
]


@pytest.mark.parametrize(("content_type", "body", "text"), LATE)
def test_H014_an_option_that_comes_late_has_one_answer(content_type: str, body: bytes, text: str | None) -> None:
    """However the bytes are cut: at once, byte by byte, or into two at any place."""
    cuts = [[body], [bytes([one]) for one in body], *([body[:at], body[at:]] for at in range(1, len(body)))]
    for pieces in cuts:
        one, steps = begun(TWO, content_type=content_type)
        for piece in pieces:
            steps += chunk(one, piece)
        steps += one.half_close()
        refused = [frame for frame in sent(steps) if isinstance(frame, Response)]
        if text is None:
            assert not refused
            names = next(step.input_names for step in steps if isinstance(step, Open))
            assert sorted((names[index], value.strip(b'"')) for index, value in fed(steps)) == [
                ("counts", b"2"), ("sep", b"-"), ("words", b"a"),
            ]  # fmt: skip
        else:
            assert text in str(next(step.error for step in steps if isinstance(step, Close))), pieces
            assert isinstance(next(step.error for step in steps if isinstance(step, Close)), DecodeError)


@pytest.mark.parametrize("accept", [LINES, EVENTS, "multipart/mixed"])
@pytest.mark.parametrize(
    ("content_type", "body"), [(LINES, b"1\n" + b"1" * (LIMIT + 1)), (PARTS, form(("words", "", b"a" * (LIMIT + 1))))]
)
def test_H242_what_is_too_long_in_mid_stream_is_413(content_type: str, body: bytes, accept: str) -> None:
    """As a status, and as the last item behind the first one; a process that is full may be asked again."""
    for error, status, has_begun in ((None, 413, False), (None, 413, True), (Overloaded("full"), 503, True)):
        one, steps = begun(STREAM if content_type == LINES else TWO, content_type=content_type, accept=accept)
        if has_begun:
            steps += (
                one.receive(BodyChunk(b"2\n")) if content_type == LINES else chunk(one, form(("words", "", b"a"))[:-9])
            )
            steps += emitted(one, b"1")
        if error is None:
            steps += chunk(one, body if not has_begun else body.removeprefix(b"--"))
            assert (Cancel in map(type, steps)) is (Open in map(type, steps)), "what runs hears why"
        else:
            steps += one.deliver(Finished("http", error))
        last = sent(steps)[-1]
        if has_begun:
            assert f'"status":{status}'.encode() in last, last
        else:
            assert (last.status, "Retry-After" in dict(last.headers)) == (status, False)
