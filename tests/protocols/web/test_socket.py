"""`invoker.protocols.web.socket`: frames in, steps out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.author.reader import read
from invoker.codecs import builtin, custom, registered
from invoker.core.http import RequestHead
from invoker.core.steps import Close, Emitted, EndInput, Feed, Finished, Open, OutputEnded, Send, Step
from invoker.errors import DecodeError, FunctionError, ProtocolViolation
from invoker.errors.wording import Place
from invoker.message import EMPTY, Message
from invoker.protocols.web.socket import SocketSession, State, shape_of

JSON = "application/json"
OCTETS = "application/octet-stream"


@pytest.fixture(autouse=True)
def _no_other_codecs() -> Iterator[None]:
    """What other tests have registered is not here."""
    before = registered()
    custom._replace(())
    yield
    custom._replace(before)


class Split(NamedTuple):
    even: Iterator[int]
    odd: Iterator[int]


def square(x: int) -> int:
    return x * x


def scale(xs: Iterator[int], k: int = 2) -> Iterator[int]:
    return (x * k for x in xs)


def topk(items: Iterator[str], k: int) -> Iterator[str]:
    return (one * k for one in items)


def add(a: int, b: int) -> int:
    return a + b


def split(xs: Iterator[int]) -> Split:
    return Split(xs, xs)


def text(x: str) -> bytes:
    return x.encode()


def now() -> str:
    return "now"


def at(hour: int = 12) -> str:
    return f"{hour}:00"


def ticks() -> Iterator[int]:
    yield from range(3)


def many(*xs: Iterator[int], k: int = 1) -> Iterator[int]:
    yield k


def words(**words: str) -> str:
    return str(words)


def begun(function: Any, query: str = "", **headers: str) -> tuple[SocketSession, Sequence[Step]]:
    """A session behind its handshake, and the first steps."""
    spec = read(function)
    session = SocketSession(shape_of(spec, builtin()))
    head = RequestHead("GET", f"/{function.__name__}/ws", query, headers=[("host", "here"), *headers.items()])
    return session, session.receive(head)


def opened(function: Any, query: str = "") -> Open:
    step = begun(function, query)[1][0]
    assert isinstance(step, Open)
    return step


def said(function: Any, *frames: str | bytes, query: str = "") -> list[Step]:
    """The steps of some frames."""
    session, _ = begun(function, query)
    return [step for frame in frames for step in session.receive(frame)]


def fed(index: int, payload: bytes, media_type: str = JSON, **headers: str) -> Feed:
    return Feed("socket", index, Message(payload, headers or EMPTY, media_type))


# The handshake


def test_the_handshake_opens_the_invocation() -> None:
    """With every output as JSON if it can be that, and the headers of the request."""
    _, steps = begun(square, **{"x-tenant": "a", "upgrade": "websocket", "sec-websocket-key": "k", "accept": "*/*"})
    (opening,) = steps
    assert isinstance(opening, Open)
    assert (opening.function, opening.accepts, opening.bound) == ("square", ("application/json, */*;q=0.5",), None)
    assert dict(opening.metadata) == {
        "host": "here", "x-tenant": "a", "X-Http-Method": "GET", "X-Http-Path": "/square/ws", "X-Http-Query": "",
        "X-Http-Proto": "HTTP/1.1",
    }  # fmt: skip
    assert opened(split).output_names == ("even", "odd")


def test_H047_the_query_fills_parameters() -> None:
    """Options and single values are complete by it; a stream goes on; what it does not name keeps its default."""
    assert opened(scale).input_names == ("in",)
    _, steps = begun(scale, "k=5&other=1")
    assert isinstance(steps[0], Open)
    assert steps[0].input_names == ("in", "k")
    assert steps[1:] == (fed(1, b"5", "text/plain"), EndInput("socket", 1))
    _, steps = begun(scale, "xs=1&xs=2")
    assert steps[1:] == (fed(0, b"[1,2]"),) or steps[1:] == (fed(0, b"1", "text/plain"), fed(0, b"2", "text/plain"))
    _, steps = begun(topk, "k=2")
    assert steps[1:] == (fed(1, b"2", "text/plain"), EndInput("socket", 1))
    _, steps = begun(words, "a=1&b=2")
    assert isinstance(steps[0], Open)
    assert steps[0].bound == ("a", "b")
    assert steps[1:] == (
        fed(0, b"1", "text/plain"), fed(1, b"2", "text/plain"), EndInput("socket", 0), EndInput("socket", 1),
    )  # fmt: skip


def test_a_query_that_cannot_be_taken_is_refused() -> None:
    """Before anything is opened."""
    for function, query in ((scale, "k=1&k=2"), (scale, "k=%ff"), (many, "inputs=a,a"), (many, "inputs=a,,b")):
        with pytest.raises(DecodeError):
            begun(function, query)


def test_H059_functions_that_take_any_number_have_the_inputs_that_are_named() -> None:
    """One without; and a parameter of that name comes first."""
    session, steps = begun(many, "inputs=a,b&k=3")
    assert isinstance(steps[0], Open)
    assert steps[0].input_names == ("a", "b", "k")
    assert session.receive('{"input":"b","data":1}') == (fed(1, b"1"),)
    assert len(opened(many).input_names) == 1

    def own(*xs: int, inputs: str = "") -> str:
        return inputs

    assert opened(own, "inputs=a,b").input_names[-1] == "inputs"


# Items


@pytest.mark.parametrize(
    ("frame", "step"),
    [
        ('{"data":3}', fed(0, b"3")),
        ('{"data": {"a": [1, null]}}', fed(0, b'{"a": [1, null]}')),
        ('{"data":null}', fed(0, b"null")),
        ('{"data":"\u00fc"}', fed(0, '"\u00fc"'.encode())),
        ('{"input":"b","data":4}', fed(1, b"4")),
        ('{"data":"a\\nb","contentType":"text/csv"}', fed(0, b"a\nb", "text/csv")),
        ('{"base64":"AP8="}', fed(0, b"\x00\xff", OCTETS)),
        ('{"base64":"AP8=","contentType":"image/png"}', fed(0, b"\x00\xff", "image/png")),
        ('{"data":1,"headers":{"a":"b","X-Http-Path":"/no"}}', fed(0, b"1", a="b")),
        (b"\x00\xff", fed(0, b"\x00\xff", OCTETS)),
    ],
)
def test_H044_an_item_is_a_frame(frame: str | bytes, step: Feed) -> None:
    """Its value as JSON, as a text of another type, as base64, or as it is."""
    assert said(add, frame) == [step]


def test_H044_a_binary_frame_may_be_announced() -> None:
    """With its input, its type and headers; the next one is a bare one again."""
    steps = said(add, '{"input":"b","contentType":"image/png","headers":{"a":"b"}}', b"png", b"bare")
    assert steps == [fed(1, b"png", "image/png", a="b"), fed(0, b"bare", OCTETS)]


def test_types_that_are_text_to_a_parameter_are_text() -> None:
    """As with POST."""
    assert said(text, '{"data":"a","contentType":"text/csv"}') == [fed(0, b"a", "text/plain")]
    assert said(text, '{"contentType":"text/html"}', b"<p>") == [fed(0, b"<p>", "text/plain")]


def test_H046_inputs_end_by_name_or_together() -> None:
    """Nothing comes behind the end of all."""
    assert said(add, '{"end":"b"}', '{"end":true}') == [EndInput("socket", 1), EndInput("socket")]
    with pytest.raises(ProtocolViolation, match="has ended its items"):
        said(add, '{"end":true}', '{"data":1}')


def test_a_function_without_parameters_is_called_for_each_item_and_at_least_once() -> None:
    """A source has no items at all."""
    assert said(now, '{"end":true}') == [fed(0, b"", OCTETS), EndInput("socket")]
    assert said(now, '{"data":null}', '{"end":true}') == [fed(0, b"null"), EndInput("socket")]
    assert said(ticks, '{"end":true}') == [EndInput("socket")]
    with pytest.raises(ProtocolViolation, match="takes no input"):
        said(ticks, '{"data":1}')


def test_an_empty_item_is_no_value_for_an_option() -> None:
    """A function whose parameters all have defaults is called with them; it was given an empty payload."""
    assert said(at, '{"end":true}') == [EndInput("socket")]


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        ("3", "Expected `object`"),
        ('"data"', "Expected `object`"),
        ("{no", "malformed"),
        ("", "truncated"),
        ('{"data":1} {"data":2}', "trailing"),
        ('{"dat":1}', "unknown field `dat`"),
        ("{}", "must have data"),
        ('{"input":"a"}', "must have data"),
        ('{"input":3,"data":1}', "Expected `str"),
        ('{"data":1,"base64":"AA=="}', "both"),
        ('{"base64":"A"}', "base64"),
        ('{"base64":"A A="}', "base64"),
        ('{"data":1,"contentType":"text/plain"}', "data must be a text"),
        ('{"data":1,"headers":{"a":1}}', "Expected `str`"),
        ('{"end":false}', "the end must be {"),
        ('{"end":true,"data":1}', "the end must be {"),
        ("[" * 100_000, "not as expected"),
    ],
)
def test_H050_what_is_no_item_says_what_would_be_one(frame: str, why: str) -> None:
    """By a violation that the peer reads."""
    with pytest.raises(ProtocolViolation, match=why):
        said(add, frame)


def test_H047_an_option_is_no_input() -> None:
    """The refusal names the query."""
    for name in ("k", "\uff4b"):  # which is a k to Python
        with pytest.raises(DecodeError, match=f"'scale' takes its input '{name}' from the query only"):
            said(scale, f'{{"input":"{name}","data":3}}')


@pytest.mark.parametrize("frame", ['{"input":"c","data":1}', '{"end":"c"}'])
def test_R169_an_unknown_input_is_refused_as_everywhere(frame: str) -> None:
    """As the caller's error, which is no error of the protocol."""
    with pytest.raises(DecodeError, match=r"'add' has no input 'c'; it has a, b$"):
        said(add, frame)


