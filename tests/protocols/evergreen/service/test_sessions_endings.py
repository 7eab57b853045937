"""Evergreen sessions through each transport: how they end."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator

import grpc
import pytest

from tests.conftest import SLOW
from tests.transports.evergreen import TRANSPORTS, Endless, Served, act, leaf, upper_of
from tests.transports.riff import eventually, form

pytestmark = pytest.mark.parametrize("kind", TRANSPORTS)

OK = grpc.StatusCode.OK


@pytest.mark.parametrize("how", ["cancel", "deadline", "oversize", "garbage"])
def test_E010_a_broken_end_cancels_all_actions(kind, how):
    """Each ``finally`` runs within a second; the peer sees what it caused."""
    endless = Endless()
    with Served(kind, endless.of(kind, pause_s=0.02)) as served:
        actions = [act("endless", {}, {"out": f"r{number}"}) for number in range(3)]
        talk = served.talk(*actions, timeout=0.5 * SLOW if how == "deadline" else 20)
        talk.hear()
        assert eventually(lambda: len(served.driver.engine.running) == 3)
        if how == "cancel":
            talk.cancel()
        elif how == "oversize":
            talk.send(b"x" * 5_000_000)
        elif how == "garbage":
            talk.send(b"\xff\xff\xff")
        code = talk.end()[1]
        for _ in range(3):
            assert endless.ended.acquire(timeout=1 * SLOW)
        assert eventually(lambda: served.evergreen.running == 0)
        status = grpc.StatusCode
        codes = {
            "cancel": status.CANCELLED,
            "deadline": status.DEADLINE_EXCEEDED,
            "oversize": status.RESOURCE_EXHAUSTED,
        }
        assert code is codes.get(how, status.INVALID_ARGUMENT)


def test_E010_a_lost_connection_cancels_all_actions(kind):
    """As a cancel does."""
    endless = Endless()
    with Served(kind, endless.of(kind)) as served:
        channel = served.connect()
        talk = served.talk(act("endless", {}, {"out": "r"}), channel=channel)
        talk.hear()
        channel.close()
        assert endless.ended.acquire(timeout=1 * SLOW)
        assert eventually(lambda: served.evergreen.running == 0)


def test_E010_a_cancel_is_never_taken_for_a_half_close(kind):
    """Thirty cancels while a function gathers its input: it never sees the end of it (ET-79)."""
    ends: list[str] = []
    gathering = threading.Semaphore(0)

    def gather(x: Iterator[str]) -> Iterator[str]:
        for _ in x:
            gathering.release()
        ends.append("end")
        yield "all"

    async def agather(x: AsyncIterator[str]) -> AsyncIterator[str]:
        async for _ in x:
            gathering.release()
        ends.append("end")
        yield "all"

    agather.__name__ = "gather"
    with Served(kind, form(kind, gather, agather)) as served:
        for _ in range(30):
            talk = served.talk(leaf("p", b"a", more=True), act("gather", {"x": "p"}, {"out": "r"}))
            assert gathering.acquire(timeout=5)
            talk.half_close()
            talk.cancel()
        assert eventually(lambda: served.evergreen.running == 0)
        assert not served.driver.engine.running
    assert ends == []


def test_E012_an_abort_leaves_other_sessions_intact(kind):
    """One session breaks the rules, the other one goes on."""
    with Served(kind, upper_of(kind)) as served:
        good = served.talk(leaf("p", b"a", more=True), act("upper", {"x": "p"}, {"out": "r"}))
        assert good.hear().chunk_fragment.data == b"A"
        bad = served.talk(act("nothing", {}, {}))
        _, code, text = bad.end()
        assert code is grpc.StatusCode.NOT_FOUND
        assert text.startswith("Evergreen: Action Not Found")
        good.say(leaf("p", b"b", seq=1)).half_close()
        assert good.end() == ({"r": b"B"}, OK, "")


def test_E013_what_is_no_message_aborts(kind):
    """INVALID_ARGUMENT in Evergreen's words."""
    with Served(kind, upper_of(kind)) as served:
        talk = served.talk()
        talk.send(b"\xff\xff\xff")
        _, code, text = talk.end()
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert text.startswith("Evergreen: Invalid Node Fragment")


def test_a_session_too_many_is_refused(kind):
    """RESOURCE_EXHAUSTED; the next one is served when another has ended."""
    with Served(kind, upper_of(kind), sessions=2) as served:
        talks = [served.talk(leaf("p", b"a")) for _ in range(2)]
        for talk in talks:
            talk.rpc.initial_metadata()
        _, code, text = served.talk(leaf("p", b"a")).end()
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert text == "Evergreen: Limit Exceeded: 2 sessions are running, and no more are allowed at once"
        assert talks[0].half_close().end()[1] is OK
        assert served.talk(leaf("p", b"a")).half_close().end()[1] is OK


def test_E127_actions_may_clean_up_after_the_end_of_the_session(kind):
    """A client that cancels does not wait for it, and it is not cut short."""
    done = threading.Event()

    def tidy() -> Iterator[str]:
        try:
            while True:
                yield "x"
        finally:
            time.sleep(0.2)
            done.set()

    async def atidy() -> AsyncIterator[str]:
        try:
            while True:
                yield "x"
                await asyncio.sleep(0)
        finally:
            await asyncio.sleep(0.2)
            done.set()

    atidy.__name__ = "tidy"
    with Served(kind, form(kind, tidy, atidy), grace_s=0.5 * SLOW) as served:
        talk = served.talk(act("tidy", {}, {"out": "r"}))
        talk.hear()
        talk.cancel()
        assert done.wait(2 * SLOW)


