"""One invocation, as pure state."""

from collections.abc import Iterator

import pytest

from invoker.author.prepare import prepare_function
from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.invocation import Awaits
from invoker.core.policy import ErrorPolicy
from invoker.core.steps import ALL, EndInput, Feed, Open, Terms
from invoker.core.streams import Limits
from invoker.errors import (
    Cancelled,
    DecodeError,
    Discarded,
    EncodeError,
    FunctionError,
    InputCancelled,
    LimitExceeded,
    ProtocolViolation,
    Status,
    StopInvocation,
    UnsupportedMediaType,
    reason_of,
)
from invoker.message import Message, Output


def repeat(words: Iterator[str], counts: Iterator[int]) -> Iterator[Output]:
    yield from ()


@pytest.fixture
def engine():
    return Engine(
        Catalog([prepare_function(repeat).function]), builtin(entry_points=False), limits=Limits(high_frames=4)
    )


@pytest.fixture
def invocation(engine):
    return engine.open(Open("a", accepts=("text/plain", "application/json"), output_names=("x", "y")))


def feed(index=0, payload=b"1", media_type="text/plain"):
    return Feed("a", index, Message(payload, media_type=media_type))


@pytest.mark.parametrize("index", [2, -1, 2**31 - 1, -(2**31)])
def test_R064_index_out_of_range_is_a_violation(invocation, index):
    """No such input, however large or negative the index is."""
    with pytest.raises(ProtocolViolation, match=rf"argIndex {index} out of range for 2 input\(s\)"):
        invocation.feed(feed(index))


def test_R062_R063_each_input_keeps_its_own_order(invocation):
    """Messages are routed by their index and stay in order there."""
    for index, payload in ((0, b"a"), (1, b"1"), (0, b"b"), (1, b"2")):
        invocation.feed(feed(index, payload))
    assert [message.payload for _, message in invocation.inputs[0].queue] == [b"a", b"b"]
    assert [message.payload for _, message in invocation.inputs[1].queue] == [b"1", b"2"]


def test_R076_a_finished_invocation_ignores_frames(invocation):
    """Errors of frames that nobody reads any more are no errors."""
    invocation.finish(None)
    invocation.feed(feed(7))
    invocation.feed(feed(0, b"x", "application/x-doom"))
    assert invocation.budget.frames == 0


def test_RM2_a_refused_message_raises_and_leaves_the_others_alone(invocation):
    """The machinery checks the range and the media type; what is queued stays queued."""
    invocation.feed(feed())
    with pytest.raises(UnsupportedMediaType):
        invocation.feed(feed(1, b"x", "nonsense"))
    assert len(invocation.inputs[0].queue) == 1


def test_RM3_ending_inputs_is_idempotent_and_no_message_follows(invocation):
    """One input or all of them end, twice is once, and a message after the end is a violation."""
    invocation.end_inputs(EndInput("a", 1))
    assert [stream.is_ended for stream in invocation.inputs] == [False, True]
    invocation.end_inputs(EndInput("a", ALL))
    invocation.end_inputs(EndInput("a", ALL))
    with pytest.raises(ProtocolViolation, match="has ended"):
        invocation.feed(feed(0))
    with pytest.raises(ProtocolViolation, match="out of range"):
        invocation.end_inputs(EndInput("a", 5))


def test_R110_an_ending_with_an_error_shows_it_to_every_reader(invocation):
    """Every input that was open raises it, also one that has unread messages."""
    invocation.feed(feed())
    invocation.finish(Cancelled("gone"))
    for stream in invocation.inputs:
        with pytest.raises(InputCancelled, match="gone"):
            stream.take()


def test_RM6_the_first_ending_wins(invocation):
    """Later failures are not told to anybody."""
    first = FunctionError("one")
    assert invocation.finish(first)
    assert not invocation.finish(FunctionError("two"))
    assert not invocation.finish(None)
    assert invocation.error is first


