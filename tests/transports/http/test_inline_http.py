"""`invoker.transports.http.inline_http`: plain requests, answered in the thread that reads them."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch

import pytest

from invoker.context import Context
from invoker.errors import Status
from invoker.transports.http.exchange import HttpSettings
from invoker.transports.http.inline_http import InlineHttp
from tests.transports.served import Served, until

JSON = "Content-Type: application/json\r\n"


def post(body: str, *fields: str, path: str = "/") -> str:
    named = "".join(f"{one}\r\n" for one in fields)
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{JSON}{named}Content-Length: {len(body)}\r\n\r\n{body}"


def square(x: int) -> int:
    return x * x


class Gate:
    """A function that says that it runs, and returns when it is let go."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.started = asyncio.Event()
        self.go = threading.Event()
        self.threads: list[str] = []

    def held(self, x: int) -> int:
        self.threads.append(threading.current_thread().name)
        self.loop.call_soon_threadsafe(self.started.set)
        self.go.wait()
        return x


@asynccontextmanager
async def led(*functions: Any, **about: Any) -> AsyncIterator[tuple[Served, InlineHttp, list[bytes]]]:
    """A transport with a leader, and what was left to the loop."""
    async with Served.at(*functions, **about) as served:
        leader = served.transport.leader
        assert leader is not None
        left: list[bytes] = []
        adopt = leader._adopt

        def note(sock: socket.socket, data: bytes) -> object:
            left.append(data)
            return adopt(sock, data)

        leader._adopt = note
        yield served, leader, left


async def test_a_plain_request_is_answered_where_it_was_read() -> None:
    """In one thread, whose function has a context of its own each time; the loop has no part in it."""
    seen: list[tuple[str, str]] = []

    def noted(x: int, ctx: Context) -> int:
        seen.append((threading.current_thread().name, ctx.invocation_id))
        return x

    async with led(noted) as (served, _, left), served.wire() as wire:
        for number in (1, 2, 3):
            await wire.send(post(str(number)))
            assert (await wire.answer())[::2] == (200, str(number).encode())
        counters = served.driver.engine.counters
        assert (counters.opened, counters.finished, counters.bytes_in) == (3, {Status.OK: 3}, 3)
        assert served.driver.threads.busy == 0
    assert left == []
    names, ids = zip(*seen, strict=True)
    assert (len(set(names)), len(set(ids))) == (1, 3)
    assert names[0].startswith("invoker-body-")


async def asquare(x: int) -> int:
    return x * x


async def test_where_all_functions_are_async_nobody_leads() -> None:
    """All requests are served on the loop then."""
    async with Served.at(asquare) as served:
        assert served.transport.leader is None


async def test_a_sync_function_is_led_beside_an_async_one() -> None:
    """A connection that asks for the async one goes to the loop with what was read, and may ask for both there."""
    async with led(square, asquare) as (served, _, left), served.wire() as wire, served.wire() as other:
        await wire.send(post("3", path="/square"))
        assert (await wire.answer())[2] == b"9"
        assert left == []
        for path, number in (("/asquare", 4), ("/square", 5), ("/asquare", 6)):
            await wire.send(post(str(number), path=path))
            assert (await wire.answer())[::2] == (200, b"%d" % number**2)
        assert len(left) == 1
        await other.send(post("7", path="/square"))
        assert (await other.answer())[2] == b"49"
        assert len(left) == 1
        assert served.driver.engine.counters.finished == {Status.OK: 5}


async def test_without_epoll_nobody_leads() -> None:
    """The loop serves all, as on systems that are no Linux."""
    with patch("invoker.transports.http.transport.can_lead", lambda: False):
        async with Served.at(square) as served, served.wire() as wire:
            assert served.transport.leader is None
            await wire.send(post("3"))
            assert (await wire.answer())[2] == b"9"


@pytest.mark.parametrize("at", [1, 60, -4, -1])
async def test_a_request_in_pieces_is_answered(at: int) -> None:
    """A plain head and a part of the body wait for the rest; of less than a head the loop's server has a timer."""
    async with led(square) as (_served, _, left), _served.wire() as wire:
        text = post("12345")
        await wire.send(text[:at])
        await until(lambda: bool(left or _served.transport.leader._begun))  # type: ignore[union-attr]
        assert bool(left) is ("\r\n\r\n" not in text[:at])
        await wire.send(text[at:])
        assert (await wire.answer())[2] == b"152399025"


