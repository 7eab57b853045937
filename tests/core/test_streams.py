"""Inputs, outputs and their budget."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.author.spec import IGNORED, StreamSpec
from invoker.codecs import builtin
from invoker.core.budget import STEP_BYTES, ProcessBudget
from invoker.core.coding import Decoders
from invoker.core.streams import Budget, InputStream, Limits, SingleInput
from invoker.errors import (
    Cancelled,
    DecodeError,
    InputCancelled,
    LimitExceeded,
    UnsupportedMediaType,
)
from invoker.message import Message

REGISTRY = builtin(entry_points=False)


def make_input(type_=str, limits=None, budget=None, index=0):
    return InputStream(Decoders(index, StreamSpec("xs", type_), REGISTRY), budget or Budget(limits or Limits()))


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
    assert (stream.budget.frames, stream.fed) == (3, 3)
    assert (stream.budget.bytes, stream.fed_bytes) == (30, 30)


def test_a_payload_that_nobody_reads_is_never_decoded():
    """An ignored input takes any media type, known or not."""
    stream = make_input(IGNORED)
    stream.feed(Message(b"\xff", media_type="application/x-doom"))
    assert taken(stream) is None


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
    """When the function asks for the next, not when the invocation is over: until then it works on it."""
    process = ProcessBudget(100 * STEP_BYTES)
    stream = make_input(budget=Budget(Limits(), process.share()))
    for _ in range(4):
        stream.feed(text(bytes(4 * STEP_BYTES)))
    assert process.held >= 16 * STEP_BYTES
    for left in (4, 3, 2, 1):
        assert stream.take() is not None
        assert left * 4 * STEP_BYTES <= process.held <= max(2 * left, 5) * 4 * STEP_BYTES
    assert stream.take() is None
    assert process.held == 0


def test_a_value_that_the_function_was_called_with_counts_until_it_returns():
    """It is there as long as the function runs, whoever sent it, and however often the end is looked for."""
    process = ProcessBudget(100 * STEP_BYTES)
    decoders = Decoders(0, StreamSpec("x", str, single=True), REGISTRY)
    stream = SingleInput(decoders, Budget(Limits(), memory=process))
    stream.feed(text(bytes(4 * STEP_BYTES)))
    stream.end()
    assert stream.take() is not None
    assert stream.take() is None
    assert process.held >= 4 * STEP_BYTES
    stream.budget.close()
    assert process.held == 0
