"""`invoker.protocols.web.service.sockets`: functions of every shape at /NAME/ws, on real connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from invoker import Context, Message
from invoker.errors import Status, StatusError
from invoker.transports.http.app import SocketSettings
from tests.protocols.web.service.sockettalk import END, hear, out, rest, say
from tests.transports.served import Served, until


class Split(NamedTuple):
    even: Iterator[int]
    odd: Iterator[int]


async def echo(xs: AsyncIterator[str]) -> AsyncIterator[str]:
    async for x in xs:
        yield x


def square(x: int) -> int:
    return x * x


def scale(x: int, k: int = 2) -> int:
    return x * k


def topk(items: Iterator[str], k: int) -> Iterator[str]:
    for one in items:
        yield one * k


def zipped(a: Iterator[str], b: Iterator[str]) -> Iterator[str]:
    for one, other in zip(a, b, strict=False):
        yield one + other


def split(xs: Iterator[int]) -> Split:
    kept = list(xs)
    return Split(iter([x for x in kept if x % 2 == 0]), iter([x for x in kept if x % 2]))


def octets(x: bytes) -> bytes:
    return x


def now() -> str:
    return "now"


def words(**words: str) -> dict[str, str]:
    return words


def total(*xs: Iterator[int]) -> Iterator[int]:
    yield sum(map(sum, xs))


def told(x: str, context: Context) -> Message[str]:
    return Message(x, headers={"tenant": context.metadata.get("x-tenant", "none")})


def fail(x: int) -> int:
    raise StatusError(Status(x), "as asked")


@dataclass
class Row:
    x: int = 1
    rows: int = 0


@dataclass
class Cell:
    x: int = 1


def many(cells: Iterator[Cell], k: int = 1) -> Iterator[int]:
    return (one.x * k for one in cells)


def single(cell: Cell) -> int:
    return cell.x


def own(rows: Iterator[Row]) -> Iterator[int]:
    return (one.x + one.rows for one in rows)


def pair(cells: Iterator[Cell], others: Iterator[Cell]) -> Iterator[int]:
    return (a.x + b.x for a, b in zip(cells, others, strict=True))


@pytest.mark.parametrize(
    ("function", "query", "frames", "answers"),
    [
        (many, "", [{"cells": {"x": 5}}, {"x": 6}, {}], [5, 6, 1]),
        (single, "", [{"cell": {"x": 5}}, {"x": 6}], [5, 6]),
        (many, "?k=2", [{"cells": {"x": 5}}], [10]), (own, "", [{"rows": 5}, {"x": 5}], [6, 5]),
    ],
)  # fmt: skip
async def test_R169_an_object_is_also_given_by_the_name_of_its_input(
    function: Any, query: str, frames: list[Any], answers: list[int]
) -> None:
    """As over HTTP, where a class has no field of that name."""
    async with Served.at(function) as served, served.peer(f"/{function.__name__}/ws{query}") as peer:
        await say(peer, *({"data": one} for one in frames), END)
        assert await rest(peer) == [*map(out, answers), END]


async def test_R169_an_object_is_given_by_the_name_of_each_of_several_inputs() -> None:
    """Named or not."""
    async with Served.at(pair) as served, served.peer("/pair/ws") as peer:
        await say(peer, {"data": {"cells": {"x": 5}}}, {"input": "others", "data": {"others": {"x": 6}}}, END)
        assert await rest(peer) == [out(11), END]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"x": 5, "k": 3}, "data has the member 'k', which is not a field of parameter 'cells'"),
        ({"cells": {"x": 5}, "k": 3}, "data has the member 'k' besides 'cells'"),
    ],
)
async def test_R169_a_value_that_would_be_lost_is_refused(data: Any, text: str) -> None:
    """Options stand in the query."""
    async with Served.at(many) as served, served.peer("/many/ws") as peer:
        await say(peer, {"data": data}, END)
        *_, last = await rest(peer)
        assert last["error"]["status"] == 400
        assert text in last["error"]["detail"]


@pytest.mark.parametrize(
    ("function", "query", "frames", "answers"),
    [
        (echo, "", [{"data": "a"}, {"data": "\u00fc"}, END], [out("a"), out("\u00fc")]),
        (square, "", [{"data": 3}, {"input": "x", "data": 4}, END], [out(9), out(16)]),
        (square, "?x=5", [END], [out(25)]),
        (scale, "", [{"data": 3}, {"data": 4}, END], [out(6), out(8)]),
        (scale, "?k=5", [{"data": 3}, {"data": 4}, END], [out(15), out(20)]),
        (topk, "?k=2", [{"data": "a"}, {"data": "b"}, END], [out("aa"), out("bb")]),
        (topk, "", [{"data": "a"}, {"input": "k", "data": 2}, END], [out("aa")]),
        (split, "", [{"data": 1}, {"data": 2}, {"data": 3}, END], None),
        (octets, "", [b"\x00\xff", {"base64": "AA=="}, {"contentType": "application/octet-stream"}, b"c", END], None),
        (now, "", [END], [out("now")]),
        (now, "", [{"data": None}, {"data": None}, END], [out("now"), out("now")]),
        (words, "?a=1&b=2", [END], [out({"a": "1", "b": "2"})]),
        (words, "", [END], [out({})]),
        (total, "", [{"data": 1}, {"data": 2}, END], [out(3)]),
        (total, "?inputs=a,b", [{"input": "a", "data": 1}, {"input": "b", "data": 2}, END], [out(3)]),
        (told, "", [{"data": "a"}, END], [{**out("a"), "headers": {"tenant": "acme"}}]),
    ],
)
async def test_functions_of_every_shape_are_served(function: Any, query: str, frames: list[Any], answers: Any) -> None:
    """H-044 to H-047: inputs, outputs and options by name; the end is told and closes the connection."""
    async with Served.at(function) as served:
        path = f"/{function.__name__}/ws{query}"
        async with served.peer(path, headers={"X-Tenant": "acme"}) as peer:
            await say(peer, *frames)
            found = await rest(peer)
            assert (found.pop(), peer.code) == (END, 1000)
            if function is split:
                odd = [out(1, "odd"), out(3, "odd"), {"ended": "odd"}]
                even = [out(2, "even"), {"ended": "even"}]
                assert [one for one in found if "odd" in one.values()] == odd
                assert [one for one in found if "even" in one.values()] == even
            elif function is octets:
                heads = [{"output": "out", "contentType": "application/octet-stream", "size": n} for n in (2, 1, 1)]
                assert (found[::2], found[1::2]) == (heads, [b"\x00\xff", b"\x00", b"c"])
            else:
                assert found == answers
        await until(lambda: not served.driver.engine.running)
        assert served.driver.engine.counters.finished == {Status.OK: 1}


async def test_H040_each_function_has_its_path() -> None:
    """A handshake elsewhere is 404."""
    async with Served.at(echo, square, riff={}) as served:
        for path, status in (("/echo/ws", 101), ("/square/ws", 101), ("/other/ws", 404), ("/echo", 404), ("/ws", 404)):
            async with served.peer(path) as peer:
                assert peer.status == status


async def test_H058_the_subprotocol_is_agreed_on_if_it_is_offered() -> None:
    """Others are not, and none is needed."""
    async with Served.at(echo) as served:
        for offered, agreed in ((("other", "invoker.v1"), "invoker.v1"), ((), "")):
            async with served.peer("/echo/ws", subprotocols=offered) as peer:
                assert (peer.status, peer.subprotocol) == (101, agreed)


async def test_items_and_outputs_go_both_ways_at_once() -> None:
    """Each answer comes before the next item is sent, in a thread as on the loop."""
    for function in (echo, topk):
        async with Served.at(function) as served, served.peer(f"/{function.__name__}/ws?k=1") as peer:
            for turn in range(20):
                await say(peer, {"data": f"{turn}"})
                assert await hear(peer) == out(f"{turn}")
            await say(peer, END)
            assert await rest(peer) == [END]


async def test_H046_inputs_end_one_by_one() -> None:
    """A function that needs the end of one gets it while the other stays open."""

    def after(a: Iterator[str], b: Iterator[str]) -> Iterator[str]:
        yield "".join(a)
        yield from b

    async with Served.at(after) as served, served.peer("/after/ws") as peer:
        await say(peer, {"input": "a", "data": "x"}, {"input": "a", "data": "y"}, {"end": "a"})
        assert await hear(peer) == out("xy")
        await say(peer, {"input": "b", "data": "z"}, {"end": "b"})
        assert await rest(peer) == [out("z"), END]


# Errors


@pytest.mark.parametrize(
    ("function", "frames", "status", "code"),
    [
        (square, [{"data": "x"}], 400, 1008),
        (square, [{"data": "x", "contentType": "image/png"}], 415, 1008),
        (square, [3], 400, 1002),
        (square, [{"dat": 3}], 400, 1002),
        (square, [{"end": True}, {"data": 1}], 400, 1002),
        (fail, [{"data": 7}], 403, 1008),
        (fail, [{"data": 14}], 503, 1013),
        (fail, [{"data": 8}], 429, 1013),
        (fail, [{"data": 13}], 500, 1011),
        (fail, [{"data": 99}], 500, 1011),
    ],
)
async def test_H049_errors_are_told_and_the_code_says_whose_they_are(
    function: Any, frames: list[Any], status: int, code: int
) -> None:
    """By a problem in the last message; the close frame has the text, too."""
    async with Served.at(function) as served, served.peer(f"/{function.__name__}/ws") as peer:
        await say(peer, *frames)
        *_, last = await rest(peer)
        assert (last["error"]["status"], last["error"]["type"], peer.code) == (status, "about:blank", code)
        assert peer.reason
        await until(lambda: not served.driver.conversations)


@pytest.mark.parametrize("has_begun", [False, True])
async def test_H242_a_message_that_is_too_long_is_413(has_begun: bool) -> None:
    """Also behind others that were taken: close 1009, which invites nobody to try again."""
    async with Served.at(echo, socket=SocketSettings(1000)) as served, served.peer("/echo/ws") as peer:
        if has_begun:
            await say(peer, {"data": "a"})
            assert await hear(peer) == out("a")
        await say(peer, {"data": "a" * 2000})
        *_, last = await rest(peer)
        assert (last["error"]["status"], last["error"]["code"], peer.code) == (413, "RESOURCE_EXHAUSTED", 1009)


async def test_H049_a_query_that_cannot_be_taken_is_told_over_the_connection() -> None:
    """A browser would not show the response to a handshake."""
    async with Served.at(scale) as served, served.peer("/scale/ws?k=1&k=2") as peer:
        (last,) = await rest(peer)
        assert (last["error"]["status"], peer.code) == (400, 1008)
        assert "is given its input 'k' twice" in last["error"]["detail"]


async def test_H053_who_comes_while_it_drains_or_is_full_is_told_so() -> None:
    """1001: connect elsewhere; 1013: try again."""
    async with Served.at(echo, max_invocations=1) as served, served.peer("/echo/ws") as first:
        await say(first, {"data": "a"})
        assert await hear(first) == out("a")
        async with served.peer("/echo/ws") as second:
            (last,) = await rest(second)
            assert (last["error"]["status"], second.code) == (503, 1013)
        draining = asyncio.create_task(served.driver.drain(0))
        found = await rest(first)
        assert (found[-1]["error"]["status"], first.code) == (503, 1001)
        assert not await draining
        async with served.peer("/echo/ws") as late:
            assert (await rest(late))[0]["error"]["status"] == 503
            assert late.code == 1001
