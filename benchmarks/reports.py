"""A federated round of plain reports over gRPC: throughput compared with a sum over files, and the server's peak
memory.

All devices run in one process and use the client's chunk layer. They download nothing, like devices with the plan in
their cache. Each update is one of a few that were packed before the measurement, since training and compression are not
the server's cost.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import numpy as np

from benchmarks.devices import devices
from benchmarks.measure import FAILURES, say
from benchmarks.process import forget_peak, peak_mib, resident_mib
from benchmarks.report import table
from benchmarks.servers import Series
from invoker import Checkpoint, Update
from invoker._pb.federated import federated_api_pb2 as pb
from invoker.codecs.checkpoint import write_checkpoint
from invoker.codecs.chunks import ChunkStream, Packed, Terms
from invoker.protocols.federated.client.reading import parsed
from invoker.testing import TestServer

__all__ = ["federated", "reports"]

_PATH = "/google.internal.federatedml.v2.FederatedTrainingApi/Session"
_ELEMENTS = 1 << 18
"""The number of float32 elements of the model and of each update, which makes 1 MiB."""

_CHANNELS = 8
_AT_ONCE = 64
"""The number of devices that report at the same time, in rows where not all do."""

_DISTINCT = 4
_PROBE = """
import http.client, select, sys, time
slowest = 0.0
sys.stdin.readline()
while True:
    began = time.perf_counter()
    connection = http.client.HTTPConnection(sys.argv[1])
    connection.request("GET", "/health")
    connection.getresponse().read()
    connection.close()
    slowest = max(slowest, time.perf_counter() - began)
    if select.select([sys.stdin], [], [], 0.01)[0]:
        break
print(slowest)
"""
"""After a line on stdin, this program sends GET /health again and again, and prints the longest time to an answer."""

_ROUNDS = """
[[population]]
name = "reports"
[[population.task]]
name = "train"
aggregate = "invoker.aggregators:mean"
plan = "devices:train"
initial = "benchmarks.reports:initial"
min_clients = {many}
goal_clients = {many}
max_clients = {many}
over_selection = 1.0
selection_timeout_s = 600.0
report_timeout_s = 600.0
rounds = 2
"""


def initial() -> Checkpoint:
    """Return a model of 1 MiB."""
    return Checkpoint({"weights": np.zeros(_ELEMENTS, np.float32)})


def federated(columns: Sequence[Series], *, quick: bool) -> str:
    """Make the tables of waiting devices and of reporting devices."""
    return "\n\n".join((devices(columns, quick=quick), reports(columns, quick=quick)))


def reports(columns: Sequence[Series], *, quick: bool) -> str:  # noqa: ARG001 - every row of the table takes them
    """Measure a round for each way to report; the first row is the same sum over files."""
    many = 200 if quick else 1000
    bare = _of_files(many)
    rows = [["files, read and added", f"{bare:,.0f}", "1.00", "-", "-", "-"]]
    ways = (
        ("chunks, 64 at once", True, _AT_ONCE),
        ("whole, 64 at once", False, _AT_ONCE),
        ("chunks, all at once", True, many),
    )
    for name, has_chunks, at_once in ways:
        try:
            rate, before, peak, lag = _figures(many, has_chunks=has_chunks, at_once=at_once)
        except FAILURES as error:
            say(f"{name} fails: {error}")
            continue
        rows.append([name, f"{rate:,.0f}", f"{rate / bare:.2f}", f"{before:.0f}", f"{peak - before:.0f}", f"{lag:.0f}"])
    head = (
        "reports of 1 MiB",
        "MiB/s",
        "beside files",
        "MiB before",
        "peak above that, MiB",
        "slowest answer by HTTP, ms",
    )
    return table(f"A round of {many:,} plain reports", head, rows)


def _of_files(many: int) -> float:
    """Compute the same mean over files; return MiB per second."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{number}.npy") for number in range(many)]
        for number, path in enumerate(paths):
            np.save(path, _weights(number))
        began = time.perf_counter()
        total = np.zeros(_ELEMENTS, np.float64)
        for path in paths:
            total += np.load(path)
        total /= many
        return many * _ELEMENTS * 4 / 2**20 / (time.perf_counter() - began)


def _weights(number: int) -> Any:
    return np.random.default_rng(number % _DISTINCT).standard_normal(_ELEMENTS, np.float32)


