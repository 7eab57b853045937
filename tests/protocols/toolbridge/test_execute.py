"""ExecuteTool as a pure session: what it opens, asks and answers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from google.protobuf import any_pb2

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import pack, unpack
from invoker.core.spaces import MemoryStore
from invoker.core.steps import Answered, Ask, Close, EndInput, Feed, Finished, Open, Send, Step
from invoker.core.store import Create, Look, Reason, Refused
from invoker.errors import Cancelled, FunctionError, ShuttingDown, Status
from invoker.protocols.toolbridge.execute import ExecuteTool
from invoker.protocols.toolbridge.host_sessions import space_of
from invoker.protocols.toolbridge.settings import BridgeSettings
from tests.protocols.toolbridge.calls import emitted, host_sessions_with
from tests.protocols.toolbridge.hosts import a_space, known


def request(tool: str = "square", *args: object, **fields: object) -> bytes:
    given = [any_pb2.Any.FromString(pack(one)) for one in args]
    return pb.ToolCallRequest(**{"session_id": "s1", "tool_id": tool, "args": given, **fields}).SerializeToString()  # type: ignore[arg-type]


def response(steps: Sequence[Step]) -> pb.ToolCallResponse:
    sent, close = steps
    assert isinstance(sent, Send)
    assert close == Close()
    return pb.ToolCallResponse.FromString(sent.frame)


def test_T064_a_call_succeeds():
    """In one step of the request, and one of the ending; the request id is echoed."""
    host_sessions = host_sessions_with()
    known(host_sessions)
    session = ExecuteTool(host_sessions)
    kinds = [type(one) for one in session.receive(request("square", 5, request_id="r"))]
    assert kinds == [Open, Feed, EndInput]
    assert session.half_close() == ()
    assert session.deliver(emitted(25)) == ()
    answer = response(session.deliver(Finished("tool")))
    assert answer.success
    assert unpack(answer.result.SerializeToString()) == 25
    assert answer.metrics.duration_ms >= 0
    assert answer.request_id == "r"
    assert not answer.HasField("error")
    assert session.deliver(Finished("tool")) == ()
    assert session.receive(b"more") == ()


def test_T065_a_tool_that_raises_answers_in_band():
    """The rpc ends with OK."""
    host_sessions = host_sessions_with()
    known(host_sessions)
    session = ExecuteTool(host_sessions)
    session.receive(request("square", 5))
    answer = response(session.deliver(Finished("tool", FunctionError("boom"))))
    assert (answer.success, answer.error.type, answer.error.message) == (False, "InternalError", "boom")
    assert not answer.HasField("result")


def test_a_process_that_leaves_says_so_by_the_status():
    """The caller may try another one."""
    host_sessions = host_sessions_with()
    known(host_sessions)
    session = ExecuteTool(host_sessions)
    session.receive(request("square", 5))
    (close,) = session.deliver(Finished("tool", ShuttingDown("bye")))
    assert isinstance(close, Close)
    assert close.error is not None
    assert close.error.status is Status.UNAVAILABLE


def test_a_session_that_is_not_known_here_is_looked_up():
    """Another process may have made it."""
    host_sessions = host_sessions_with()
    session = ExecuteTool(host_sessions)
    assert session.receive(request("square", 5)) == (Ask("session", Look("toolbridge/s1")),)
    kinds = [type(one) for one in session.deliver(Answered("session", a_space()))]
    assert kinds == [Open, Feed, EndInput]
    assert host_sessions.find("s1") is not None


@pytest.mark.parametrize(("reason", "code"), [(Reason.UNKNOWN, "unknown"), (Reason.EXPIRED, "expired")])
def test_T009_T019_a_session_that_is_nowhere_is_told_in_band(reason, code):
    """It is not made by the call; the observers hear of the refusal."""
    host_sessions = host_sessions_with()
    session = ExecuteTool(host_sessions)
    session.receive(request("square", 5))
    answer = response(session.deliver(Answered("session", Refused(reason))))
    assert (answer.error.type, answer.error.details["code"]) == ("SessionExpired", code)
    assert len(host_sessions.ended) == 1


def test_T019_a_session_is_made_where_the_operator_allows_it():
    """With defaults, and only once."""
    host_sessions = host_sessions_with(settings=BridgeSettings(auto_session=True, ttl_s=60.0))
    session = ExecuteTool(host_sessions)
    (ask,) = session.receive(request("square", 5))
    assert isinstance(ask, Ask)
    assert isinstance(ask.question, Create)

    class Subscriber:
        def answered(self, key: str, value: object) -> None:
            assert [type(one) for one in session.deliver(Answered(key, value))] == [Open, Feed, EndInput]

        def has_news(self, news: object) -> None:
            raise AssertionError(news)

    MemoryStore(clock=lambda: host_sessions.now).ask(Subscriber(), ask.key, ask.question)
    found = host_sessions.find("s1")
    assert found is not None
    assert not found.caches
    assert host_sessions.created == 1


def test_T019_an_id_that_is_none_makes_no_session():
    """It is refused before the store is asked."""
    host_sessions = host_sessions_with(settings=BridgeSettings(auto_session=True))
    answer = response(ExecuteTool(host_sessions).receive(request("square", 5, session_id="a\n")))
    assert (answer.error.type, answer.error.details["field"]) == ("ValidationError", "session_id")


def test_T070_a_request_id_that_is_new_goes_on_on_the_loop():
    """From there it is shared; a duplicate joins, and both get the same bytes."""
    host_sessions = host_sessions_with()
    known(host_sessions, enable_caching=1)
    first, second = ExecuteTool(host_sessions), ExecuteTool(host_sessions)
    frame = request("square", 5, request_id="r")
    assert first.receive(frame) == (Ask("session", Look(space_of("s1"))),)
    opened, *_ = first.deliver(Answered("session", a_space(enable_caching=1)))
    assert isinstance(opened, Open)
    assert opened.is_shared
    second.receive(frame)
    (joined,) = second.deliver(Answered("session", a_space(enable_caching=1)))
    assert isinstance(joined, Open)
    assert (joined.id, joined.is_shared) == (opened.id, True)
    event = emitted(25, key=opened.id)
    for one in (first, second):
        one.deliver(event)
    answers = [one.deliver(Finished(opened.id))[0] for one in (first, second)]
    assert answers[0] == answers[1]
    assert len(host_sessions.ended) == 1
    third = ExecuteTool(host_sessions)
    assert third.receive(frame)[0] == answers[0]


def test_T017_T072_a_call_made_anew_does_not_join_one_that_still_ends():
    """An invocation may outlive its call and its session, and must not get the arguments of the next, or answer it."""
    host_sessions = host_sessions_with()
    keys = set()
    for created_ns in (1, 1, 2):
        space = a_space(created_ns=created_ns, enable_caching=1)
        host_sessions.adopt(space)
        session = ExecuteTool(host_sessions)
        session.receive(request("square", 5, request_id="r"))
        opened = session.deliver(Answered("session", space))[0]
        assert isinstance(opened, Open)
        keys.add(opened.id)
        opened.configs[0].finish(FunctionError("it went wrong, so it is not kept"))
    assert len(keys) == 3


def test_T073_without_caching_a_request_id_is_only_echoed():
    """A duplicate runs again."""
    host_sessions = host_sessions_with()
    known(host_sessions)
    for _ in range(2):
        opened = ExecuteTool(host_sessions).receive(request("square", 5, request_id="r"))[0]
        assert isinstance(opened, Open)
        assert not opened.is_shared


def test_T075_the_first_of_two_duplicates_may_leave():
    """The other one takes what still comes."""
    host_sessions = host_sessions_with()
    known(host_sessions, enable_caching=1)
    first, second = ExecuteTool(host_sessions), ExecuteTool(host_sessions)
    frame = request("count", 2, request_id="r")
    for one in (first, second):
        one.receive(frame)
        opened = one.deliver(Answered("session", a_space(enable_caching=1)))[0]
        assert isinstance(opened, Open)
    event = emitted(0, key=opened.id)
    first.deliver(event)
    second.deliver(event)
    second.deliver(emitted(1, key=opened.id))
    answer = response(second.deliver(Finished(opened.id)))
    assert unpack(answer.result.SerializeToString()) == [0, 1]


def test_a_caller_that_is_gone_gets_no_answer():
    """Only the status is there to be written."""
    host_sessions = host_sessions_with()
    known(host_sessions)
    session = ExecuteTool(host_sessions)
    session.receive(request("square", 5))
    (close,) = session.deliver(Finished("tool", Cancelled("gone")))
    assert isinstance(close, Close)
    assert host_sessions.sessions["s1"].tools == 0


def test_T063_a_request_that_is_too_large_or_none_is_refused():
    """By the status of the rpc."""
    host_sessions = host_sessions_with(settings=BridgeSettings(message_bytes=10))
    (close,) = ExecuteTool(host_sessions).receive(b"x" * 11)
    assert isinstance(close, Close)
    assert close.error is not None
    assert close.error.status is Status.RESOURCE_EXHAUSTED
    (close,) = ExecuteTool(host_sessions).receive(b"\xff")
    assert isinstance(close, Close)
    assert close.error is not None
    assert close.error.status is Status.INVALID_ARGUMENT
    (close,) = ExecuteTool(host_sessions).half_close()
    assert isinstance(close, Close)
    assert close.error is not None
    assert close.error.status is Status.UNIMPLEMENTED
