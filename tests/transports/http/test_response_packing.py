"""`response_packing`: how responses leave the transport, on every carrier, whole and streamed."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import time
import zlib
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any
from unittest.mock import patch

import pytest

from invoker.core.http import RequestHead, Response, ResponseHead
from invoker.transports.http import packing
from invoker.transports.http import response_packing as leaving
from invoker.transports.http.bodies import Chunks
from invoker.transports.http.codings import GZIP, PLAIN, Choice
from invoker.transports.http.exchange import Exchange, HttpSettings
from invoker.transports.http.response_packing import begun, packed, ready
from tests.transports.served import Served, until

JSON = ("Content-Type", "application/json")
HEAD = RequestHead("GET", "/")
ASKS = Choice(GZIP)
STREAM = ResponseHead(200, (("Content-Type", "text/event-stream"),))

Answer = Callable[[Exchange], Awaitable[Response | None]]


class StoreChanged:
    """A handler that answers as a test says."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer


def numbers(n: int) -> list[int]:
    return list(range(n))


async def numbers_later(n: int) -> list[int]:
    return list(range(n))


def picture(n: int) -> bytes:
    return bytes(n)


def serving(*functions: Any, answer: Answer | None = None, **about: Any) -> AbstractAsyncContextManager[Served]:
    handler = (lambda path: StoreChanged(answer) if path == "/x" else None) if answer is not None else (lambda _: None)
    return Served.at(*(functions or (numbers_later,)), handler=handler, **about)


# Alone.


async def test_H132_a_short_response_is_ready_and_a_long_one_is_packed_in_a_thread() -> None:
    """Whoever cannot wait is told so by None; the result is the same."""
    short, long = (Response(200, (JSON,), b"1" * size) for size in (packing.AT_ONCE_BYTES, packing.AT_ONCE_BYTES + 1))
    assert ready(long, ASKS, HEAD) is None
    threads: list[str] = []

    def pack(response: Response, coding: str) -> Response:
        threads.append(threading.current_thread().name)
        return packing.pack(response, coding)

    with patch.object(leaving, "pack", pack):
        for response in (short, long):
            leaves = await packed(response, ASKS, HEAD)
            assert gzip.decompress(leaves.body) == response.body
    assert threads[0] == threading.main_thread().name != threads[1]


def test_H132_what_is_not_packed_leaves_as_it_is() -> None:
    """The very same response, unless it says that it would be packed for others."""
    for response in (Response(200, (JSON,), b"1"), Response(200, (("Content-Type", "image/png"),), bytes(5000))):
        assert ready(response, ASKS, HEAD) is ready(response, PLAIN, HEAD) is response
    told = ready(Response(200, (JSON,), b"1" * 50_000), PLAIN, HEAD)
    assert told == Response(200, (JSON, ("Vary", "Accept-Encoding")), b"1" * 50_000)
    assert begun(STREAM, PLAIN) == (ResponseHead(200, (*STREAM.headers, ("Vary", "Accept-Encoding"))), None)
    image = ResponseHead(200, (("Content-Type", "image/png"),))
    assert begun(image, ASKS) == (image, None)


# Whole responses, on the transport.


@pytest.mark.parametrize("ops", ["thread", "loop", "http2"])
@pytest.mark.parametrize("n", [10, 300, 30_000])
async def test_H130_responses_are_packed_for_clients_that_ask(ops: str, n: int) -> None:
    """By whatever they come; httpx unpacks them. Short ones are left, and no client gets what it has not asked for."""
    function = numbers if ops == "thread" else numbers_later
    async with serving(function) as served, served.client(http2=ops == "http2") as client:
        for accept, coding in (("gzip", "gzip"), ("identity", None), ("br;q=1, gzip;q=0.1", "gzip"), ("", None)):
            got = await client.post("/", json=n, headers={"Accept-Encoding": accept, "Accept": "application/json"})
            assert got.status_code == 200
            assert got.json() == list(range(n))
            assert got.headers.get("content-encoding") == (coding if n > 10 else None)
            assert got.headers.get("vary") == ("Accept-Encoding" if n > 10 else None)
            assert int(got.headers["content-length"]) == got.num_bytes_downloaded
        assert (served.transport.leader is not None and len(served.transport.leader) > 0) == (ops == "thread")


