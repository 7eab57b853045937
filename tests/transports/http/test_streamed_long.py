"""Long items of streams: they leave part by part, whatever carries them, and come as they were given."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from invoker import Message
from invoker.core.http import ResponseHead
from invoker.transports.http import writer
from invoker.transports.http.exchange import Exchange
from tests.transports.http.test_writer import GET, serving
from tests.transports.served import Served, until

LINES, EVENTS, MIXED = "application/x-ndjson", "text/event-stream", "multipart/mixed"
OCTETS = bytes(range(256)) * 3000
TEXT = "aä\r\n\n€" * 60_000
VALUES = [OCTETS, TEXT, {"a": "x" * 500_000}, list(range(100_000)), 1]


async def give(n: int) -> AsyncIterator[object]:
    yield VALUES[n]
    yield n
    yield VALUES[n]


def give_sync(n: int) -> Iterator[object]:
    yield VALUES[n]
    yield n
    yield VALUES[n]


def value_of(line: str) -> object:
    found = json.loads(line)
    return base64.b64decode(found["base64"]) if isinstance(found, dict) and "base64" in found else found


@pytest.mark.parametrize("function", [give, give_sync])
@pytest.mark.parametrize("coding", ["identity", "gzip"])
@pytest.mark.parametrize("http2", [False, True])
async def test_H170_long_items_come_as_they_were_given(function: object, coding: str, *, http2: bool) -> None:
    """With short ones between them, in lines and events, packed and not."""
    async with Served.at(function) as served, served.client(http2=http2) as client:
        for n, value in enumerate(VALUES):
            headers = {"Accept": LINES, "Accept-Encoding": coding, "Content-Type": "application/json"}
            response = await client.post("/", content=str(n), headers=headers, timeout=60)
            assert [value_of(one) for one in response.text.splitlines()] == [value, n, value]
            response = await client.post("/", content=str(n), headers={**headers, "Accept": EVENTS}, timeout=60)
            *items, end, nothing = response.text.split("\n\n")
            assert [value_of(one.partition("data: ")[2]) for one in items] == [value, n, value]
            assert (end, nothing) == ("event: end\ndata: {}", "")


async def test_H170_long_texts_are_lines_of_an_event() -> None:
    """Where plain text is asked for."""
    async with Served.at(give) as served, served.client() as client:
        headers = {"Accept": f"{EVENTS}, text/plain", "Content-Type": "application/json"}
        response = await client.post("/", content="1", headers=headers, timeout=60)
        first = response.text.partition("\n\n")[0]
        lines = [one.partition("data: ")[2] for one in first.split("\n")[1:]]
        assert "\n".join(lines) == TEXT.replace("\r\n", "\n")


@pytest.mark.parametrize("function", [give, give_sync])
async def test_H170_long_messages_of_a_socket(function: object) -> None:
    """They come in fragments; pings between them are answered, and what follows comes behind them."""
    async with Served.at(function) as served, served.peer(f"/{function.__name__}/ws") as peer:  # type: ignore[attr-defined]
        await peer.text('{"data": 2}')
        await peer.text('{"end": true}')
        assert [json.loads(await peer.message()) for _ in range(4)] == [
            {"output": "out", "data": VALUES[2]},
            {"output": "out", "data": 2},
            {"output": "out", "data": VALUES[2]},
            {"end": True},
        ]


async def test_H170_parts_are_made_as_the_client_takes_them() -> None:
    """Who reads nothing costs a few of them; who leaves ends the wait."""
    made, cut = 0, asyncio.Event()

    def parts() -> Iterator[bytes]:
        nonlocal made
        while True:
            made += 1
            yield bytes(64 * 1024)

    async def answer(exchange: Exchange) -> None:
        exchange.begin(ResponseHead(200, (("Content-Type", "a/b"),)))
        assert not exchange.write(parts())
        try:
            await exchange.room()
        finally:
            cut.set()

    async with serving(answer) as served:  # type: ignore[attr-defined]  # it is a Served
        async with served.wire() as wire:
            await wire.send(GET)
            await wire.reader.readuntil(b"\r\n\r\n")
            await until(lambda: made > 1)
            before = -1
            while before != made:
                before = made
                await asyncio.sleep(0.05)
            assert made < 2000  # what the kernel holds, not what there is
        await asyncio.wait_for(cut.wait(), 5)


async def test_H170_what_is_written_behind_a_long_piece_comes_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if nobody waits for room, and at the end; packed, too."""
    monkeypatch.setattr(writer, "_MADE_BYTES", 2)

    async def answer(exchange: Exchange) -> None:
        exchange.begin(ResponseHead(200, (("Content-Type", "text/plain"),)))
        exchange.write(b"one ")
        assert not exchange.write(iter((b"two", b" ", b"", b"three")))
        assert not exchange.write(b" four")
        exchange.write(iter((b" five",)))
        exchange.end()

    async with serving(answer) as served, served.client() as client:  # type: ignore[attr-defined]  # it is a Served
        for coding in ("identity", "gzip"):
            for _ in range(2):
                response: httpx.Response = await client.get("/x", headers={"Accept-Encoding": coding})
                assert response.text == "one two three four five"


async def test_H002_a_long_piece_that_fails_cuts_the_response() -> None:
    """Nothing looks complete that is not; packed, too."""

    def parts() -> Iterator[bytes]:
        yield b"x" * 300_000
        raise ValueError("no")

    async def answer(exchange: Exchange) -> Message[bytes] | None:
        exchange.begin(ResponseHead(200, (("Content-Type", "text/plain"),)))
        exchange.write(parts())
        exchange.end()
        return None

    async with serving(answer) as served, served.client() as client:  # type: ignore[attr-defined]  # it is a Served
        for coding in ("identity", "gzip"):
            with pytest.raises(httpx.RemoteProtocolError):
                await client.get("/x", headers={"Accept-Encoding": coding})


def many(n: int) -> list[int]:
    return [n] * 100_000


async def amany(n: int) -> list[int]:
    return many(n)


@pytest.mark.parametrize("function", [many, amany])
async def test_H171_large_values_of_single_calls_take_turns_as_well(function: object) -> None:
    """Whether they are made in the thread that read the request, or on the loop."""
    async with Served.at(function) as served:
        turns = served.driver.threads.turns
        assert turns._free_s == 0
        response = await served.post("7", content_type="application/json")
        assert response.json() == [7] * 100_000
        assert turns._free_s > 0
