"""Evergreen sessions through each transport: what begins, flows, and is left behind."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterator

import grpc
import pytest

from invoker import Context
from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.protocols.evergreen.session import EvergreenSession
from tests.conftest import SLOW
from tests.transports.evergreen import TRANSPORTS, Endless, Served, act, leaf, upper_of
from tests.transports.riff import eventually, form

pytestmark = pytest.mark.parametrize("kind", TRANSPORTS)

OK = grpc.StatusCode.OK


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
    """Forty sessions of a quarter of a megabyte each leave nothing behind."""
    with Served(kind, upper_of(kind)) as served:

        def run() -> None:
            talk = served.talk(leaf("p", b"x" * 250_000), act("upper", {"x": "p"}, {"out": "r"})).half_close()
            assert talk.end()[1] is OK

        run()
        before = len(alive())  # what other tests raise may keep theirs
        tracemalloc.start()
        try:
            base = tracemalloc.get_traced_memory()[0]
            for _ in range(40):
                run()
                served._calls.clear()
            assert eventually(lambda: len(alive()) <= before)
            assert tracemalloc.get_traced_memory()[0] - base < 2_000_000
        finally:
            tracemalloc.stop()
        assert eventually(lambda: served.evergreen.running == 0)


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


def test_E091_a_slow_action_does_not_delay_a_quick_one(kind):
    """One blocks, the other answers."""
    go = threading.Event()

    def work(x: Iterator[str]) -> Iterator[str]:
        for one in x:
            if one == "slow":
                go.wait(10)
            yield one

    async def awork(x: AsyncIterator[str]) -> AsyncIterator[str]:
        async for one in x:
            if one == "slow":
                await asyncio.to_thread(go.wait, 10)
            yield one

    awork.__name__ = "work"
    with Served(kind, form(kind, work, awork)) as served:
        talk = served.talk(leaf("p", b"slow"), act("work", {"x": "p"}, {"out": "r"}))
        talk.say(leaf("q", b"quick"), act("work", {"x": "q"}, {"out": "s"}))
        assert talk.hear().chunk_fragment.data == b"quick"
        go.set()
        talk.half_close()
        assert talk.end()[1] is OK


def test_E042_E068_thousands_of_fragments_stream_through_two_actions(kind):
    """The second reads what the first gives, while both run; nothing is lost on the way."""

    def copy(x: Iterator[str]) -> Iterator[str]:
        yield from x

    async def acopy(x: AsyncIterator[str]) -> AsyncIterator[str]:
        async for one in x:
            yield one

    acopy.__name__ = "copy"
    with Served(kind, form(kind, copy, acopy)) as served:
        talk = served.talk(act("copy", {"x": "p"}, {"out": "r"}), act("copy", {"x": "r"}, {"out": "s"}))
        for number in range(2000):
            talk.say(leaf("p", b"%05d" % number, number, more=True))
        talk.say(leaf("p", b"", 2000)).half_close()
        nodes, code, _ = talk.end()
        expected = b"".join(b"%05d" % number for number in range(2000))
        assert (code, nodes["r"], nodes["s"]) == (OK, expected, expected)


def test_what_a_turn_of_the_loop_gives_leaves_in_few_messages(kind):
    """Fragments of several outputs are joined; each node keeps its order (E-103)."""

    def many() -> Iterator[str]:
        for number in range(3000):
            yield f"{number:04}"

    async def amany() -> AsyncIterator[str]:
        for number in range(3000):
            yield f"{number:04}"

    amany.__name__ = "many"
    with Served(kind, form(kind, many, amany)) as served:
        talk = served.talk(act("many", {}, {"out": "a"}), act("many", {}, {"out": "b"})).half_close()
        messages = [pb.SessionMessage.FromString(one).node_fragments for one in talk.rpc]
        assert len(messages) < 3000
        for node in ("a", "b"):
            mine = [one for message in messages for one in message if one.id == node]
            assert [one.seq for one in mine] == list(range(3001))
            assert b"".join(one.chunk_fragment.data for one in mine) == b"".join(b"%04d" % n for n in range(3000))