def test_what_was_announced_has_to_come() -> None:
    """Before any text."""
    with pytest.raises(ProtocolViolation, match="was announced"):
        said(add, '{"contentType":"image/png"}', '{"data":1}')


# Outputs


def emitted(session: SocketSession, payload: bytes, media_type: str = JSON, index: int = 0, **headers: str) -> Any:
    """What is sent: texts are read."""
    steps = session.deliver(Emitted("socket", index, Message(payload, headers or EMPTY, media_type)))
    frames = [step.frame for step in steps if isinstance(step, Send)]
    assert len(frames) == len(steps)
    return [json.loads(one) if isinstance(one, str) else one for one in frames]


def test_H045_outputs_are_json_or_announced() -> None:
    """With their headers, if they have some; what is not UTF-8 is no JSON whatever it is called."""
    session, _ = begun(square)
    assert emitted(session, b"9") == [{"output": "out", "data": 9}]
    assert emitted(session, '"\u00fc"'.encode()) == [{"output": "out", "data": "\u00fc"}]
    assert emitted(session, b"9", a="b") == [{"output": "out", "data": 9, "headers": {"a": "b"}}]
    told = {"output": "out", "contentType": "image/png", "size": 3}
    assert emitted(session, b"png", "image/png") == [told, b"png"]
    assert emitted(session, b"png", "image/png", a="b") == [{**told, "headers": {"a": "b"}}, b"png"]
    assert emitted(session, b"\xff") == [{"output": "out", "contentType": JSON, "size": 1}, b"\xff"]
    assert emitted(session, b"\xff", a="b")[1] == b"\xff"
    assert emitted(session, b"x", "") == [{"output": "out", "contentType": OCTETS, "size": 1}, b"x"]


