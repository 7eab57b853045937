"""Back-pressure is seen from outside: in the live numbers, and in the log, on every transport and kind of function."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import pytest

from invoker.client import RiffClient
from invoker.telemetry.pressure import BLOCKED, PAUSED
from tests.conftest import SLOW
from tests.serving import Served
from tests.transports.sockets import open_peer

pytestmark = pytest.mark.timeout(60)

MODULE = "tests.e2e.pressed_functions"
WITHIN_S = 1.0
MANY = 1 << 20
ITEM = json.dumps("x" * 1000)


async def bytes_of(items: int) -> AsyncIterator[bytes]:
    for _ in range(items):
        yield ITEM.encode() + b"\n"


async def http(grpc: str, address: str, name: str, items: int) -> None:
    head = {"Accept": "application/x-ndjson", "Content-Type": "application/x-ndjson"}
    url = f"http://{address}/{name}"
    async with (
        httpx.AsyncClient(trust_env=False, timeout=None) as client,
        client.stream("POST", url, content=bytes_of(items), headers=head) as response,
    ):
        assert response.status_code == 200
        await asyncio.Event().wait()


async def socket(grpc: str, address: str, name: str, items: int) -> None:
    async with open_peer(address, f"/{name}/ws") as peer:
        for _ in range(items):
            await peer.text(f'{{"data":{ITEM}}}')
        await asyncio.Event().wait()


async def riff(grpc: str, address: str, name: str, items: int) -> None:
    async with RiffClient(grpc) as client:
        inputs = [bytes_of(items)] if items else []
        async for _ in client.invoke(inputs, function=name):
            await asyncio.Event().wait()


ConnectionOps = Callable[[str, str, str, int], Awaitable[None]]
WAYS: dict[str, ConnectionOps] = {"http": http, "websocket": socket, "grpc": riff}


async def running(served: Served, name: str) -> list[dict[str, Any]]:
    """The invocations of a function that run; those of earlier tests leave when their functions look up."""
    async with httpx.AsyncClient(base_url=f"http://{served.http}", trust_env=False) as client:
        got = (await client.get("/invocations", headers={"Accept": "application/json"})).json()
    return [one for one in got["invocations"] if one["function"] == name and one["status"] == "running"]


async def told(
    served: Served, name: str, is_so: Callable[[dict[str, Any]], bool], *, but: Collection[str]
) -> dict[str, Any]:
    """The numbers of an invocation that is new, once they say so; it may take a second."""
    began = None
    while True:
        mine = [one for one in await running(served, name) if one["id"] not in but]
        if mine and is_so(mine[0]):
            return mine[0]
        began = began or (time.monotonic() if mine else None)
        assert began is None or time.monotonic() - began < WITHIN_S * SLOW, mine
        await asyncio.sleep(0.05)


@asynccontextmanager
async def calling(served: Served, way: str, name: str, items: int) -> AsyncIterator[list[str]]:
    """Call a function for the block, which is given the ids of earlier invocations."""
    earlier = [one["id"] for one in await running(served, name)]
    call = asyncio.ensure_future(WAYS[way](served.grpc, served.http, name, items))
    try:
        yield earlier
    finally:
        call.cancel()
        with suppress(asyncio.CancelledError, Exception):  # of a connection that is cut
            await call


KINDS = [("alone", "{}"), ("together", "{}"), ("together", "{}_on_loop")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("server", "name"), KINDS)
async def test_H074_R128_a_function_that_takes_too_little_is_seen(way, server, name, alone, together):
    """Paused, with what waits and its bytes; and one line of the log, within a second."""
    served = {"alone": alone, "together": together}[server]
    name = name.format("slow")

    def is_so(one: dict[str, Any]) -> bool:
        (xs,) = one["inputs"]
        return bool(xs["isPaused"] and xs["queuedFrames"] > 10)

    async with calling(served, way, name, MANY) as earlier:
        one = await told(served, name, is_so, but=earlier)
        line = await logged(served, PAUSED, one["id"])
    (xs,) = one["inputs"]
    assert xs["queuedFrames"] == one["heldFrames"]
    assert xs["queuedBytes"] == one["heldBytes"] > 10_000
    assert line["function"] == name
    assert line["queued_frames"] > 10
    assert line["queued_bytes"] > 10_000


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("server", "name"), KINDS)
async def test_H074_R127_a_caller_that_reads_too_little_is_seen(way, server, name, alone, together):
    """The output is blocked; and one line of the log says so."""
    served = {"alone": alone, "together": together}[server]
    name = name.format("fast")

    def is_so(one: dict[str, Any]) -> bool:
        return bool(one["outputs"][0]["isBlocked"])

    async with calling(served, way, name, 0) as earlier:
        one = await told(served, name, is_so, but=earlier)
        assert (await logged(served, BLOCKED, one["id"]))["function"] == name


async def logged(served: Served, message: str, invocation: str) -> dict[str, Any]:
    """The line of an invocation; there is one."""
    until = time.monotonic() + WITHIN_S * SLOW
    found: list[str] = []
    while not found and time.monotonic() < until:
        await asyncio.sleep(0.05)
        found = [one for one in served.lines if message in one and f'"{invocation}"' in one]
    assert len(found) == 1, found
    made: dict[str, Any] = json.loads(found[0])
    return made