async def test_the_rest_of_a_body_that_comes_late_is_left_to_the_loop() -> None:
    """So is one that comes in too many pieces. The time of a body is the loop's business (408)."""
    async with led(square, settings=HttpSettings(body_s=0.3)) as (served, leader, left):
        async with served.wire() as wire:
            await wire.send(post("12")[:-1])
            await until(lambda: bool(left))
            assert left == [post("12")[:-1].encode()]
            await wire.send("2")
            assert (await wire.answer())[2] == b"144"
        async with served.wire() as wire:
            text = post("1" * 40)
            await wire.send(text[:-20])
            for number in range(20, 0, -1):
                before = len(left), [one.reads for one in leader._begun.values()]
                await wire.send(text[-number])
                await until(lambda: (len(left), [one.reads for one in leader._begun.values()]) != before)  # noqa: B023
                if len(left) == 2:
                    break
            assert len(left) == 2
        async with served.wire() as wire:
            await wire.send(post("12")[:-1])
            assert (await wire.answer())[0] == 408


@pytest.mark.parametrize("text", [post("3")[:-1], "", post("3")[:40]])
async def test_a_client_that_leaves_within_a_request_starts_nothing(text: str) -> None:
    """The connection ends."""
    async with led(square) as (served, leader, _), served.wire() as wire:
        await wire.send(text)
        await until(lambda: len(leader) == 1 or bool(text))
        wire.writer.write_eof()
        assert await wire.ended() == b""
        await until(lambda: not len(leader))
        assert served.driver.engine.counters.opened == 0


async def test_pipelined_requests_are_answered_in_order() -> None:
    """They are left to the loop, whether they come together or while the first is answered."""
    gate = Gate()
    async with led(gate.held) as (served, leader, left):
        gate.go.set()
        async with served.wire() as wire:
            await wire.send("".join(map(post, "123")))
            assert [(await wire.answer())[2] for _ in range(3)] == [b"1", b"2", b"3"]
            assert left == ["".join(map(post, "123")).encode()]
        gate.go.clear()
        gate.started.clear()
        async with served.wire() as wire:
            await wire.send(post("4"))
            await gate.started.wait()
            await until(lambda: len(leader._idle) == 0)
            await wire.send(post("5"), post("6"))
            await until(lambda: any(one.is_parked for one in leader._connections.values()))
            assert len(gate.threads) == 4  # nothing begins before the first is answered
            gate.go.set()
            assert [(await wire.answer())[2] for _ in range(3)] == [b"4", b"5", b"6"]


async def test_a_parked_connection_is_listened_to_again() -> None:
    """Once its request is answered, the next one is seen, and answered without the loop."""
    gate = Gate()
    async with led(gate.held) as (served, leader, left), served.wire() as wire:
        await wire.send(post("4"))
        await gate.started.wait()
        await wire.send(post("5"))
        await until(lambda: any(one.is_parked for one in leader._connections.values()))
        gate.go.set()
        assert [(await wire.answer())[2] for _ in range(2)] == [b"4", b"5"]
        await wire.send(post("6"))
        assert (await wire.answer())[2] == b"6"
        assert left == []


async def test_a_function_that_blocks_delays_nobody() -> None:
    """Another thread takes the lead, as often as it is needed."""
    gate = Gate()

    def quick(x: int) -> int:
        return x

    async with led(gate.held, quick) as (served, _, left), served.wire() as one, served.wire() as two:
        for wire in (one, two):
            gate.started.clear()
            await wire.send(post("1", "Invoker-Function: held"))
            await gate.started.wait()
        async with served.wire() as three:
            for number in (5, 6):
                await three.send(post(str(number), "Invoker-Function: quick"))
                assert (await three.answer())[2] == str(number).encode()
        gate.go.set()
        assert [(await wire.answer())[2] for wire in (one, two)] == [b"1", b"1"]
        assert left == []
    assert len(set(gate.threads)) == 2


