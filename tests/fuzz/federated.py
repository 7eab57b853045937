"""Rounds under attack: bad devices end alone, good rounds beside them are exact, and memory stays bounded."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import grpc
import grpc.aio

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.testing import TestServer
from tests.conftest import SLOW
from tests.fuzz.ending import GRACE, end
from tests.fuzz.federated_frames import frames
from tests.protocols.federated.service.devices import PATH, Device, rounds

_FLAGS = ("--no-http", *GRACE, "--log-format", "json")
_SETTINGS = {
    "INVOKER_FEDERATED_PEER_SESSIONS": "10000",
    "MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "131072", "MALLOC_MMAP_THRESHOLD_": "65536",
}  # fmt: skip
_SECURE = """
[population.task.secagg]
vectors = { w = { modulus = 1048576, length = 3 } }
min_visible = 2
"""
_ATTACKERS = 4
_SLOWEST_S = 2.0 * SLOW
"""A good round takes so long at most, whatever happens beside it."""
_MORE_BYTES = 150_000_000
_BROKEN = re.compile(
    r'"level": "error"|never retrieved|Exception in callback|Task was destroyed|Fatal|was never awaited'
)


@dataclass
class Report:
    """What happened: conversations by how they ended, good rounds, the slowest of them, and what must not be."""

    attacks: Counter[str] = field(default_factory=Counter)
    good: int = 0
    slowest_s: float = 0.0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        ends = ", ".join(f"{name} {number}" for name, number in self.attacks.most_common(12))
        text = f"federated: {self.attacks.total()} attacks ({ends}), {self.good} good rounds beside them"
        return "\n".join([f"{text}, the slowest {self.slowest_s:.2f} s", *self.faults])


async def fuzz(chance: Random, seconds: float) -> Report:
    """Attack two populations of a server, one of them secure; a third one has good rounds."""
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rounds.toml"
        bad = {"clients": 2, "most": 5, "selection_s": 0.3, "report_s": 1.0}
        path.write_text(
            rounds("good", selection_s=60, report_s=60) + rounds("plain", **bad) + rounds("secure", **bad) + _SECURE
        )
        server = _started(path)
        pid: int = server._process.pid
        try:
            async with grpc.aio.insecure_channel(server.grpc) as channel:
                await _round(channel, report)
                before = _resident(pid)
                until = time.monotonic() + seconds
                seeds = [chance.getrandbits(64) for _ in range(_ATTACKERS)]
                await asyncio.gather(
                    _be_good(channel, until, report),
                    *(_be_bad(server.grpc, Random(seed), until, report) for seed in seeds),
                )
                await _round(channel, report)
            if (held := _resident(pid) - before) > _MORE_BYTES:
                report.faults.append(f"the process holds {held:,} bytes more than before")
            report.faults += [f"the log says: {line}" for line in server.log().splitlines() if _BROKEN.search(line)][:9]
        except (grpc.RpcError, OSError) as error:
            report.faults.append(f"the server does not answer: {error!r}\n{server.log()[-3000:]}")
        finally:
            ended = await asyncio.to_thread(end, server)
        if ended:
            report.faults.append(ended)
    return report


def _started(path: Path) -> TestServer:
    before = dict(os.environ)
    os.environ.update(_SETTINGS)
    try:
        return TestServer(str(path), *_FLAGS)
    finally:
        os.environ.clear()
        os.environ.update(before)


async def _be_good(channel: grpc.aio.Channel, until: float, report: Report) -> None:
    while time.monotonic() < until and not report.faults:
        await _round(channel, report)


async def _round(channel: grpc.aio.Channel, report: Report) -> None:
    """Two devices of a population that nobody attacks; the next checkpoint is the sum."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(4 * _SLOWEST_S):
            got = await asyncio.gather(Device(channel, "good").run(b"1"), Device(channel, "good").run(b"2"))
    except Exception as error:
        report.faults.append(f"a good round got {error!r}")
        return
    took_s = time.monotonic() - began
    report.slowest_s = max(report.slowest_s, took_s)
    wanted = str(100 + 3 * report.good).encode()
    report.good += 1
    if got != [wanted] * 2:
        report.faults.append(f"a good round started from {got}, not {wanted!r}")
    elif took_s > _SLOWEST_S:
        report.faults.append(f"a good round took {took_s:.1f} s")


async def _be_bad(address: str, chance: Random, until: float, report: Report) -> None:
    options = [("grpc.use_local_subchannel_pool", 1)]
    while time.monotonic() < until and not report.faults:
        async with grpc.aio.insecure_channel(address, options=options) as channel:
            for _ in range(chance.randrange(1, 20)):
                at_once = chance.choice((1, 3, 10))
                await asyncio.gather(*(_one(channel, chance, report) for _ in range(at_once)))
                if time.monotonic() > until:
                    break


async def _one(channel: grpc.aio.Channel, chance: Random, report: Report) -> None:
    """One conversation, ended in one of several ways; it begins rightly more often than not."""
    method: Any = channel.stream_stream(PATH)
    call = method(timeout=chance.choice((0.05, 0.5, 2, 2)))
    heard: list[pb.ServerStreamMessage] = []
    population = chance.choice(("plain", "secure"))
    reading = asyncio.create_task(_read(call, heard, stops=chance.random() < 0.2))
    with contextlib.suppress(grpc.RpcError, grpc.aio.BaseError, asyncio.InvalidStateError, asyncio.CancelledError):
        if chance.random() < 0.7:
            await call.write(_right(population).SerializeToString())
        for number, frame in enumerate(frames(chance, population, lambda: _phase(heard))):
            if number == 0 and chance.choice((True, False)):
                await asyncio.sleep(0.4)  # by then it is decided
            if call.done() or number > chance.choice((0, 1, 2, 3, 10, 60)):
                break
            await call.write(frame)
        if chance.choice((True, False)):
            await call.done_writing()
        else:
            call.cancel()
    with contextlib.suppress(grpc.RpcError, asyncio.CancelledError):
        await reading
    call.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        code, text = await call.code(), await call.details() or ""
        report.attacks[code.name] += 1
        is_ours = code in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN) and "from Core" not in text
        if is_ours and "INTERNAL_ERROR" not in text:
            report.faults.append(f"a conversation ended by an error of ours: {code.name} {text}")


def _right(population: str) -> pb.ClientStreamMessage:
    request = pb.CheckinRequest(population_name=population)
    request.protocol_options_request.supports_chunked_blob_transfer = True
    request.protocol_options_request.side_channels.secure_aggregation.client_variant.append(2)  # type: ignore[arg-type]
    return pb.ClientStreamMessage(checkin_request=request)


async def _read(call: Any, heard: list[pb.ServerStreamMessage], *, stops: bool) -> None:
    """Read to the end, or stop at once, as a device does that never takes an ack."""
    while not stops and (got := await call.read()) is not grpc.aio.EOF:
        heard.append(pb.ServerStreamMessage.FromString(got))


def _phase(heard: list[pb.ServerStreamMessage]) -> str:
    return next((one.checkin_response.acceptance_info.execution_phase_id for one in reversed(heard)), "")


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * 4096
