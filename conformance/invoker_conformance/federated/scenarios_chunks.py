"""Messages in valid chunks: docs/reference/federated.md 3.2."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from grpc import StatusCode

from invoker._pb.federated import federated_api_pb2 as pb
from invoker_conformance.federated.device import CHUNKS, Device
from invoker_conformance.federated.fleet import Fleet
from invoker_conformance.federated.pieces import ack, data, end, start
from invoker_conformance.federated.rules import shown
from invoker_conformance.scenario import scenario

_MEBIBYTE = 1 << 20
BODY = bytes(range(256)) * 4096


@scenario("FT-15", "F-021", "F-025", "F-026", "F-033", "F-038", "F-039", function="last")
async def ten_mebibytes_of_each_level(fleet: Fleet) -> None:
    """A report of 10 MiB arrives at each compression level of the client, and is the next checkpoint."""
    for level in range(4):
        body = bytes([level]) + BODY * 10
        async with fleet.joined(supports_chunked_blob_transfer=True, supported_compression_levels=[level]) as (device,):
            if device.terms.level not in (0, level):
                raise device.failure(f"level {device.terms.level}", f"{level}, or 0 (F-021)")
            device.terms = type(device.terms)(device.terms.size, device.terms.pending, level)
            await device.report(body)
            await device.thanked(3 * fleet.timeout_s)
        if await fleet.model(**CHUNKS) != body:
            raise fleet.failure("another checkpoint", f"the report of {len(body)} bytes at level {level}")
    async with fleet.joined(**CHUNKS) as (device,):
        await device.report(b"small again")
        await device.thanked()


@scenario("F-018", "F-134", "F-021", "F-020", function=("solo", "asked"))
async def options_of_both_responses(fleet: Fleet) -> None:
    """Clients that take chunks get their sizes in each response that has options; others get zeros."""
    async with fleet.device("asked") as device:
        first = (await device.try_in(**CHUNKS)).protocol_options_response
        await device.ask({"first": 1.0}, **CHUNKS)
        await device.decided()
        if first.chunk_size_for_upload <= 0 or first.max_pending_chunks <= 0 or not device.terms.has_chunks:
            raise device.failure(f"{first}, then {device.terms}", "sizes above 0 in both (F-018, F-134)")
    async with fleet.joined(supports_chunked_blob_transfer=True, supported_compression_levels=[2]) as (device,):
        if device.terms.level not in (0, 2):
            raise device.failure(f"level {device.terms.level}", "2 or 0 (F-021)")
    async with fleet.joined() as (device,):
        if device.terms.size or device.terms.pending:
            raise device.failure(f"{device.terms}", "zeros, since this client takes no chunks (F-020)")


@scenario("FT-16", "F-022", "F-023", "F-024", function="large")
async def acks_that_are_withheld(fleet: Fleet) -> None:
    """A checkpoint of 5 MiB stops after the agreed number of Data, and continues with each ack."""
    async with _offered(fleet) as device:
        pending = device.terms.pending
        for index in range(pending):
            await _is_data(device, index)
        await device.silent(0.3)
        await device.piece(ack(0))
        await _is_data(device, pending)
        await device.silent(0.3)


@asynccontextmanager
async def _offered(fleet: Fleet) -> AsyncIterator[Device]:
    """Make a device that is accepted, and has read only the Start of the transfer."""
    until = fleet.clock() + fleet.timeout_s
    while True:
        async with fleet.device() as device:
            device.cuts = False
            await device.try_in(supports_chunked_blob_transfer=True)
            await device.ask(supports_chunked_blob_transfer=True)
            frame = await device.frame()
            if frame is not None and frame.chunked_transfer.HasField("start"):
                told = frame.chunked_transfer.start
                if not told.uncompressed_size == told.blob_size_bytes > _MEBIBYTE:
                    raise device.failure(f"{told}", "the size of 5 MiB, twice (F-023)")
                yield device
                return
            # This is a rejection if the previous round has not ended.
            if fleet.clock() > until:
                raise device.failure("nothing" if frame is None else shown(frame), "the Start of a transfer (F-022)")
        await asyncio.sleep(0.05)


async def _is_data(device: Device, index: int) -> None:
    frame = await device.frame()
    piece = None if frame is None else frame.chunked_transfer
    if piece is None or not piece.HasField("data") or piece.data.chunk_index != index:
        raise device.failure("nothing" if frame is None else shown(frame), f"chunk {index} (F-024)")


@scenario("F-025", "FT-17", "F-136", function="last")
async def acks_come_one_by_one(fleet: Fleet) -> None:
    """Each chunk of a report is acked before the next one is sent, even if it has one byte."""
    async with fleet.joined(**CHUNKS) as (device,):
        message = pb.ClientStreamMessage(report_request=device.reported(b"x" * 100)).SerializeToString()
        await device.piece(start(len(message), len(message)))
        for index in range(len(message)):
            await device.piece(data(index, message[index : index + 1]))
            await device.received(index)
        await device.piece(end(len(message)))
        await device.thanked()
    if (met := await fleet.model(**CHUNKS)) != b"x" * 100:
        raise fleet.failure(f"a checkpoint of {len(met)} bytes", "the report")


@scenario("FT-18", "F-032", "F-011", function="last")
async def message_of_no_bytes(fleet: Fleet) -> None:
    """One empty chunk, announced as one byte or as none, is a message without content."""
    for blob in (1, 0):
        async with fleet.joined(**CHUNKS) as (device,):
            for piece in (start(0, blob), data(0, b""), end(1)):
                await device.piece(piece)
            await device.report(b"still there")
            await device.thanked()


@scenario("FT-19", "F-020", "F-039", function="last")
async def client_without_chunks(fleet: Fleet) -> None:
    """A client without chunks gets a whole checkpoint and sends a whole report."""
    await fleet.takes(BODY)
    async with fleet.device() as device:
        if await fleet.model() != BODY:
            raise fleet.failure("another checkpoint", "the report")
        await device.piece(start(10, 10))  # there are no terms for chunks
        await device.ends(StatusCode.INVALID_ARGUMENT)


@scenario("FT-20", "F-019", "F-020", "F-018", function="solo")
async def options_that_change(fleet: Fleet) -> None:
    """The second checkin of a client may take back what its first one offered; without options nothing changes."""
    async with fleet.device() as device:
        await device.try_in(**CHUNKS)
        offered = device.terms
        await device.ask()
        await device.decided()
        if not offered.has_chunks or device.terms.has_chunks:
            raise device.failure(f"{offered}, then {device.terms}", "sizes, then zeros (F-020)")
    async with fleet.device() as device:
        await device.try_in(**CHUNKS)
        await device.say(pb.ClientStreamMessage(checkin_request={"population_name": "solo"}))
        await device.decided()
        if not device.terms.has_chunks:
            raise device.failure(f"{device.terms}", "the sizes of the first checkin (F-019)")


@scenario("F-033", "FT-26", "F-032", function="last")
async def other_wrappings_and_old_clients(fleet: Fleet) -> None:
    """A gzip wrapping is accepted, and so is the Start of an old client without the size on the wire."""
    async with fleet.joined(**CHUNKS) as (device,):
        message = pb.ClientStreamMessage(report_request=device.reported(b"zipped" * 99)).SerializeToString()
        blob = gzip.compress(message)
        for piece in (start(len(message), len(blob), 1), data(0, blob), end(1)):
            await device.piece(piece)
        await device.thanked()
    for level in (0, 1):
        async with fleet.joined(**CHUNKS) as (device,):
            device.terms = type(device.terms)(1000, 2, level)
            message_ = pb.ClientStreamMessage(report_request=device.reported(BODY[:5000]))
            await device.say(message_, is_told=False)
            await device.thanked()


@scenario("FT-28", "F-027", "F-025", function="large")
async def both_directions_at_once(fleet: Fleet) -> None:
    """While the target sends 5 MiB, it takes and acks the chunks that the device sends."""
    async with _offered(fleet) as device:
        message = pb.ClientStreamMessage(serialized_side_channel_event=[{"value": b"x" * 4000}]).SerializeToString()
        await device.piece(start(len(message), len(message)))
        await device.piece(data(0, message[:2000]))
        seen = []
        for _ in range(device.terms.pending + 1):
            frame = await device.frame()
            seen.append("nothing" if frame is None else frame.chunked_transfer.WhichOneof("kind"))
        if sorted(seen) != ["ack"] + ["data"] * device.terms.pending:
            raise device.failure(f"{seen}", "an ack among the chunks of the checkpoint (F-027)")
        await device.piece(data(1, message[2000:]))
        frame = await device.frame()
        if frame is None or frame.chunked_transfer.ack.chunk_index != 1:
            raise device.failure("nothing" if frame is None else shown(frame), "the ack of chunk 1 (F-025)")


@scenario("FT-29", "F-038", function="solo")
async def second_checkin_in_chunks(fleet: Fleet) -> None:
    """After the first response every message may come in chunks."""
    async with fleet.device() as device:
        await device.try_in(acked=True, **CHUNKS)
        device.terms = type(device.terms)(16, device.terms.pending, 1)
        size = device.terms
        await device.ask(acked=True, **CHUNKS)
        response = (await device.kind("checkin_response")).checkin_response
        if response.WhichOneof("checkin_result") is None:
            raise device.failure(f"{response} to {size}", "a decision")
