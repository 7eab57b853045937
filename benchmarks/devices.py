"""Measures devices that wait for a federated round: the server's memory per device, and checkins per second."""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from benchmarks.measure import FAILURES, say
from benchmarks.process import resident_mib
from benchmarks.report import table
from benchmarks.servers import Series
from invoker._pb.federated import federated_api_pb2 as pb
from invoker.testing import TestServer

__all__ = ["devices"]

_PATH = "/google.internal.federatedml.v2.FederatedTrainingApi/Session"
_CHANNELS = 8
_AT_ONCE = 64
_ROUNDS = """
[[population]]
name = "devices"
[[population.task]]
name = "wait"
aggregate = "invoker.aggregators:mean"
plan = "devices:train"
initial = "benchmarks.devices:initial"
min_clients = 100000
goal_clients = 100000
max_clients = 100000
selection_timeout_s = 3600.0
"""


def initial() -> bytes:
    """Return an empty checkpoint; no round begins, so no device downloads it."""
    return b""


def devices(columns: Sequence[Series], *, quick: bool) -> str:  # noqa: ARG001 - every row of the table takes them
    """Measure devices that check in with an ack and wait for a round; the table has a row for each gRPC transport."""
    rows = []
    many = 1000 if quick else 10_000
    for transport in ("fast", "aio"):
        try:
            rows.append([transport, *_figures(transport, many)])
        except FAILURES as error:
            say(f"{transport} fails: {error}")
    head = ("gRPC transport", f"KiB a device, of {many:,}", "checkins/s", "MiB in all", "ms until all have left")
    return table("Devices that wait for a federated round", head, rows)


def _figures(transport: str, many: int) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rounds.toml")
        path.write_text(_ROUNDS)
        flags = ("--federated-sessions", "100000", "--federated-peer-sessions", "100000", "--grpc-driver", transport)
        server = TestServer(str(path), *flags)
        try:
            return asyncio.run(_measured(server, many))
        finally:
            server.close()


async def _measured(server: Any, many: int) -> list[str]:
    pid = server._process.pid  # noqa: SLF001 - only benchmarks need the process
    options = (("grpc.use_local_subchannel_pool", 1),)
    channels = [grpc.aio.insecure_channel(server.grpc, options) for _ in range(_CHANNELS)]
    calls: list[Any] = []
    try:
        await _check_in(channels, 100, calls)
        before, began = resident_mib(pid), time.perf_counter()
        await _check_in(channels, many - 100, calls)
        seconds = time.perf_counter() - began
        after = resident_mib(pid)
        began = time.perf_counter()
        for call in calls:
            call.cancel()
        while _waiting(server.http):  # noqa: ASYNC110 - the server has no event for this
            await asyncio.sleep(0.02)
        left = time.perf_counter() - began
    finally:
        for channel in channels:
            await channel.close()
    each = (after - before) * 1024 / (many - 100)
    return [f"{each:.1f}", f"{(many - 100) / seconds:,.0f}", f"{after:.0f}", f"{left * 1000:,.0f}"]


async def _check_in(channels: Sequence[grpc.aio.Channel], many: int, calls: list[Any]) -> None:
    options = pb.ProtocolOptionsRequest(should_ack_checkin=True, supports_chunked_blob_transfer=True)
    request = pb.CheckinRequest(population_name="devices", protocol_options_request=options)
    frame = pb.ClientStreamMessage(checkin_request=request).SerializeToString()
    numbers = iter(range(many))

    async def some() -> None:
        for number in numbers:
            call: Any = channels[number % len(channels)].stream_stream(_PATH)()
            calls.append(call)
            await call.write(frame)
            await call.read()

    await asyncio.gather(*(some() for _ in range(_AT_ONCE)))


def _waiting(http: str) -> float:
    """Read the number of waiting devices from the server's metrics."""
    import urllib.request

    with urllib.request.urlopen(f"http://{http}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found = re.search(r'^invoker_round_sessions\{state="waiting"\} (\S+)$', text, flags=re.MULTILINE)
    return float(found[1]) if found else 0.0
