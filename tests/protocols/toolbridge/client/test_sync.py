"""Tests of the client without an event loop."""

from __future__ import annotations

import threading

import pytest

from invoker.client.toolbridge import (
    MISSING,
    Answer,
    SyncToolBridge,
    ToolCall,
    ToolCommunicationError,
    ToolExecutionError,
)
from tests.protocols.toolbridge.client.peer import Peer


def test_all_that_the_async_client_does(threaded_peer: Peer) -> None:
    """With plain calls."""
    with SyncToolBridge(threaded_peer.target) as bridge:
        assert bridge.health().is_serving
        assert bridge.metrics("calls")["calls"] == 2
        with bridge.session("s", caching=True) as session:
            assert (session.id, session.tool_count, session.capabilities) == ("s", 3, ("streaming", "batch"))
            assert session.info().id == "s"
            assert [tool.name for tool in session.tools()] == ["add"]
            assert session.call("echo", value="x") == "x"
            assert session.execute("echo", [1, 2], request_id="r").value == 2
            stream = session.stream("split")
            assert list(stream) == [0, b"abcde", b"x"]
            assert session.batch([ToolCall.of("count", 1)]).values() == [1]
            agent = session.agent("question -> answer")
            assert agent.ask({"question": "?"}).values == {"answer": 3}
            assert isinstance(list(agent.run({"question": "?"}))[-1], Answer)
            with pytest.raises(ToolExecutionError):
                session.call("fail")
        assert not threaded_peer.sessions


def test_variables(threaded_peer: Peer) -> None:
    """Also those that are watched."""
    with SyncToolBridge(threaded_peer.target) as bridge, bridge.session() as session:
        variables = session.variables
        assert variables.get("x") is MISSING
        with variables.watch("x") as watch:
            variables.set("x", 1, tags={})
            assert next(watch).value == 1
        assert [row.name for row in variables.list()] == ["x"]
        assert variables.describe("x") is not None
        variables.delete("x")


def test_a_stream_is_cancelled_by_another_thread(threaded_peer: Peer) -> None:
    """Who iterates is told, and leaving it cancels it, too."""
    with SyncToolBridge(threaded_peer.target) as bridge, bridge.session() as session:
        stream = session.stream("silent")
        assert next(stream) == 0
        timer = threading.Timer(0.05, stream.cancel)
        timer.start()
        with pytest.raises(ToolCommunicationError, match="CANCELLED"):
            next(stream)
        timer.join()
        threaded_peer.cancelled.clear()
        with session.stream("endless") as stream:
            next(stream)
        assert threaded_peer.cancelled.wait(5)


def test_a_client_that_is_not_open_says_so(threaded_peer: Peer) -> None:
    """Closing it twice is no error."""
    bridge = SyncToolBridge(threaded_peer.target)
    with pytest.raises(RuntimeError, match="with SyncToolBridge"):
        bridge.health()
    with bridge:
        bridge.health()
    bridge.close()
