"""Small inferences over HTTP without a task of their own; what they answer is tested with the front."""

from __future__ import annotations

import asyncio
import threading
import traceback
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import function
from invoker.core.http import RequestHead
from invoker.protocols.graphpipe.service.http import GraphPipeHandler
from invoker.tensors import Code
from invoker.transports.http.exchange import HttpSettings
from tests.protocols.graphpipe.asking import ask, code_of, values
from tests.transports.models import inferring, serving_models


async def echo(x: NDArray[Any]) -> NDArray[Any]:
    return x


def same(x: NDArray[Any]) -> NDArray[Any]:
    return x


@function(batch_max=4)
def batched(x: NDArray[np.float32]) -> NDArray[np.float32]:
    return x


def head(path: str, size: int | None, method: str = "POST", **more: str) -> RequestHead:
    length = () if size is None else (("content-length", str(size)),)
    return RequestHead(method, path, headers=(("host", "x"), *length, *more.items()))


async def test_G102_small_inferences_are_prompt_and_all_others_have_a_task() -> None:
    """Large ones are read in a thread, batches wait for others, and refusals are told where they always were."""

    async def is_ready() -> bool:
        return True

    async with inferring(echo, batched, limit_bytes=1 << 17) as inferences:
        handler = GraphPipeHandler(inferences, path="/graphpipe", is_ready=is_ready)
        assert handler.prompt(head("/graphpipe/echo", 1 << 16)) is not None
        assert handler.whole(head("/graphpipe/echo", 1 << 16)) is not None
        for other in (
            head("/graphpipe/echo", (1 << 16) + 1),
            head("/graphpipe/echo", 10**30),
            head("/graphpipe/echo", None),
            head("/graphpipe/echo", 100, accept="text/html"),
            head("/graphpipe/echo", 100, **{"content-encoding": "gzip"}),
            head("/graphpipe/echo", 100, method="GET"),
            head("/graphpipe/batched", 100),
            head("/graphpipe/nothing", 100),
            head("/control/is_ready", 100),
        ):
            assert handler.prompt(other) is None, other
            assert handler.whole(other) is None, other


@pytest.mark.parametrize("called", [echo, same])
async def test_a_body_may_come_in_pieces(called: Any) -> None:
    """The conversation begins with its end."""
    body = ask(np.arange(4, dtype=np.float32))
    async with serving_models(called) as served:
        reader, writer = await asyncio.open_connection(*served.address.rsplit(":", 1))
        writer.write(f"POST /graphpipe HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        for at in range(0, len(body), 50):
            writer.write(body[at : at + 50])
            await writer.drain()
            await asyncio.sleep(0.01)
        got = await reader.readuntil(b"\r\n\r\n")
        assert got.startswith(b"HTTP/1.1 200 ")
        length = int(got.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        assert values(await reader.readexactly(length)) == [[0, 1, 2, 3]]
        writer.close()


async def test_G014_a_body_that_does_not_come_is_told_so() -> None:
    """There is no inference then."""
    async with serving_models(echo, http=HttpSettings(body_s=0.05, body_bytes_per_s=1e9)) as served:
        reader, writer = await asyncio.open_connection(*served.address.rsplit(":", 1))
        writer.write(b"POST /graphpipe HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc")
        assert (await reader.readline()).startswith(b"HTTP/1.1 408 ")
        writer.close()


async def test_G079_a_function_that_takes_too_long_is_answered_for() -> None:
    """The time begins with the end of the body."""
    go = threading.Event()

    def slow(x: NDArray[Any]) -> NDArray[Any]:
        assert go.wait(10)
        return x

    async with serving_models(slow, timeout_s=0.05) as served, served.client() as client:
        response = await client.post("/graphpipe", content=ask(np.ones(2)))
        go.set()
        assert response.status_code == 504
        assert code_of(response.content) is Code.TIMEOUT


async def test_a_sync_model_is_run_by_the_thread_that_reads() -> None:
    """No task and no thread of a pool is between its client and the function; errors are buffers as everywhere."""
    seen: list[str] = []

    def named(x: NDArray[Any]) -> NDArray[Any]:
        seen.append("".join(one.name for one in traceback.extract_stack()))
        if x.size == 1:
            raise ValueError("one is too few")
        return x

    async with serving_models(named) as served, served.client() as client:
        for body in (ask(np.ones(2)), ask(np.full(2, 3))):
            response = await client.post("/graphpipe", content=body)
            assert response.status_code == 200
        assert values(response.content) == [[3, 3]]
        failed = await client.post("/graphpipe", content=ask(np.ones(1)))
        assert failed.status_code == 500
        assert code_of(failed.content) is Code.FUNCTION_FAILED
        assert code_of((await client.post("/graphpipe", content=b"wrong")).content) is Code.MALFORMED
    assert len(seen) == 3
    assert all("_lead" in one for one in seen)


async def test_G013_who_leaves_is_not_computed_for() -> None:
    """The invocation is cancelled."""
    running, left = asyncio.Event(), asyncio.Event()

    async def held(x: NDArray[Any]) -> NDArray[Any]:
        running.set()
        try:
            await asyncio.sleep(10)
        finally:
            left.set()
        return x

    body = ask(np.ones(2))
    async with serving_models(held) as served:
        _, writer = await asyncio.open_connection(*served.address.rsplit(":", 1))
        writer.write(f"POST /graphpipe HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        writer.write(body)
        await asyncio.wait_for(running.wait(), 5)
        writer.close()
        await asyncio.wait_for(left.wait(), 5)