def test_RM5_cancelling_releases_everything_and_may_come_twice(invocation):
    """After a cancel nothing is held, and readers see why."""
    for _ in range(3):
        invocation.feed(feed())
    error = Cancelled("gone")
    assert invocation.finish(error)
    assert not invocation.finish(error)
    assert invocation.budget.frames == invocation.budget.bytes == 0
    assert invocation.is_finished
    with pytest.raises(InputCancelled):
        invocation.inputs[0].take()


def test_R128_R129_reading_pauses_at_the_mark_unless_a_reader_starves(invocation):
    """Above the mark input is unwanted, except while somebody waits on an empty input."""
    for _ in range(4):
        invocation.feed(feed(0))
    assert not invocation.wants_input
    invocation.inputs[1].waiters += 1
    assert invocation.is_starving
    assert invocation.wants_input
    invocation.feed(feed(1))
    assert not invocation.is_starving
    assert not invocation.wants_input


def test_R130_a_function_that_does_not_read_is_told_which_input(engine):
    """The one with most of the unread frames, not the one that happened to be fed last."""
    invocation = engine.open(Open("x"), limits=Limits(2, 100, 3, 100))
    for _ in range(3):
        invocation.feed(feed(0))
    with pytest.raises(LimitExceeded) as caught:
        invocation.feed(feed(1))
    assert str(caught.value) == (
        "Invoker: Limit Exceeded: 4 frames with 4 bytes are unread; the limits of an invocation are 3 "
        "frames and 100 bytes; "
        "3 of them are of input #0 'words', which 'repeat' reads more slowly than they come, or not at all"
    )
    large = engine.open(Open("y"), limits=Limits(2, 100, 3, 100))
    with pytest.raises(LimitExceeded, match=r"; this one frame is of input #1 'counts'$"):
        large.feed(feed(1, b"1" * 101))


def test_R111_the_end_of_one_output_is_not_the_end(invocation):
    """Where each output has a generator, each end is told once; a lone generator ends with the invocation."""
    assert not invocation.end_output(0)
    invocation.generators = 2
    assert [invocation.end_output(index) for index in (1, 1, 0, 7)] == [True, False, True, False]
    assert not invocation.is_finished


def test_E086_values_for_an_unwanted_output_are_dropped(engine):
    """Nothing is negotiated or encoded for it, however it is addressed, and its end is no news."""
    invocation = engine.open(Open("a", accepts=("text/plain", "application/none"), unwanted=(1,)))
    for value in (Output(1, object()), Output("out1", 5)):
        with pytest.raises(Discarded):
            invocation.encode(0, value)
    assert invocation.encode(0, "x") == (0, Message(b"x", media_type="text/plain"))
    assert invocation.encode_sent(1, object()) is None
    assert [output.is_wanted for output in invocation.outputs] == [True, False]
    invocation.generators = 2
    assert not invocation.end_output(1)


def test_E086_an_output_of_any_name_that_is_not_listed_is_dropped(engine):
    """Where the number of outputs is open, only what the caller named is wanted; riff callers are told of a mistake."""
    invocation = engine.open(Open("a", accepts=("*/*",), output_names=("one",), terms=Terms.LOOSE))
    with pytest.raises(Discarded):
        invocation.encode(0, Output("other", object()))
    assert invocation.encode(0, Output("one", "x")) == (0, Message(b"x", media_type="text/plain"))
    with pytest.raises(EncodeError):
        invocation.encode(0, Output(3, "x"))
    none = engine.open(Open("b", accepts=(), terms=Terms.LOOSE))
    for value in ("x", Output("other", "x")):
        with pytest.raises(Discarded):
            none.encode(0, value)
    with pytest.raises(EncodeError):
        engine.open(Open("c", accepts=("*/*",), output_names=("one",))).encode(0, Output("other", "x"))


