"""Devices that speak the protocol as a real client does, by grpc.aio and the messages alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import grpc.aio

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.codecs.chunks import ChunkStream, Terms
from invoker_conformance.wire import send

PATH = "/google.internal.federatedml.v2.FederatedTrainingApi/Session"

TASK = """
[[population.task]]
name = "{name}"
aggregate = "tests.protocols.federated.service.functions:{aggregate}"
plan = "devices:train"
initial = "tests.protocols.federated.service.functions:initial"
min_clients = {clients}
goal_clients = {clients}
max_clients = {most}
over_selection = 1.0
selection_timeout_s = {selection_s}
report_timeout_s = {report_s}
"""


def rounds(
    *populations: str, aggregate: str = "add", clients: int = 2, most: int = 0, selection_s: float = 5.0,
    report_s: float = 30.0, head: str = "", tasks: Sequence[str] = ("train",),
) -> str:  # fmt: skip
    """The text of a file of rounds."""
    text = ""
    for population in populations or ("iris",):
        text += f'[[population]]\nname = "{population}"\n{head}\n'
        for name in tasks:
            text += TASK.format(
                name=name, aggregate=aggregate, clients=clients, most=most or clients, selection_s=selection_s,
                report_s=report_s,
            )  # fmt: skip
    return text


class Device:
    """One conversation.

    Args:
        channel: To the server.
        population: Of the device.
        metadata: Of the call.
    """

    def __init__(self, channel: grpc.aio.Channel, population: str = "iris", **metadata: str) -> None:
        self.population = population
        self.accepted = pb.AcceptanceInfo()
        self._method: Any = channel.stream_stream(
            PATH,
            request_serializer=pb.ClientStreamMessage.SerializeToString,
            response_deserializer=pb.ServerStreamMessage.FromString,
        )
        self._metadata = tuple((name.replace("_", "-"), value) for name, value in metadata.items())
        self.begin()

    def begin(self) -> None:
        """Call the server, anew if it was called before."""
        self.call: Any = self._method(metadata=self._metadata)

    async def read(self) -> pb.ServerStreamMessage:
        """The next message; raises the status of a call that ends with an error."""
        try:
            message = await self.call.read()
        except grpc.aio.AioRpcError as error:
            raise EOFError(f"{error.code().name}: {error.details()}") from None
        assert message is not grpc.aio.EOF, "the conversation ended with OK"
        found: pb.ServerStreamMessage = message
        return found

    async def write(self, message: pb.ClientStreamMessage) -> None:
        """Send a message; of a call that has ended meanwhile, reading tells how."""
        await send(self.call, message.SerializeToString())

    async def ask(self, *, ack: bool = True, **options: Any) -> None:
        """Check in; the answer may take a while."""
        given = {name: options.pop(name) for name in ("attestation_measurement", "retry_token") if name in options}
        wanted = pb.ProtocolOptionsRequest(should_ack_checkin=ack, **options)
        request = pb.CheckinRequest(population_name=self.population, protocol_options_request=wanted, **given)
        await self.write(pb.ClientStreamMessage(checkin_request=request))
        if ack:
            assert (await self.read()).WhichOneof("kind") == "checkin_request_ack"

    async def decided(self) -> bool:
        """Whether it was accepted."""
        response = (await self.read()).checkin_response
        self.accepted = response.acceptance_info
        return response.WhichOneof("checkin_result") == "acceptance_info"

    async def check_in(self, **options: Any) -> bool:
        """Check in, and wait for the decision."""
        await self.ask(**options)
        return await self.decided()

    async def tell(self, update: bytes, status: int = 0) -> None:
        """Report."""
        await self.write(self.reporting(update, status))

    def reporting(self, update: bytes, status: int = 0) -> pb.ClientStreamMessage:
        """The message that reports."""
        report = pb.Report(update_checkpoint=update, status_code=status)
        request = pb.ReportRequest(
            population_name=self.population, execution_phase_id=self.accepted.execution_phase_id, report=report
        )
        return pb.ClientStreamMessage(report_request=request)

    async def report_chunked(self, update: bytes, terms: Terms) -> None:
        """Report in chunks, and wait for the answer."""
        stream = ChunkStream(parse=pb.ServerStreamMessage.FromString, writes=pb.ClientStreamMessage)
        stream.agree(terms)
        stream.send(self.reporting(update).SerializeToString())
        while True:
            for frame in stream.drain():
                await send(self.call, frame)
            for message in stream.receive((await self.read()).SerializeToString()):
                assert message.WhichOneof("kind") == "report_response"
                return

    async def stall(self, size: int, *, level: int = 0, sent: int = 32 * 1024) -> None:
        """Announce a large report, and send a little of it."""
        start = pb.ChunkedTransferMessage.Start(
            uncompressed_size=size,
            blob_size_bytes=size,
            compression_level=pb.CompressionLevel.Name(level),
        )
        data = pb.ChunkedTransferMessage.Data(chunk_bytes=bytes(sent))
        for piece in (pb.ChunkedTransferMessage(start=start), pb.ChunkedTransferMessage(data=data)):
            await self.write(pb.ClientStreamMessage(chunked_transfer=piece))
        assert (await self.read()).chunked_transfer.HasField("ack")

    async def go_on(self, index: int, *, sent: int = 32 * 1024) -> None:
        """Send one more chunk of a report that has stalled."""
        data = pb.ChunkedTransferMessage.Data(chunk_index=index, chunk_bytes=bytes(sent))
        await self.write(pb.ClientStreamMessage(chunked_transfer=pb.ChunkedTransferMessage(data=data)))
        assert (await self.read()).chunked_transfer.HasField("ack")

    async def thanked(self) -> None:
        """Wait for the answer to the report, and end."""
        assert (await self.read()).WhichOneof("kind") == "report_response"
        await self.end()

    async def end(self) -> None:
        """Half-close, and wait for OK."""
        await self.call.done_writing()
        assert await self.call.read() is grpc.aio.EOF
        assert await self.call.code() is grpc.StatusCode.OK

    async def report(self, update: bytes) -> None:
        """Report, and wait for the answer."""
        await self.tell(update)
        await self.thanked()

    async def run(self, update: bytes, **options: Any) -> bytes:
        """All of it; gives the checkpoint that it got.

        It comes again if a round is being committed, or if its population has no leader for a moment.
        """
        for _ in range(100):
            try:
                if await self.check_in(**options):
                    break
                await self.end()
            except EOFError as error:
                if not str(error).startswith("UNAVAILABLE"):
                    raise
            await asyncio.sleep(0.02)
            self.begin()
        else:
            raise AssertionError("it was rejected")
        await self.report(update)
        return self.accepted.init_checkpoint
