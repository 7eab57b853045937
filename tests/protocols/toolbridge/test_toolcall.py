"""The pipeline of every tool call, without an engine."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated

import pytest

from invoker import Field, function
from invoker.codecs.anyvalue import ANY, pack, unpack
from invoker.core.steps import Cancel, EndInput, Feed, Open
from invoker.core.store import Reason
from invoker.errors import Cancelled, Overloaded
from invoker.execution.bodies.runner import production_failed
from invoker.message import Message
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.host_sessions import LARGE
from invoker.protocols.toolbridge.settings import BridgeSettings
from invoker.protocols.toolbridge.toolcall import Asked, ToolCall, correlation_of
from invoker.protocols.toolbridge.wire import CallRequest
from tests.protocols.toolbridge.calls import count, emitted, host_sessions_with, square
from tests.protocols.toolbridge.hosts import TestHostSessions, known


def call_of(host_sessions: TestHostSessions, tool: str = "square", *args: object, **more: object) -> ToolCall:
    asked = Asked("s1", tool, [pack(one) for one in args], **more)  # type: ignore[arg-type]
    return ToolCall(host_sessions, asked, "execute")


def test_a_call_opens_feeds_and_ends():
    """An argument is one message of its input, and the call stands in the configs."""
    host_sessions = host_sessions_with()
    session = known(host_sessions)
    call = call_of(host_sessions, "square", 5)
    opened, fed, ended = call.begin(session)
    assert isinstance(opened, Open)
    assert (opened.id, opened.function, opened.accepts, opened.bound) == ("tool", "square", (ANY,), ("x",))
    assert (opened.configs, opened.party) == ((call,), "s1")
    assert fed == Feed("tool", 0, Message(pack(5), media_type=ANY))
    assert ended == EndInput("tool")
    assert session.tools == 1
    call.emitted(emitted(25))
    call.finish(None)
    assert unpack(call.result()) == 25
    assert (session.tools, host_sessions.ended) == (0, [call])
    assert call.error is None


def test_T036_an_unknown_tool_is_refused():
    """The observers hear of it, too; nothing runs."""
    host_sessions = host_sessions_with()
    call = call_of(host_sessions, "cube")
    assert call.begin(known(host_sessions)) == ()
    assert isinstance(call.error, BridgeError)
    assert call.error.kind is Kind.TOOL_NOT_FOUND
    assert call.error.details == {"tool_id": "cube"}
    assert call.error.detail == "there is no tool 'cube'"
    assert host_sessions.ended == [call]


@pytest.mark.parametrize("asked", ["sqare", "Square", "square " + "x" * 10_000_000])
def test_T036_an_unknown_tool_that_is_nearly_one_is_told_of_it(asked):
    """Of a name that was misspelt; a very long one takes no time."""
    host_sessions = host_sessions_with()
    call = call_of(host_sessions, asked)
    call.begin(known(host_sessions))
    assert call.error is not None
    assert call.error.detail.endswith("; did you mean 'square'?") is (len(asked) < 100)


def test_T171_a_tool_of_the_host_is_said_to_be_one():
    """To callers of StreamTool and BatchExecuteTools, which do not call it."""
    host_sessions = host_sessions_with()
    session = known(host_sessions)
    session.callback = SimpleNamespace(find={"callback:rows": object()}.get, close=lambda: None)
    call = call_of(host_sessions, "callback:rows")
    call.begin(session)
    assert isinstance(call.error, BridgeError)
    assert call.error.kind is Kind.TOOL_NOT_FOUND
    assert "one of the host, to be called by ExecuteTool" in call.error.detail


def test_T055_a_negative_timeout_is_refused():
    """By the name of the field."""
    host_sessions = host_sessions_with()
    call = call_of(host_sessions, "square", 1, timeout_ms=-1)
    assert call.begin(known(host_sessions)) == ()
    assert isinstance(call.error, BridgeError)
    assert (call.error.kind, call.error.details["field"]) == (Kind.VALIDATION, "timeout_ms")


@pytest.mark.parametrize(
    ("asked_ms", "session_ms", "timeout_s"), [(0, 0, 30.0), (0, 500, 0.5), (700, 500, 0.7), (100, 0, 0.1)]
)
def test_T054_the_caller_goes_before_the_session(asked_ms, session_ms, timeout_s):
    """Where neither says anything, and the tool neither, it is half a minute."""
    host_sessions = host_sessions_with()
    session = known(host_sessions, default_timeout_ms=session_ms)
    opened = call_of(host_sessions, "square", 1, timeout_ms=asked_ms).begin(session)[0]
    assert isinstance(opened, Open)
    assert opened.timeout_s == timeout_s


def test_T058_a_call_beyond_those_of_the_session_fails_at_once():
    """A refused call frees nothing that it has not taken."""
    host_sessions = host_sessions_with()
    session = known(host_sessions, max_concurrent_tools=1)
    first, second = call_of(host_sessions, "square", 1), call_of(host_sessions, "square", 1)
    first.begin(session)
    assert second.begin(session) == ()
    assert isinstance(second.error, BridgeError)
    assert second.error.details["scope"] == "session"
    assert session.tools == 1
    first.finish(None)
    assert session.tools == 0


def test_T051_a_call_that_does_not_fit_uses_up_nothing():
    """The session's concurrency is not even looked at."""
    host_sessions = host_sessions_with()
    session = known(host_sessions, max_concurrent_tools=1)
    call_of(host_sessions, "square", 1).begin(session)
    call = call_of(host_sessions, "square")
    assert call.begin(session) == ()
    assert isinstance(call.error, BridgeError)
    assert call.error.details["code"] == "missing_arg"