async def test_R154_the_time_is_over_while_user_code_is_busy() -> None:
    """The client gets 504 at once and may ask again; its context says that it is over."""
    gate = Gate()
    steps: list[Any] = []

    def slow(xs: Iterator[int], ctx: Context) -> Iterator[int]:
        for x in xs:
            gate.held(x)
            steps.append(ctx.cancelled)
            yield x

    def quick(x: int) -> int:
        return x

    async with led(slow, quick, riff={"timeout_s": 0.05}) as (served, _, left), served.wire() as wire:
        await wire.send(post("1", "Invoker-Function: slow"))
        status, _, body = await wire.answer()
        assert (status, body) == (504, b"Invoker: Deadline Exceeded: the deadline has passed\n")
        await wire.send(post("2", "Invoker-Function: quick"))
        assert (await wire.answer())[2] == b"2"
        gate.go.set()
        await until(lambda: not served.driver.engine.running)
        assert served.driver.engine.counters.finished == {Status.OK: 1, Status.DEADLINE_EXCEEDED: 1}
        assert left == []
    assert steps == [True]


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), ValueError("x")])
async def test_R123_whatever_a_function_raises_is_500(raised: BaseException) -> None:
    """The thread leads on, and the connection stays."""

    def fails(x: int) -> int:
        if x:
            raise raised
        return x

    async with led(fails) as (served, _, left), served.wire() as wire:
        await wire.send(post("1"))
        assert (await wire.answer())[0] == 500
        await wire.send(post("0"))
        assert (await wire.answer())[2] == b"0"
        assert left == []
        assert served.driver.threads.busy == 0


async def test_R117_a_defect_of_ours_is_500_without_its_insides(caplog: pytest.LogCaptureFixture) -> None:
    """The log has the traceback, the client one line."""
    async with led(square) as (_served, _, left), _served.wire() as wire:
        with patch("invoker.protocols.web.service.http._Requests.unary", side_effect=RuntimeError("secret")):
            await wire.send(post("1"))
            assert (await wire.answer())[::2] == (500, b"Invoker: Internal Error\n")
        await wire.send(post("3"))
        assert (await wire.answer())[2] == b"9"
        assert left == []
    assert "a request failed inside the invoker" in caplog.text


async def test_R034_a_function_may_wait_for_the_loop() -> None:
    """The lead passes on meanwhile."""
    done = asyncio.Event()

    async def waits() -> str:
        await done.wait()
        return (asyncio.current_task() is not None and "on the loop") or ""

    def asks(x: int, ctx: Context) -> str:
        return str(ctx.wait(waits())) if x else "at once"

    async with led(asks) as (served, _, left), served.wire() as one, served.wire() as two:
        await one.send(post("1"))
        await two.send(post("0"))
        assert (await two.answer())[2] == b'"at once"'
        done.set()
        assert (await one.answer())[2] == b'"on the loop"'
        assert left == []


async def test_where_every_slot_is_taken_the_loop_says_so() -> None:
    """503, with Retry-After, as ever."""
    async with led(square) as (served, _, left), served.wire() as wire:
        served.driver.threads.busy = served.driver.threads.slots
        await wire.send(post("3"))
        status, headers, _ = await wire.answer()
        served.driver.threads.busy = 0
        assert (status, headers["retry-after"], left) == (503, "1", [post("3").encode()])


async def test_R132_beyond_the_most_invocations_is_503() -> None:
    """The connection stays, and is served when there is room."""
    gate = Gate()
    async with led(gate.held, max_invocations=1) as (served, _, _left), served.wire() as one, served.wire() as two:
        await one.send(post("1"))
        await gate.started.wait()
        await two.send(post("2"))
        status, headers, _ = await two.answer()
        assert (status, headers["retry-after"]) == (503, "1")
        assert served.driver.engine.counters.refused == 1
        gate.go.set()
        assert (await one.answer())[2] == b"1"
        await two.send(post("2"))
        assert (await two.answer())[2] == b"2"


async def test_R025_a_drain_is_left_to_the_loop() -> None:
    """It says 503 and ends the connection."""
    async with led(square) as (served, _, left), served.wire() as wire:
        await wire.send(post("3"))
        assert (await wire.answer())[2] == b"9"
        served.driver.engine.is_draining = True
        await wire.send(post("3"))
        status, headers, _ = await wire.answer()
        assert (status, headers["connection"], len(left)) == (503, "close", 1)