@pytest.mark.parametrize("ops", ["thread", "loop", "http2"])
async def test_H131_a_client_that_takes_nothing_we_have_gets_406(ops: str) -> None:
    """One that takes nothing unpacked gets even a short one packed."""
    function = numbers if ops == "thread" else numbers_later
    async with serving(function) as served, served.client(http2=ops == "http2") as client:
        got = await client.post("/", json=3, headers={"Accept-Encoding": "identity;q=0, br"})
        assert got.status_code == 406
        assert "Accept-Encoding" in got.text
        got = await client.post("/", json=3, headers={"Accept-Encoding": "identity;q=0, gzip"})
        assert (got.headers["content-encoding"], got.json()) == ("gzip", [0, 1, 2])


async def test_H132_packing_can_be_turned_off() -> None:
    """Then nothing is said of it, either."""
    async with serving(numbers, settings=HttpSettings(codings=())) as served, served.client() as client:
        for accept in ("gzip", "identity;q=0"):
            got = await client.post("/", json=1000, headers={"Accept-Encoding": accept})
            assert got.status_code == 200
            assert not {"content-encoding", "vary"} & set(got.headers)


async def test_H132_images_and_octets_are_left() -> None:
    """They would not become shorter, as far as anybody knows."""
    async with serving(picture) as served, served.client() as client:
        got = await client.post("/", json=9000, headers={"Accept-Encoding": "gzip"})
        assert got.content == bytes(9000)
        assert not {"content-encoding", "vary"} & set(got.headers)


@pytest.mark.parametrize("http2", [False, True])
async def test_H132_a_head_has_the_headers_of_a_get(http2: bool) -> None:
    """RFC 9110, 9.3.2: its length is that of the packed body."""

    async def answer(exchange: Exchange) -> Response:
        return Response(200, (JSON, ("ETag", '"1"')), b"1" * 5000)

    async with serving(answer=answer) as served, served.client(http2=http2) as client:
        got = [await client.request(method, "/x", headers={"Accept-Encoding": "gzip"}) for method in ("GET", "HEAD")]
        heads = [{name: value for name, value in one.headers.items() if name != "date"} for one in got]
        assert heads[0] == heads[1]
        assert heads[0]["etag"] == 'W/"1"'
        assert heads[0]["content-encoding"] == "gzip"
        assert (got[0].content, got[1].content) == (b"1" * 5000, b"")


@pytest.mark.parametrize("http2", [False, True])
async def test_H132_a_long_response_does_not_hold_up_the_loop(http2: bool) -> None:
    """Others are answered while it is packed."""
    packing_now, go_on = threading.Event(), threading.Event()

    def pack(response: Response, coding: str) -> Response:
        packing_now.set()
        go_on.wait()
        return packing.pack(response, coding)

    with patch.object(leaving, "pack", pack):
        async with serving() as served, served.client(http2=http2) as client, served.client() as other:
            headers = {"Accept-Encoding": "gzip"}
            long = asyncio.create_task(client.post("/", json=50_000, headers=headers))
            await until(packing_now.is_set)
            assert (await other.get("/livez")).status_code == 200
            assert not long.done()
            go_on.set()
            assert (await long).json() == list(range(50_000))


async def test_a_client_may_leave_while_its_response_is_packed() -> None:
    """The transport does not wait for it at its end."""
    packing_now, go_on = threading.Event(), threading.Event()

    def pack(response: Response, coding: str) -> Response:
        packing_now.set()
        go_on.wait()
        return response

    with patch.object(leaving, "pack", pack):
        async with serving() as served:
            async with served.wire() as wire:
                head = (
                    "POST / HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\nContent-Type: application/json\r\n"
                )
                await wire.send(head, "Content-Length: 5\r\n\r\n50000")
                await until(packing_now.is_set)
            go_on.set()
            await until(lambda: not served.transport.connections.open)