def test_H046_the_end_of_one_of_several_outputs_is_told() -> None:
    """That of a single one is the end of all."""
    session, _ = begun(split)
    assert emitted(session, b"1", index=1) == [{"output": "odd", "data": 1}]
    assert session.deliver(OutputEnded("socket", 0)) == (Send('{"ended":"even"}'),)
    session, _ = begun(square)
    assert session.deliver(OutputEnded("socket", 0)) == ()


def test_the_end_of_the_invocation_closes() -> None:
    """Whatever comes then is dropped."""
    error = FunctionError("no")
    for ending in (None, error):
        session, _ = begun(square)
        assert session.deliver(Finished("socket", ending)) == (Close(ending),)
        assert session.state is State.CLOSED
        assert session.receive('{"data":1}') == session.receive(b"") == session.half_close() == ()
        assert session.deliver(OutputEnded("socket", 0)) == ()
    assert session.farewell(None) == '{"end":true}'
    assert json.loads(session.farewell(error))["error"]["detail"] == "Invoker: Unexpected Error: no"


def test_H049_an_error_is_a_problem_that_names_the_parameter() -> None:
    """A violation is the client's fault."""
    session, _ = begun(add)
    told = session.problem(DecodeError(" is no int", place=Place("input", 1)))
    assert (told["status"], told["title"]) == (400, "Bad Request")
    assert "parameter 'b' is no int" in str(told["detail"])
    assert told["parameter"] == "b"
    assert session.problem(ProtocolViolation("no"))["status"] == 400
    assert session.problem(FunctionError("no"))["status"] == 500


def test_a_frame_before_the_handshake_is_none() -> None:
    """And a second handshake neither."""
    with pytest.raises(ProtocolViolation, match="waiting for the handshake"):
        SocketSession(shape_of(read(square), builtin())).receive("{}")
    session, _ = begun(square)
    with pytest.raises(ProtocolViolation, match="taking items"):
        session.receive(RequestHead("GET", "/"))


FRAMES = st.one_of(
    st.binary(max_size=5),
    st.text(max_size=20),
    st.sampled_from(['{"data":1}', '{"end":true}', '{"end":"a"}', '{"contentType":"a/b"}', '{"input":"b","data":2}']),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.dictionaries(st.sampled_from(["data", "input", "end", "headers", "base64", "x"]), inner),
    ).map(json.dumps),
)


@given(st.lists(FRAMES, max_size=8))
def test_any_frames_are_steps_or_a_violation(frames: list[str | bytes]) -> None:
    """Nothing else is raised, and what is fed has the order of its frames."""
    session, _ = begun(add)
    try:
        for frame in frames:
            for step in session.receive(frame):
                assert isinstance(step, Feed | EndInput)
    except (ProtocolViolation, DecodeError):
        pass
