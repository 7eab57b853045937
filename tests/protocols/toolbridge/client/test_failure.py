"""Tests of how requests end that do not end well."""

from __future__ import annotations

import asyncio

import pytest

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.client import CallFailed
from invoker.client.toolbridge import ToolBridge, ToolCommunicationError, ToolExecutionError, ToolSession
from invoker.errors import Status
from invoker.protocols.toolbridge.client.failure import told_in
from invoker.protocols.toolbridge.wire import TRAILER
from tests.protocols.toolbridge.client.peer import Peer
from tests.serving import serving


async def test_T162_an_error_in_the_answer_has_tool_type_message_and_details(session: ToolSession) -> None:
    """It is a `CallFailed`, too, with the status that belongs to its type (T-161)."""
    with pytest.raises(ToolExecutionError) as caught:
        await session.call("fail")
    error = caught.value
    assert (error.tool, error.type, error.message) == ("fail", "ValidationError", "no such argument")
    assert error.details == {"code": "unknown_arg", "field": "x"}
    assert error.code == "unknown_arg"
    assert error.status is Status.INVALID_ARGUMENT
    assert str(error) == "fail: ValidationError: no such argument"
    assert isinstance(error, CallFailed)


async def test_T162_an_rpc_that_fails_has_the_code_of_grpc(session: ToolSession) -> None:
    """There is nothing else to tell."""
    with pytest.raises(ToolCommunicationError) as caught:
        await session.call("denied")
    assert caught.value.code is caught.value.status is Status.PERMISSION_DENIED
    assert str(caught.value) == "PERMISSION_DENIED: not you"


async def test_T162_calls_with_a_request_id_are_tried_again(session: ToolSession, peer: Peer) -> None:
    """The third attempt gets through."""
    result = await session.execute("flaky", [1], request_id="r")
    assert (result.value, result.request_id) == (1, "r")
    assert peer.calls["r"] == 3


async def test_T162_three_further_attempts_are_the_most(session: ToolSession, peer: Peer) -> None:
    """Then the caller gets what the last one said."""
    with pytest.raises(ToolCommunicationError) as caught:
        await session.execute("late", request_id="r")
    assert caught.value.code is Status.DEADLINE_EXCEEDED
    assert peer.calls["r"] == 4


async def test_T162_the_waits_are_1_2_and_4_seconds(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asked for other ones."""
    waits = []

    async def note(seconds: float) -> None:
        waits.append(seconds)

    async with ToolBridge(peer.target) as bridge, bridge.session() as session:
        with monkeypatch.context() as patched:
            patched.setattr(asyncio, "sleep", note)
            with pytest.raises(ToolCommunicationError):
                await session.execute("late", request_id="r")
    assert waits == [1.0, 2.0, 4.0]


async def test_T162_nothing_else_is_tried_again(session: ToolSession, peer: Peer) -> None:
    """Neither calls without a request id, nor refusals, nor errors of the tool."""
    with pytest.raises(ToolCommunicationError):
        await session.execute("flaky")
    with pytest.raises(ToolCommunicationError):
        await session.execute("denied", request_id="denied")
    with pytest.raises(ToolExecutionError):
        await session.execute("fail", request_id="fail")
    assert peer.calls == {"": 1, "denied": 1, "fail": 1}


async def test_T160_an_error_in_the_trailer_is_the_same_exception(bridge: ToolBridge) -> None:
    """The status is that of the rpc."""
    with pytest.raises(ToolExecutionError) as caught:
        await bridge.session("other").info()
    assert caught.value.type == "SessionExpired"
    assert caught.value.code == "unknown"
    assert caught.value.status is Status.NOT_FOUND


async def test_T079_both_forms_of_a_failed_stream_are_the_same_exception(session: ToolSession) -> None:
    """A chunk with an error, and Snakepit's status with JSON; the values before come first."""
    for tool in ("fail", "snakepit"):
        stream = session.stream(tool)
        assert await anext(stream) == 0
        with pytest.raises(ToolExecutionError) as caught:
            await anext(stream)
        error = caught.value
        assert (error.tool, error.type, error.message) == (tool, "InternalError", "boom")
        assert error.details == {"exception": "ValueError"}
    assert error.stacktrace == "here"


async def test_T079_snakepit_says_not_found_for_sessions_and_tools(session: ToolSession) -> None:
    """Which of them its text tells."""
    with pytest.raises(ToolExecutionError) as caught:
        _ = [value async for value in session.stream("snakepit-session")]
    assert caught.value.type == "SessionExpired"
    with pytest.raises(ToolExecutionError) as caught:
        await session.call("missing")
    assert caught.value.type == "ToolNotFound"


async def test_T068_an_error_in_a_result_is_a_result(session: ToolSession) -> None:
    """Snakepit answers so when a generator is called; nobody may guess what a dict means."""
    assert await session.call("generator") == {"error": "Streaming tool called"}


async def test_where_no_bridge_is_served_the_text_says_so() -> None:
    """The text of gRPC, "Method not found!", tells nobody what to do."""
    with serving("functions.square", "--protocols", "riff") as served:
        async with ToolBridge(served.grpc) as bridge:
            with pytest.raises(ToolCommunicationError, match="serves no tool bridge, or not this rpc of it") as caught:
                await bridge.health()
        assert caught.value.code is Status.UNIMPLEMENTED
        assert served.grpc in str(caught.value)


async def test_where_nothing_listens_the_text_says_so() -> None:
    """And what to do."""
    async with ToolBridge("127.0.0.1:1") as bridge:
        with pytest.raises(ToolCommunicationError, match=r"nothing listens at 127\.0\.0\.1:1"):
            await bridge.health()


def test_T160_an_error_in_the_trailers_is_read_unless_it_is_broken() -> None:
    """By its key; a client then has the status alone."""
    error = pb.ErrorInfo(type="ValidationError", message="no")
    others = (("other", b"x"), (TRAILER, "text"))
    assert told_in((*others, (TRAILER, error.SerializeToString()))) == error
    assert told_in((*others, (TRAILER, b"\xff"))) is told_in(others) is None