async def test_another_thread_leads_while_a_long_response_is_packed() -> None:
    """So the thread that packs holds up nobody."""
    packing_now, go_on = threading.Event(), threading.Event()

    def pack(response: Response, coding: str) -> Response:
        packing_now.set()
        go_on.wait()
        return packing.pack(response, coding)

    with patch("invoker.transports.http.inline_connection.pack", pack):
        async with serving(numbers) as served, served.client() as client, served.client() as other:
            headers = {"Accept-Encoding": "gzip"}
            long = asyncio.create_task(client.post("/", json=50_000, headers=headers))
            await until(packing_now.is_set)
            assert (await other.post("/", json=2, headers=headers)).json() == [0, 1]
            assert not long.done()
            go_on.set()
            assert (await long).json() == list(range(50_000))


# Streams.


async def bursts(exchange: Exchange) -> None:
    """Two items at once, then one more when the test has seen them."""
    exchange.begin(STREAM)
    exchange.write(b"data: 1\n\n")
    exchange.write(b"data: 2\n\n")
    await exchange.seen.wait()  # type: ignore[attr-defined]  # the test gives it
    exchange.write(b"data: 3\n\n")
    exchange.end()


@pytest.mark.parametrize("http2", [False, True])
async def test_H132_items_of_a_packed_stream_come_at_once(http2: bool) -> None:
    """A client reads what has been written before the function goes on."""
    seen = asyncio.Event()

    async def answer(exchange: Exchange) -> None:
        exchange.seen = seen  # type: ignore[attr-defined]
        await bursts(exchange)

    async with (
        serving(answer=answer) as served,
        served.client(http2=http2) as client,
        client.stream("GET", "/x", headers={"Accept-Encoding": "gzip"}) as got,
    ):
        assert (got.headers["content-encoding"], got.headers["vary"]) == ("gzip", "Accept-Encoding")
        assert "content-length" not in got.headers
        items = got.aiter_bytes()
        text = b""
        while text != b"data: 1\n\ndata: 2\n\n":
            text += await anext(items)
        seen.set()
        assert b"".join([one async for one in items]) == b"data: 3\n\n"


async def test_H132_items_of_one_turn_are_one_chunk() -> None:
    """They are packed together; no empty chunk ends the body before its time."""
    seen = asyncio.Event()
    seen.set()

    async def answer(exchange: Exchange) -> None:
        exchange.seen = seen  # type: ignore[attr-defined]
        await bursts(exchange)

    async with serving(answer=answer) as served, served.wire() as wire:
        for _ in range(2):  # the connection stays
            await wire.send("GET /x HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n")
            await wire.reader.readuntil(b"\r\n\r\n")
            body, chunks = zlib.decompressobj(31), []
            while size := int(await wire.reader.readline(), 16):
                chunks.append(body.decompress(await wire.reader.readexactly(size)))
                assert await wire.reader.readline() == b"\r\n"
            assert await wire.reader.readline() == b"\r\n"
            assert b"".join(chunks) == b"data: 1\n\ndata: 2\n\ndata: 3\n\n"
            assert body.eof
            assert len(chunks) <= 2


async def test_H132_much_that_is_written_at_once_is_packed_in_turns() -> None:
    """Others are served in between, and whoever writes is told to wait."""
    most_s = 0.0
    item = json.dumps(list(range(20_000))).encode()

    async def answer(exchange: Exchange) -> None:
        exchange.begin(STREAM)
        has_room = [exchange.write(item) for _ in range(20)]
        assert not any(has_room[1:])
        await exchange.room()
        exchange.write(b"the end")
        exchange.end()

    async def watch() -> None:
        nonlocal most_s
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            most_s = max(most_s, time.thread_time() - before)

    async with serving(answer=answer) as served, served.client() as client:
        watching = asyncio.create_task(watch())
        got = await client.get("/x", headers={"Accept-Encoding": "gzip"})
        watching.cancel()
        assert got.content == item * 20 + b"the end"
        assert got.num_bytes_downloaded < len(got.content) / 2
    assert most_s < 0.2  # of the processor; all at once takes longer by far than a turn


