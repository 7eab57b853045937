"""Each invocation has one line of its end, also where the process ends before its function does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections import Counter
from typing import Any

import httpx
import pytest

from invoker.client import CallFailed, RiffClient
from tests.conftest import SLOW
from tests.e2e.process import Process, started
from tests.transports.sockets import open_peer

pytestmark = pytest.mark.timeout(30)

SOON = {"INVOKER_LAME_DUCK_S": "0", "INVOKER_DRAIN_S": "0.3", "INVOKER_GRACE_S": "0.3", "INVOKER_HOOK_TIMEOUT_S": "1"}
LATE = {**SOON, "INVOKER_DRAIN_S": "600"}


async def http(
    address: str, name: str, *, is_new: bool = False, accept: str = "*/*", path: str = "/stuck"
) -> tuple[str, int]:
    headers = {"X-Request-Id": name, "Content-Type": "application/json", "Accept": accept}
    async with httpx.AsyncClient(http1=not is_new, http2=is_new, trust_env=False, timeout=600) as client:
        with contextlib.suppress(httpx.TransportError):
            async with client.stream("POST", f"http://{address}{path}", content=b"1", headers=headers) as answer:
                with contextlib.suppress(httpx.TransportError):
                    await answer.aread()  # who leaves at the head, which may come before the drain, cancels
                return name, answer.status_code
    return name, 0


async def riff(address: str, name: str) -> tuple[str, int]:
    async with RiffClient(address, metadata={"x-request-id": name}) as client:
        with pytest.raises((CallFailed, OSError)):
            await client.invoke([[1]], function="stuck", content_type="application/json").collect()
    return name, 0


async def socket(address: str, name: str) -> tuple[str, int]:
    async with open_peer(address, "/stuck/ws", headers={"X-Request-Id": name}) as peer:
        await peer.text('{"data": 1}')
        await peer.closed()
    return name, 0


def begin(process: Process) -> list[asyncio.Task[tuple[str, int]]]:
    """Calls on each wire."""
    grpc, transport = process.ready()
    events = "text/event-stream"
    calls = [
        *(http(transport, "whole"), http(transport, "whole2"), http(transport, "new", is_new=True)),
        *(http(transport, "events", accept=events), http(transport, "newevents", accept=events, is_new=True)),
        *(riff(grpc, "riff"), socket(transport, "socket")),
    ]
    return [asyncio.create_task(one) for one in calls]


async def running(process: Process, count: int) -> None:
    async with httpx.AsyncClient(trust_env=False, base_url=f"http://{process.ready()[1]}") as client:
        for _ in range(int(500 * SLOW)):
            told = (await client.get("/invocations", headers={"Accept": "application/json"})).json()
            if told["counts"]["running"] == count:
                return
            await asyncio.sleep(0.02)
    raise AssertionError(told)


def endings(process: Process) -> list[dict[str, Any]]:
    lines = [json.loads(one) for one in process.lines if one.startswith("{")]
    return [one for one in lines if one["message"].startswith("invocation ended")]


@pytest.mark.parametrize("end", ["drain", "signal"])
@pytest.mark.parametrize("driver", ["auto", "aio"])
@pytest.mark.parametrize("module", ["stuck_functions", "stuck_functions_async"])
async def test_R025_each_invocation_that_is_cut_has_one_line(module: str, driver: str, end: str) -> None:
    """At the end of the drain, or by a second signal; in threads and on the loop; on each wire."""
    args = (f"tests.e2e.{module}", "--log-format", "json", "--grpc-driver", driver)
    with started(*args, env=SOON if end == "drain" else LATE) as process:
        calls = begin(process)
        await running(process, len(calls))
        process.send(signal.SIGTERM)
        if end == "signal":
            await asyncio.to_thread(process.wait_for, "stopping: ")
            process.send(signal.SIGTERM)
        assert await asyncio.to_thread(process.exit_code) == (1 if end == "drain" else 128 + signal.SIGTERM)
        answers = await asyncio.gather(*calls)
    told = endings(process)
    assert Counter(one["request_id"] for one in told) == Counter(
        ["whole", "whole2", "new", "events", "newevents", "riff", "socket"]
    )
    assert {one["request_id"]: one["status"] for one in told if one["status"] != "UNAVAILABLE"} == {}
    if end == "drain":
        got = {one["request_id"]: one["http_status"] for one in told if one["protocol"] == "http"}
        assert got == {name: status for name, status in answers if status}
        assert [one["close_code"] for one in told if one["request_id"] == "socket"] == [1001]


async def test_where_the_loop_is_blocked_too() -> None:
    """The process ends by force then."""
    args = ("tests.e2e.stuck_functions_async", "--log-format", "json")
    with started(*args, env=SOON) as process:
        address = process.ready()[1]
        other = asyncio.create_task(http(address, "stuck"))
        await running(process, 1)
        call = asyncio.create_task(http(address, "blocks", path="/blocks"))
        await asyncio.to_thread(process.wait_for, "blocks the event loop for")
        process.send(signal.SIGTERM)
        assert await asyncio.to_thread(process.exit_code) == 1
        await asyncio.gather(call, other)
    assert sorted(one["request_id"] for one in endings(process)) == ["blocks", "stuck"]
