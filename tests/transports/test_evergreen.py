"""Evergreen sessions through each door: where they begin, how they end, and what they leave behind."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import pytest

from invoker import Context
from invoker.protocols.evergreen.session import EvergreenSession
from tests.conftest import SLOW
from tests.transports.evergreen import Served, act, leaf
from tests.transports.riff import KINDS, eventually, form

pytestmark = pytest.mark.parametrize("kind", KINDS)

OK = grpc.StatusCode.OK


def upper(x: Iterator[str]) -> Iterator[str]:
    for one in x:
        yield one.upper()


async def aupper(x: AsyncIterator[str]) -> AsyncIterator[str]:
    async for one in x:
        yield one.upper()


def upper_of(kind: str) -> Any:
    """The function, called ``upper`` in each form."""
    aupper.__name__ = "upper"
    return form(kind, upper, aupper)


class Endless:
    """A function that gives for ever, in both forms, and tells how it fares."""

    def __init__(self) -> None:
        self.given = 0
        self.ended = threading.Semaphore(0)
        self.half_closed = 0

    def of(self, kind: str, size: int = 10, pause_s: float = 0.001) -> Any:
        """The form for a kind of door."""

        def endless() -> Iterator[str]:
            try:
                while True:
                    yield "x" * size
                    self.given += 1
                    time.sleep(pause_s)
            finally:
                self.ended.release()

        async def aendless() -> AsyncIterator[str]:
            try:
                while True:
                    yield "x" * size
                    self.given += 1
                    await asyncio.sleep(pause_s)
            finally:
                self.ended.release()

        aendless.__name__ = "endless"
        return form(kind, endless, aendless)


def test_E001_a_session_is_one_call_on_the_port_of_riff(kind):
    """Both methods answer on one channel, with the same function."""
    with Served(kind, upper_of(kind)) as served:
        talk = served.talk(leaf("p", b"hi"), act("upper", {"x": "p"}, {"out": "r"}))
        assert talk.hear().chunk_fragment.data == b"HI"
        talk.half_close()
        assert served.call(b"hi").rest() == [b'"HI"']
        assert talk.end()[1] is OK


def test_E002_equal_ids_of_two_sessions_are_unrelated(kind):
    """Fifty sessions at once, each with a node p and a node r."""
    with Served(kind, upper_of(kind)) as served:
        talks = [served.talk(act("upper", {"x": "p"}, {"out": "r"})) for _ in range(50)]
        for number, talk in enumerate(talks):
            talk.say(leaf("p", b"n%d" % number)).half_close()
        assert [talk.end() for talk in talks] == [({"r": b"N%d" % number}, OK, "") for number in range(50)]


def test_E003_memory_is_released_with_the_session(kind):
    """A hundred sessions of a quarter of a megabyte each leave nothing behind."""
    with Served(kind, upper_of(kind)) as served:

        def run() -> None:
            talk = served.talk(leaf("p", b"x" * 250_000), act("upper", {"x": "p"}, {"out": "r"})).half_close()
            assert talk.end()[1] is OK

        run()
        tracemalloc.start()
        try:
            base = tracemalloc.get_traced_memory()[0]
            for _ in range(100):
                run()
                served._calls.clear()
            assert eventually(lambda: not alive())
            assert tracemalloc.get_traced_memory()[0] - base < 5_000_000
        finally:
            tracemalloc.stop()
        assert served.evergreen.running == 0


def alive() -> list[EvergreenSession]:
    """Sessions that somebody holds on to."""
    gc.collect()
    return [one for one in gc.get_objects() if type(one) is EvergreenSession]


def test_E004_running_actions_finish_after_the_half_close(kind):
    """Their outputs are sent, then OK."""
    go = threading.Event()

    def slow(x: Iterator[str]) -> Iterator[str]:
        yield from x
        go.wait(5)
        yield "late"

    async def aslow(x: AsyncIterator[str]) -> AsyncIterator[str]:
        async for one in x:
            yield one
        await asyncio.to_thread(go.wait, 5)
        yield "late"

    aslow.__name__ = "slow"
    with Served(kind, form(kind, slow, aslow)) as served:
        talk = served.talk(leaf("p", b"soon"), act("slow", {"x": "p"}, {"out": "r"})).half_close()
        assert talk.hear().chunk_fragment.data == b"soon"
        go.set()
        assert talk.end() == ({"r": b"late"}, OK, "")


def test_E005_a_half_close_without_actions_is_ok_at_once(kind):
    """Also without any message, and with nodes that nobody uses."""
    with Served(kind, upper_of(kind)) as served:
        assert served.talk().half_close().end() == ({}, OK, "")
        assert served.talk(leaf("p", b"x", more=True)).half_close().end() == ({}, OK, "")


def test_E006_E008_a_session_stays_open_for_more_actions(kind):
    """The second one comes long after the first has finished, with keep-alives between."""
    with Served(kind, upper_of(kind)) as served:
        talk = served.talk(leaf("p", b"a"), act("upper", {"x": "p"}, {"out": "r"}))
        assert talk.hear().id == "r"
        assert eventually(lambda: not served.driver.engine.running)
        time.sleep(0.2)
        talk.say().say().say()
        talk.say(act("upper", {"x": "p"}, {"out": "s"})).half_close()
        assert talk.end()[0]["s"] == b"A"


@pytest.mark.parametrize("how", ["cancel", "deadline", "oversize", "garbage"])
def test_E010_a_broken_end_cancels_all_actions(kind, how):
    """Each ``finally`` runs within a second; the peer sees what it caused."""
    endless = Endless()
    with Served(kind, endless.of(kind)) as served:
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


def test_E014_E118_headers_come_at_the_start(kind):
    """Before anything was sent, with the extensions that are accepted."""
    with Served(kind, upper_of(kind)) as served:
        talk = served.talk(metadata=[("evergreen-extensions", "drop, nonsense, cancel")])
        headers = dict(talk.rpc.initial_metadata())
        assert headers["evergreen-extensions"] == "drop, cancel"
        talk.half_close()
        assert talk.end()[1] is OK


def test_metadata_of_the_call_reach_the_function(kind):
    """By its context, as for riff."""

    def who(ctx: Context) -> Iterator[str]:
        yield ctx.metadata["x-user"]

    async def awho(ctx: Context) -> AsyncIterator[str]:
        yield ctx.metadata["x-user"]

    awho.__name__ = "who"
    with Served(kind, form(kind, who, awho)) as served:
        talk = served.talk(act("who", {}, {"out": "r"}), metadata=[("x-user", "me")]).half_close()
        assert talk.end()[0] == {"r": b"me"}


def test_E110_a_client_that_does_not_read_suspends_the_function(kind):
    """What the function gives is bounded by the wire; the session goes on taking what it is sent."""
    endless = Endless()
    with Served(kind, endless.of(kind, size=50_000, pause_s=0)) as served:
        talk = served.talk(act("endless", {}, {"out": "r"}))
        talk.rpc.initial_metadata()

        def is_still() -> bool:
            before = endless.given
            time.sleep(0.2)
            return before > 0 and endless.given == before

        assert eventually(is_still)
        assert endless.given * 50_000 < 20_000_000
        talk.say(leaf("big", b"y" * 1_000_000))
        (session,) = [one.session for one in served.driver.conversations]
        assert eventually(lambda: "big" in session.graph.nodes)
        talk.cancel()
        assert endless.ended.acquire(timeout=2 * SLOW)


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
    with Served(kind, form(kind, tidy, atidy)) as served:
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
