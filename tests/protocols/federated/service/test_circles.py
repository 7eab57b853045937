"""Reports that are refused leave with their refusal, and not when Python looks for circles."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
import zlib
from collections.abc import Iterator

import grpc.aio
import pytest

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.codecs.chunks import ChunkStream, Packed, Terms
from invoker_conformance.wire import send
from tests.protocols.federated.service.conftest import Serve, coordinator_of
from tests.protocols.federated.service.devices import Device, rounds

_BYTES = 1 << 20
_DEVICES = 6


@pytest.fixture
def _no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    tracemalloc.start()
    yield
    tracemalloc.stop()
    gc.enable()


def _checkpoint(device: Device, update: bytes) -> Packed:
    return Packed.of(device.reporting(update).SerializeToString(), 0)


def _of(kind: str, device: Device) -> Packed:
    """The report of a device, as it goes over the wire."""
    if kind == "aggregands":
        return _checkpoint(device, b"\xff" * _BYTES)  # wrong in its first bytes, since fields are slow to trace
    if kind == "npz":
        return _checkpoint(device, b"PK" + bytes(_BYTES))
    if kind == "whole-message":
        return Packed(b"\xff" * _BYTES, 0, _BYTES)
    if kind == "damaged":
        return Packed(b"\x78\x9c" + b"\xff" * _BYTES, 1, 2 * _BYTES)
    if kind == "inflated":
        return Packed(zlib.compress(b"\xff" * _BYTES), 1, _BYTES)
    device.accepted.execution_phase_id = "another"
    return _checkpoint(device, bytes(_BYTES))


async def _report(device: Device, report: Packed) -> None:
    stream = ChunkStream(parse=pb.ServerStreamMessage.FromString, writes=pb.ClientStreamMessage)
    stream.agree(Terms(65536, 2, 0))
    stream.send(report)
    while True:
        for frame in stream.drain():
            await send(device.call, frame)
        stream.receive((await device.read()).SerializeToString())


async def _refused(device: Device, kind: str) -> None:
    with pytest.raises(EOFError, match="INVALID_ARGUMENT"):
        await _report(device, _of(kind, device))


@pytest.mark.timeout(30)
@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("transport", ["fast", "aio"])
@pytest.mark.parametrize("kind", ["aggregands", "npz", "whole-message", "damaged", "inflated", "another round's"])
async def test_F081_a_report_that_is_refused_is_freed_at_once(serve: Serve, transport: str, kind: str) -> None:
    """However it is refused: by its check in a thread, by its parsing, here or in a thread, or by its round."""
    text = rounds(aggregate="weigh", clients=_DEVICES + 1, report_s=300.0)
    async with (
        serve(text, grpc_driver=transport, federated_compression="fast") as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        devices = [Device(channel) for _ in range(_DEVICES + 1)]
        await asyncio.gather(*(one.check_in(supports_chunked_blob_transfer=True) for one in devices))
        first, *others, _ = devices
        await _refused(first, kind)  # what is imported and cached by it stays
        before = tracemalloc.get_traced_memory()[0]
        for one in others:
            await _refused(one, kind)
        assert tracemalloc.get_traced_memory()[0] - before < _BYTES
        assert coordinator_of(server).held_bytes == 0


async def test_F081_a_report_counts_in_the_budget_of_the_process_while_it_comes(serve: Serve) -> None:
    """Of a device that stalls in its middle, until it is gone."""
    async with (
        serve(rounds(aggregate="add", clients=2)) as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        devices = [Device(channel) for _ in range(2)]
        await asyncio.gather(*(one.check_in(supports_chunked_blob_transfer=True) for one in devices))
        memory = server.engine.memory
        before = memory.held
        for number in range(1, 5):
            await devices[0].stall(_BYTES) if number == 1 else await devices[0].go_on(number - 1)
        assert memory.held - before >= 4 * 32 * 1024
        devices[0].call.cancel()
        while memory.held > before:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.01)
