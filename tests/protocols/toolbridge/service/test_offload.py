"""Arguments of large requests are read beside the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, ClassVar

import grpc
import pytest

from invoker import Field, rule
from invoker._pb.dspex import bridge_pb2 as pb
from invoker.protocols.toolbridge.service.offload import AsideThreads
from tests.transports.bridge import TRANSPORTS, Bridged, packed, unpacked


@pytest.fixture
async def aside() -> AsyncIterator[AsideThreads]:
    """Closed at the end."""
    made = AsideThreads()
    yield made
    made.close()


async def test_work_is_done_in_another_thread(aside: AsideThreads) -> None:
    """On the loop it is due; its result and its error come back."""
    assert aside.is_due()
    assert (await aside.run(threading.current_thread)).name.startswith("invoker-aside")
    with pytest.raises(ZeroDivisionError):
        await aside.run(lambda: 1 / 0)


def test_a_thread_of_its_own_does_its_work_itself() -> None:
    """Nobody waits for it."""
    aside = AsideThreads()
    assert not aside.is_due()
    aside.close()


async def test_two_threads_are_the_most_and_cancelled_work_is_not_begun(aside: AsideThreads) -> None:
    """What waits for a thread is dropped with whoever asked for it."""
    ends, are_two, begun = threading.Event(), threading.Event(), list[int]()

    def work(number: int) -> None:
        begun.append(number)
        if len(begun) == 2:
            are_two.set()
        ends.wait(5)

    tasks = [asyncio.create_task(aside.run(lambda number=number: work(number))) for number in range(3)]  # type: ignore[misc]
    await asyncio.to_thread(are_two.wait, 5)
    tasks[2].cancel()
    await asyncio.wait(tasks[2:])
    ends.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert begun == [0, 1]


class Noted:
    """Where a rule was checked, and until when it waits."""

    threads: ClassVar[list[str]] = []
    goes_on: ClassVar[threading.Event] = threading.Event()


@rule("noted_in_thread")
def _noted(value: Any) -> bool:
    Noted.threads.append(threading.current_thread().name)
    Noted.goes_on.wait(5)
    return len(value) != 3


async def aheld(xs: Annotated[list[Any], Field(rules="noted_in_thread")]) -> int:
    return len(xs)


aheld.__name__ = "held"


def held(xs: Annotated[list[Any], Field(rules="noted_in_thread")]) -> int:
    return len(xs)


@pytest.fixture
def noted() -> Iterator[type[Noted]]:
    """Rules pass at once."""
    Noted.threads.clear()
    Noted.goes_on.set()
    yield Noted
    Noted.goes_on.set()


LARGE = ["x" * 100] * 1000
ITEM = {"tool_id": "held", "args": [packed(LARGE)]}


def served(kind: str) -> Bridged:
    return Bridged(kind, aheld if kind == "lending" else held)


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_large_arguments_of_each_rpc_are_read_elsewhere(kind: str, noted: type[Noted]) -> None:
    """What is right with them, and what is wrong, is told as ever."""
    with served(kind) as bridged:
        bridged.session()
        assert unpacked(bridged.execute("held", LARGE).result) == 1000
        wrong = bridged.execute("held", ["x" * 50_000] * 3).error
        assert (wrong.type, wrong.details["rule"]) == ("ValidationError", "noted_in_thread")
        assert bridged.execute("none", LARGE).error.type == "ToolNotFound"
        chunks = bridged.rpc("StreamTool", session_id="s1", **ITEM)
        assert [one.WhichOneof("content") for one in chunks] == ["data", "complete"]
        items = [pb.ToolCallItem(index=number, **ITEM) for number in range(3)]  # type: ignore[arg-type]
        for config in (pb.BatchConfig(parallel=True), pb.BatchConfig()):
            results = bridged.rpc("BatchExecuteTools", session_id="s1", items=items, config=config).results
            assert [(one.index, unpacked(one.result)) for one in results] == [(0, 1000), (1, 1000), (2, 1000)]
        called = noted.threads[2:] if kind == "direct-lending" else noted.threads
        assert len(noted.threads) == 9
        assert {one.partition("_")[0] for one in called} == {"invoker-aside"}
        assert bridged.execute("held", ["x"]).success
        assert kind == "direct-lending" or not noted.threads[-1].startswith("invoker-aside")


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_T070_large_duplicates_run_once(kind: str, noted: type[Noted]) -> None:
    """The arguments are read before the request id is taken."""
    with served(kind) as bridged:
        bridged.session(enable_caching=True)
        first = bridged.execute("held", LARGE, request_id="r")
        assert bridged.execute("held", LARGE, request_id="r") == first
        assert unpacked(first.result) == 1000
        assert bridged.execute("held", LARGE[1:], request_id="r").error.details["code"] == "request_id_conflict"


@pytest.mark.parametrize("kind", ["aio", "lending"])
@pytest.mark.parametrize("name", ["ExecuteTool", "StreamTool", "BatchExecuteTools"])
def test_a_caller_that_leaves_meanwhile_holds_nothing(kind: str, name: str, noted: type[Noted]) -> None:
    """The call has not begun yet, so its session is free."""
    noted.goes_on.clear()
    fields = {"items": [pb.ToolCallItem(**ITEM)]} if name == "BatchExecuteTools" else ITEM  # type: ignore[arg-type]
    with served(kind) as bridged:
        bridged.session(max_concurrent_tools=1)
        for timeout_s in (0.3, 3.0, 10.0):  # on a busy machine the first one may be over before the server reads
            with pytest.raises(grpc.RpcError) as caught:
                bridged.send(name, getattr(pb, READS[name])(session_id="s1", **fields), timeout=timeout_s)
            assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED  # type: ignore[attr-defined]
            if noted.threads:
                break
        assert len(noted.threads) == 1
        noted.goes_on.set()
        assert bridged.execute("held", ["x"]).success
        assert bridged.rpc("GetSessionInfo", session_id="s1").active_operations == 0
        assert bridged.rpc("CleanupSession", session_id="s1").success


READS = {"ExecuteTool": "ToolCallRequest", "StreamTool": "ToolStreamRequest"} | {
    "BatchExecuteTools": "BatchToolCallRequest"
}