def _figures(many: int, *, has_chunks: bool, at_once: int) -> tuple[float, float, float, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rounds.toml")
        path.write_text(_ROUNDS.format(many=many))
        server = TestServer(str(path), "--federated-sessions", "100000", "--federated-peer-sessions", "100000")
        try:
            words = [sys.executable, "-c", _PROBE, server.http]
            with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as probe:
                return asyncio.run(_Round(server, many, has_chunks=has_chunks).run(at_once, probe))
        finally:
            server.close()


class _Round:
    """One round with all devices."""

    def __init__(self, server: TestServer, many: int, *, has_chunks: bool) -> None:
        self._server, self._many, self._has_chunks = server, many, has_chunks
        self._packed: dict[int, Packed] = {}

    async def run(self, at_once: int, probe: Any) -> tuple[float, float, float, float]:
        """Run the round; return MiB per second, MiB before it, peak MiB, and the slowest answer by HTTP in ms."""
        pid = self._server._process.pid  # noqa: SLF001 - only benchmarks need the process
        options = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 1 << 26))
        channels = [grpc.aio.insecure_channel(self._server.grpc, options) for _ in range(_CHANNELS)]
        try:
            found = [_Device(channels[number % _CHANNELS], has_chunks=self._has_chunks) for number in range(self._many)]
            await asyncio.gather(*(one.check_in() for one in found))
            for number in range(_DISTINCT):
                self._packed[number] = self._report(number, found[0])
            before = resident_mib(pid)
            forget_peak(pid)
            probe.stdin.write("go\n")
            probe.stdin.flush()
            began = time.perf_counter()
            numbers, room = count(), asyncio.Semaphore(at_once)

            async def one(device: _Device) -> None:
                async with room:
                    await device.report(self._packed[next(numbers) % _DISTINCT])

            await asyncio.gather(*map(one, found))
            seconds = time.perf_counter() - began
            lag, _ = probe.communicate()
            while "round committed" not in self._server.log():
                time.sleep(0.02)  # noqa: ASYNC251 - the loop has nothing else to do
            return self._many / seconds, before, peak_mib(pid), float(lag) * 1000
        finally:
            for channel in channels:
                await channel.close()

    def _report(self, number: int, device: _Device) -> Packed:
        message = pb.ClientStreamMessage()
        request = message.report_request
        request.population_name, request.execution_phase_id = "reports", device.phase_id
        request.report.update_checkpoint = write_checkpoint(Update({"weights": _weights(number)}, examples=1.0))
        return Packed.of(message.SerializeToString(), device.stream.terms.level if self._has_chunks else 0)


class _Device:
    """One device that checks in once and reports once.

    Attributes:
        stream: The chunk layer of its connection.
        phase_id: The execution phase id of the round.
    """

    def __init__(self, channel: grpc.aio.Channel, *, has_chunks: bool) -> None:
        self.stream = ChunkStream(parse=parsed, writes=pb.ClientStreamMessage)
        self.phase_id = ""
        self._has_chunks = has_chunks
        self._call: Any = channel.stream_stream(_PATH)()

    async def check_in(self) -> None:
        """Check in, and wait until the round begins."""
        options = pb.ProtocolOptionsRequest(
            supports_chunked_blob_transfer=self._has_chunks,
            supported_compression_levels=[pb.UNCOMPRESSED, pb.ZLIB_DEFAULT, pb.ZLIB_BEST_SPEED],
            supports_http_download=True,
        )
        request = pb.CheckinRequest(population_name="reports", protocol_options_request=options)
        self.stream.send(pb.ClientStreamMessage(checkin_request=request).SerializeToString())
        answer = await self._answered()
        said = answer.checkin_response.protocol_options_response
        self.phase_id = answer.checkin_response.acceptance_info.execution_phase_id
        assert self.phase_id, answer
        self.stream.agree(Terms(said.chunk_size_for_upload, said.max_pending_chunks, said.compression_level))

    async def report(self, packed: Packed) -> None:
        """Send a report, and wait for the server's answer and the end of the call."""
        self.stream.send(packed)
        answer = await self._answered()
        assert answer.HasField("report_response"), answer
        await self._call.done_writing()
        assert await self._call.read() is grpc.aio.EOF

    async def _answered(self) -> Any:
        while True:
            for frame in self.stream.drain():
                await self._call.write(frame)
            frame = await self._call.read()
            if frame is grpc.aio.EOF:
                raise AssertionError(f"the server has ended the call: {await self._call.code()}")
            for message in self.stream.receive(frame):
                return message
