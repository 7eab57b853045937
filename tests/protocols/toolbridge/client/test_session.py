"""Tests of sessions and of the calls in them."""

from __future__ import annotations

import asyncio

import pytest

from invoker.client.toolbridge import ToolBridge, ToolCall, ToolCommunicationError, ToolExecutionError, ToolSession
from invoker.errors import EncodeError, Status
from tests.protocols.toolbridge.client.peer import Peer


async def test_a_session_is_made_and_cleaned_up(bridge: ToolBridge, peer: Peer) -> None:
    """What is said of it travels."""
    async with bridge.session(
        metadata={"a": "b"}, max_concurrent_tools=3, default_timeout_s=1.5, caching=True, telemetry=True
    ) as session:
        assert (session.tool_count, session.capabilities) == (3, ("streaming", "batch"))
        made = peer.sessions[session.id]
        assert len(session.id) == 32
    assert dict(made.metadata) == {"a": "b"}
    config = made.config
    assert (config.max_concurrent_tools, config.default_timeout_ms) == (3, 1500)
    assert config.enable_caching
    assert config.enable_telemetry
    assert not peer.sessions
    assert peer.last("CleanupSession").force


async def test_a_session_is_kept_if_asked(bridge: ToolBridge, peer: Peer) -> None:
    """Then another client goes on with it."""
    async with bridge.session("mine", keep=True):
        pass
    async with bridge.session("mine", keep=True) as session:
        info = await session.info()
    assert (info.id, info.tool_count, info.metadata) == ("mine", 3, {"a": "b"})
    assert info.created_at.tzinfo is not None
    with pytest.raises(ToolExecutionError) as caught:
        await bridge.session("mine", caching=True).open()
    assert caught.value.code == "session_exists"


async def test_a_busy_session_is_closed_by_force(bridge: ToolBridge) -> None:
    """Without, the bridge refuses."""
    session = bridge.session("busy")
    await session.open()
    with pytest.raises(ToolExecutionError, match="tools run"):
        await session.close()
    assert await session.close(force=True) == "gone"


async def test_what_the_body_raises_is_not_hidden_by_the_clean_up() -> None:
    """A bridge that is gone tells less than the reason why the body ended."""
    async with ToolBridge("127.0.0.1:1") as bridge:
        session = bridge.session()
        await session.__aexit__(ZeroDivisionError, ZeroDivisionError(), None)
        with pytest.raises(ToolCommunicationError):
            await session.__aexit__(None, None, None)


async def test_arguments_and_results_travel(session: ToolSession, peer: Peer) -> None:
    """By position and by name; `tool` and `self` may be names of arguments."""
    value = {"a": [1, 2.5, None, True, b"x", 2**60], "b": "text"}
    assert await session.call("echo", value=value) == value
    assert await session.call("count", 1, "two", None) == 3
    await session.call("echo", tool=1, self=2)
    assert set(peer.last("ExecuteTool").kwargs) == {"tool", "self"}


async def test_all_that_can_be_said_of_a_call(session: ToolSession, peer: Peer) -> None:
    """And all that is answered."""
    result = await session.execute("echo", [1], request_id="r", timeout_s=0.25, context={"k": "v"})
    request = peer.last("ExecuteTool")
    assert (request.session_id, request.tool_id, request.timeout_ms) == ("s", "echo", 250)
    assert dict(request.context) == {"k": "v"}
    assert (result.value, result.request_id, result.metrics.duration_ms) == (1, "r", 12)
    assert result.metrics.custom == {"cache_hit": 1.0}


async def test_T104_what_has_no_form_raises_before_anything_is_sent(session: ToolSession, peer: Peer) -> None:
    """Keys that are no text, and objects."""
    before = len(peer.asked)
    for value in ({1: 2}, object(), [{"a": {2: 3}}]):
        with pytest.raises(EncodeError):
            await session.call("echo", value)
        with pytest.raises(EncodeError):
            session.stream("echo", value=value)
        with pytest.raises(EncodeError):
            await session.batch([ToolCall.of("echo", value)])
        with pytest.raises(EncodeError):
            await session.variables.set("x", value)
    assert len(peer.asked) == before


async def test_a_call_that_is_cancelled_leaves_the_session_usable(session: ToolSession) -> None:
    """As any task that is cancelled."""
    task = asyncio.create_task(session.call("silent"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await session.call("count", 1) == 1


async def test_a_bridge_that_does_not_answer_in_time_is_given_up(
    session: ToolSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some time after the tool should have ended."""
    monkeypatch.setattr("invoker.protocols.toolbridge.client.session.LATE_S", 0.0)
    with pytest.raises(ToolCommunicationError) as caught:
        await session.execute("silent", timeout_s=0.1)
    assert caught.value.code is Status.DEADLINE_EXCEEDED


async def test_a_batch_has_an_item_a_call(session: ToolSession, peer: Peer) -> None:
    """Some with a value, some with an error."""
    batch = await session.batch(
        [ToolCall.of("count", 1, 2), ToolCall("nothing"), ToolCall("count", (), {"a": 1})],
        parallel=True,
        stop_on_error=True,
        max_parallel=2,
        batch_id="b",
    )
    config = peer.last("BatchExecuteTools").config
    assert (config.parallel, config.stop_on_error, config.max_parallel) == (True, True, 2)
    assert (batch.id, batch.total, batch.average_ms) == ("b", 9, 0.5)
    assert [item.index for item in batch.items] == [0, 1, 2]
    assert batch.items[0].unwrap() == 2
    error = batch.items[1].error
    assert error is not None
    assert (error.tool, error.type) == ("nothing", "ToolNotFound")
    with pytest.raises(ToolExecutionError):
        batch.values()
    assert (await session.batch([ToolCall.of("count")])).values() == [0]


async def test_a_batch_that_is_refused_raises(session: ToolSession) -> None:
    """The trailer says why."""
    with pytest.raises(ToolExecutionError) as caught:
        await session.batch([])
    assert (caught.value.type, caught.value.status) == ("ValidationError", Status.INVALID_ARGUMENT)
