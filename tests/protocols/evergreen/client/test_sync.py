"""Tests of sessions for code without a loop."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from invoker.client import CallFailed, ConnectFailed, SyncEvergreenSession
from tests.protocols.evergreen.client.peer import Peer, serve_in_thread


@pytest.fixture
def threaded() -> Iterator[Peer]:
    with serve_in_thread() as running:
        yield running


def test_turns_with_reused_nodes(threaded: Peer) -> None:
    """As with asyncio."""
    with SyncEvergreenSession(threaded.target) as session:
        first = session.act("ECHO", {"prompt": "Hello"})
        assert list(first) == ["He", "llo"]
        second = session.act("ECHO", {"prompt": [first.inputs["prompt"], first, session.put("Go on")]})
        assert second.text() == "Hello|Hello|Go on"
        assert [one.payload for one in session.act("ECHO", {"x": "abc"}).messages()] == ["abc"]


def test_inputs_may_block(threaded: Peer) -> None:
    """Written, added, and iterated in a thread."""
    go_on = threading.Event()

    def slow() -> Iterator[str]:
        assert go_on.wait(5)
        yield "late"

    with SyncEvergreenSession(threaded.target) as session:
        leaf, tree = session.node(), session.tree()
        answer = session.act("ECHO", {"a": leaf, "b": tree, "c": slow()})
        leaf.write("one ")
        leaf.write("leaf")
        leaf.end()
        tree.add(leaf, ["x", b"y"])
        tree.end()
        go_on.set()
        assert answer.value() == "one leaf|one leaf|x|y|late"


def test_failures_are_raised(threaded: Peer) -> None:
    """By who reads, when the block is left, and when there is nobody."""
    with SyncEvergreenSession(threaded.target) as session, pytest.raises(CallFailed, match="boom"):
        list(session.act("FAIL"))
    with pytest.raises(CallFailed, match="boom"), SyncEvergreenSession(threaded.target) as session:
        session.act("FAIL")
    with pytest.raises(ConnectFailed), SyncEvergreenSession("127.0.0.1:1"):
        raise AssertionError("there is nobody")
    with pytest.raises(RuntimeError, match="the client is not open; use it as `with SyncEvergreenSession"):
        session.put("x")


def test_cancel_from_another_thread(threaded: Peer) -> None:
    """Of an answer, and of the session."""
    with SyncEvergreenSession(threaded.target, extensions=("cancel",)) as session:
        assert session.extensions == {"cancel"}
        answer = session.act("SILENT")
        threading.Timer(0.05, answer.cancel).start()
        with pytest.raises(CallFailed, match="CANCELLED"):
            answer.text()
        assert session.act("ECHO", {"x": "on"}).items() == ["on"]
        silent = session.act("SILENT")
        threading.Timer(0.05, session.cancel).start()
        with pytest.raises(CallFailed, match="CANCELLED"):
            silent.text()