async def test_H002_a_packed_stream_that_is_cut_never_looks_complete() -> None:
    """What came before can be read."""

    async def answer(exchange: Exchange) -> None:
        exchange.begin(STREAM)
        exchange.write(b"data: 1\n\n" * 20_000)
        exchange.cut()

    async with serving(answer=answer) as served, served.wire() as wire:
        await wire.send("GET /x HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n")
        body = (await wire.ended()).partition(b"\r\n\r\n")[2]
        assert not body.endswith(b"0\r\n\r\n")
        unpacking, chunks = zlib.decompressobj(31), Chunks()
        assert unpacking.decompress(chunks.take(body)) == b"data: 1\n\n" * 20_000
        assert not (unpacking.eof)
        assert not (chunks.is_over)


async def test_H132_a_stream_to_an_old_client_is_packed_without_chunks() -> None:
    """HTTP/1.0 has none; the end of the connection is the end."""

    async def answer(exchange: Exchange) -> None:
        exchange.begin(STREAM)
        exchange.write(b"data: 1\n\n")
        exchange.end()

    async with serving(answer=answer) as served, served.wire() as wire:
        await wire.send("GET /x HTTP/1.0\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n")
        head, _, body = (await wire.ended()).partition(b"\r\n\r\n")
        assert b"content-encoding: gzip" in head
        assert gzip.decompress(body) == b"data: 1\n\n"


async def test_H132_a_stream_for_a_head_has_no_body() -> None:
    """And the next request is answered."""

    async def answer(exchange: Exchange) -> None:
        exchange.begin(STREAM)
        exchange.write(b"data: 1\n\n")
        exchange.end()

    async with serving(answer=answer) as served, served.client() as client:
        for _ in range(2):
            got = await client.head("/x", headers={"Accept-Encoding": "gzip"})
            assert (got.headers["content-encoding"], got.content) == ("gzip", b"")


# Refusals.


@pytest.mark.parametrize("status", [429, 503])
def test_H156_a_client_that_may_try_again_is_told_when(status: int) -> None:
    """Whoever has refused it; what is said already stays."""
    told = ready(Response(status, (JSON,), b"1"), PLAIN, HEAD)
    assert told is not None
    assert dict(told.headers)["Retry-After"] == "1"
    response = Response(status, (JSON, ("retry-after", "7")), b"1")
    assert ready(response, PLAIN, HEAD) is response


PROBLEM = "application/problem+json"


@pytest.mark.parametrize("http2", [False, True])
async def test_H155_refusals_of_the_transport_are_problems_for_clients_that_ask(http2: bool) -> None:
    """Of origins, methods, paths, codings, and of what functions say."""
    refused: list[tuple[int, str, str, dict[str, str]]] = [
        (403, "POST", "/", {"Origin": "https://example.org"}),
        (404, "POST", "/nobody", {}),
        (405, "PUT", "/", {}),
        (405, "POST", "/livez", {}),
        (406, "POST", "/", {"Accept-Encoding": "identity;q=0"}),
        (415, "POST", "/", {"Content-Encoding": "br"}),
        (400, "POST", "/", {"Content-Type": "application/json"}),
        (413, "POST", "/", {"Content-Type": "application/json", "X-Long": "1"}),
    ]
    async with serving(riff={"max_body_bytes": 1000}) as served, served.client(http2=http2) as client:
        for status, method, path, headers in refused:
            content = b"1" * 2000 if "X-Long" in headers else b"wrong"
            for accept in (PROBLEM, f"application/json, {PROBLEM}"):
                got = await client.request(method, path, content=content, headers={**headers, "Accept": accept})
                problem = got.json()
                assert (got.status_code, got.headers["content-type"]) == (status, PROBLEM)
                assert (problem["type"], problem["status"], bool(problem["detail"])) == ("about:blank", status, True)
                assert problem["code"].isupper()
                assert problem["title"]
                assert problem.get("parameter") == ("n" if status == 400 else None)
            got = await client.request(method, path, content=content, headers=headers)
            assert got.headers["content-type"] == "text/plain; charset=utf-8"
            assert got.text.strip() == problem["detail"]
