"""How long large tensors hold up everybody else on the loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import function
from invoker.protocols.graphpipe.answer import Answer, Reply
from invoker.protocols.graphpipe.service.framed import FramedTransport
from tests.conftest import SLOW
from tests.protocols.graphpipe.asking import ask, values
from tests.transports.models import exchanged, inferring

MIB = 1 << 20
TRIES = 3


@function(batch_max=4, batch_wait_ms=1000)
def batched(x: NDArray[np.float32]) -> NDArray[np.float32]:
    return x * 2


def double(x: NDArray[np.float32]) -> NDArray[np.float32]:
    return x * 2


async def lag(work: Callable[[], Awaitable[Any]]) -> float:
    """The longest time, in seconds, for which the loop did not come round meanwhile because this process was at work.

    For how long other programs had the processor instead is not counted.
    """
    worst = 0.0
    task = asyncio.ensure_future(work())
    last = time.monotonic(), time.process_time()
    while not task.done():
        await asyncio.sleep(0.001)
        now = time.monotonic(), time.process_time()
        worst, last = max(worst, min(now[0] - last[0], now[1] - last[1])), now
    await task
    return worst


async def least_lag(work: Callable[[], Awaitable[Any]]) -> float:
    """Of a few tries, since other programs hold up the loop, too."""
    return min([await lag(work) for _ in range(TRIES)])


def rows(mib: int) -> bytes:
    return ask(np.zeros((1, mib * MIB // 4), "f4"))


@asynccontextmanager
async def asking(sizes: tuple[int, ...], *, is_batch: bool) -> AsyncIterator[Callable[[], Awaitable[Any]]]:
    """Gives what asks for tensors of these sizes, in MiB, at once."""
    buffers = [bytearray(rows(mib)) for mib in sizes]
    async with inferring(batched if is_batch else double) as one:

        async def ask_all() -> None:
            responses = await asyncio.gather(*(one.infer(one.first, buffer, transport="test") for buffer in buffers))
            assert [response.error for response in responses] == [None] * len(buffers)

        yield ask_all


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("sizes", "is_batch"), [((60,), False), ((15,) * 4, True)])
async def test_G102_GT58_60_mib_hold_nobody_up(sizes: tuple[int, ...], is_batch: bool) -> None:
    """In one request, and in a batch of several: less than a tenth of a second."""
    async with asking(sizes, is_batch=is_batch) as ask_all:
        assert await least_lag(ask_all) < 0.1 * SLOW


@pytest.mark.timeout(20)
async def test_G102_GT58_60_mib_over_a_bare_socket_hold_nobody_up() -> None:
    """The reading and writing of it included; here the client is on the same loop."""
    buffer = rows(60)
    async with inferring(double) as one:
        transport = FramedTransport(one, "127.0.0.1:0")
        host, _, port = (await transport.start()).rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        assert await least_lag(lambda: exchanged(reader, writer, buffer)) < 0.2 * SLOW
        writer.transport.abort()
        await transport.stop(1)


@pytest.mark.parametrize(("size", "on_loop"), [(10, True), (300_000, False)])
async def test_G102_large_answers_are_written_elsewhere(
    size: int, on_loop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their own size, not by that of the request; values that are no arrays are packed there, which takes long."""
    seen: list[bool] = []
    response = Answer.response

    def noted(self: Answer) -> Reply:
        seen.append(threading.current_thread() is threading.main_thread())
        return response(self)

    def listed(count: int) -> list[float]:
        return [0.5] * count

    monkeypatch.setattr(Answer, "response", noted)
    async with inferring(listed) as one:
        answered = await one.infer(one.first, bytearray(ask(size)), transport="test")
    assert values(answered) == [[0.5] * size]
    assert seen == [on_loop]
