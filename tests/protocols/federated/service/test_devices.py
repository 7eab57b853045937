"""The conversation of one device, behind a transport: its place, its limits, its end."""

from __future__ import annotations

import asyncio

import grpc.aio
import pytest

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.core.steps import Close
from invoker.message import EMPTY
from tests.conftest import SLOW
from tests.protocols.federated.service.conftest import Serve, coordinator_of, rounds_of
from tests.protocols.federated.service.devices import Device, rounds


async def test_F139_sessions_are_bounded_in_all_and_for_each_address(serve: Serve) -> None:
    """The next one is told RESOURCE_EXHAUSTED; when one leaves, another may come."""
    for settings in ({"federated_sessions": 2}, {"federated_peer_sessions": 2}):
        async with (
            serve(rounds(clients=3), **settings) as server,
            grpc.aio.insecure_channel(server.grpc_address) as channel,
        ):
            one, two = Device(channel), Device(channel)
            await one.ask()
            await two.ask()
            with pytest.raises(EOFError, match="RESOURCE_EXHAUSTED"):
                await Device(channel).ask()
            one.call.cancel()
            async with asyncio.timeout(SLOW):
                while len(coordinator_of(server)._members) > 1:  # noqa: ASYNC110 - nobody is told
                    await asyncio.sleep(0.01)
            await Device(channel).ask()


async def test_F005_an_unknown_population_is_not_found(serve: Serve) -> None:
    """Before any ack."""
    async with serve(rounds()) as server, grpc.aio.insecure_channel(server.grpc_address) as channel:
        with pytest.raises(EOFError, match="NOT_FOUND"):
            await Device(channel, "rose").ask()


async def test_F007_a_wrong_key_is_refused(serve: Serve) -> None:
    """The right one is let in."""
    async with (
        serve(rounds(head='api_key = "secret"', clients=1)) as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        with pytest.raises(EOFError, match="UNAUTHENTICATED"):
            await Device(channel, x_goog_api_key="wrong").ask()
        assert await Device(channel, x_goog_api_key="secret").run(b"1") == b"100"


async def test_a_first_message_that_is_no_checkin_is_refused(serve: Serve) -> None:
    """F-001; bytes that are no message are, too."""
    async with serve(rounds()) as server, grpc.aio.insecure_channel(server.grpc_address) as channel:
        device = Device(channel)
        await device.tell(b"1")
        with pytest.raises(EOFError, match="INVALID_ARGUMENT"):
            await device.read()
        assert not coordinator_of(server)._members


async def test_F015_a_client_that_has_its_answer_ends_with_ok(serve: Serve) -> None:
    """It half-closes behind it."""
    async with serve(rounds(clients=1)) as server, grpc.aio.insecure_channel(server.grpc_address) as channel:
        device = Device(channel)
        assert await device.check_in()
        await device.report(b"1")
        assert not coordinator_of(server)._members


class NarrowWire:
    """A wire to a device that does not read: it has room for one frame."""

    is_gone = False

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.asked = 0
        self.has_read = asyncio.Event()

    def accepted(self) -> None:
        pass

    def ask(self) -> None:
        self.asked += 1

    def write(self, frame: bytes) -> bool:
        self.frames.append(frame)
        return self.has_read.is_set()

    async def room(self) -> None:
        await self.has_read.wait()


async def test_F025_who_reads_no_acks_is_read_no_further(serve: Serve) -> None:
    """Chunks without bytes cost a device next to nothing, and each has an ack, which must not pile up here."""
    async with serve(rounds(clients=2)) as server:
        wire = NarrowWire()
        closed: list[Close] = []
        found = rounds_of(server)
        reactor = found._begin(EMPTY, wire, found._driver, closed.append)
        options = pb.ProtocolOptionsRequest(supports_chunked_blob_transfer=True, should_ack_checkin=True)
        checkin = pb.CheckinRequest(population_name="iris", protocol_options_request=options)
        message = pb.ClientStreamMessage(checkin_request=checkin).SerializeToString()
        assert not reactor.arrived(message)
        while not wire.frames:  # noqa: ASYNC110 - nobody is told when the population has a leader
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert not wire.asked
        wire.has_read.set()
        while not wire.asked:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0)
        assert wire.asked == 1
        assert reactor.arrived(pb.ClientStreamMessage().SerializeToString())
        wire.has_read.clear()
        begin, chunk = pb.ClientStreamMessage(), pb.ClientStreamMessage()
        begin.chunked_transfer.start.uncompressed_size = 9
        chunk.chunked_transfer.data.chunk_bytes = b""
        assert reactor.arrived(begin.SerializeToString())
        assert not reactor.arrived(chunk.SerializeToString())
        reactor.gone()
        wire.has_read.set()
        await asyncio.sleep(0.01)
        assert wire.asked == 1
        assert closed