def test_T017_each_session_is_a_party_of_its_own():
    """Limits by the minute are counted by party."""
    host_sessions = host_sessions_with()
    opened = [call_of(host_sessions, "square", 1).begin(known(host_sessions, name))[0] for name in ("s1", "s2")]
    assert [one.party for one in opened if isinstance(one, Open)] == ["s1", "s2"]


@pytest.mark.parametrize(("via", "timeout_s"), [("execute", 0.5), ("batch", 0.5), ("stream", 30.0)])
def test_T054_T087_a_stream_has_no_time_limit_of_its_session(via, timeout_s):
    """The session says how long a call takes that gives one result."""
    host_sessions = host_sessions_with()
    call = ToolCall(host_sessions, Asked("s1", "square", [pack(1)]), via)
    opened = call.begin(known(host_sessions, default_timeout_ms=500))[0]
    assert isinstance(opened, Open)
    assert opened.timeout_s == timeout_s


def test_T062_a_result_of_just_the_limit_is_sent():
    """One byte more is refused."""
    for most, refusals in ((len(pack("x" * 200)), 0), (len(pack("x" * 200)) - 1, 1)):
        host_sessions = host_sessions_with(settings=BridgeSettings(message_bytes=most))
        call = call_of(host_sessions, "square", 1)
        call.begin(known(host_sessions))
        assert len(call.emitted(emitted("x" * 200))) == refusals


def test_T175_the_metadata_tell_before_the_context_what_belongs_together():
    """It is made up where neither does."""
    header = {"x-snakepit-correlation-id": "by-metadata"}
    assert correlation_of(header, {"correlation_id": "by-context"}) == "by-metadata"
    assert correlation_of({}, {"correlation_id": "by-context"}) == "by-context"
    assert len(correlation_of({}, {})) == 32


def test_T062_a_result_that_is_too_large_ends_the_call():
    """Its size and the limit are told."""
    host_sessions = host_sessions_with(settings=BridgeSettings(message_bytes=100))
    call = call_of(host_sessions, "square", 1)
    call.begin(known(host_sessions))
    (cancel,) = call.emitted(emitted("x" * 200))
    assert isinstance(cancel, Cancel)
    assert isinstance(cancel.error, BridgeError)
    assert cancel.error.kind is Kind.EXHAUSTED
    assert cancel.error.details["code"] == "result_too_large"
    assert int(cancel.error.details["size"]) > 200
    assert cancel.error.details["limit"] == "100"


def test_T067_the_items_of_a_stream_are_a_list():
    """A thousand of them at most; one more closes the generator."""
    host_sessions = host_sessions_with(count)
    session = known(host_sessions)
    call = call_of(host_sessions, "count", 3)
    call.begin(session)
    for one in range(3):
        assert call.emitted(emitted(one)) == ()
    assert unpack(call.result()) == [0, 1, 2]
    call = call_of(host_sessions, "count", 5000)
    call.begin(session)
    for one in range(1000):
        assert call.emitted(emitted(one)) == ()
    (cancel,) = call.emitted(emitted(1))
    assert isinstance(cancel, Cancel)
    assert isinstance(cancel.error, BridgeError)
    assert cancel.error.details["code"] == "too_many_chunks"


def test_T086_several_outputs_are_a_list_of_lists():
    """One for each, in the order of their index."""
    host_sessions = host_sessions_with(count)
    call = call_of(host_sessions, "count", 3)
    call.begin(known(host_sessions))
    for value, index in ((1, 0), ("a", 1), (2, 0)):
        call.emitted(emitted(value, index))
    assert unpack(call.result()) == [[1, 2], ["a"]]


def test_T064_a_function_that_gives_nothing_has_a_result():
    """It is null, and is there."""
    host_sessions = host_sessions_with(square)
    call = call_of(host_sessions, "square", 3)
    call.begin(known(host_sessions))
    call.finish(None)
    assert call.result() == pack(None)


def test_T069_the_context_is_for_the_function():
    """It is one of the configs, and no argument."""
    host_sessions = host_sessions_with()
    opened = call_of(host_sessions, "square", 3, context={"a": "b"}).begin(known(host_sessions))[0]
    assert isinstance(opened, Open)
    assert opened.configs[1:] == ({"a": "b"},)
    assert opened.bound == ("x",)


