"""Messages in wrong chunks, each of which ends its own session: docs/reference/federated.md 3.2."""

from __future__ import annotations

import zlib

from grpc import StatusCode

from invoker._pb.federated import federated_api_pb2 as pb
from invoker_conformance.federated.device import CHUNKS
from invoker_conformance.federated.fleet import Fleet
from invoker_conformance.federated.pieces import ack, data, end, start
from invoker_conformance.scenario import scenario

_BAD = StatusCode.INVALID_ARGUMENT
_LIMIT = 64 << 20


async def _refused(fleet: Fleet, *pieces: pb.ClientStreamMessage, code: StatusCode = _BAD) -> None:
    """Check that the session of an accepted device that sends these pieces ends, without an effect on the round."""
    async with fleet.joined(**CHUNKS) as (device,):
        for piece in pieces:
            await device.piece(piece)
        await device.ends(code)


@scenario("FT-21", "F-028", function="last")
async def pieces_out_of_place(fleet: Fleet) -> None:
    """A missing or repeated chunk, a wrong count, a second Start, and Data or End as the first are refused."""
    begin = start(6, 6)
    for pieces in (
        (begin, data(1, b"abc")),
        (begin, data(0, b"abc"), data(0, b"def")),
        (begin, data(0, b"abcdef"), end(2)),
        (begin, end(0)),
        (begin, data(0, b"abc"), begin),
        (data(0, b"abc"),),
        (end(0),),
        (end(1),),
    ):
        await _refused(fleet, *pieces)


@scenario("FT-21", "F-030", function="last")
async def ack_of_nothing(fleet: Fleet) -> None:
    """An ack that does not belong to a chunk is INVALID_ARGUMENT."""
    await _refused(fleet, ack(0))


@scenario("FT-21", "F-030", function="large")
async def ack_out_of_turn(fleet: Fleet) -> None:
    """An ack of a chunk that is not the oldest one is INVALID_ARGUMENT."""
    async with fleet.device() as device:
        device.cuts = device.acks = False
        await device.try_in(supports_chunked_blob_transfer=True)
        await device.ask(supports_chunked_blob_transfer=True)
        await device.silent(0.3)  # by then chunks have come
        await device.piece(ack(1))
        await device.ends(_BAD)


@scenario("FT-22", "F-029", function="last")
async def message_inside_a_transfer(fleet: Fleet) -> None:
    """A report, an empty message and one of secure aggregation are INVALID_ARGUMENT before the End."""
    for message in (
        pb.ClientStreamMessage(report_request={"population_name": "last"}),
        pb.ClientStreamMessage(secure_aggregation_client_message={"abort": {}}),
        pb.ClientStreamMessage(),
    ):
        await _refused(fleet, start(6, 6), data(0, b"abc"), message)


@scenario("FT-23", "F-031", function="last")
async def chunks_of_chunks(fleet: Fleet) -> None:
    """A message in chunks that is itself a chunk is INVALID_ARGUMENT."""
    inner = start(3, 3).SerializeToString()
    await _refused(fleet, start(len(inner), len(inner)), data(0, inner), end(1))


@scenario("FT-24", "F-034", function="last")
async def bombs(fleet: Fleet) -> None:
    """A message that would inflate beyond its announced size, or beyond the limit, is refused before it does."""
    bomb = zlib.compress(bytes(32 << 20), 9)
    for told, code in ((1000, _BAD), (1 << 30, StatusCode.RESOURCE_EXHAUSTED)):
        await _refused(fleet, start(told, len(bomb), 2), data(0, bomb), end(1), code=code)
    await _refused(fleet, start(2000, len(bomb), 2), data(0, bomb), end(1))
    await _refused(fleet, start(100, _LIMIT + 1, 1), code=StatusCode.RESOURCE_EXHAUSTED)
    await _refused(fleet, start(_LIMIT + 1, _LIMIT + 1), code=StatusCode.RESOURCE_EXHAUSTED)


@scenario("FT-25", "F-035", "F-036", function="last")
async def streams_that_are_broken(fleet: Fleet) -> None:
    """Compressed messages are refused if they are cut off, too long or short, not zlib, or of an unknown level."""
    whole = zlib.compress(b"abcdef" * 50)
    for blob, level in ((whole[:-3], 1), (whole + b"more", 1), (b"no zlib stream", 2), (whole, 7), (whole, -1)):
        await _refused(fleet, start(300, len(blob), level), data(0, blob), end(1))
    for size, told in ((301, len(whole)), (299, len(whole)), (300, len(whole) + 1), (300, len(whole) - 1)):
        await _refused(fleet, start(size, told, 1), data(0, whole), end(1))


@scenario("FT-27", "F-035", "F-032", function="last")
async def sizes_that_cannot_be(fleet: Fleet) -> None:
    """Sizes below 0, and sizes other than that of the message, are refused."""
    for size, blob in ((-1, 10), (10, -1), (-(1 << 31), 0)):
        await _refused(fleet, start(size, blob))
    for size, blob in ((1 << 31) - 1, 0), (10, (1 << 31) - 1):
        await _refused(fleet, start(size, blob), code=StatusCode.RESOURCE_EXHAUSTED)
    for size, blob in ((6, 6), (6, 0), (4, 0)):
        await _refused(fleet, start(size, blob), data(0, b"abcde"), end(1))


@scenario("F-035", function="last")
async def chunk_that_is_too_large(fleet: Fleet) -> None:
    """Twice the agreed size and 64 KiB are accepted; one byte more is INVALID_ARGUMENT."""
    async with fleet.joined(**CHUNKS) as (device,):
        most = 2 * device.terms.size + (64 << 10)
        await device.piece(start(4 * most, 4 * most))
        await device.piece(data(0, bytes(most)))
        await device.received(0)
        await device.piece(data(1, bytes(most + 1)))
        await device.ends(_BAD)


@scenario("F-039", function="last")
async def large_message_without_chunks(fleet: Fleet) -> None:
    """A report above 4 MiB in one piece is RESOURCE_EXHAUSTED, with chunks agreed on or not."""
    for fields in ({}, CHUNKS):
        async with fleet.joined(**fields) as (device,):
            message = pb.ClientStreamMessage(report_request=device.reported(bytes((4 << 20) + 1)))
            device.cuts = False
            await device.say(message)
            await device.ends(StatusCode.RESOURCE_EXHAUSTED)
