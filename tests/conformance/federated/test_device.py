"""A raw session, against servers that do little."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from invoker._pb.federated import federated_api_pb2 as pb
from invoker_conformance import Failure
from invoker_conformance.federated.device import CHUNKS
from invoker_conformance.federated.fleet import Fleet
from invoker_conformance.federated.pieces import Terms, ack, cut
from invoker_conformance.target import Target, parse_addresses
from tests.conformance.federated.test_every_scenario import Agreeing, Mute, Refusing, serving


class Cutting(Refusing):
    """Accepts in chunks of 10 bytes, acks every chunk, and thanks at the End."""

    async def talk(self, asked: AsyncIterator[pb.ClientStreamMessage], context: Any) -> AsyncIterator[Any]:
        async for one in asked:
            piece = one.chunked_transfer
            if one.HasField("checkin_request"):
                message = pb.ServerStreamMessage()
                info = message.checkin_response.acceptance_info
                info.execution_phase_id, info.task_name, info.plan = "one", "sum", bytes(100)
                told = message.checkin_response.protocol_options_response
                told.chunk_size_for_upload, told.max_pending_chunks, told.compression_level = 10, 2, 1  # type: ignore[assignment]
                for made in cut(message.SerializeToString(), Terms(10, 2, 1)):
                    yield pb.ServerStreamMessage(chunked_transfer=made.chunked_transfer)
            elif piece.HasField("data"):
                yield pb.ServerStreamMessage(chunked_transfer=ack(piece.data.chunk_index).chunked_transfer)
            elif piece.HasField("end"):
                yield pb.ServerStreamMessage(report_response={})


@pytest.fixture
async def target() -> AsyncIterator[Any]:
    made: list[Target] = []

    def to(address: str) -> Fleet:
        made.append(Target(parse_addresses([address]), parse_addresses([]), timeout_s=0.3, message_bytes=1000))
        return Fleet(made[-1], "solo")

    yield to
    for one in made:
        await one.close()


async def test_messages_go_in_chunks_once_that_is_agreed_on(target: Any) -> None:
    """Both ways; what comes in chunks is acked."""
    async with serving(Cutting()) as address, target(address).device() as device:
        await device.ask(**CHUNKS)
        assert (await device.accepted()).plan == bytes(100)
        assert device.terms == Terms(10, 2, 1)
        await device.report(bytes(range(200)))
        await device.thanked()


async def test_refusals_and_silence_are_told(target: Any) -> None:
    """A status instead of an answer, no answer, and an answer of another kind."""
    async with serving(Refusing()) as address, target(address).device() as device:
        await device.ask()
        with pytest.raises(Failure, match="INTERNAL 'refused'"):
            await device.accepted()
    async with serving(Mute()) as address, target(address).device() as device:
        await device.ask()
        with pytest.raises(Failure, match="no message within"):
            await device.decided()
    async with serving(Agreeing()) as address, target(address).device() as device:
        await device.ask()
        with pytest.raises(Failure, match="met an acceptance"):
            await device.rejected()
        with pytest.raises(Failure, match="expected NOT_FOUND"):
            await device.ends(grpc.StatusCode.NOT_FOUND)
        await device.report()
        with pytest.raises(Failure, match="expected unmasking_request"):
            await device.secret("unmasking_request")