def test_T069_the_context_has_a_thousand_entries_at_most():
    """It is copied for the function, on the loop."""
    host_sessions = host_sessions_with()
    context = {str(number): "" for number in range(1001)}
    call = call_of(host_sessions, "square", 3, context=context)
    assert call.begin(known(host_sessions)) == ()
    assert isinstance(call.error, BridgeError)
    assert (call.error.kind, call.error.details["field"]) == (Kind.VALIDATION, "context")
    del context["0"]
    assert call_of(host_sessions, "square", 3, context=context).begin(known(host_sessions, "s2"))


def test_T054_a_tool_with_a_limit_of_its_own_has_no_other_default():
    """The engine knows that limit, and it is a limit also for those who ask for more."""

    @function(timeout_s=60.0)
    def same(x: int) -> int:
        return x

    host_sessions = host_sessions_with(same)
    session = known(host_sessions)
    opened = call_of(host_sessions, "same", 3).begin(session)[0]
    assert isinstance(opened, Open)
    assert opened.timeout_s is None


def test_T049_a_result_that_breaks_a_rule_ends_the_call():
    """It is the tool's fault, not the caller's."""

    def root(x: int) -> Annotated[int, Field(ge=0)]:
        return x

    host_sessions = host_sessions_with(root)
    call = call_of(host_sessions, "root", 3)
    call.begin(known(host_sessions))
    (cancel,) = call.emitted(emitted(-1))
    assert isinstance(cancel, Cancel)
    assert isinstance(cancel.error, BridgeError)
    assert (cancel.error.kind, cancel.error.details["code"]) == (Kind.INTERNAL, "result_invalid")


@pytest.mark.parametrize("debug", [True, False])
def test_T065_a_traceback_is_for_those_who_debug(debug):
    """Nobody else gets it."""
    host_sessions = host_sessions_with(settings=BridgeSettings(debug=debug))
    call = call_of(host_sessions, "square", 3)
    call.begin(known(host_sessions))
    try:
        raise ValueError("boom")
    except ValueError as error:
        call.finish(production_failed(error))
    assert isinstance(call.error, BridgeError)
    assert ("Traceback" in call.error.stacktrace) is debug


def test_a_call_ends_once():
    """The first ending counts, and observers hear of one."""
    host_sessions = host_sessions_with()
    call = call_of(host_sessions, "square", 3)
    call.begin(known(host_sessions))
    call.finish(Overloaded("full"))
    call.finish(None)
    assert isinstance(call.error, BridgeError)
    assert call.error.kind is Kind.EXHAUSTED
    assert host_sessions.ended == [call]


def test_what_several_conversations_tell_of_a_shared_call_counts_once():
    """The same event comes from each of them."""
    host_sessions = host_sessions_with(count)
    call = call_of(host_sessions, "count", 3)
    call.begin(known(host_sessions), is_shared=True)
    event = emitted(1)
    call.emitted(event)
    call.emitted(event)
    call.emitted(emitted(1))
    assert unpack(call.result()) == [1, 1]


def test_a_caller_that_is_gone_is_no_error_of_the_tool():
    """It stays what it was."""
    host_sessions = host_sessions_with()
    call = call_of(host_sessions, "square", 3)
    call.begin(known(host_sessions))
    error = Cancelled("gone")
    call.finish(error)
    assert call.error is error


def test_a_session_that_is_closing_takes_no_call():
    """Whoever comes in that moment hears what became of it."""
    host_sessions = host_sessions_with()
    session = known(host_sessions)
    host_sessions.remove(session, Reason.EXPIRED)
    call = call_of(host_sessions, "square", 3)
    assert call.begin(session) == ()
    assert isinstance(call.error, BridgeError)
    assert (call.error.kind, call.error.details["code"]) == (Kind.EXPIRED, "expired")


@pytest.mark.parametrize("is_watched", [False, True])
def test_a_call_lets_go_of_large_arguments_which_its_function_has(is_watched):
    """Once it runs, or once it has ended where observers look at them; of the message that had them, too."""
    host_sessions = host_sessions_with()
    host_sessions.keeps_arguments = is_watched
    request = CallRequest(session_id="s1", tool_id="square", args=[pack(5)], context={"a": "b"})
    asked = Asked("s1", "square", request.args, request.kwargs, context=request.context)
    call = ToolCall(host_sessions, asked, "execute")
    assert call.aside(LARGE + 1) is None
    assert call.begin(known(host_sessions))
    assert bool(call.asked.args) is is_watched
    call.finish(None)
    assert (call.asked.args, dict(call.asked.kwargs), call.asked.tool_id) == ((), {}, "square")
    assert type(call.asked.context) is dict
    assert call.asked.context == {"a": "b"}
