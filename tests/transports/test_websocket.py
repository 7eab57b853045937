"""`invoker.transports.websocket`: sessions on real connections: who may connect, and what they hold."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from wsproto.events import Ping

from invoker.errors import Status
from invoker.protocols.action_engine.settings import ActionEngineSettings
from invoker.protocols.action_engine.wire import HALF_CLOSE, Action, decode
from tests.transports.doors import until
from tests.transports.socketed import UPPER, Held, code_of, echo, upper
from tests.transports.sockets import item, serving, texts

# Sessions


@pytest.mark.parametrize("deflate", [False, True])
async def test_an_action_is_called_and_answered(deflate: bool) -> None:
    """Item by item, then the half-close of both sides and code 1000; also where messages are compressed."""
    async with serving(upper) as served, served.peer(deflate=deflate) as peer:
        await peer.say(UPPER)
        await peer.say(item("A#x", 0, b"a" * 5000), item("A#x", 1, b"b", last=True))
        found = await peer.fragments()
        assert texts(found, "A#y") == [b"A" * 5000, b"B"]
        assert [one.seq for one in found] == [0, 1, 2, 0]
        assert code_of(found[-1]) == Status.OK
        await peer.say()
        assert await peer.hear() == decode(HALF_CLOSE)
        assert await peer.closed() == 1000
        await until(lambda: not served.app.running)


async def test_sessions_are_strangers_to_each_other() -> None:
    """Equal ids do not meet, and the end of one is not that of another."""
    async with serving(upper) as served, served.peer() as one, served.peer() as other:
        for peer, data in ((one, b"one"), (other, b"other")):
            await peer.say(UPPER, item("A#x", 0, data, last=True))
        assert texts(await other.fragments(), "A#y") == [b"OTHER"]
        await other.raw(b"\xff\xff\xff\xff")
        await other.closed()
        assert texts(await one.fragments(), "A#y") == [b"ONE"]
        await one.say(UPPER, item("A#x", 0, b"again", last=True))
        assert texts(await one.fragments(), "A#y") == [b"AGAIN"]


async def test_what_runs_is_finished_after_the_half_close() -> None:
    """The answer comes, and then the close."""
    held = Held()
    async with serving(held.run) as served, served.peer() as peer:
        await peer.say(Action("A", "run", (("x", "A#x"),)), item("A#x", last=True))
        await held.started.wait()
        await peer.say()
        held.go.set()
        assert texts(await peer.fragments(), "A#out") == [b"1"]
        assert await peer.closed() == 1000


async def test_who_waits_for_what_never_comes_is_told_after_the_half_close() -> None:
    """On the loop and in a thread, whether it waited before or not."""

    def consume(x: Iterator[str]) -> Iterator[str]:
        yield from x

    async with serving(consume, echo) as served, served.peer() as peer:
        for name in ("echo", "consume"):
            await peer.say(Action(name, name, (("x", f"{name}#x"),)), item(f"{name}#x", 0, b"here"))
        found = await peer.hear(), await peer.hear()
        assert found
        await peer.say()
        ended = {one.id: code_of(one) for _ in range(2) for one in await peer.fragments() if one.id.endswith("__")}
        assert ended == dict.fromkeys(("echo#__status__", "consume#__status__"), Status.FAILED_PRECONDITION)
        assert await peer.closed() == 1000


# Handshakes


async def test_sessions_have_their_path() -> None:
    """Another one is 404, with a text."""
    async with serving(upper, path="/sessions") as served:
        async with served.peer("/sessions?a=1") as peer:
            assert peer.status == 101
        async with served.peer("/") as peer:
            assert peer.status == 404


@pytest.mark.parametrize(
    ("origins", "origin", "status"),
    [
        ((), "", 101),
        ((), "http://{address}", 403),
        ((), "https://evil.example", 403),
        ((), "null", 403),
        (("https://good.example",), "https://good.example", 101),
        (("https://good.example",), "https://good.example.evil", 403),
        (("*",), "https://any.example", 101),
    ],
)
async def test_pages_may_not_connect(origins: tuple[str, ...], origin: str, status: int) -> None:
    """No page may, unless its origin is listed; what is no browser says none."""
    async with (
        serving(upper, origins=origins) as served,
        served.peer(origin=origin.format(address=served.address)) as peer,
    ):
        assert peer.status == status


async def test_sessions_at_once_are_limited() -> None:
    """One more is 503, until one ends."""
    async with serving(upper, sessions=1) as served:
        async with served.peer() as peer:
            assert peer.status == 101
            async with served.peer() as other:
                assert other.status == 503
        await until(lambda: served.app.running == 0)
        async with served.peer() as peer:
            assert peer.status == 101


# Pressure


async def test_a_slow_reader_suspends_the_function() -> None:
    """It goes on when the peer reads."""
    held = Held()
    async with serving(held.flood) as served, served.peer() as peer:
        await peer.say(Action("A", "flood"))
        before = -1
        while before != held.count:
            before = held.count
            await asyncio.sleep(0.1)
        for _ in range(before + 10):
            await peer.hear()
        assert held.count > before
    await held.left.wait()


async def test_a_slow_function_suspends_the_peer() -> None:
    """Little is held of what it does not take; all of it arrives once it does."""
    held = Held()
    known = ActionEngineSettings(high_bytes=100_000, window=2)
    total = 300
    async with serving(held.run, known=known) as served, served.peer() as peer:
        await peer.say(Action("A", "run", (("x", "A#x"),)))
        await held.started.wait()

        async def pour() -> None:
            for seq in range(total):
                await peer.say(item("A#x", seq, bytes(16 * 1024), last=seq == total - 1))

        pouring = asyncio.create_task(pour())
        (reactor,) = served.driver.conversations
        session = reactor.session
        await until(lambda: session.is_full)
        for _ in range(100):
            await asyncio.sleep(0)
            assert session._store.size < 200_000
        held.go.set()
        found = await peer.fragments()
        assert texts(found, "A#out") == [b"%d" % total]
        await pouring


async def test_reading_goes_on_for_an_input_that_is_waited_for() -> None:
    """It stands behind what another input does not take."""

    def second_first(a: Iterator[bytes], b: Iterator[bytes]) -> Iterator[str]:
        found = len(list(b))
        yield f"{found} {len(list(a))}"

    known = ActionEngineSettings(high_bytes=100_000, window=2)
    async with serving(second_first, known=known) as served, served.peer() as peer:
        await peer.say(Action("A", "second_first", (("a", "A#a"), ("b", "A#b"))))
        for seq in range(100):
            await peer.say(item("A#a", seq, bytes(16 * 1024), last=seq == 99))
        for seq in range(10):
            await peer.say(item("A#b", seq, last=seq == 9))
        assert texts(await peer.fragments(), "A#out") == [b"10 100"]


async def test_pings_are_answered_and_sent() -> None:
    """So that nobody on the way takes the connection for dead."""
    async with serving(upper, ping_s=0.02) as served, served.peer() as peer:
        await peer.send(Ping(payload=b"there?"))
        while not (peer.pongs and peer.pings > 1):
            await peer._turn()
        assert peer.pongs == [b"there?"]
        assert served.app.running == 1
