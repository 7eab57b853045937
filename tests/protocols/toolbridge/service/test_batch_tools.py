"""BatchExecuteTools at each transport."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from invoker import function
from invoker._pb.dspex import bridge_pb2 as pb
from invoker.protocols.toolbridge.settings import BridgeSettings
from tests.transports.bridge import TRANSPORTS, Bridged, packed, unpacked
from tests.transports.riff import eventually, form

pytestmark = pytest.mark.parametrize("kind", TRANSPORTS)


class Overlap:
    """A tool in both forms that takes a while and notes how many run at once."""

    def __init__(self, **options: Any) -> None:
        self.now = self.most = 0
        self.options = options
        self._lock = threading.Lock()

    def _count(self, by: int) -> None:
        with self._lock:
            self.now += by
            self.most = max(self.most, self.now)

    def of(self, kind: str) -> Any:
        def nap(ms: int) -> int:
            self._count(1)
            try:
                time.sleep(ms / 1000)
            finally:
                self._count(-1)
            return ms

        async def anap(ms: int) -> int:
            self._count(1)
            try:
                await asyncio.sleep(ms / 1000)
            finally:
                self._count(-1)
            return ms

        return function(name="nap", **self.options)(form(kind, nap, anap))


def batch(served: Bridged, times: list[int], **config: Any) -> pb.BatchToolCallResponse:
    items = [pb.ToolCallItem(index=n, tool_id="nap", args=[packed(one)]) for n, one in enumerate(times)]
    made: pb.BatchToolCallResponse = served.rpc(
        "BatchExecuteTools", session_id="s1", batch_id="b", items=items, config=pb.BatchConfig(**config)
    )
    return made


def test_T088_a_hundred_items_end_in_reverse(kind):
    """Their results stand in order."""
    tool = Overlap()
    with Bridged(kind, tool.of(kind)) as served:
        served.session()
        times = list(range(100, 0, -1))
        answer = batch(served, times, parallel=True, max_parallel=100)
        assert [one.index for one in answer.results] == list(range(100))
        assert [unpacked(one.result) for one in answer.results] == times
        assert answer.metrics.successful_items == 100
        assert 1 < tool.most <= 100
        assert not served.bridge.host_sessions.sessions["s1"].operations


def test_T089_items_overlap_as_far_as_they_may(kind):
    """One at a time; three; two, because the session may not run more."""
    tool = Overlap()
    with Bridged(kind, tool.of(kind)) as served:
        served.session()
        batch(served, [5] * 4)
        assert tool.most == 1
        batch(served, [20] * 6, parallel=True, max_parallel=3)
        assert tool.most == 3
        served.rpc("CleanupSession", session_id="s1")
        served.session(max_concurrent_tools=2)
        tool.most = 0
        answer = batch(served, [20] * 6, parallel=True)
        assert (tool.most, answer.metrics.failed_items) == (2, 0)


def test_T089_two_batches_wait_for_each_other(kind):
    """In a session that runs one tool at a time; nothing fails."""
    tool = Overlap()
    with Bridged(kind, tool.of(kind)) as served, ThreadPoolExecutor(3) as pool:
        served.session(max_concurrent_tools=1)
        answers = [pool.submit(batch, served, [3] * 10, parallel=True) for _ in range(3)]
        assert [one.result(60).metrics.successful_items for one in answers] == [10, 10, 10]
        assert tool.most == 1
        assert served.bridge.host_sessions.sessions["s1"].waits == 0


def test_T058_items_wait_for_a_place_of_their_tool(kind):
    """All of them succeed."""
    tool = Overlap(max_calls=2)
    with Bridged(kind, tool.of(kind)) as served:
        served.session()
        answer = batch(served, [5] * 10, parallel=True)
        assert (tool.most, answer.metrics.successful_items) == (2, 10)


def test_T096_a_tool_keeps_its_rate(kind):
    """Those beyond it are told so."""
    tool = Overlap(calls_per_minute=3)
    with Bridged(kind, tool.of(kind)) as served:
        served.session()
        answer = batch(served, [1] * 5)
        assert [one.error.details["code"] for one in answer.results] == ["", "", "", "rate_limit", "rate_limit"]


def test_T014_a_forced_clean_up_ends_a_batch(kind):
    """Its items hear it, those that run and those that do not."""
    tool = Overlap()
    with Bridged(kind, tool.of(kind)) as served, ThreadPoolExecutor(1) as pool:
        served.session()
        answer = pool.submit(batch, served, [200] * 6, parallel=True, max_parallel=2)
        while tool.now < 2:
            time.sleep(0.001)
        assert served.rpc("CleanupSession", session_id="s1", force=True).success
        assert {one.error.type for one in answer.result(60).results} == {"SessionExpired"}


def test_a_batch_counts_against_the_memory_of_the_process(kind):
    """All of it while its items run one after the other; one that does not fit is refused, and may come again."""
    began, go_on = threading.Event(), threading.Event()

    def held(data: bytes) -> int:
        began.set()
        go_on.wait(20)
        return len(data)

    async def aheld(data: bytes) -> int:
        return await asyncio.to_thread(held, data)

    aheld.__name__ = "held"
    items = [pb.ToolCallItem(index=n, tool_id="held", args=[packed(bytes(1 << 20))]) for n in range(3)]
    with Bridged(kind, form(kind, held, aheld)) as served, ThreadPoolExecutor(1) as pool:
        served.session()
        memory = served.driver.engine.memory
        memory.most_bytes = 5 << 20
        first = pool.submit(served.rpc, "BatchExecuteTools", session_id="s1", items=items)
        assert began.wait(20)
        assert 3 << 20 <= memory.held <= 4 << 20
        with pytest.raises(grpc.RpcError) as caught:
            served.rpc("BatchExecuteTools", session_id="s1", items=items)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        go_on.set()
        assert [one.success for one in first.result(20).results] == [True] * 3
        assert eventually(lambda: memory.held == 0)
        assert len(served.rpc("BatchExecuteTools", session_id="s1", items=items).results) == 3


@pytest.mark.parametrize("parallel", [False, True])
def test_T062_T091_results_that_do_not_fit_are_errors_of_their_items(kind, parallel):
    """At each transport: what fits is there, and the response comes."""

    def large(n: int) -> bytes:
        return b"x" * n

    async def alarge(n: int) -> bytes:
        return b"x" * n

    alarge.__name__ = "large"
    with Bridged(kind, form(kind, large, alarge), settings=BridgeSettings(message_bytes=2_000_000)) as served:
        served.session()
        items = [pb.ToolCallItem(index=n, tool_id="large", args=[packed(500_000)]) for n in range(9)]
        items.append(pb.ToolCallItem(index=9, tool_id="large", args=[packed(5)]))
        response = served.rpc(
            "BatchExecuteTools", session_id="s1", items=items, config=pb.BatchConfig(parallel=parallel)
        )
        sizes = [len(unpacked(one.result)) for one in response.results if one.success]
        assert sorted(sizes) == [5, 500_000, 500_000, 500_000]
        assert {one.error.details["code"] for one in response.results if not one.success} == {"result_too_large"}
        assert (response.metrics.successful_items, response.metrics.failed_items) == (4, 6)
        assert response.ByteSize() <= 2_000_000
