"""Inputs, outputs and their budget."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.author.spec import IGNORED, StreamSpec, Take
from invoker.codecs import builtin
from invoker.core.budget import STEP_BYTES, ProcessBudget
from invoker.core.streams import Budget, InputStream, Limits, OutputStream, wire_headers
from invoker.errors import (
    Cancelled,
    DecodeError,
    EncodeError,
    InputCancelled,
    LimitExceeded,
    NotAcceptable,
    UnsupportedMediaType,
)
from invoker.message import Message, Ref

REGISTRY = builtin(entry_points=False)


def make_input(type_=str, limits=None, budget=None, index=0):
    return InputStream(index, StreamSpec("xs", type_), REGISTRY, budget or Budget(limits or Limits()))


def text(payload):
    return Message(payload, media_type="text/plain")


def taken(stream):
    decode, message = stream.take()
    return decode(message)


def test_R063_messages_are_taken_in_arrival_order():
    """10,000 messages of one input come out as they went in."""
    stream = make_input(int, Limits(hard_frames=20_000))
    for number in range(10_000):
        stream.feed(text(b"%d" % number))
    assert [taken(stream) for _ in range(10_000)] == list(range(10_000))
    assert stream.take() is None
    assert not stream.is_ended


def test_R065_media_type_is_checked_when_a_message_arrives():
    """An unknown media type fails at once, before anybody pulls, and costs no budget."""
    stream = make_input(index=3)
    with pytest.raises(UnsupportedMediaType, match="Unsupported content-type 'application/x-doom' for input #3"):
        stream.feed(Message(b"1", media_type="application/x-doom"))
    assert stream.budget.frames == stream.budget.bytes == 0


def test_R061_no_media_type_means_octets():
    """An empty contentType is application/octet-stream."""
    stream = make_input(bytes)
    stream.feed(Message(b"\x00\xff"))
    assert taken(stream) == b"\x00\xff"


def test_R075_what_came_before_an_undecodable_message_is_still_delivered():
    """The payload is decoded when it is pulled, so earlier values stay delivered in order."""
    stream = make_input(int)
    for payload in (b"1", b"2", b"x"):
        stream.feed(text(payload))
    assert [taken(stream), taken(stream)] == [1, 2]
    with pytest.raises(DecodeError):
        taken(stream)


def test_R109_an_end_lets_the_queue_be_read_first():
    """The end of an input is a state, seen after what was fed before it."""
    stream = make_input()
    stream.feed(text(b"a"))
    stream.end()
    assert stream.is_ended
    assert taken(stream) == "a"
    assert stream.take() is None


def test_R110_a_failed_input_raises_and_drops_its_queue():
    """An error end is seen at the next pull and never looks like a clean end."""
    stream = make_input()
    stream.feed(text(b"a"))
    stream.fail(Cancelled("gone"))
    with pytest.raises(InputCancelled, match="gone"):
        stream.take()
    assert stream.budget.frames == stream.budget.bytes == 0


def test_a_clean_end_that_was_read_is_not_turned_into_an_error():
    """Who has seen the end shall not see an error after it."""
    stream = make_input()
    stream.end()
    stream.fail(Cancelled("late"))
    assert stream.take() is None


def test_R128_budget_is_high_at_the_mark_and_low_at_half_of_it():
    """Frames and bytes each have a mark; all inputs of an invocation share it."""
    budget = Budget(Limits(high_frames=4, high_bytes=100))
    first, second = make_input(budget=budget), make_input(budget=budget)
    for stream in (first, second, first):
        stream.feed(text(b"x"))
    assert not budget.is_high
    second.feed(text(b"x"))
    assert budget.is_high
    first.take()
    assert not budget.is_high
    assert not budget.is_low
    first.take()
    assert budget.is_low
    first.feed(text(b"x" * 100))
    assert budget.is_high


@pytest.mark.parametrize("limits", [Limits(hard_frames=3), Limits(hard_bytes=30)])
def test_R130_hard_cap_refuses_the_message_that_would_pass_it(limits):
    """At the hard cap the invocation fails with a limit, and the budget stays below it."""
    stream = make_input(limits=limits)
    for _ in range(3):
        stream.feed(text(b"x" * 10))
    with pytest.raises(LimitExceeded, match="are unread"):
        stream.feed(text(b"x" * 10))
    assert stream.budget.frames == 3
    assert stream.budget.bytes == 30


def test_a_payload_that_nobody_reads_is_never_decoded():
    """An ignored input takes any media type, known or not."""
    stream = make_input(IGNORED)
    stream.feed(Message(b"\xff", media_type="application/x-doom"))
    assert taken(stream) is None


def test_a_peer_that_invents_parameters_does_not_fill_the_memory():
    """The decoders that are remembered are bounded."""
    stream = make_input(limits=Limits(hard_frames=10_000))
    for number in range(1000):
        stream.feed(Message(b"x", media_type=f"text/plain;n={number}"))
    assert len(stream._decoders) <= 64


@given(st.lists(st.one_of(st.binary(max_size=9), st.none()), max_size=60))
def test_the_budget_is_the_sum_of_what_is_queued(actions):
    """Whatever is fed and taken, frames and bytes are those of the queue."""
    stream = make_input(bytes, Limits(hard_frames=20, hard_bytes=100))
    for action in actions:
        if action is None:
            stream.take()
        else:
            try:
                stream.feed(Message(action))
            except LimitExceeded:
                break
        assert stream.budget.frames == len(stream.queue) <= 20
        assert stream.budget.bytes == sum(len(message.payload) for _, message in stream.queue) <= 100


def make_output(accept="*/*", name="out"):
    return OutputStream(0, name, accept, REGISTRY)


def test_R100_nothing_acceptable_fails_when_the_output_is_made():
    """Negotiation happens before the function is called, and names the output."""
    with pytest.raises(NotAcceptable, match="'text/zglorbf' for output #0"):
        make_output("text/zglorbf")


def test_R099_the_best_type_that_takes_the_value_is_chosen_for_each_value():
    """One output may carry several media types, each within what is accepted."""
    output = make_output("application/json, application/octet-stream")
    made: list[Any] = [output.encode(value) for value in ({"a": 1}, b"\x00", "x", b"\x01")]
    assert [(one.payload, one.media_type) for one in made] == [
        (b'{"a":1}', "application/json"),
        (b"\x00", "application/octet-stream"),
        (b'"x"', "application/json"),
        (b"\x01", "application/octet-stream"),
    ]


def test_R104_a_value_that_no_accepted_codec_takes_is_an_error():
    """The detail names the output."""
    with pytest.raises(EncodeError, match="output #0"):
        make_output("application/json").encode(b"\x00")


def test_R107_headers_of_a_message_travel_and_content_type_is_negotiated():
    """A Content-Type header is a plain header; it never changes the media type."""
    made = make_output("text/plain").encode(Message("x", headers={"Content-Type": "text/csv", "n": ["1", "2"]}))
    assert made.media_type == "text/plain"
    assert dict(made.headers) == {"Content-Type": "text/csv", "n": "1"}


def test_a_media_type_that_the_function_chose_is_obeyed_when_it_is_accepted():
    """Bytes that the function encoded itself pass untouched."""
    png = make_output("*/*").encode(Message(b"\x89PNG", media_type="image/png"))
    assert (png.payload, png.media_type) == (b"\x89PNG", "image/png")
    with pytest.raises(EncodeError, match="the caller accepts 'text/plain'"):
        make_output("text/plain").encode(Message(b"\x89PNG", media_type="image/png"))
    chosen = make_output("application/json, text/plain").encode(Message("x", media_type="text/plain"))
    assert (chosen.payload, chosen.media_type) == (b"x", "text/plain")


def test_R098_what_leaves_is_concrete_and_has_no_q():
    """Neither a range nor a q leaves the house."""
    output = make_output("text/plain;q=0.3, image/*")
    assert output.encode("x").media_type == "text/plain"
    assert output.encode(Message(b"x", media_type="image/png;q=0.1")).media_type == "image/png"
    with pytest.raises(EncodeError):
        output.encode(Message(b"x", media_type="image/*"))


@pytest.mark.parametrize("headers", [{"": "x"}, {"a": "\ud800"}, {"\udfff": "x"}])
def test_R108_headers_unfit_for_the_wire_are_errors(headers):
    """An empty name and lone surrogates are refused."""
    with pytest.raises(EncodeError, match="output #2"):
        wire_headers(headers, 2)


def test_R108_headers_become_text():
    """Unicode and empty values are kept, everything else goes through str()."""
    assert wire_headers({"Ünï": "日本", "n": 5, "empty": ""}, 0) == {"Ünï": "日本", "n": "5", "empty": ""}


def test_E059_a_ref_is_sent_as_its_uri() -> None:
    """E-059: a Ref is a message without bytes whose header says where they lie; its own headers stay."""
    output = OutputStream(0, "out", "*/*", builtin(), by_value=True)
    made = output.encode(Ref("https://example.org/a.png", "image/png"))
    assert (made.payload, dict(made.headers), made.media_type) == (
        b"",
        {"reference": "https://example.org/a.png"},
        "image/png",
    )
    wrapped = output.encode(Message(Ref("file:///a"), {"role": "model"}))
    assert dict(wrapped.headers) == {"role": "model", "reference": "file:///a"}
    with pytest.raises(EncodeError, match="no type"):
        output.encode(Ref("https://example.org/", "no type"))


@pytest.mark.parametrize(
    ("type_", "take", "media_type", "value"),
    [
        (str, Take.PAYLOAD, "text/markdown", "x"),
        (bytes, Take.PAYLOAD, "image/png", b"x"),
        (str, Take.MESSAGE, "image/png", b"x"),
        (str, Take.MESSAGE, "application/x-protobuf; type=EndOfTurn", b"x"),
    ],
)
def test_E047_an_open_input_takes_types_without_codecs(type_: type, take: Take, media_type: str, value: object) -> None:
    """E-047, E-049: text as text, anything else as bytes for those who take bytes or the whole message."""
    stream = InputStream(0, StreamSpec("x", type_, take), builtin(), Budget(Limits()), is_open=True)
    stream.feed(Message(b"x", media_type=media_type))
    item = stream.take()
    assert item is not None
    assert item[0](item[1]) == value


def test_E047_an_open_input_refuses_what_cannot_be_made() -> None:
    """E-047: a str cannot be made of an image; an input that is not open takes nothing without a codec."""
    for type_, is_open in ((str, True), (bytes, False)):
        stream = InputStream(0, StreamSpec("x", type_), builtin(), Budget(Limits()), is_open=is_open)
        with pytest.raises(UnsupportedMediaType):
            stream.feed(Message(b"x", media_type="image/png"))


def test_E104_text_may_be_of_a_kind_without_a_codec() -> None:
    """E-104: a Message keeps its own type; text of any ``text/*`` is text."""
    made = OutputStream(0, "out", "*/*", builtin(), by_value=True).encode(Message("hé", media_type="text/html"))
    assert (made.payload, made.media_type) == ("hé".encode(), "text/html")
    with pytest.raises(EncodeError):
        OutputStream(0, "out", "*/*", builtin()).encode(Message("hé", media_type="text/html"))


def test_an_error_reaches_who_waits_at_an_empty_input():
    """It counts although nothing is queued; at an input that has ended and was read, it does not."""
    waits, read = make_input(), make_input()
    read.end()
    for stream in (waits, read):
        stream.fail(Cancelled("gone"))
    with pytest.raises(InputCancelled):
        waits.take()
    assert waits.is_ended
    assert read.take() is None


def test_an_error_takes_what_was_not_read_of_an_input_that_has_ended():
    """Its messages are dropped, and their bytes given back."""
    stream = make_input()
    stream.feed(text(b"one"))
    stream.end()
    stream.fail(Cancelled("gone"))
    with pytest.raises(InputCancelled):
        stream.take()
    assert (stream.budget.frames, stream.budget.bytes) == (0, 0)


def test_what_was_read_is_given_back_to_the_process():
    """As soon as it is taken, not when the invocation is over."""
    process = ProcessBudget(100 * STEP_BYTES)
    stream = make_input(budget=Budget(Limits(), process.share()))
    for _ in range(4):
        stream.feed(text(bytes(4 * STEP_BYTES)))
    assert process.held >= 16 * STEP_BYTES
    for _ in range(4):
        stream.take()
    assert process.held == 0
