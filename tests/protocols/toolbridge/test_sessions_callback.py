"""Host sessions with a callback address: the host is met before the session is made (T-169, T-171)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.core.steps import Answered, Ask, Await, Close, Send, Step
from invoker.core.store import Create, Reason
from invoker.errors import Cancelled
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.host_sessions import HostSession
from invoker.protocols.toolbridge.sessions import GetSessionTools, InitializeSession
from invoker.protocols.toolbridge.tools import Tools
from tests.protocols.toolbridge.hosts import TestHostSessions, a_space, new_host_sessions


class Tooled:
    """The tools of a host."""

    def __init__(self) -> None:
        self.specs = (pb.ToolSpec(name="callback:look"),)
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


class Connects:
    """Notes which hosts it is asked for; tests give its answers."""

    async def connect(self, session_id: str, address: str) -> Any:
        raise AssertionError("a session only gives the step")


@pytest.fixture
def host_sessions() -> TestHostSessions:
    made = new_host_sessions()
    made.tools = Tools(())
    made.callbacks = Connects()
    return made


REQUEST = pb.InitializeSessionRequest(session_id="s1", callback_address="127.0.0.1:5000")


def answer(steps: Sequence[Step], kind: type[Any]) -> Any:
    """The response of a conversation that has ended with OK."""
    sent, close = steps
    assert isinstance(sent, Send)
    assert close == Close()
    return kind.FromString(sent.frame)


def space(host_sessions: TestHostSessions) -> Any:
    """What the store says of the space that the request has made."""
    asked = InitializeSession(host_sessions)
    asked.receive(REQUEST.SerializeToString())
    (step,) = asked.deliver(Answered("host", Tooled()))
    assert isinstance(step, Ask)
    assert isinstance(step.question, Create)
    return msgspec.structs.replace(a_space(), about=step.question.about)


def begun(host_sessions: TestHostSessions) -> InitializeSession:
    """A session whose host has been met."""
    session = InitializeSession(host_sessions)
    (step,) = session.receive(REQUEST.SerializeToString())
    assert isinstance(step, Await)
    return session


def test_T169_the_host_is_met_before_the_store_is_asked(host_sessions: TestHostSessions) -> None:
    session, tools = begun(host_sessions), Tooled()
    (step,) = session.deliver(Answered("host", tools))
    assert isinstance(step, Ask)
    assert isinstance(step.question, Create)
    response = answer(session.deliver(Answered("create", space(host_sessions))), pb.InitializeSessionResponse)
    assert (response.success, response.tool_count) == (True, 1)
    assert "callback" in response.capabilities
    assert host_sessions.sessions["s1"].callback is tools


@pytest.mark.parametrize("code", ["callback_unreachable", "callback_forbidden"])
def test_T169_T170_a_host_that_cannot_be_met_makes_no_session(host_sessions: TestHostSessions, code: str) -> None:
    error = BridgeError(Kind.INTERNAL, "nobody is there", code=code)
    steps = begun(host_sessions).deliver(Answered("host", error))
    response = answer(steps, pb.InitializeSessionResponse)
    assert (response.success, response.error.details["code"]) == (False, code)
    assert not host_sessions.sessions


def test_a_session_that_the_store_refuses_lets_its_host_go(host_sessions: TestHostSessions) -> None:
    """And so does one that exists with other settings."""
    session, tools = begun(host_sessions), Tooled()
    session.deliver(Answered("host", tools))
    response = answer(session.deliver(Answered("create", a_space())), pb.InitializeSessionResponse)
    assert response.error.details["code"] == "session_exists"
    assert tools.closed == 1


def test_T004_a_retry_does_not_meet_the_host_again(host_sessions: TestHostSessions) -> None:
    session, made = begun(host_sessions), space(host_sessions)
    session.deliver(Answered("host", Tooled()))
    session.deliver(Answered("create", made))
    (step,) = InitializeSession(host_sessions).receive(REQUEST.SerializeToString())
    assert isinstance(step, Ask)


def test_a_host_that_is_met_twice_at_once_is_let_go_once(host_sessions: TestHostSessions) -> None:
    first, second, one, two, made = begun(host_sessions), begun(host_sessions), Tooled(), Tooled(), space(host_sessions)
    first.deliver(Answered("host", one))
    second.deliver(Answered("host", two))
    first.deliver(Answered("create", made))
    second.deliver(Answered("create", made))
    assert host_sessions.sessions["s1"].callback is one
    assert (one.closed, two.closed) == (0, 1)


def test_the_end_of_a_session_lets_its_host_go(host_sessions: TestHostSessions) -> None:
    session, tools = begun(host_sessions), Tooled()
    session.deliver(Answered("host", tools))
    session.deliver(Answered("create", space(host_sessions)))
    known: HostSession = host_sessions.sessions["s1"]
    host_sessions.remove(known, Reason.EXPIRED)
    assert tools.closed == 1
    late = Tooled()
    host_sessions.meet(known, late)
    assert late.closed == 1


def test_T033_a_session_of_another_process_meets_its_host_to_list_its_tools(host_sessions: TestHostSessions) -> None:
    session = GetSessionTools(host_sessions)
    session.receive(pb.GetSessionToolsRequest(session_id="s1").SerializeToString())
    (step,) = session.deliver(Answered("look", space(host_sessions)))
    assert isinstance(step, Await)
    response = answer(session.deliver(Answered("host", Tooled())), pb.GetSessionToolsResponse)
    assert [one.name for one in response.tools] == ["callback:look"]


def test_T033_its_tools_are_not_listed_where_the_host_is_gone(host_sessions: TestHostSessions) -> None:
    session = GetSessionTools(host_sessions)
    session.receive(pb.GetSessionToolsRequest(session_id="s1").SerializeToString())
    session.deliver(Answered("look", space(host_sessions)))
    (close,) = session.deliver(Answered("host", BridgeError(Kind.INTERNAL, "gone", code="callback_unreachable")))
    assert isinstance(close, Close)
    assert isinstance(close.error, BridgeError)


def test_what_is_no_error_of_the_bridge_ends_the_rpc(host_sessions: TestHostSessions) -> None:
    """Such as a defect of ours, which the loop tells as InternalError, or a cancel."""
    (close,) = begun(host_sessions).deliver(Answered("host", Cancelled("gone")))
    assert isinstance(close, Close)
    assert isinstance(close.error, Cancelled)
