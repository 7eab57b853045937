"""The riff session: frames in, steps out."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.core.steps import ALL, Close, Elapsed, Emitted, EndInput, Feed, Finished, Open, Send, Timer
from invoker.errors import Cancelled, FunctionError, NotAcceptable, Overloaded, ProtocolViolation, ShuttingDown
from invoker.message import EMPTY, Message
from invoker.protocols.riff import session as module
from invoker.protocols.riff.session import RiffSession, State


def start(types=("application/json",), ins=(), outs=()):
    frame = pb.StartFrame(expectedContentTypes=types, inputNames=ins, outputNames=outs)
    return pb.InputSignal(start=frame).SerializeToString()


def data(payload=b"1", index=0, media_type="application/json", headers=None):
    frame = pb.InputFrame(payload=payload, contentType=media_type, argIndex=index, headers=headers or {})
    return pb.InputSignal(data=frame).SerializeToString()


@pytest.fixture
def session():
    return RiffSession({"trace": "t"}, function="square")


@pytest.fixture
def started(session):
    session.receive(start())
    return session


def test_a_start_frame_opens_the_invocation(session):
    """Accept lists, names, metadata and the function's name reach the machinery as they came."""
    steps = session.receive(start(["text/plain, */*", "image/png"], ["a"], ["x", "y"]))
    assert list(steps) == [
        Open("riff", "square", ("text/plain, */*", "image/png"), ("a",), ("x", "y"), {"trace": "t"}, protocol="riff"),
    ]


def test_R045_first_data_frame_is_a_violation(session):
    """The first signal must be a StartFrame."""
    with pytest.raises(ProtocolViolation, match="start signal was not received or processed yet"):
        session.receive(data())


def test_R046_second_start_frame_fails_and_is_named(started):
    """A later StartFrame is a violation; the detail lists the rejected types and names."""
    with pytest.raises(ProtocolViolation, match=r"only once.*text/csv.*'in2'.*'out2'"):
        started.receive(start(["text/csv"], ["in2"], ["out2"]))


@pytest.mark.parametrize("begin", [False, True])
def test_R047_signal_without_a_case_is_a_violation(session, begin):
    """A signal that is neither a start nor a data signal fails wherever it comes."""
    if begin:
        session.receive(start())
    with pytest.raises(ProtocolViolation, match="neither a start nor a data signal"):
        session.receive(b"")


def test_R048_half_close_without_any_signal_is_a_violation(session):
    """The grammar needs one StartFrame."""
    with pytest.raises(ProtocolViolation, match="half-closed without any signal"):
        session.half_close()


def test_R049_start_frame_alone_then_half_close_is_legal(started):
    """Zero InputFrames end every input, and nothing else."""
    assert list(started.half_close()) == [EndInput("riff", ALL)]


def test_nothing_comes_after_the_half_close(started):
    """No wire sends it; a session that took it would feed an input that has ended."""
    started.half_close()
    assert started.half_close() == ()
    with pytest.raises(ProtocolViolation, match="a data signal was received after the half-close"):
        started.receive(data())


def test_R053_names_and_types_of_outputs_must_agree(session):
    """outputNames, when given, are as many as expectedContentTypes."""
    assert list(session.receive(start(["text/plain"], [], ["a", "b"]))) == [Timer(1.0)]
    (close,) = session.half_close()
    assert isinstance(close.error, ProtocolViolation)
    assert "2 outputNames" in str(close.error)


_NEXT = {
    "data": lambda session: session.receive(data()),
    "another start": lambda session: session.receive(start()),
    "garbage": lambda session: session.receive(b"\xff"),
    "half-close": RiffSession.half_close,
    "time": lambda session: session.deliver(Elapsed()),
}


@pytest.mark.parametrize("what", _NEXT)
@pytest.mark.parametrize("kind", [ProtocolViolation, NotAcceptable])
def test_R170_a_refused_start_is_told_with_what_comes_next(started, kind, what):
    """Or after a second; what comes after that is discarded."""
    refusal = kind("no")
    assert list(started.deliver(Finished("riff", refusal))) == [Timer(1.0)]
    assert list(_NEXT[what](started)) == [Close(refusal)]
    for again in _NEXT.values():
        assert list(again(started)) == []


