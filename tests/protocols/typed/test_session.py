"""Calls of typed methods: messages in, steps out."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker import function
from invoker.author.binding import MOST_INPUTS
from invoker.core.steps import Cancel, Close, Emitted, EndInput, Feed, Finished, Open, OutputEnded, Send
from invoker.errors import CallError, DecodeError, InternalError, LimitExceeded, Status
from invoker.errors.wording import Place
from invoker.message import EMPTY, Headers, Message
from invoker.protocols.typed.calls import Call, calls_of
from invoker.protocols.typed.session import State, TypedSession, told
from tests.conftest import cpu_within
from tests.protocols.typed.written import spec_of

A1, B2 = b"\x08\x01", b"\x10\x02"
"""Fields 1 and 2 with the numbers 1 and 2."""


def add(a: int, b: int = 5) -> int: ...
def many(*xs: int) -> int: ...
def named(a: int, **more: int) -> int: ...
def now() -> str: ...
def ticks() -> Iterator[int]: ...
def total(xs: Iterator[int]) -> int: ...
def top(xs: Iterator[int], k: int, by: str = "") -> Iterator[int]: ...
def repeat(words: Iterator[int], counts: Iterator[int]) -> Iterator[int]: ...


@function(outputs=("low", "high"))
def bounds(xs: list[int]) -> tuple[int, int]: ...


def call_of(function) -> Call:
    """Its method."""
    (call,) = calls_of([spec_of(function)])
    return call


def session_of(function, *, is_json: bool = False) -> TypedSession:
    """A call of it."""
    return TypedSession(call_of(function), Headers({"a": "b"}), is_json=is_json)


def fed(steps) -> list[tuple[int, bytes]]:
    """What is given to which input."""
    return [(one.index, one.message.payload) for one in steps if isinstance(one, Feed)]


def emitted(payload: bytes, index: int = 0) -> Emitted:
    """A value of the function."""
    return Emitted("typed", index, Message(payload, EMPTY, "application/vnd.invoker.field;of=x;out=1"))


def status(steps) -> tuple[Status, str]:
    """That of the only step, which ends the call."""
    (step,) = steps
    assert isinstance(step, (Close, Cancel))
    return step.error.status, str(step.error)


C3 = b"\x12\x05\x0a\x01c\x10\x03"
"""Field 2, a map, with 3 for c."""


def test_H211_each_entry_of_a_map_is_an_input():
    """Of the name of its key, behind the parameters; none is none."""
    steps = session_of(named).receive(A1 + C3 + C3.replace(b"c", b"d"))
    assert steps[0].bound == ("a", "c", "d")
    assert fed(steps) == [(0, A1), (1, C3), (2, C3.replace(b"c", b"d"))]
    steps = session_of(named, is_json=True).receive(b'{"a": 1, "more": {"c": 3, "d": [4]}}')
    assert (steps[0].bound, fed(steps)) == (("a", "c", "d"), [(0, b"1"), (1, b"3"), (2, b"[4]")])
    assert session_of(named).receive(A1)[0].bound == ("a",)


@pytest.mark.parametrize(("key", "said"), [("a", "is given its input 'a' twice"), ("", "has no input ''; it has a")])
def test_H211_a_key_is_no_other_parameter(key, said):
    """Nor nothing; and there are only so many."""
    found, text = status(session_of(named, is_json=True).receive(json.dumps({"a": 1, "more": {key: 3}}).encode()))
    assert (found, said in text) == (Status.INVALID_ARGUMENT, True)
    many_names = json.dumps({"a": 1, "more": {f"k{n}": n for n in range(1000)}}).encode()
    assert (
        "given 1001 inputs, which exceeds the limit of 1000"
        in status(session_of(named, is_json=True).receive(many_names))[1]
    )


def test_H106_a_request_opens_with_all_its_fields():
    """Each field goes to its input as it came; options that are missing are not bound."""
    steps = session_of(add).receive(A1)
    assert steps[0] == Open(
        "typed",
        "add",
        ("application/vnd.invoker.field;of=add;out=1",),
        metadata=Headers({"a": "b"}),
        bound=("a",),
        protocol="typed",
    )
    assert steps[1].message.media_type == "application/vnd.invoker.field;of=add;in=1"
    assert fed(steps) == [(0, A1)]
    assert steps[-1] == EndInput("typed")
    steps = session_of(add).receive(B2 + A1 + b"\x18\x09")
    assert steps[0].bound == ("a", "b")
    assert fed(steps) == [(0, A1), (1, B2)]


def test_H106_a_field_that_is_missing_is_fed_empty():
    """Protobuf does not send zeros."""
    steps = session_of(add).receive(B2)
    assert fed(steps) == [(0, b""), (1, B2)]


def test_further_arguments_are_inputs_of_their_own():
    """As many as came; with none the function is called without."""
    steps = session_of(many).receive(b"\x0a\x02\x01\x02\x08\x03")
    assert steps[0].bound == ("#0", "#1", "#2")
    assert fed(steps) == [(0, b"\x08\x01"), (1, b"\x08\x02"), (2, b"\x08\x03")]
    assert steps[1].message.media_type.endswith(";each=1")
    assert session_of(many).receive(b"")[0].bound == ()


@pytest.mark.parametrize(
    ("frame", "is_json"),
    [
        (b"\x0a\xc0\x84\x3d" + b"\x01" * 1_000_000, False),  # packed
        (b"\x08\x01" * 500_000, False),
        (b'{"xs": [%b1]}' % (b"1," * 500_000), True),
        (b'{"xs": [%b1]}' % (b"1," * MOST_INPUTS), True),
    ],
)
def test_H108_the_number_of_further_arguments_is_bounded(frame, is_json):
    """Hundreds of thousands are refused before anything is made of them, which would take the loop for long."""
    session = session_of(many, is_json=is_json)
    with cpu_within(1):
        (end,) = session.receive(frame)
    assert end.error.status is Status.INVALID_ARGUMENT
    assert f"the field 'xs' exceeds the limit of {MOST_INPUTS} values" in str(end.error)


def test_so_many_further_arguments_are_taken():
    """The last that is taken, in each form; members of one that is a list do not count."""
    for frame, is_json in ((A1 * MOST_INPUTS, False), (b'{"xs": [%b1]}' % (b"1," * (MOST_INPUTS - 1)), True)):
        assert len(fed(session_of(many, is_json=is_json).receive(frame))) == MOST_INPUTS
    assert len(fed(session_of(many, is_json=True).receive(b'{"xs": [[%b1]]}' % (b"1," * MOST_INPUTS)))) == 1


def test_a_function_without_parameters_is_called_once():
    """A source is opened without inputs."""
    steps = session_of(now).receive(b"")
    assert steps[0].bound == ("in",)
    assert fed(steps) == [(0, b"")]
    steps = session_of(ticks).receive(b"")
    assert (steps[0].bound, fed(steps)) == ((), [])


def test_H102_each_message_of_a_stream_is_an_item():
    """Also an empty one, which is a zero; the half-close ends the input."""
    session = session_of(total)
    steps = session.receive(b"")
    assert steps[0].bound == ("xs",)
    assert fed(steps) == [(0, b"")]
    assert fed(session.receive(A1)) == [(0, A1)]
    assert session.half_close() == (EndInput("typed"),)


def test_H102_a_stream_may_end_before_it_began():
    """The function runs with nothing."""
    steps = session_of(total).half_close()
    assert isinstance(steps[0], Open)
    assert steps[1:] == (EndInput("typed"),)


def test_H102_values_beside_streams_come_in_any_message():
    """Options come in the first one; a later one is told."""
    session = session_of(top)
    steps = session.receive(A1 + b"\x1a\x01x")
    assert steps[0].bound == ("xs", "k", "by")
    assert fed(steps) == [(0, A1), (2, b"\x1a\x01x")]
    assert fed(session.receive(B2)) == [(1, B2)]
    session = session_of(top)
    assert session.receive(A1)[0].bound == ("xs", "k")
    code, text = status(session.receive(b"\x1a\x01x"))
    assert code is Status.INVALID_ARGUMENT
    assert "input 'by' is an option of 'top', and its value came too late; it may" in text


def test_H108_a_value_beside_streams_that_never_came_is_missing():
    """Whether anything else came or not; a value that came late is there."""
    session = session_of(top)
    session.receive(A1)
    code, text = status(session.half_close())
    assert code is Status.INVALID_ARGUMENT
    assert "needs its input 'k', which is not given" in text
    session = session_of(top)
    assert isinstance(session.half_close()[0], Close)
    session = session_of(top)
    session.receive(A1)
    session.receive(B2)
    assert session.half_close() == (EndInput("typed"),)


def test_H102_a_stream_with_a_default_is_a_stream():
    """Its items may come later than the first message."""

    def late(prefix: str = "", xs: Iterator[int] = ()) -> Iterator[int]: ...

    session = session_of(late)
    assert session.receive(b"\x0a\x01x")[0].bound == ("prefix", "xs")
    assert fed(session.receive(B2)) == [(1, B2)]


def test_H102_several_streams_share_the_requests():
    """Each message is for the input whose field it has."""
    session = session_of(repeat)
    assert fed(session.receive(B2)) == [(1, B2)]
    assert fed(session.receive(A1)) == [(0, A1)]


def test_H106_the_response_is_what_the_output_gave():
    """A single one comes with the end."""
    session = session_of(add)
    session.receive(A1)
    assert session.deliver(emitted(b"\x08\x07")) == ()
    assert session.deliver(OutputEnded("typed", 0)) == ()
    assert session.deliver(Finished("typed")) == (Send(b"\x08\x07"), Close())
    assert session.state is State.CLOSED
    assert session.deliver(Finished("typed")) == session.receive(A1) == session.half_close() == ()


def test_H102_responses_of_a_stream_leave_at_once():
    """Then the end."""
    session = session_of(ticks)
    session.receive(b"")
    assert session.deliver(emitted(b"a")) == (Send(b"a"),)
    assert session.deliver(emitted(b"b")) == (Send(b"b"),)
    assert session.deliver(Finished("typed")) == (Close(),)


def test_H102_outputs_of_a_single_response_are_joined():
    """In the order of their numbers, in both forms."""
    session = session_of(bounds)
    session.receive(b"")
    session.deliver(emitted(b"2", 1))
    session.deliver(emitted(b"1", 0))
    assert session.deliver(Finished("typed"))[0] == Send(b"12")
    session = session_of(bounds, is_json=True)
    session.receive(b"{}")
    session.deliver(emitted(b'{"low":1}', 0))
    session.deliver(emitted(b"{}", 1))
    assert session.deliver(Finished("typed"))[0] == Send(b'{"low":1}')


def test_a_single_response_is_exactly_one():
    """A second value cancels; none is an error."""
    session = session_of(add)
    session.receive(A1)
    session.deliver(emitted(b"a"))
    assert "a second value; Add returns exactly one" in status(session.deliver(emitted(b"b")))[1]
    session = session_of(add)
    session.receive(A1)
    assert status(session.deliver(Finished("typed")))[0] is Status.UNKNOWN


def test_H108_a_wrong_message_is_an_invalid_argument():
    """Before anything was opened the call ends; later the invocation does."""
    session = session_of(add)
    code, text = status(session.receive(b"\x08"))
    assert code is Status.INVALID_ARGUMENT
    assert "1 bytes were received that are not a message of protobuf: a number is cut off" in text
    assert session.state is State.CLOSED
    session = session_of(top)
    session.receive(A1)
    (step,) = session.receive(b"\x08")
    assert isinstance(step, Cancel)
    assert step.error.status is Status.INVALID_ARGUMENT


def test_H108_a_request_that_is_no_stream_is_exactly_one():
    """None, and two, are told."""
    assert "takes one message, and got none" in status(session_of(add).half_close())[1]
    session = session_of(add)
    session.receive(A1)
    assert session.half_close() == ()
    assert "got a second one" in status(session.receive(A1))[1]


def test_H108_what_is_the_callers_fault_is_an_invalid_argument():
    """The text names the parameter; all else keeps its status."""
    session = session_of(add)
    session.receive(A1)
    error = DecodeError(" is wrong", place=Place("input", 0, "a"))
    assert status(session.deliver(Finished("typed", error))) == (
        Status.INVALID_ARGUMENT, "Invoker: Bad Input Signal: parameter 'a' is wrong",
    )  # fmt: skip
    for other in (CallError("x"), LimitExceeded("x"), InternalError("x")):
        assert told(other) is other


def test_H109_json_is_cut_by_its_names():
    """Both spellings of a name are taken; null leaves an option out; what is unknown is dropped."""

    def f(foo_bar: int, *more: int, b: int = 3) -> int: ...

    session = session_of(f, is_json=True)
    steps = session.receive(b'{"fooBar": 1, "b": null, "more": [2, 3], "x": {}}')
    assert steps[0].bound == ("foo_bar", "#1", "#2")
    assert steps[0].accepts == ("application/vnd.invoker.field+json;of=f;out=1",)
    assert fed(steps) == [(0, b"1"), (1, b"2"), (2, b"3")]
    assert fed(session_of(f, is_json=True).receive(b'{"foo_bar": 7}')) == [(0, b"7")]
    assert fed(session_of(f, is_json=True).receive(b"")) == [(0, b"")]
    assert fed(session_of(total, is_json=True).receive(b"{}")) == [(0, b"")]


def test_H233_json_may_begin_with_a_byte_order_mark():
    """It is no part of it; a mark alone is no JSON but an empty message."""
    assert fed(session_of(total, is_json=True).receive(b'\xef\xbb\xbf{"n": 7}')) == fed(
        session_of(total, is_json=True).receive(b'{"n": 7}')
    )


@pytest.mark.parametrize("frame", [b"[", b"[]", b"3", b'{"a": }', b"\xff"])
def test_H109_json_that_is_no_object_is_an_invalid_argument(frame):
    """The text says so."""
    code, text = status(session_of(add, is_json=True).receive(frame))
    assert code is Status.INVALID_ARGUMENT
    assert "that are not JSON" in text


@given(
    st.lists(st.binary(max_size=20), max_size=5),
    st.booleans(),
    st.sampled_from([add, many, named, total, top, repeat, now]),
)
def test_H108_any_frames_are_steps(frames, is_json, function):
    """Nothing is raised; one invocation is opened at most, and nothing follows a Close."""
    session = session_of(function, is_json=is_json)
    steps = [step for frame in frames for step in session.receive(frame)]
    steps += session.half_close()
    assert sum(isinstance(one, Open) for one in steps) <= 1
    kinds = [type(one) for one in steps]
    assert Close not in kinds[:-1]
    with contextlib.suppress(StopIteration):
        assert next(kind for kind in kinds if kind is not Close) is Open


def test_frames_of_json_are_those_of_the_caller():
    """What a value looks like within is left alone."""
    steps = session_of(add, is_json=True).receive(json.dumps({"a": {"deep": [1, 2]}}).encode())
    assert fed(steps) == [(0, b'{"deep": [1, 2]}')]