def test_E119_a_closed_output_stops_the_generator_that_gives_it_alone(invocation):
    """The next value on it raises into its own generator; another's values for it are only dropped."""
    invocation.generators = 2
    invocation.close_output(1)
    with pytest.raises(StopInvocation) as stopped:
        invocation.encode(1, "late")
    assert type(stopped.value) is StopInvocation
    with pytest.raises(Discarded):
        invocation.encode(0, Output(1, "late"))
    assert invocation.encode(0, "x")[0] == 0
    assert invocation.encode_sent(1, "late") is None


def test_E119_an_output_may_be_closed_before_its_generator_is_there(invocation):
    """A function that takes its time to return its iterators loses one of them all the same."""
    invocation.close_output(1)
    with pytest.raises(Discarded):
        invocation.encode(1, "sent while the function is called")
    invocation.opened(2)
    with pytest.raises(StopInvocation) as stopped:
        invocation.encode(1, "late")
    assert type(stopped.value) is StopInvocation
    assert invocation.encode(0, "x")[0] == 0


def test_E119_a_lone_generator_stops_once_none_of_its_outputs_is_read(invocation):
    """While another output is read, values for the closed one are dropped."""
    invocation.generators = 1
    invocation.close_output(0)
    with pytest.raises(Discarded):
        invocation.encode(0, "dropped")
    assert invocation.encode(0, Output(1, 5))[0] == 1
    invocation.close_output(1)
    for value in ("x", Output(1, 5)):
        with pytest.raises(StopInvocation) as stopped:
            invocation.encode(0, value)
        assert type(stopped.value) is StopInvocation
    with pytest.raises(StopInvocation):
        invocation.encode_sent(1, 5)
    invocation.close_output(7)  # there is none, so there is nothing to do


def test_E130_an_output_that_the_function_ended_takes_nothing_more(invocation):
    """Its end is told once; a value after it is the author's error, yielded or sent."""
    assert [invocation.end_sent(1), invocation.end_sent(1)] == [True, False]
    for give in (lambda: invocation.encode(0, Output(1, 5)), lambda: invocation.encode_sent(1, 5)):
        with pytest.raises(EncodeError, match="output #1 'y' was given a value after its end"):
            give()


def test_R039_tagged_values_go_to_their_output_by_index_or_name(invocation):
    """`Output` addresses by number, by the caller's name; an unknown one is an error that names it."""
    assert invocation.encode(0, Output(1, 5))[0] == 1
    assert invocation.encode(0, Output("y", 5))[0] == 1
    assert invocation.encode(1, Output("x", "t"))[0] == 0
    for target in ("z", 2, -1):
        with pytest.raises(EncodeError, match=repr(target)):
            invocation.encode(0, Output(target, 5))


def test_R136_a_result_index_never_exceeds_the_outputs(invocation):
    """Callers index a list with it, so it is our error before it is theirs."""
    with pytest.raises(EncodeError, match="output #2"):
        invocation.encode(2, "x")


def test_R106_what_is_emitted_is_counted_where_it_leaves(invocation):
    """Messages and bytes add up for the log and the metrics."""
    for value in ("a", "bc"):
        invocation.emit(*invocation.encode(0, value))
    invocation.close_output(1)
    assert [(output.emitted, output.emitted_bytes) for output in invocation.outputs] == [(2, 3), (0, 0)]
    invocation.close_output(0)
    assert invocation.outputs[0].emitted_bytes == invocation.bytes_out == 3


def pick(items: Iterator[str], k: int, mark: str = "", most: int = 1) -> Iterator[str]:
    yield from ()


def gen(prompt: str) -> Iterator[str]:
    yield prompt


def opened(function, *names):
    served = Engine(Catalog([prepare_function(function).function]), builtin(entry_points=False))
    return served.open(Open("a", input_names=names))


def test_R166_announced_options_and_values_are_awaited():
    """Until each has its frame, or has ended; a stream is not."""
    invocation = opened(pick, "in", "k", "most")
    assert not invocation.may_begin()
    invocation.feed(feed(1))
    assert (invocation.may_begin(), invocation.awaits) == (False, Awaits.VALUE)
    invocation.feed(feed(2))
    assert invocation.may_begin()


