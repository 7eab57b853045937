"""What a caller has sent wrongly: one status in its answer, in the log, and in the metrics, whatever it speaks."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from invoker.client import CallFailed, RiffClient
from tests.serving import Served, serving
from tests.transports.sockets import open_peer

pytestmark = pytest.mark.timeout(30)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving("functions.conformance") as made:
        yield made


def client(served: Served) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"http://{served.http}", trust_env=False)


async def counts(served: Served) -> dict[str, int]:
    async with client(served) as http:
        told = (await http.get("/invocations", headers={"Accept": "application/json"})).json()["counts"]
    made: dict[str, int] = told["finished"]
    return made


async def whole(served: Served, value: str) -> str:
    async with client(served) as http:
        kinds = {"Content-Type": "application/json", "Accept": "application/problem+json"}
        answer = await http.post("/square", content=value, headers=kinds)
        assert answer.status_code == 400
        code: str = answer.json()["code"]
        return code


async def streamed(served: Served, value: str) -> str:
    async with client(served) as http:
        kinds = {"Content-Type": "application/x-ndjson", "Accept": "text/event-stream"}
        answer = await http.post("/total", content=value, headers=kinds)
        return {400: "INVALID_ARGUMENT"}[answer.status_code]


async def socket(served: Served, value: str) -> str:
    async with open_peer(served.http, "/square/ws") as peer:
        await peer.text(f'{{"data": {value}}}')
        code: str = json.loads((await peer.messages())[-1])["error"]["code"]
        return code


async def riff(served: Served, value: str) -> str:
    async with RiffClient(served.grpc) as rpc:
        with pytest.raises(CallFailed) as failed:
            await rpc.invoke([[value.encode()]], function="square", content_type="application/json").collect()
    return failed.value.status.name


WIRES: dict[str, tuple[Any, str, str]] = {
    "whole": (whole, "http", "INVALID_ARGUMENT"),
    "streamed": (streamed, "http", "INVALID_ARGUMENT"),
    "socket": (socket, "websocket", "INVALID_ARGUMENT"),
    "riff": (riff, "riff", "UNKNOWN"),
}


@pytest.mark.parametrize("wire", WIRES)
async def test_R069_R145_a_caller_at_fault_is_told_counted_and_logged_as_one(served: Served, wire: str) -> None:
    """INVALID_ARGUMENT, but UNKNOWN on riff, whose callers know no other."""
    call, protocol, status = WIRES[wire]
    before = await counts(served)
    assert await call(served, '"no number"') == status
    after = await counts(served)
    assert {name: count - before.get(name, 0) for name, count in after.items() if count != before.get(name, 0)} == {
        status: 1
    }
    line = await last_line(served, protocol)
    assert (line["status"], line["protocol"]) == (status, protocol)


async def test_H242_a_line_that_is_too_long_is_counted_and_logged_as_it_is_told(served: Served) -> None:
    """The function runs by then, and what ends it is no cancel of its caller."""
    before = await counts(served)
    async with client(served) as http:
        kinds = {"Content-Type": "application/x-ndjson", "Accept": "text/event-stream"}
        answer = await http.post("/total", content=b"1\n" + b"1" * (4 << 20) + b"1\n", headers=kinds)
    assert answer.status_code == 413
    line = await last_line(served, "http")
    assert (line["status"], line["http_status"]) == ("RESOURCE_EXHAUSTED", 413)
    assert "line 2" in line["detail"]
    after = await counts(served)
    assert after["RESOURCE_EXHAUSTED"] - before.get("RESOURCE_EXHAUSTED", 0) == 1
    assert after.get("CANCELLED") == before.get("CANCELLED")


async def last_line(served: Served, protocol: str) -> dict[str, Any]:
    for _ in range(100):
        lines = [json.loads(one) for one in served.lines if '"invocation ended' in one]
        if lines and lines[-1].get("protocol") == protocol and len(lines) == sum((await counts(served)).values()):
            break
        await asyncio.sleep(0.02)
    made: dict[str, Any] = lines[-1]
    return made


@pytest.fixture(scope="module")
def sync() -> Iterator[Served]:
    """Where threads answer by themselves."""
    with serving("tests.e2e.order_functions") as made:
        yield made


@pytest.fixture(scope="module")
def mixed() -> Iterator[Served]:
    """Where the loop does."""
    with serving("tests.e2e.order_functions_async") as made:
        yield made


async def get(served: Served, accept: str, *, is_new: bool) -> str:
    async with httpx.AsyncClient(http1=not is_new, http2=is_new, trust_env=False) as http:
        answer = await http.post(f"http://{served.http}/plain", headers={"Accept": accept})
        assert answer.status_code == 200
    return "http"


async def stream(served: Served) -> str:
    return await get(served, "text/event-stream", is_new=False)


async def stream2(served: Served) -> str:
    return await get(served, "application/x-ndjson", is_new=True)


async def page(served: Served) -> str:
    async with open_peer(served.http, "/plain/ws?times=1") as peer:
        await peer.messages()
    return "websocket"


async def call(served: Served) -> str:
    async with RiffClient(served.grpc) as rpc:
        accept, outputs = ["application/json"] * 2, ["a", "b"]
        await rpc.invoke([[1]], function="plain", accept=accept, input_names=["times"], output_names=outputs).collect()
    return "riff"


@pytest.mark.parametrize("way", [stream, stream2, page, call])
@pytest.mark.parametrize("kind", ["sync", "mixed"])
async def test_the_log_says_who_called_and_how(kind: str, way: Any, sync: Served, mixed: Served) -> None:
    """The protocol, and the address of the other end of the connection, on each transport."""
    served = {"sync": sync, "mixed": mixed}[kind]
    line = await last_line(served, await way(served))
    assert re.fullmatch(r"ipv4:127\.0\.0\.1:\d+", line["peer"])