@pytest.mark.parametrize("error", [Overloaded("full"), ShuttingDown("drains"), FunctionError("raised"), None])
def test_R170_other_endings_are_told_at_once(started, error):
    """Admission, the drain, the function."""
    assert list(started.deliver(Finished("riff", error))) == [Close(error)]


def test_R170_a_violation_after_the_first_data_frame_is_told_at_once(started):
    """It is not the start that is refused."""
    started.receive(data())
    error = ProtocolViolation("no")
    assert list(started.deliver(Finished("riff", error))) == [Close(error)]


@pytest.mark.parametrize("frame", [start(), b"\xff", b""])
def test_R170_a_violation_right_behind_the_start_is_told_at_once(started, frame):
    """The next frame is here: it is the one that is refused."""
    with pytest.raises(ProtocolViolation) as caught:
        started.receive(frame)
    assert list(started.deliver(Finished("riff", caught.value))) == [Close(caught.value)]


def test_R054_names_may_be_left_out(session):
    """Empty name lists mean unnamed streams."""
    (opened,) = session.receive(start(["text/plain", "text/plain"]))
    assert opened.input_names == ()
    assert opened.output_names == ()


def test_R058_zero_outputs_are_legal(session):
    """A sink is called with no types and no names."""
    (opened,) = session.receive(start([]))
    assert opened.accepts == ()


def test_R062_values_go_where_arg_index_says(started):
    """argIndex and headers are passed on; the default index is 0."""
    assert list(started.receive(data(b"x", 3, "text/plain", {"k": "v"}))) == [
        Feed("riff", 3, Message(b"x", {"k": "v"}, "text/plain")),
    ]
    assert started.receive(data(b"x"))[0].index == 0


def test_R114_frames_after_the_function_ended_are_dropped(started):
    """What is still under way when the function has returned is no error."""
    assert list(started.deliver(Finished("riff"))) == [Close(None)]
    assert list(started.receive(data())) == []
    assert list(started.receive(b"\xff\xff\xff")) == []
    assert list(started.half_close()) == []


@pytest.mark.parametrize("frame", [b"\xff\xff\xff", bytes([0x12, 0x03, 0x12, 0x01, 0xFF])])
def test_R120_bytes_that_are_no_signal_are_a_violation(started, frame):
    """Undecodable protobuf and invalid UTF-8 in a string field fail this call with our words."""
    with pytest.raises(ProtocolViolation, match="not a valid InputSignal"):
        started.receive(frame)


def test_R105_R106_outputs_leave_in_order_with_their_index(started):
    """Each emitted message is one OutputSignal with index, type, headers and payload, in the order of emission."""
    sent = []
    for number in range(3):
        message = Message(b"%d" % number, {"n": str(number)}, "text/plain")
        (step,) = started.deliver(Emitted("riff", number % 2, message))
        assert type(step) is Send
        sent.append(pb.OutputSignal.FromString(step.frame).data)
    assert [(one.payload, one.resultIndex, dict(one.headers)) for one in sent] == [
        (b"0", 0, {"n": "0"}),
        (b"1", 1, {"n": "1"}),
        (b"2", 0, {"n": "2"}),
    ]


def test_R137_an_output_always_has_a_content_type(started):
    """Callers copy it on, so it is never empty."""
    (step,) = started.deliver(Emitted("riff", 0, Message(b"")))
    assert pb.OutputSignal.FromString(step.frame).data.contentType == "application/octet-stream"


def test_R160_unknown_fields_are_ignored(session):
    """A newer peer may send fields that we do not know."""
    extra = bytes([0xA2, 0x06, 0x01, 0x41])  # field 100, length-delimited
    assert len(session.receive(start() + extra)) == 1
    assert session.receive(data() + extra)[0].message.payload == b"1"


def test_the_error_of_the_ending_is_the_status_of_the_call(started):
    """Exactly one Close, with the invocation's error; nothing follows it."""
    error = FunctionError("boom")
    assert list(started.deliver(Finished("riff", error))) == [Close(error)]
    assert list(started.deliver(Finished("riff", Cancelled("late")))) == []
    assert list(started.deliver(Emitted("riff", 0, Message(b"")))) == []
    assert started.state is State.CLOSED


