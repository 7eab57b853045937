"""Calls that repeat a request id, at each transport."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from invoker import ToolError
from invoker._pb.dspex import bridge_pb2 as pb
from invoker.protocols.toolbridge.service.rpcs import SERVICE
from invoker.protocols.toolbridge.settings import BridgeSettings
from tests.protocols.toolbridge.service.gates import Gate
from tests.transports.bridge import TRANSPORTS, Bridged, packed, unpacked
from tests.transports.riff import eventually, form

pytestmark = pytest.mark.parametrize("kind", TRANSPORTS)


def test_T070_fifty_duplicates_run_once(kind):
    """At the same time, and one later; all get the same bytes."""
    gate = Gate()
    with Bridged(kind, gate.of(kind)) as served, ThreadPoolExecutor(50) as pool:
        served.session(enable_caching=True)
        calls = [pool.submit(served.execute, "gate", 7, request_id="r") for _ in range(50)]
        assert gate.entered.acquire(timeout=20)
        gate.open.set()
        answers = {one.result(20).SerializeToString() for one in calls}
        answers.add(served.execute("gate", 7, request_id="r").SerializeToString())
        assert len(answers) == 1
        assert gate.runs == 1
        assert served.execute("gate", 8, request_id="r").error.details["code"] == "request_id_conflict"


def test_T167_a_duplicate_has_a_line_that_says_what_became_of_it(kind, tmp_path):
    """Whether it waited for the first call or came later, and whether that succeeded: one line for each rpc."""
    gate, path = Gate(), tmp_path / "audit.log"

    async def afail(x: int) -> int:
        raise ToolError("InternalError", str(await asyncio.to_thread(gate.of("direct"), x)))

    def fail(x: int) -> int:
        raise ToolError("InternalError", str(gate.of("direct")(x)))

    afail.__name__ = "fail"
    tools = (gate.of(kind), form(kind, fail, afail))
    settings = BridgeSettings(audit=str(path))
    with Bridged(kind, *tools, settings=settings) as served, ThreadPoolExecutor(4) as pool:
        served.session(enable_caching=True)
        calls = [pool.submit(served.execute, name, 7, request_id=name) for name in ("gate", "fail") for _ in range(2)]
        assert gate.entered.acquire(timeout=20)
        assert gate.entered.acquire(timeout=20)
        assert eventually(lambda: sum(len(one.owners) == 2 for one in served.driver.shared.values()) == 2)
        gate.open.set()
        for one in calls:
            one.result(20)
        served.execute("gate", 7, request_id="gate")
        served.bridge.watch.close()
    lines = [json.loads(one) for one in path.read_text().splitlines()]
    told = sorted((one["request_id"], one["outcome"]) for one in lines)
    assert told == [
        ("fail", "error"), ("fail", "error"), ("gate", "cached"), ("gate", "cached"), ("gate", "ok"),
    ]  # fmt: skip


def test_T073_duplicates_run_again_without_caching(kind):
    """The id is echoed only."""
    gate = Gate()
    gate.open.set()
    with Bridged(kind, gate.of(kind)) as served:
        served.session()
        for _ in range(2):
            served.execute("gate", 7, request_id="r")
        assert gate.runs == 2


def test_T075_the_first_of_two_duplicates_is_cancelled(kind):
    """The second one gets the result of the one run."""
    gate = Gate()
    with Bridged(kind, gate.of(kind)) as served, ThreadPoolExecutor(1) as pool:
        served.session(enable_caching=True)
        request = pb.ToolCallRequest(session_id="s1", tool_id="gate", args=[packed(7)], request_id="r")
        make = served.channel.unary_unary(f"/{SERVICE}/ExecuteTool", pb.ToolCallRequest.SerializeToString)
        first = make.future(request, timeout=20)
        assert gate.entered.acquire(timeout=20)
        second = pool.submit(served.execute, "gate", 7, request_id="r")
        assert eventually(lambda: any(len(one.owners) == 2 for one in served.driver.shared.values()))
        first.cancel()
        assert eventually(lambda: any(len(one.owners) == 1 for one in served.driver.shared.values()))
        gate.open.set()
        assert unpacked(second.result(20).result) == 7
        assert gate.runs == 1
        with pytest.raises(grpc.FutureCancelledError):
            first.result()
