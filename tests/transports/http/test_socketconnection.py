"""`invoker.transports.http.socketconnection`: how connections end, what is no message, and who waits for whom."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Iterator

import pytest
from wsproto.events import BytesMessage, CloseConnection, Ping

from invoker.errors import Status
from invoker.protocols.evergreen.action_engine.settings import ActionEngineSettings
from invoker.protocols.evergreen.action_engine.wire import ABORT, Action, Chunk, Fragment
from tests.transports.served import until
from tests.transports.socketed import UPPER, Held, code_of, upper
from tests.transports.sockets import Peer, item, serving, texts

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


async def _pour(peer: Peer, size: int) -> None:
    with contextlib.suppress(ConnectionError):
        for _ in range(size // 100_000):
            await peer.raw(bytes(100_000))


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


async def test_a_peer_that_leaves_is_missed_while_nothing_is_read() -> None:
    """The pings tell; the function that did not take what came is cancelled."""
    held = Held()
    known = ActionEngineSettings(high_bytes=100_000, window=2)
    async with serving(held.run, known=known, ping_s=0.02) as served, served.peer() as peer:
        await peer.say(Action("A", "run", (("x", "A#x"),)))
        await held.started.wait()
        (reactor,) = served.driver.conversations
        pouring = asyncio.create_task(_pour_items(peer))
        await until(lambda: reactor.session.is_full)
        peer.writer.transport.abort()
        await held.left.wait()
        await until(lambda: not served.app.running)
        await pouring


async def _pour_items(peer: Peer) -> None:
    with contextlib.suppress(ConnectionError):
        for seq in range(1000):
            await peer.say(item("A#x", seq, bytes(64 * 1024)))


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
        before = -1
        while before != held.count:
            before = held.count
            await asyncio.sleep(0.1)
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


async def test_H052_a_peer_that_answers_no_ping_is_gone() -> None:
    """One that answers stays, however little it says."""
    held = Held()
    async with serving(held.run, ping_s=0.02) as served, served.peer() as peer:
        await peer.say(Action("A", "run", (("x", "A#x"),)))
        await held.started.wait()
        while peer.pings < 10:
            await peer._turn()
        assert served.app.running == 1
        await held.left.wait()  # nobody reads, so nobody answers
        await until(lambda: not served.app.running)


async def test_pings_of_one_turn_are_answered_by_their_last() -> None:
    """So a flood of them, which nobody reads the answers of, takes no memory (RFC 6455, 5.5.3)."""
    async with serving(upper) as served, served.peer() as peer:
        flood = b"".join(b"\x89\x84\0\0\0\0%04d" % one for one in range(1000))
        for _ in range(20):
            await peer.raw(flood)
        while not peer.pongs or peer.pongs[-1] != b"0999":
            await peer._turn()
        assert len(peer.pongs) < 2000
        assert all(len(one._out) <= 1 for one in served.transport.connections.open)  # type: ignore[attr-defined]


async def test_others_have_a_turn_between_many_frames_of_one() -> None:
    """A connection that brings thousands at once does not hold up the loop."""
    async with serving(upper) as served, served.peer() as peer:
        turns = 0

        def count() -> None:
            nonlocal turns
            turns += 1
            asyncio.get_running_loop().call_soon(count)

        count()
        before = turns
        await peer.raw(b"\x8a\x80\0\0\0\0" * 10_000 + b"\x89\x80\0\0\0\0")
        while not peer.pongs:
            await peer._turn()
        assert turns - before > 50


async def test_H056_what_is_not_complete_is_counted() -> None:
    """Until it is; beyond what the process may hold, the connection ends and others go on."""
    async with serving(upper) as served:
        memory = served.driver.engine.memory
        memory.most_bytes = 400_000
        async with served.peer() as one, served.peer() as other:
            await one.raw(b"\x82\xff" + (1_000_000).to_bytes(8) + bytes(4) + bytes(300_000))
            await until(lambda: memory.held >= 300_000)
            await other.raw(b"\x02\xff" + (200_000).to_bytes(8) + bytes(4) + bytes(200_000))
            assert code_of((await other.fragments(ABORT))[-1]) == Status.RESOURCE_EXHAUSTED
            await other.closed()
            one.writer.transport.abort()
            await until(lambda: not memory.held)


# Whatever comes


async def test_random_bytes_end_their_connection_only() -> None:
    """As frames, and as messages in right frames; nothing hangs, and nothing of it is left."""
    chance = random.Random(20251)
    async with serving(upper, linger_s=0.05) as served:
        for turn in range(60):
            async with served.peer() as peer:
                noise = chance.randbytes(chance.randrange(1, 200))
                if turn % 2:
                    await peer.send(BytesMessage(data=noise))
                    assert await peer.closed() == 1002
                else:
                    await peer.raw(noise)
                    peer.writer.write_eof()
                    await peer.closed()
        await until(lambda: not served.app.running)
        assert not served.driver.conversations
        async with served.peer() as peer:
            await peer.say(UPPER, item("A#x", 0, b"a", last=True))
            assert texts(await peer.fragments(), "A#y") == [b"A"]