frames = st.one_of(
    st.binary(max_size=40),
    st.builds(start, st.lists(st.text(max_size=5), max_size=3), st.lists(st.text(max_size=3), max_size=3)),
    st.builds(data, st.binary(max_size=5), st.integers(-(2**31), 2**31 - 1), st.text(max_size=8)),
    st.none(),
)


@settings(max_examples=200)
@given(st.lists(frames, max_size=12))
def test_any_sequence_of_frames_yields_steps_or_a_violation(sequence):
    """Whatever a peer sends, the session answers with steps or raises ProtocolViolation."""
    session = RiffSession()
    fed = []
    for frame in sequence:
        try:
            steps = list(session.half_close() if frame is None else session.receive(frame))
        except ProtocolViolation:
            return
        assert all(isinstance(step, (Open, Feed, EndInput)) for step in steps)
        fed += [step.message.payload for step in steps if isinstance(step, Feed)]
    wanted = [pb.InputSignal.FromString(one) for one in sequence if one is not None]
    assert fed == [one.data.payload for one in wanted if one.WhichOneof("frame") == "data"]


@given(
    payload=st.one_of(st.binary(max_size=300), st.sampled_from([16_381, 16_384, 70_000, 2_097_152]).map(bytes)),
    media_type=st.sampled_from(["", "text/plain", "application/json; charset=utf-8", "x/" + "y" * 200]),
    index=st.integers(0, 2**31 - 1),
)
def test_frames_without_headers_are_byte_for_byte_what_protobuf_writes(payload, media_type, index):
    """Our own serialisation of the common frame differs from protobuf's in price only."""
    session = RiffSession()
    session.receive(pb.InputSignal(start=pb.StartFrame()).SerializeToString())
    (step,) = session.deliver(Emitted("riff", index, Message(payload, EMPTY, media_type)))
    frame = pb.OutputFrame(payload=payload, contentType=media_type or "application/octet-stream", resultIndex=index)
    assert step.frame == pb.OutputSignal(data=frame).SerializeToString()


# What is remembered.


def test_a_start_frame_that_was_seen_means_the_same_again():
    """For whichever function is named, with the metadata of its own call; a second one is refused all the same."""
    frame = pb.InputSignal(
        start=pb.StartFrame(expectedContentTypes=["text/plain", "a/b"], inputNames=["x"], outputNames=["y", "z"])
    ).SerializeToString()
    opened = []
    for function in ("one", "two", "one"):
        session = RiffSession({"of": function}, function=function)
        (step,) = session.receive(frame)
        opened.append(step)
        assert session.state is State.OPENING
        with pytest.raises(ProtocolViolation, match="only once"):
            session.receive(frame)
    assert opened[0] == opened[2]
    assert [one.function for one in opened] == ["one", "two", "one"]
    assert [one.metadata["of"] for one in opened] == ["one", "two", "one"]
    assert opened[0].accepts == ("text/plain", "a/b")
    assert (opened[0].input_names, opened[0].output_names) == (("x",), ("y", "z"))


def test_R011_callers_cannot_fill_the_memory_with_start_frames():
    """Nor functions with media types: what is remembered is bounded, and large frames are not remembered at all."""
    for number in range(1000):
        frame = pb.InputSignal(start=pb.StartFrame(expectedContentTypes=[f"a/{number}"])).SerializeToString()
        RiffSession().receive(frame)
        session = RiffSession()
        session.receive(b"\n\x00")
        session.deliver(Emitted("riff", 0, Message(b"x", media_type=f"a/{number}")))
    assert len(module._STARTS) <= 2 * 128
    assert len(module._TAILS) <= 2 * 64
    large = pb.InputSignal(start=pb.StartFrame(expectedContentTypes=["x" * 2**20])).SerializeToString()
    (step,) = RiffSession().receive(large)
    assert step.accepts == ("x" * 2**20,)
    assert module._STARTS.find(large) is None
