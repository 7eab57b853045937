"""`invoker.transports.websocket`: sessions on real connections, from the handshake to the last frame."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from wsproto.events import CloseConnection, Ping

from invoker.errors import Status
from invoker.protocols.action_engine.settings import ActionEngineSettings
from invoker.protocols.action_engine.wire import ABORT, HALF_CLOSE, Action, Chunk, Fragment, decode
from tests.transports.doors import until
from tests.transports.sockets import item, serving, texts

UPPER = Action("A", "upper", (("x", "A#x"),), (("y", "A#y"),))


def upper(x: str) -> str:
    return x.upper()


async def echo(x: AsyncIterator[str]) -> AsyncIterator[str]:
    async for one in x:
        yield one


def code_of(fragment: Fragment) -> int:
    """Of a status."""
    assert isinstance(fragment.content, Chunk)
    return fragment.content.data[0]


class Held:
    """Functions that wait to be let go, and tell that they were left."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.go = asyncio.Event()
        self.left = asyncio.Event()
        self.count = 0

    async def run(self, x: AsyncIterator[str]) -> AsyncIterator[str]:
        """Wait, then count what comes."""
        self.started.set()
        try:
            await self.go.wait()
            async for _ in x:
                self.count += 1
            yield f"{self.count}"
        finally:
            self.left.set()

    async def flood(self) -> AsyncIterator[bytes]:
        """Give for ever."""
        try:
            while True:
                self.count += 1
                yield bytes(16 * 1024)
        finally:
            self.left.set()


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
        ((), "http://{address}", 101),
        ((), "https://evil.example", 403),
        ((), "null", 403),
        (("https://good.example",), "https://good.example", 101),
        (("https://good.example",), "https://good.example.evil", 403),
        (("*",), "https://any.example", 101),
    ],
)
async def test_pages_of_other_origins_may_not_connect(origins: tuple[str, ...], origin: str, status: int) -> None:
    """Unless they are listed; what is no browser says no origin."""
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


# What is no message


async def test_a_message_that_is_too_long_ends_the_session() -> None:
    """With statuses, the abort and code 1009; what still comes of it is not kept, and the connection ends."""
    held = Held()
    async with serving(held.run, max_message_bytes=100_000, linger_s=0.1) as served, served.peer() as peer:
        await peer.say(Action("A", "run", (("x", "A#x"),)))
        await held.started.wait()
        await peer.raw(b"\x02\xff" + (10**9).to_bytes(8, "big") + bytes(4))
        sending = asyncio.create_task(_pour(peer, 50_000_000))
        found = await peer.fragments(ABORT)
        assert [one.id for one in found] == ["A#out", "A#__status__", ABORT]
        assert {code_of(one) for one in found} == {Status.RESOURCE_EXHAUSTED}
        assert await peer.closed() == 1009
        await sending
        await held.left.wait()


async def _pour(peer: object, size: int) -> None:
    try:
        for _ in range(size // 100_000):
            await peer.raw(bytes(100_000))  # type: ignore[attr-defined]
    except ConnectionError:
        pass


@pytest.mark.parametrize("kind", ["text", "garbage"])
async def test_what_is_no_message_ends_the_session(kind: str) -> None:
    """With the abort, and code 1002."""
    async with serving(upper) as served, served.peer() as peer:
        if kind == "text":
            await peer.text("hello")
        else:
            await peer.raw(b"\x82\x83\x00\x00\x00\x00\xff\xfe\xfd")
        (abort,) = await peer.fragments(ABORT)
        assert code_of(abort) == Status.INVALID_ARGUMENT
        assert await peer.closed() == 1002


async def test_frames_that_break_the_protocol_end_the_connection() -> None:
    """And what runs in it; nothing else."""
    held = Held()
    async with serving(held.run, upper) as served, served.peer() as peer:
        await peer.say(Action("A", "run", (("x", "A#x"),)))
        await held.started.wait()
        await peer.raw(b"\xf3\xff\xff\xff")
        await held.left.wait()
        await peer.closed()
        async with served.peer() as other:
            await other.say(UPPER, item("A#x", 0, b"a", last=True))
            assert texts(await other.fragments(), "A#y") == [b"A"]


# Ends


@pytest.mark.parametrize("how", ["close", "abort", "farewell"])
async def test_a_peer_that_leaves_ends_what_runs(how: str) -> None:
    """With a closing frame, without, or with the abort of its protocol."""
    held = Held()
    async with serving(held.run) as served, served.peer() as peer:
        await peer.say(Action("A", "run", (("x", "A#x"),)))
        await held.started.wait()
        if how == "close":
            await peer.send(CloseConnection(1001))
        elif how == "abort":
            peer.writer.transport.abort()
        else:
            await peer.say(Fragment(ABORT, Chunk(b"\x01")))
            assert await peer.closed() == 1011
        await held.left.wait()
        await until(lambda: not served.app.running)
        assert not served.driver.conversations


async def test_a_drain_ends_idle_sessions_and_lets_others_finish() -> None:
    """1001 with the abort; new ones are refused with 503."""
    held = Held()
    async with serving(held.run) as served, served.peer() as idle, served.peer() as busy:
        await busy.say(Action("A", "run", (("x", "A#x"),)), item("A#x", last=True))
        await held.started.wait()
        draining = asyncio.create_task(served.driver.drain(5))
        (abort,) = await idle.fragments(ABORT)
        assert code_of(abort) == Status.UNAVAILABLE
        assert await idle.closed() == 1001
        async with served.peer() as late:
            assert late.status == 503
        held.go.set()
        found = await busy.fragments(ABORT)
        assert (texts(found, "A#out"), code_of(found[-1])) == ([b"1"], Status.UNAVAILABLE)
        assert await busy.closed() == 1001
        assert await draining


async def test_a_peer_that_does_not_close_is_not_waited_for() -> None:
    """Longer than the linger."""
    async with serving(upper, linger_s=0.05) as served, served.peer() as peer:
        await peer.say()
        await until(lambda: not served.app.running)


async def test_a_peer_that_does_not_read_the_end_is_cut() -> None:
    """Its session is over, and so is the wait."""
    held = Held()
    async with serving(held.flood, write_s=0.05) as served, served.peer() as peer:
        await peer.say(Action("A", "flood"))
        await until(lambda: held.count > 16)
        await peer.text("an error of the peer")
        await held.left.wait()
        await until(lambda: not served.app.running)


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
