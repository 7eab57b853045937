"""`invoker.protocols.graphpipe.service.batching`: requests at the same time become one call."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import function
from invoker.core.peers import Client
from invoker.protocols.graphpipe.answer import Answer, Reply
from invoker.protocols.graphpipe.service import batching as module
from invoker.protocols.graphpipe.service.inferences import Inferences
from invoker.telemetry.endings import Endings
from invoker.tensors import Code
from tests.conftest import SLOW
from tests.protocols.graphpipe.asking import ask, code_of, values
from tests.transports.models import inferring
from tests.transports.served import until


def noted(calls: list[int], **said: Any) -> Any:
    @function(**{"batch_max": 4, "batch_wait_ms": 10_000, **said})
    def run(x: NDArray[np.float64]) -> NDArray[np.float64]:
        calls.append(len(x))
        if (x < 0).any():
            raise ValueError("a negative number")
        return x * 2

    return run


async def infer(one: Inferences, value: Any, *, peer: str | Client = "", **more: Any) -> Any:
    return await one.infer(one.first, bytearray(ask(np.float64(value), **more)), transport="test", peer=peer)


async def test_G076_GT52_requests_at_once_are_one_call() -> None:
    """As soon as there are so many rows; each gets what is its own."""
    calls: list[int] = []
    async with inferring(noted(calls)) as one:
        several = await asyncio.gather(*(infer(one, [[number]]) for number in range(8)))
    assert calls == [4, 4]
    assert [values(response) for response in several] == [[[[2.0 * number]]] for number in range(8)]


async def test_G076_the_first_waits_no_longer_than_it_may() -> None:
    """Also when nobody else comes."""
    calls: list[int] = []
    async with inferring(noted(calls, batch_wait_ms=1)) as one:
        assert values(await infer(one, [[1]])) == [[[2.0]]]
        assert values(await infer(one, [[1], [2]])) == [[[2.0], [4.0]]]
    assert calls == [1, 2]


async def test_G076_an_error_reaches_only_who_caused_it() -> None:
    """The others are run again, alone."""
    calls: list[int] = []
    async with inferring(noted(calls)) as one:
        several = await asyncio.gather(*(infer(one, [number]) for number in (1, -1, 3, 4)))
    assert [code_of(several[1])] == [Code.FUNCTION_FAILED]
    assert [values(several[index]) for index in (0, 2, 3)] == [[[2.0]], [[6.0]], [[8.0]]]
    assert sorted(calls) == [1, 1, 1, 1, 4]


async def test_the_line_of_a_batch_tells_who_called(caplog: pytest.LogCaptureFixture) -> None:
    """All who called together, and what they got; alone each has its own line, also after its batch has failed."""
    peers = [Client("ipv4:192.0.2.1:1"), Client("ipv4:192.0.2.2:2"), Client("ipv4:192.0.2.1:1"), Client("unix:")]
    with caplog.at_level("INFO", logger="invoker"):
        async with inferring(noted([], batch_max=4)) as one:
            one.driver.engine.on_close.append(endings := Endings())
            await asyncio.gather(*(infer(one, [at], peer=peer) for at, peer in enumerate(peers)))
            await asyncio.gather(*(infer(one, [at], peer=f"tcp {at}") for at in range(4)))
            await asyncio.gather(*(infer(one, [1 - at], peer=peer) for at, peer in enumerate(peers)))
            for peer in peers:
                peer.got(200)
            endings.close()
    lines = [
        (vars(one).get("peer"), vars(one).get("http_status")) for one in caplog.records if "ended" in one.getMessage()
    ]
    together = "ipv4:192.0.2.1:1, ipv4:192.0.2.2:2, unix:"
    assert lines[:2] == [(together, 200), ("tcp 0, tcp 1, tcp 2, tcp 3", None)]
    assert lines[2] == (together, None)
    assert sorted(lines[3:]) == sorted((peer.address, 200) for peer in peers)  # each in a thread of its own


async def test_G077_other_configs_and_outputs_are_other_calls() -> None:
    """So are other sizes."""
    calls: list[int] = []
    async with inferring(noted(calls, batch_max=2)) as one:
        kinds: list[dict[str, Any]] = [{}, {"config": b"x"}, {"output_names": ("output0", "output0")}]
        await asyncio.gather(*(infer(one, [[1]], **kind) for kind in kinds * 2))
        await asyncio.gather(*(infer(one, value) for value in ([[1, 2]], [[1]], [[1, 2]], [[1]])))
    assert calls == [2] * 5


async def test_requests_that_do_not_fit_run_by_themselves() -> None:
    """One that is as large as a batch, and what has no rows."""
    calls: list[int] = []
    async with inferring(noted(calls)) as one:
        await infer(one, np.zeros((9, 1)))
        await infer(one, np.zeros((0, 1)))
        three = asyncio.ensure_future(infer(one, np.zeros((3, 1))))
        await asyncio.sleep(0)
        await asyncio.gather(infer(one, np.zeros((3, 1))), infer(one, np.zeros((1, 1))))
        await three
    assert sorted(calls) == [0, 3, 4, 9]


async def test_a_function_that_gives_no_batch_is_run_alone() -> None:
    """Its outputs have not a row for each of the inputs."""

    @function(batch_max=2, batch_wait_ms=10_000)
    def total(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return x.sum(axis=0)

    async with inferring(total) as one:
        several = await asyncio.gather(infer(one, [[1, 2, 3]]), infer(one, [[4, 5, 6]]))
    assert [values(response) for response in several] == [[[1.0, 2.0, 3.0]], [[4.0, 5.0, 6.0]]]


async def test_G013_who_leaves_is_not_waited_for() -> None:
    """Before the batch runs, and while it does; the last one cancels it."""
    started, left = asyncio.Event(), asyncio.Event()

    @function(batch_max=2, batch_wait_ms=10_000)
    async def slow(x: NDArray[np.float64]) -> NDArray[np.float64]:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
        return x

    async with inferring(slow) as one:
        early = asyncio.ensure_future(infer(one, [1]))
        await asyncio.sleep(0)
        early.cancel()
        await asyncio.wait([early])
        both = [asyncio.ensure_future(infer(one, [number])) for number in (1, 2)]
        await started.wait()
        both[0].cancel()
        await asyncio.wait([both[0]])
        assert not left.is_set()
        both[1].cancel()
        await left.wait()
        for request in both:
            with pytest.raises(asyncio.CancelledError):
                await request
        await until(lambda: not one.driver.engine.running)


@pytest.mark.parametrize(("rows", "on_loop"), [(3, True), (300_000, False)])
async def test_G102_large_batches_are_joined_and_parted_elsewhere(
    rows: int, on_loop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small ones on the loop, where that takes less."""
    seen: dict[str, bool] = {}

    def noted_by(name: str) -> Any:
        work = getattr(module, name)

        def noted(*args: Any, **more: Any) -> Any:
            seen[name] = threading.current_thread() is threading.main_thread()
            return work(*args, **more)

        return noted

    for name in ("joint", "parted"):
        monkeypatch.setattr(module, name, noted_by(name))
    async with inferring(noted([], batch_max=2 * rows)) as one:
        several = await asyncio.gather(*(infer(one, np.full((rows, 1), number)) for number in (1, 2)))
    assert [len(bytes(one)) > 8 * rows for one in several] == [True, True]
    assert seen == {"joint": on_loop, "parted": on_loop}


