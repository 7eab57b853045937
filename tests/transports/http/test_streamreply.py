"""`invoker.transports.http.streamreply`: how the items of a stream leave, and what becomes of one that cannot end."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pytest

from invoker.errors import Overloaded, Status
from invoker.protocols.web.formats import Lines
from invoker.transports.http.exchange import HttpSettings
from tests.transports.http.test_inline_http import led
from tests.transports.http.test_inline_stream import UNSWEPT, Two, ask, body, chunk, count, head, stepping
from tests.transports.served import until


@patch(
    "invoker.transports.http.inline_stream.InlineStream.look", lambda *_: None
)  # which comes later, and sends it as well
async def test_what_is_held_leaves_within_some_beats() -> None:
    """An item that closely follows another one is held, and the function need not come back for it to leave."""
    async with stepping() as (steps, _, wire):
        steps.turns.release(3)
        assert await chunk(wire) == b"1\n"
        rest = await chunk(wire)
        if rest == b"2\n":  # the machine was slow
            rest += await chunk(wire)
        assert rest == b"2\n3\n"
        assert steps.ended == []


async def test_much_leaves_in_large_pieces() -> None:
    """What is held is bounded, and a stream that gives much goes on in a thread that does not lead."""
    async with led(count) as (served, leader, left), served.wire() as wire:
        leads = leader._leader_follower.leader
        await wire.send(ask("20000"))
        await head(wire)
        found = await body(wire)
        assert b"".join(found) == b"".join(b"%d\n" % number for number in range(20000))
        assert max(map(len, found)) < 16 * 1024
        assert len(found) < 20000 / 50
        assert leader._leader_follower.leader is not leads
        assert not served.driver.pace(served.driver.engine.catalog.find("count")).slow_until  # it may lead again
    assert left == []


async def test_H004_the_function_waits_for_a_slow_client() -> None:
    """And goes on when that reads again; nothing is lost."""
    text, given = "x" * 65536, []

    def large(to: int) -> Iterator[str]:
        for number in range(to):
            given.append(number)
            yield text

    async with led(large) as (served, _, _), served.wire() as wire:
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await wire.send(ask("400"))
        before = -1
        while before != len(given) or not given:
            before = len(given)
            await asyncio.sleep(0.2)
        assert len(given) < 400
        (running,) = served.driver.direct
        assert running.invocation is not None
        assert running.invocation.blocked == 1
        wire.writer.transport.resume_reading()  # type: ignore[attr-defined]
        await head(wire)
        assert b"".join(await body(wire)) == (json.dumps(text) + "\n").encode() * 400


async def test_a_client_that_takes_nothing_loses_its_stream(caplog: pytest.LogCaptureFixture) -> None:
    """After ``write_s``; the function ends."""
    over = threading.Event()

    def endless(_: int) -> Iterator[str]:
        try:
            while True:
                yield "x" * 65536
        finally:
            over.set()

    async with led(endless, settings=HttpSettings(write_s=0.2)) as (served, leader, _), served.wire() as wire:
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await wire.send(ask("1"))
        await until(over.is_set)
        await until(lambda: not len(leader))
        assert served.driver.engine.counters.finished == {Status.CANCELLED: 1}
    assert "a client did not read its response within 0.2 s" in caplog.text


async def test_H002_a_stream_that_cannot_end_well_is_cut() -> None:
    """Behind an item of which a part was not taken no error can be told: the connection ends within the chunk."""
    cut = threading.Event()

    def large(_: int) -> Iterator[str]:
        try:
            while True:
                yield "x" * 65536
        finally:
            cut.set()

    async with led(large) as (served, leader, _), served.wire() as wire:
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await wire.send(ask("1"))
        await until(lambda: bool(served.driver.direct) and next(iter(served.driver.direct)).outlet._rest != b"")  # type: ignore[attr-defined]
        (running,) = served.driver.direct
        running.fail(Overloaded("enough"))
        await until(cut.is_set)
        await until(lambda: not len(leader))
        wire.writer.transport.resume_reading()  # type: ignore[attr-defined]
        data = await wire.ended()
        assert not data.endswith(b"0\r\n\r\n")
        assert b"enough" not in data


@UNSWEPT
async def test_a_packed_stream_can_be_read_as_it_comes() -> None:
    """Each piece that leaves is complete for who unpacks it."""
    import zlib

    async with led(count) as (served, _, left), served.wire() as wire:
        await wire.send(ask("4", "Accept-Encoding: gzip"))
        assert b"content-encoding: gzip\r\n" in await head(wire)
        unpacker = zlib.decompressobj(31)
        assert [unpacker.decompress(one) for one in await body(wire)] == [b"0\n", b"1\n2\n3\n"]
        assert unpacker.eof
    assert left == []


async def test_a_function_that_is_told_of_its_end_answers_before_it_leaves() -> None:
    """Its output breaks a limit of the caller while another one goes on: the client need not wait for that."""
    go = threading.Event()

    def two(to: int) -> Two:
        def bad() -> Iterator[int]:
            yield 1
            raise ValueError("no")

        def good() -> Iterator[int]:
            yield to
            go.wait()

        return Two(bad(), good())

    async with led(two) as (served, _, _), served.wire() as wire:
        try:
            await wire.send(ask("4"))
            await head(wire)
            assert b'"error"' in b"".join(await body(wire))
            await wire.send(ask("x"))
            assert (await wire.answer())[0] == 400
        finally:
            go.set()


async def test_streams_that_give_much_take_turns() -> None:
    """One that has a turn passes it on when others wait, so that all come to their end, and none first."""
    ended: list[int] = []

    def many(which: int) -> Iterator[str]:
        for _ in range(20000):
            yield "0123456789"
        ended.append(which)

    async with led(many) as (served, _, _):
        enters: list[object] = []
        gate = served.driver.sweeper.gate
        enter = gate.enter

        def noted(ticket: Any) -> None:
            enter(ticket)
            enters.append(ticket)

        async def one(which: int) -> None:
            async with served.wire() as wire:
                await wire.send(ask(str(which)))
                await head(wire)
                assert b"".join(await body(wire)) == b'"0123456789"\n' * 20000

        with patch.object(gate, "enter", noted):
            await asyncio.gather(*map(one, range(3)))
        assert sorted(ended) == [0, 1, 2]
        assert len(set(enters)) == 3
        changes = sum(one is not other for one, other in pairwise(enters))
        assert changes > 10
        assert gate._owner is None


@patch("invoker.transports.http.streamreply._PROMPT_S", 0.0)
async def test_a_stream_lets_the_leading_thread_have_its_turn() -> None:
    """At each item, as long as that has requests before it; a stream that pauses does not yield otherwise."""
    yields: list[bool] = []
    async with stepping() as (steps, served, wire):
        leader = served.transport.leader
        assert leader is not None
        await until(lambda: not leader.is_serving)
        with patch("invoker.transports.http.streamreply.os.sched_yield", lambda: yields.append(True)):
            for _ in range(2):  # when an item is here, the thread is done with the one before
                steps.turns.release()
                await chunk(wire)
            assert yields == []
            leader.is_serving = True
            steps.turns.release()
            await chunk(wire)
            await until(lambda: bool(yields))


async def test_a_long_item_is_written_while_it_is_made() -> None:
    """In many chunks, between those of others."""
    text, made = "é" * (1 << 20), []

    def long(_: int) -> Iterator[str]:
        yield "a"
        yield text
        yield "b"

    parts = Lines.parts

    def noted(self: Lines, *args: Any) -> Iterator[bytes]:
        for part in parts(self, *args):
            made.append(part)
            yield part

    with patch.object(Lines, "parts", noted):
        async with led(long) as (served, _, left), served.wire() as wire:
            await wire.send(ask("1"))
            await head(wire)
            found = await body(wire)
            assert [json.loads(line) for line in b"".join(found).splitlines()] == ["a", text, "b"]
            assert len(made) > 10
            assert len(found) > 10
    assert left == []


async def test_a_long_item_that_cannot_be_made_breaks_the_response_off(caplog: pytest.LogCaptureFixture) -> None:
    """Without a last chunk, since an error would stand within the item."""

    def broken(self: Lines, *args: Any) -> Iterator[bytes]:
        yield b'"' + b"x" * 100_000
        raise ValueError("no")

    def long(_: int) -> Iterator[str]:
        yield "x" * 1_000_000

    with patch.object(Lines, "parts", broken):
        async with led(long) as (served, leader, _), served.wire() as wire:
            await wire.send(ask("1"))
            data = await wire.ended()
            await until(lambda: not len(leader))
    assert b"xxx" in data
    assert not data.endswith(b"0\r\n\r\n")
    assert "a response failed" in caplog.text
