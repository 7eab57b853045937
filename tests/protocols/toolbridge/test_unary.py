"""The base of sessions of one request: parse it or refuse it, reply, close."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import pytest

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import pack
from invoker.core.steps import Answered, Ask, Close, Send, Step
from invoker.core.store import Look
from invoker.errors import ShuttingDown, Status
from invoker.protocols.toolbridge.batch import BatchExecuteTools
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.execute import ExecuteTool
from invoker.protocols.toolbridge.sessions import InitializeSession
from invoker.protocols.toolbridge.settings import BridgeSettings
from invoker.protocols.toolbridge.stream import StreamTool
from invoker.protocols.toolbridge.toolcall import Asked, ToolCall
from invoker.protocols.toolbridge.unary import UnarySession, Unbuilt
from invoker.protocols.toolbridge.variables import ListSessionVariables
from tests.protocols.toolbridge.calls import host_sessions_with
from tests.protocols.toolbridge.hosts import known, new_host_sessions


class Info(UnarySession[pb.GetSessionInfoRequest]):
    """A session whose response cannot carry errors."""

    reads, answers = pb.GetSessionInfoRequest, pb.SessionInfo

    def asked(self, request: pb.GetSessionInfoRequest) -> Sequence[Step]:
        if not request.session_id:
            raise BridgeError(Kind.VALIDATION, "no id", field="session_id")
        return (Ask("look", Look(request.session_id)),)

    def answered(self, key: str, value: Any) -> Sequence[Step]:
        if value is None:
            raise ShuttingDown("bye") if key == "bye" else BridgeError(Kind.EXPIRED, "gone")
        return self.reply(pb.SessionInfo(session_id=value))


class Clean(UnarySession[pb.CleanupSessionRequest]):
    """A session whose response can."""

    reads, answers = pb.CleanupSessionRequest, pb.StatusResponse

    def asked(self, request: pb.CleanupSessionRequest) -> Sequence[Step]:
        raise BridgeError(Kind.EXPIRED, "gone")


def status_of(steps: Sequence[Step]) -> Status:
    """The status of an rpc that was closed with an error."""
    (close,) = steps
    assert isinstance(close, Close)
    assert close.error is not None
    return close.error.status


def test_a_request_is_answered_once() -> None:
    """A frame behind it, and an answer behind the end, are dropped."""
    session = Info(new_host_sessions())
    assert session.receive(pb.GetSessionInfoRequest(session_id="a").SerializeToString()) == (Ask("look", Look("a")),)
    assert session.half_close() == ()
    sent, close = session.deliver(Answered("look", "a"))
    assert sent == Send(pb.SessionInfo(session_id="a").SerializeToString())
    assert close == Close()
    assert session.receive(b"") == ()
    assert session.deliver(Answered("look", None)) == ()


def test_T160_a_response_without_a_field_for_it_leaves_the_error_to_the_status() -> None:
    """The status is that of the kind, and the trailer tells the rest."""
    steps = Info(new_host_sessions()).receive(b"")
    assert status_of(steps) is Status.INVALID_ARGUMENT
    assert steps[0].trailers[0][0] == "dspex-error-bin"  # type: ignore[union-attr]


def test_T160_a_response_with_a_field_for_it_carries_the_error() -> None:
    """The rpc ends with OK."""
    sent, close = Clean(new_host_sessions()).receive(b"")
    assert isinstance(sent, Send)
    response = pb.StatusResponse.FromString(sent.frame)
    assert (response.success, response.error.type) == (False, "SessionExpired")
    assert close == Close()


@pytest.mark.parametrize("kind", [Info, Clean])
def test_a_request_that_is_none_is_refused(kind: type[UnarySession[Any]]) -> None:
    """By the status of the rpc, whatever the response could tell."""
    assert status_of(kind(new_host_sessions()).receive(b"\xff")) is Status.INVALID_ARGUMENT


@pytest.mark.parametrize("kind", [Info, Clean])
def test_T063_a_request_that_is_too_large_is_refused(kind: type[UnarySession[Any]]) -> None:
    """It is not even parsed."""
    host_sessions = new_host_sessions(BridgeSettings(message_bytes=10))
    assert status_of(kind(host_sessions).receive(b"\xff" * 11)) is Status.RESOURCE_EXHAUSTED


def test_an_rpc_without_a_request_is_refused() -> None:
    """There is nothing to answer."""
    session = Info(new_host_sessions())
    assert status_of(session.half_close()) is Status.UNIMPLEMENTED
    assert session.half_close() == ()


def test_an_rpc_that_is_not_served_says_so() -> None:
    """With its request or without."""
    assert status_of(Unbuilt("GetMetrics").receive(b"")) is Status.UNIMPLEMENTED
    assert status_of(Unbuilt("GetMetrics").half_close()) is Status.UNIMPLEMENTED


def test_T063_a_request_of_just_the_limit_is_taken():
    """One byte more is refused."""
    frame = pb.GetSessionInfoRequest(session_id="s" * 50).SerializeToString()
    assert Info(new_host_sessions(BridgeSettings(message_bytes=len(frame)))).receive(frame) == (
        Ask("look", Look("s" * 50)),
    )
    (close,) = Info(new_host_sessions(BridgeSettings(message_bytes=len(frame) - 1))).receive(frame)
    assert isinstance(close, Close)
    assert close.error is not None
    assert close.error.status is Status.RESOURCE_EXHAUSTED


def _refused(session: Any, request: Any) -> list[Any]:
    """As a reactor does: its frame knows the last step, and stands behind those in which the error was raised."""
    steps = list(session.receive(request.SerializeToString()))
    step = steps[-1]
    assert step is not None
    return [type(one) for one in steps]


@pytest.mark.parametrize(
    ("make", "request_"),
    [
        (ExecuteTool, pb.ToolCallRequest(session_id="s1", tool_id="none")),
        (ExecuteTool, pb.ToolCallRequest(session_id="s1", tool_id="square")),
        (StreamTool, pb.ToolStreamRequest(session_id="s1", tool_id="none")),
        (BatchExecuteTools, pb.BatchToolCallRequest(session_id="s1", items=[pb.ToolCallItem(tool_id="none")] * 2)),
        (BatchExecuteTools, pb.BatchToolCallRequest(session_id="s1", items=[pb.ToolCallItem(tool_id="none")])),
        (ListSessionVariables, pb.ListVariablesRequest(session_id="s1", limit=-1)),
        (InitializeSession, pb.InitializeSessionRequest(session_id="")),
    ],
)
def test_a_refused_request_is_freed_at_once(make, request_):
    """An error that is kept must not keep the frames that know it: 60 requests of 9 MB each held 5 GB."""
    host_sessions = host_sessions_with()
    host_sessions.observers.clear()
    known(host_sessions)
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        assert _refused(make(host_sessions), request_)[-1] is Close
        gc.collect()
        assert not [one for one in gc.garbage if isinstance(one, (BridgeError, ToolCall, make))]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


def test_arguments_that_were_read_elsewhere_are_freed_at_once():
    """Also what was wrong with them, and an error that was awaited."""
    host_sessions = host_sessions_with()
    host_sessions.observers.clear()
    known(host_sessions)
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        call = ToolCall(host_sessions, Asked("s1", "square", [pack("x")]), "execute")
        call.bind()
        assert call.begin(known(host_sessions)) == ()
        del call
        ToolCall(host_sessions, Asked("s1", "square", [pack("x")]), "execute").bind()
        assert _failed(InitializeSession(host_sessions), BridgeError(Kind.INTERNAL, "no")) == [Send, Close]
        gc.collect()
        assert not [one for one in gc.garbage if isinstance(one, (BridgeError, ToolCall, InitializeSession))]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


def _failed(session: Any, error: BridgeError) -> list[Any]:
    session.receive(pb.InitializeSessionRequest(session_id="s1").SerializeToString())
    event = Answered("host", error)
    del error
    return [type(one) for one in session.deliver(event)]
