"""Messages in chunks through real transports: up and down, at every level, and what does not fit without them."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

import grpc.aio
import pytest

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.codecs.chunks import ChunkStream, Limits, Terms
from invoker.protocols.federated.negotiation import DeviceSettings
from invoker.server.server import Server
from tests.conftest import SLOW
from tests.protocols.federated.service.conftest import Serve, rounds_of
from tests.protocols.federated.service.devices import PATH, Device, rounds

LARGE = random.Random(9).randbytes(6 * 2**20) + bytes(4 * 2**20)


class ChunkDevice:
    """A conversation in chunks, as a real client has it: it reads while it waits for acks."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        method: Any = channel.stream_stream(PATH)
        self.call: Any = method()
        self.stream = ChunkStream(
            parse=pb.ServerStreamMessage.FromString, writes=pb.ClientStreamMessage, limits=Limits(chunk_bytes=2**20)
        )
        self.levels: set[int] = set()

    async def say(self, message: pb.ClientStreamMessage) -> None:
        """Send a message, as far as there is credit."""
        self.stream.send(message.SerializeToString())
        await self._write()

    async def hear(self) -> pb.ServerStreamMessage:
        """The next message; acks go out and chunks follow on the way."""
        while True:
            frame = await self.call.read()
            assert frame is not grpc.aio.EOF
            piece = pb.ServerStreamMessage.FromString(frame).chunked_transfer
            if piece.HasField("start"):
                self.levels.add(piece.start.compression_level)
            found = self.stream.receive(frame)
            await self._write()
            if found:
                return found[0]

    async def run(self, update: bytes) -> bytes:
        """A whole conversation; gives the checkpoint that it got."""
        request = pb.CheckinRequest(population_name="iris")
        request.protocol_options_request.supports_chunked_blob_transfer = True
        request.protocol_options_request.supported_compression_levels.extend(range(4))
        await self.say(pb.ClientStreamMessage(checkin_request=request))
        response = (await self.hear()).checkin_response
        told, info = response.protocol_options_response, response.acceptance_info
        self.stream.agree(Terms(told.chunk_size_for_upload, told.max_pending_chunks, told.compression_level))
        report = pb.Report(update_checkpoint=update)
        asked = pb.ReportRequest(population_name="iris", execution_phase_id=info.execution_phase_id, report=report)
        await self.say(pb.ClientStreamMessage(report_request=asked))
        assert (await self.hear()).WhichOneof("kind") == "report_response"
        await self.call.done_writing()
        assert await self.call.read() is grpc.aio.EOF
        assert await self.call.code() is grpc.StatusCode.OK
        return info.init_checkpoint

    async def _write(self) -> None:
        for frame in self.stream.drain():
            await self.call.write(frame)


async def committed(server: Server) -> None:
    """Wait until a round has been committed; whoever comes before that is rejected."""
    while not any(one.outcome == "committed" for one in rounds_of(server).coordinator.tally.records):  # noqa: ASYNC110 - nobody is told
        await asyncio.sleep(0.01)


@pytest.mark.timeout(60)
# Chunks are packed above the transport, by the same session at both: one level shows that aio carries them.
@pytest.mark.parametrize(("transport", "level"), [("aio", 3), *(("fast", level) for level in range(4))])
async def test_F039_10_mib_go_up_and_down_in_chunks(serve: Serve, transport: str, level: int) -> None:
    """By 8192 bytes, two pending, at every level; what one device reports is what the next one starts from."""
    async with (
        serve(rounds(clients=1, aggregate="last"), grpc_driver=transport) as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        rounds_of(server)._settings = DeviceSettings(chunk_bytes=8192, level=level)
        began = time.monotonic()
        assert await ChunkDevice(channel).run(LARGE) == b"100"
        await committed(server)
        following = ChunkDevice(channel)
        assert await following.run(b"1") == LARGE
        assert following.levels == {level}
        assert time.monotonic() - began < 15 * SLOW


async def test_F039_without_chunks_a_message_has_4_mib_at_most(serve: Serve) -> None:
    """A larger report is refused at the transport, and the round hears of one device less."""
    async with (
        serve(rounds(clients=1, aggregate="last")) as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        device = Device(channel)
        assert await device.check_in()
        await device.tell(LARGE)
        with pytest.raises(EOFError, match="RESOURCE_EXHAUSTED"):
            await device.read()
        assert await ChunkDevice(channel).run(LARGE) == b"100"
        await committed(server)
        device = Device(channel)
        await device.ask()
        with pytest.raises(EOFError, match=r"RESOURCE_EXHAUSTED.*clients without chunks"):
            await device.read()


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("name", "level"), [("none", 0), ("default", 1), ("best", 2), ("fast", 3)])
async def test_messages_are_compressed_as_the_setting_says(serve: Serve, name: str, level: int) -> None:
    """INVOKER_FEDERATED_COMPRESSION: `none` unless it is given, since weights become hardly smaller."""
    given = {} if name == "none" else {"federated_compression": name}
    async with (
        serve(rounds(clients=1, aggregate="last"), **given) as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        await ChunkDevice(channel).run(LARGE[: 2**20])
        await committed(server)
        following = ChunkDevice(channel)
        await following.run(b"1")
        assert following.levels == {level}
