"""A generator gives to several outputs: every wire has its values in the order in which it gave them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable

import httpx
import pytest

from invoker.client import RiffClient
from tests.e2e.order_functions import ORDER, OUTPUTS
from tests.serving import Served
from tests.transports.sockets import open_peer

pytestmark = pytest.mark.timeout(60)

MODULE = "tests.e2e.order_functions"
AT_ONCE = 4
ROUNDS = 2

Values = list[tuple[str, int]]


async def sse(served: Served, name: str, times: int) -> Values:
    text = await over_http(served, name, times, "text/event-stream")
    fields = ((line.split(": ", 1) for line in one.splitlines() if ": " in line) for one in text.split("\n\n"))
    events = map(dict, fields)  # a comment keeps a stream alive while a child starts
    return [(one["event"], int(one["data"])) for one in events if one.get("event") in OUTPUTS]


async def ndjson(served: Served, name: str, times: int) -> Values:
    told = map(json.loads, (await over_http(served, name, times, "application/x-ndjson")).splitlines())
    return [item for one in told for item in one.items()]


async def multipart(served: Served, name: str, times: int) -> Values:
    parts = (await over_http(served, name, times, "multipart/mixed")).split("\r\n--")
    found = [(re.search(r'name="?(\w+)', one), one.rpartition("\r\n\r\n")[2]) for one in parts]
    return [(called[1], int(value)) for called, value in found if called is not None]


async def over_http(served: Served, name: str, times: int, accept: str) -> str:
    async with httpx.AsyncClient(base_url=f"http://{served.http}", trust_env=False) as client:
        query = {"xs" if name == "fed" else "times": str(times)}
        response = await client.post(f"/{name}", params=query, headers={"Accept": accept}, timeout=30)
        assert response.status_code == 200, response.text
        return response.text


async def socket(served: Served, name: str, times: int) -> Values:
    query = "" if name == "fed" else f"?times={times}"
    async with open_peer(served.http, f"/{name}/ws{query}") as peer:
        if name == "fed":
            await peer.text(json.dumps({"data": times}))
            await peer.text('{"end": true}')
        told = [json.loads(one) for one in await peer.messages()]
        return [(one["output"], one["data"]) for one in told if "data" in one]


async def riff(served: Served, name: str, times: int) -> Values:
    async with RiffClient(served.grpc) as client:
        names = ["xs" if name == "fed" else "times"]
        accept = ["application/json"] * len(OUTPUTS)
        call = client.invoke([[times]], function=name, accept=accept, input_names=names, output_names=OUTPUTS)
        return [(OUTPUTS[one.index], one.value) async for one in call]


WIRES: dict[str, Callable[[Served, str, int], Awaitable[Values]]] = {
    "sse": sse, "ndjson": ndjson, "multipart": multipart, "websocket": socket, "riff": riff,
}  # fmt: skip
SYNC = ("plain", "timed", "fed")
"""Served without async functions, for which HTTP and gRPC have threads that answer by themselves."""


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", [*(f"{one} alone" for one in SYNC), *SYNC, "on_loop", "isolated"])
async def test_H045_R131_each_wire_keeps_the_order_of_a_generator(name, wire, alone, together):
    """Of a few values, and of more than wait for the wire at once; several calls at a time, as they begin."""
    served, name = (alone, name.split()[0]) if name.endswith("alone") else (together, name)
    for times in (1, 20):
        expected = [(output, number) for number, output in enumerate(ORDER * times)]
        for _ in range(ROUNDS):
            made = await asyncio.gather(*(WIRES[wire](served, name, times) for _ in range(AT_ONCE)))
            for one in made:
                assert one == expected
