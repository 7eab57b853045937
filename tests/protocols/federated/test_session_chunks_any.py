"""Tests of `invoker.protocols.federated.session`: any frames, in any order, and spoiled ones."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.core.steps import Answered, Await, Close
from invoker.errors import InvocationError
from invoker.protocols.federated.messages import Accepted, Over, Rejected, ReportTaken, Resume
from invoker.protocols.federated.negotiation import DeviceSettings
from invoker.protocols.federated.session import DeviceSession
from tests.protocols.federated.chunked import ack, chunk, data, end, start
from tests.protocols.federated.coordinators import (
    OFFER,
    SECURE_OFFER,
    TASK,
    NoMailbox,
    NotedCoordinator,
    Talk,
    checkin,
    report,
    trying,
)

MESSAGES = st.one_of(
    st.sampled_from(
        [
            trying(), trying(ack=False), checkin(), checkin(weights=[("train", 1.0)]), checkin("other"),
            report(), report(phase="phase-2"), report(status_code=13), pb.ClientStreamMessage(),
            start(5, 0, 5), start(0, 0, 1), end(1), ack(0), ack(1), chunk(), data(0, b""),
        ]
    ),
    st.builds(start, st.integers(-1, 40), st.integers(0, 4), st.integers(-1, 40)),
    st.builds(data, st.integers(0, 2), st.binary(max_size=8)),
    st.builds(end, st.integers(0, 3)),
)  # fmt: skip


FRAMES = st.one_of(MESSAGES.map(pb.ClientStreamMessage.SerializeToString), st.binary(max_size=20))


NOTICES = st.sampled_from(
    [Accepted(OFFER), Accepted(SECURE_OFFER), Rejected("full"), ReportTaken(), Resume(), Over(None)]
)


@given(
    st.lists(st.one_of(FRAMES, st.lists(NOTICES, max_size=3), st.none()), max_size=12),
    st.sampled_from([TASK, Rejected("x"), None]),
    st.booleans(),
)
def test_F001_any_frames_and_notices_give_steps_and_one_end(moves: list[Any], task: Any, allows: bool) -> None:
    """Nothing is ever raised, nothing follows a Close, and while there is none exactly one wait for mail is open."""
    coordinator = NotedCoordinator(task)
    coordinator.allows = allows
    session = DeviceSession(coordinator, NoMailbox(), settings=DeviceSettings(chunk_bytes=16, level=0))
    waits = 0
    steps = list(session.begin())
    is_closed = False
    for move in moves:
        waits += sum(isinstance(one, Await) for one in steps)
        assert waits == 1 or is_closed
        if isinstance(move, bytes):
            steps = list(session.receive(move))
        elif move is None:
            steps = list(session.half_close())
        else:
            waits = 0
            steps = list(session.deliver(Answered("mail", move)))
        assert not (is_closed and steps)
        for one in steps:
            assert not is_closed
            if isinstance(one, Close):
                is_closed = True
                assert one.error is None or isinstance(one.error, InvocationError)
    assert session.is_closed is is_closed


def trace(offer: Any) -> list[bytes]:
    """The frames of a client in a whole conversation, in small chunks."""
    talk = Talk(NotedCoordinator(TASK), settings=DeviceSettings(chunk_bytes=16))
    frames: list[bytes] = []
    receive = talk.session.receive

    def note(frame: bytes) -> Any:
        frames.append(frame)
        return receive(frame)

    talk.hear_frames(note)
    talk.say(trying(), checkin(weights=[("train", 1.0)]))
    talk.tell(Accepted(offer))
    talk.say(report(b"x" * 40))
    return frames


FRAMES_OF_ONE = trace(OFFER)


@st.composite
def spoiled(draw: st.DrawFn) -> list[bytes]:
    """A right conversation with frames that are lost, doubled, exchanged, cut or changed."""
    frames = list(FRAMES_OF_ONE)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(frames) - 1))
        way = draw(st.sampled_from(["lose", "double", "exchange", "cut", "change"]))
        if way == "lose" and len(frames) > 1:
            del frames[at]
        elif way == "double":
            frames.insert(at, frames[at])
        elif way == "exchange":
            frames[at], frames[at - 1] = frames[at - 1], frames[at]
        elif way == "cut":
            frames[at] = frames[at][: draw(st.integers(0, len(frames[at])))]
        elif frames[at]:
            place = draw(st.integers(0, len(frames[at]) - 1))
            frames[at] = frames[at][:place] + bytes([draw(st.integers(0, 255))]) + frames[at][place + 1 :]
    return frames


@given(spoiled())
def test_F028_a_spoiled_conversation_ends_or_goes_on_and_nothing_is_raised(frames: list[bytes]) -> None:
    """The coordinator gets one report at most."""
    coordinator = NotedCoordinator(TASK)
    session = DeviceSession(coordinator, NoMailbox(), settings=DeviceSettings(chunk_bytes=16))
    session.begin()
    for frame in frames:
        session.receive(frame)
        if coordinator.noted[-1][0] == "check_in":
            session.deliver(Answered("mail", [Accepted(OFFER)]))
    session.deliver(Answered("mail", [ReportTaken()]))
    assert coordinator.names().count("report") <= 1
    session.half_close()
    assert session.is_closed