def test_ET93_a_drain_refuses_new_sessions_and_lets_actions_finish(kind):
    """Idle sessions end at once with UNAVAILABLE, busy ones when their actions have."""
    go = threading.Event()

    def slow() -> Iterator[str]:
        yield "a"
        go.wait(5)
        yield "b"

    async def aslow() -> AsyncIterator[str]:
        yield "a"
        await asyncio.to_thread(go.wait, 5)
        yield "b"

    aslow.__name__ = "slow"
    with Served(kind, form(kind, slow, aslow)) as served:
        idle, busy = served.talk(leaf("p", b"a")), served.talk(act("slow", {}, {"out": "r"}))
        idle.rpc.initial_metadata()
        assert busy.hear().chunk_fragment.data == b"a"
        drained = asyncio.run_coroutine_threadsafe(served.driver.drain(10), served.loop)
        _, code, text = idle.end()
        assert (code, text.partition(": ")[0]) == (grpc.StatusCode.UNAVAILABLE, "Evergreen")
        assert text.startswith("Evergreen: Shutting Down")
        assert served.talk().end()[1:] == (
            grpc.StatusCode.UNAVAILABLE,
            "Evergreen: Shutting Down: this invoker is draining and takes no new sessions",
        )
        go.set()
        nodes, code, _ = busy.end()
        assert (nodes, code) == ({"r": b"b"}, grpc.StatusCode.UNAVAILABLE)
        assert drained.result(5)


def test_a_transport_stops_although_sessions_are_open(kind):
    """Idle ones and busy ones; their functions leave."""
    endless = Endless()
    with Served(kind, endless.of(kind)) as served:
        idle, busy = served.talk(leaf("p", b"a")), served.talk(act("endless", {}, {"out": "r"}))
        idle.rpc.initial_metadata()
        busy.hear()
        served.close()
        assert endless.ended.acquire(timeout=2 * SLOW)
        assert eventually(lambda: served.evergreen.running == 0)
        for talk in (idle, busy):
            assert talk.end()[1] in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


def test_E011_nothing_follows_the_status_of_an_abort(kind):
    """Outputs that were given before come first, and there is one status."""
    endless = Endless()
    with Served(kind, endless.of(kind, pause_s=0)) as served:
        talk = served.talk(act("endless", {}, {"out": "r"}))
        talk.hear()
        talk.say(leaf("r", b"mine"))
        nodes, code, text = talk.end()
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert text.startswith("Evergreen: Invalid Node Fragment")
        assert set(nodes) <= {"r"}
        assert endless.ended.acquire(timeout=2 * SLOW)


@pytest.mark.parametrize(
    "raised", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()], ids=lambda one: type(one).__name__
)
def test_E117_what_would_end_a_process_fails_the_action(kind, raised):
    """FAIL with its name; the next session is served by the same process."""

    def leave(x: str) -> str:
        if x == "go":
            raise raised
        return x

    async def leave_async(x: str) -> str:
        return leave(x)

    function = form(kind, leave, leave_async)
    name = function.__name__
    with Served(kind, function) as served:
        talk = served.talk(leaf("p", b"go"), act(name, {"x": "p"}, {"out": "r"})).half_close()
        outputs, code, text = talk.end()
        assert (outputs, code) == ({}, grpc.StatusCode.UNKNOWN)
        assert text.startswith("Evergreen: Action Failed: action ")
        assert type(raised).__name__ in text
        talk = served.talk(leaf("p", b"stay"), act(name, {"x": "p"}, {"out": "r"})).half_close()
        assert talk.end() == ({"r": b"stay"}, OK, "")


@pytest.mark.parametrize("how", ["reads", "cancels"])
def test_a_session_counts_until_its_peer_has_taken_what_was_written(kind, how):
    """Else a client that reads nothing could leave any number of them behind, each with its output."""
    endless = Endless()
    with Served(kind, endless.of(kind, size=3_000_000), sessions=1) as served:
        channel = served.connect(**{"http2.bdp_probe": 0})  # it takes no more than it must
        talk = served.talk(act("endless", {}, {"out": "r"}), channel=channel)
        assert eventually(lambda: any("r" in one.session.graph.nodes for one in served.driver.conversations))
        assert eventually(lambda: any(one.session.graph.held > 3_000_000 for one in served.driver.conversations))
        talk.send(b"\xff\xff\xff")
        assert eventually(lambda: not served.driver.conversations)
        assert endless.ended.acquire(timeout=2 * SLOW)
        assert served.evergreen.running == 1
        assert served.talk().end()[1] is grpc.StatusCode.RESOURCE_EXHAUSTED
        if how == "reads":
            nodes, code, _ = talk.end()
            assert (len(nodes["r"]) % 3_000_000, code) == (0, grpc.StatusCode.INVALID_ARGUMENT)
        else:
            talk.cancel()
        assert eventually(lambda: served.evergreen.running == 0)
        channel.close()


def test_how_a_session_ended_is_logged_and_counted(kind, caplog):
    """One line a session, also where no action ran that could tell."""
    with caplog.at_level("INFO", "invoker"), Served(kind, upper_of(kind)) as served:
        assert served.talk(act("nothing", {}, {})).end()[1] is grpc.StatusCode.NOT_FOUND
        assert served.talk(leaf("p", b"x"), act("upper", {"x": "p"}, {"out": "r"})).half_close().end()[1] is OK
        assert eventually(lambda: served.driver.sessions.running == 0)
        told = [vars(one) for one in caplog.records if one.message == "session ended"]
        assert [(one["status"], one["actions"]) for one in told] == [("NOT_FOUND", 0), ("OK", 1)]
        assert told[0]["detail"].startswith("Evergreen: Action Not Found: no action is named 'nothing'")
        assert {status.name: number for status, number in served.driver.sessions.ended.items()} == {
            "NOT_FOUND": 1,
            "OK": 1,
        }
