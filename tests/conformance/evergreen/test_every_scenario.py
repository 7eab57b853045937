"""No Evergreen scenario passes with every server: each fails with one that refuses all, or with one that is mute."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.message import DecodeError

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker_conformance import Scenario, select
from invoker_conformance.evergreen.frames import JSON, F, message
from invoker_conformance.runner import Verdict, run
from invoker_conformance.target import Target, parse_addresses

PATIENT = (
    "sixty_four_stalled_outputs", "cancel_while_nothing_moves", "cancel_is_not_half_close", "oversize_message",
)  # fmt: skip
"""Each of them waits for seconds, in which others can run."""


@asynccontextmanager
async def serving(*, refuses: bool) -> AsyncIterator[str]:
    """A server that accepts every extension, counts nothing, and else says OK or refuses without a look."""

    async def start(requests: AsyncIterator[bytes], context: Any) -> None:
        wanted = dict(context.invocation_metadata()).get("evergreen-extensions", "")
        await context.send_initial_metadata((("evergreen-extensions", wanted),))
        async for data in requests:
            found = pb.SessionMessage()
            with suppress(DecodeError):
                found.ParseFromString(data)
            names = [action.name for action in found.actions]
            if any(not each.name for action in found.actions for each in action.inputs):
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "Evergreen: Invalid Action: an empty name")
            if names == ["marks"]:
                count = message(F(found.actions[0].outputs[0].id, m=JSON, t="0"))
                await context.write(count.SerializeToString())
                return
            if refuses:
                await context.abort(grpc.StatusCode.UNKNOWN, "Evergreen: Action Failed: refused")
        if refuses:
            await context.abort(grpc.StatusCode.UNKNOWN, "Evergreen: Action Failed: refused")

    server = grpc.aio.server()
    handler = grpc.stream_stream_rpc_method_handler(start)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("evergreen.v2.EvergreenService", {"StartSession": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(0)


async def unmoved(scenarios: list[Scenario], root: str, *, refuses: bool) -> list[Scenario]:
    """Those of these scenarios that do not fail with such a server."""
    async with serving(refuses=refuses) as address:
        target = Target(
            parse_addresses([address]), parse_addresses([]), timeout_s=0.1, message_bytes=1 << 20, ref_root=root
        )
        patient = [one for one in scenarios if one.name in PATIENT]
        others = [one for one in scenarios if one.name not in PATIENT]
        try:
            groups = await asyncio.gather(run(target, others), *(run(target, [one]) for one in patient))
        finally:
            await target.close()
    return [outcome.scenario for outcomes in groups for outcome in outcomes if outcome.verdict is not Verdict.FAIL]


@pytest.mark.timeout(30)
async def test_every_scenario_fails_with_a_server_that_does_nothing(tmp_path: Path) -> None:
    """Neither one answer to everything nor silence passes for any of them."""
    left = await unmoved(select(protocol="evergreen"), str(tmp_path), refuses=True)
    assert 0 < len(left) < 30
    assert not await unmoved(left, str(tmp_path), refuses=False)
