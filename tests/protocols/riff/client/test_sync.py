"""Tests of the client without an event loop."""

from __future__ import annotations

import queue
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from invoker.client import CallFailed, SyncRiffClient
from tests.protocols.riff.client.peer import Peer


def test_values_go_out_and_come_back(threaded_peer: Peer) -> None:
    """As with the async client."""
    with SyncRiffClient(threaded_peer.target) as client:
        assert [out.value for out in client.invoke([["a", 1]])] == ["a", 1]
        assert client.invoke(pairs=iter([(1, "x")]), function="indexed").value() == "1:x"
        assert len(client.invoke([range(3), iter("ab")]).collect()) == 5


def test_inputs_may_block(threaded_peer: Peer) -> None:
    """A conversation: each value is sent when the answer to the one before is there."""
    words: queue.SimpleQueue[str] = queue.SimpleQueue()
    words.put("a")
    answers = []
    with SyncRiffClient(threaded_peer.target) as client:
        for out in client.invoke([iter(words.get, "end")]):
            answers.append(out.value)
            words.put("end" if len(answers) == 3 else out.value + "a")
    assert answers == ["a", "aa", "aaa"]


def test_async_inputs_run_on_the_clients_loop(threaded_peer: Peer) -> None:
    """They are welcome too."""

    async def values() -> AsyncIterator[str]:
        yield "a"

    with SyncRiffClient(threaded_peer.target) as client:
        assert client.invoke([values()]).value() == "a"


def test_break_cancels_the_call(threaded_peer: Peer) -> None:
    """And the input's generator is closed."""
    closed = threading.Event()

    def endless() -> Iterator[str]:
        try:
            while True:
                yield "a"
        finally:
            closed.set()

    with SyncRiffClient(threaded_peer.target) as client:
        for _ in client.invoke([endless()], function="endless"):
            break
        assert threaded_peer.cancelled.wait(5)
        assert closed.wait(5)
        assert client.invoke([["next"]]).value() == "next"


def test_cancel_from_another_thread(threaded_peer: Peer) -> None:
    """Who iterates gets CANCELLED."""
    with SyncRiffClient(threaded_peer.target) as client:
        call = client.invoke([["a"]], function="silent")
        timer = threading.Timer(0.1, call.cancel)
        timer.start()
        with pytest.raises(CallFailed, match="CANCELLED"):
            call.collect()
        timer.join()


def test_errors_are_raised_in_the_callers_thread(threaded_peer: Peer) -> None:
    """Those of the peer, and those of the inputs."""

    def bad() -> Iterator[int]:
        yield 1
        raise KeyError("mine")

    with SyncRiffClient(threaded_peer.target) as client:
        with pytest.raises(CallFailed, match="boom"):
            client.invoke([["a"]], function="fail").collect()
        with pytest.raises(KeyError, match="mine"):
            client.invoke([bad()], function="silent").collect()


def test_threads_share_a_client(threaded_peer: Peer) -> None:
    """Each gets its own values."""
    wrong: list[object] = []

    def work(number: int) -> None:
        outs = client.invoke([[number] * 20]).collect()
        wrong.extend(out.value for out in outs if out.value != number)

    with SyncRiffClient(threaded_peer.target) as client:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_closing_ends_the_thread_and_the_calls(threaded_peer: Peer) -> None:
    """Any number of times; an iterator that was kept says that the client is closed."""
    client = SyncRiffClient(threaded_peer.target)
    with client:
        outputs = iter(client.invoke([["a"]], function="endless"))
        next(outputs)
    assert threaded_peer.cancelled.wait(5)
    client.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "invoker-client"]
    with pytest.raises(RuntimeError, match="the client is closed"):
        next(outputs)
    with pytest.raises(RuntimeError, match="not open"):
        client.invoke()


def test_block_ends_the_call(threaded_peer: Peer) -> None:
    """For those who keep the iterator."""
    with SyncRiffClient(threaded_peer.target) as client:
        with client.invoke([["a"]], function="endless") as call:
            outputs = iter(call)
            next(outputs)
        assert threaded_peer.cancelled.wait(5)


def test_a_call_may_be_closed_after_its_client(threaded_peer: Peer) -> None:
    """Its client has ended it."""
    with SyncRiffClient(threaded_peer.target) as client:
        call = client.invoke([["a"]], function="silent")
    call.close()
    with call:
        pass