def test_R166_without_names_options_may_come_until_the_first_frame_of_another_input():
    """Then those that have not come are closed, and their frames are violations that name them."""
    invocation = opened(pick)
    invocation.feed(feed(3))
    assert not invocation.may_begin()
    invocation.feed(feed(0))
    assert not invocation.may_begin()
    with pytest.raises(ProtocolViolation, match=r"input #2 'mark' is an option of 'pick'.*name it in inputNames"):
        invocation.feed(feed(2))
    invocation.feed(feed(1))
    assert invocation.may_begin()
    with pytest.raises(ProtocolViolation, match="input #3 'most': expected 1 frame, got 2 or more"):
        invocation.feed(feed(3))


def test_nothing_is_awaited_of_inputs_that_have_ended():
    """Whatever has come of them; a body is called for it, unless all of that is nothing."""
    invocation = opened(pick)
    invocation.feed(feed(0))
    invocation.end_inputs(EndInput("a"))
    assert (invocation.may_begin(), invocation.awaits, invocation.got_nothing) == (True, Awaits.NOTHING, False)


def test_R129_reading_goes_on_while_an_option_is_awaited():
    """However much has come for other inputs meanwhile."""
    invocation = opened(pick, "in", "k")
    while not invocation.budget.is_high:
        invocation.feed(feed(0))
    assert not invocation.may_begin()
    assert invocation.wants_input
    invocation.feed(feed(1))
    assert invocation.may_begin()
    assert not invocation.wants_input


def test_R168_a_body_of_values_alone_waits_for_their_end():
    """So that a second value is refused before the body has begun; the driver ends the wait after some time."""
    invocation = opened(gen)
    invocation.feed(feed())
    assert (invocation.may_begin(), invocation.awaits) == (False, Awaits.END)
    with pytest.raises(ProtocolViolation, match="input #0 'prompt': expected 1 frame, got 2 or more"):
        invocation.feed(feed())
    invocation.is_settled = True
    assert invocation.may_begin()


def test_R168_an_empty_window_is_nothing_to_call_a_body_of_values_for():
    """Unlike one in which something else has come, or which was cancelled."""
    empty, other, cancelled = opened(gen), opened(pick), opened(gen)
    other.feed(feed(0))
    for one in (empty, other):
        one.end_inputs(EndInput("a", ALL))
    cancelled.finish(Cancelled("gone"))
    assert [one.got_nothing for one in (empty, other, cancelled)] == [True, False, False]


def test_R166_a_stream_without_names_waits_for_options_for_a_second():
    """Nobody sends one then any more; a function that is called with a value waits for that anyway."""

    def greeter(words: Iterator[str], sep: str = ",") -> Iterator[str]:
        yield from words

    invocation = opened(greeter)
    assert (invocation.may_begin(), invocation.awaits, invocation.patience_s) == (False, Awaits.OPTIONS, 1.0)
    invocation.is_settled = True
    assert invocation.may_begin()
    with pytest.raises(
        ProtocolViolation, match="input #1 'sep' is an option of 'greeter', and its value came too late"
    ):
        invocation.feed(feed(1))
    invocation = opened(pick)
    assert (invocation.may_begin(), invocation.patience_s) == (False, None)


def test_R069_R117_an_invocation_ends_with_what_the_policy_says():
    """Its status and its text are set before anybody is told of the ending."""
    policy = ErrorPolicy("none", Status.INVALID_ARGUMENT)
    engine = Engine(Catalog([prepare_function(repeat).function]), builtin(entry_points=False), policy=policy)
    ending = engine.open(Open("a"))
    assert ending.finish(DecodeError("odd", why=reason_of(KeyError("k"))))
    assert (ending.error.status, str(ending.error)) == (Status.INVALID_ARGUMENT, "Invoker: Bad Input Signal: odd")