async def test_G102_batches_of_strings_are_joined_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are large by their bytes, of which each has at least four for its length."""
    on_loop: list[bool] = []
    joint = module.joint

    def noted(*args: Any, **more: Any) -> Any:
        on_loop.append(threading.current_thread() is threading.main_thread())
        return joint(*args, **more)

    monkeypatch.setattr(module, "joint", noted)

    @function(batch_max=40_000, batch_wait_ms=10_000)
    def first(x: NDArray[np.object_]) -> NDArray[np.object_]:
        return x

    texts = np.full(20_000, b"x" * 30, object)
    async with inferring(first) as one:
        several = await asyncio.gather(
            *(one.infer(one.first, bytearray(ask(texts)), transport="test") for _ in range(2))
        )
    assert [response.error for response in several] == [None, None]
    assert on_loop == [False]


async def test_G102_large_answers_of_a_batch_of_one_are_written_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of requests that run alone after their batch failed."""
    on_loop: list[bool] = []
    response = Answer.response

    def noted(self: Answer) -> Reply:
        on_loop.append(threading.current_thread() is threading.main_thread())
        return response(self)

    monkeypatch.setattr(Answer, "response", noted)

    @function(batch_max=2, batch_wait_ms=0)
    def wide(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.zeros((len(x), 300_000))

    @function(batch_max=2, batch_wait_ms=10_000)
    def total(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.zeros(300_000)

    async with inferring(wide) as one:
        assert (await infer(one, [[1]])).size > 2_400_000
    async with inferring(total) as one:
        await asyncio.gather(infer(one, [[1]]), infer(one, [[2]]))
    assert on_loop == [False, False, False]


async def test_G079_a_request_in_a_batch_has_no_more_time_than_one_alone() -> None:
    """E15 for all of a batch at the same time, and none of it is tried again; waiting for others counts, too."""
    calls: list[int] = []
    left = asyncio.Event()

    @function(batch_max=2, batch_wait_ms=10_000)
    async def slow(x: NDArray[np.float64]) -> NDArray[np.float64]:
        calls.append(len(x))
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
        return x

    async with inferring(slow, timeout_s=0.1) as one:
        several = await asyncio.gather(infer(one, [1]), infer(one, [2]))
        assert [code_of(response) for response in several] == [Code.TIMEOUT] * 2
        await left.wait()
        assert calls == [2]
        assert code_of(await infer(one, [3])) is Code.TIMEOUT
        assert calls == [2]
        await until(lambda: not one.driver.engine.running)


async def test_G079_what_a_failed_batch_took_counts() -> None:
    """Who then runs alone has what is left."""

    @function(batch_max=2, batch_wait_ms=10_000)
    async def fails_slowly(x: NDArray[np.float64]) -> NDArray[np.float64]:
        if len(x) == 2:
            await asyncio.sleep(1.4)
            raise ValueError("not together")
        await asyncio.Event().wait()
        return x

    async with inferring(fails_slowly, timeout_s=1.5) as one:
        loop = asyncio.get_running_loop()
        began = loop.time()
        several = await asyncio.gather(infer(one, [1]), infer(one, [2]))
        assert [code_of(response) for response in several] == [Code.TIMEOUT] * 2
        assert loop.time() - began < 2.7  # another 1.5 s would be 2.9


async def test_G013_who_leaves_after_a_batch_failed_is_cancelled_alone() -> None:
    """Others go on."""
    started: set[float] = set()
    left: dict[float, asyncio.Event] = {1.0: asyncio.Event(), 2.0: asyncio.Event()}
    go = asyncio.Event()

    @function(batch_max=2, batch_wait_ms=10_000)
    async def held(x: NDArray[np.float64]) -> NDArray[np.float64]:
        if len(x) == 2:
            raise ValueError("not together")
        started.add(x[0])
        try:
            await go.wait()
        finally:
            left[x[0]].set()
        return x

    async with inferring(held) as one:
        first, second = (asyncio.ensure_future(infer(one, [number])) for number in (1, 2))
        await until(lambda: len(started) == 2)
        first.cancel()
        await left[1.0].wait()
        assert not left[2.0].is_set()
        go.set()
        assert values(await second) == [[2.0]]


async def test_G104_who_waits_for_a_batch_runs_when_the_drain_begins() -> None:
    """At once, since nobody else is coming; the drain waits for it, and refuses who asks later."""
    calls: list[int] = []
    async with inferring(noted(calls)) as one:
        waiting = [asyncio.ensure_future(infer(one, [number])) for number in (1, 2)]
        await asyncio.sleep(0)
        one.driver.engine.is_draining = True  # as the server does, which tells its health before it drains
        draining = asyncio.ensure_future(one.driver.drain(2 * SLOW))
        await asyncio.sleep(0)
        assert code_of(await infer(one, [3])) is Code.NOT_READY
        assert await draining
        assert [values(await request) for request in waiting] == [[[2]], [[4]]]
    assert calls == [2]


async def test_G104_who_waits_for_a_batch_is_cut_with_the_others() -> None:
    """At the end of the drain; the function is told."""
    left = asyncio.Event()

    @function(batch_max=8, batch_wait_ms=60_000)
    async def endless(x: NDArray[np.float64]) -> NDArray[np.float64]:
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
        return x

    async with inferring(endless) as one:
        waiting = asyncio.ensure_future(infer(one, [1]))
        await asyncio.sleep(0)
        assert not await one.driver.drain(0.05)
        assert code_of(await waiting) is Code.NOT_READY
        await left.wait()


class Body(bytearray):
    """A request that can be watched."""


@pytest.mark.parametrize("is_late", [True, False])
async def test_G103_nothing_is_kept_of_who_leaves(is_late: bool) -> None:
    """Not until the garbage is collected; nor of one that takes too long."""
    started = asyncio.Event()

    @function(batch_max=3, batch_wait_ms=0)
    async def held(x: NDArray[np.float64]) -> NDArray[np.float64]:
        started.set()
        await asyncio.Event().wait()
        return x

    gc.collect()
    gc.disable()
    try:
        async with inferring(held, timeout_s=0.1 if is_late else 10) as one:
            body = Body(ask(np.zeros((1, 1000))))
            watched = weakref.ref(body)
            request = asyncio.ensure_future(one.infer(one.first, body, transport="test"))
            del body
            await started.wait()
            if not is_late:
                request.cancel()
            await asyncio.wait([request])
            assert request.cancelled() is not is_late
            del request
            await until(lambda: watched() is None)
    finally:
        gc.enable()
