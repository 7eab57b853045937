"""`Device`: one session at the target; sends messages, whole or in chunks, or any bytes, and checks the answers."""

from __future__ import annotations

from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from invoker._pb.federated import federated_api_pb2 as pb
from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker_conformance.federated.pieces import Reader, Terms, ack, cut
from invoker_conformance.federated.rules import check_ending, check_message, shown
from invoker_conformance.rawcall import Ending, RawCall
from invoker_conformance.texts import preview

CHUNKS: dict[str, Any] = {"supports_chunked_blob_transfer": True, "supported_compression_levels": [0, 1, 2, 3]}
"""The options of a real client, which accepts chunks with every compression."""

_SECURE = pb.SideChannelProtocolOptionsRequest(
    secure_aggregation=pb.SideChannelProtocolOptionsRequest.SecureAggregation(
        client_variant=[secagg_pb.SECAGG_CLIENT_VARIANT_NATIVE_V1]
    )
)
NATIVE: dict[str, Any] = {"side_channels": _SECURE}
"""The options of a client that takes part in secure aggregation."""


class Device(RawCall[pb.ServerStreamMessage]):
    """One session of one device.

    Args:
        population: The name of the population.
        given: The arguments of `RawCall`.

    Attributes:
        terms: The terms for chunks; after the target has sent terms, messages are sent in chunks.
        info: The acceptance; None: there was none.
        cuts: Whether messages are sent in chunks, if the terms allow it.
        acks: Whether chunks of the target are acked; a scenario may set it to False.
    """

    path = "/google.internal.federatedml.v2.FederatedTrainingApi/Session"
    words = ("session", "message", "message", "half-close")
    most_shown = 8

    def __init__(self, channel: grpc.aio.Channel, population: str, **given: Any) -> None:
        super().__init__(channel, **given)
        self.population = population
        self.terms = Terms()
        self.info = pb.AcceptanceInfo()
        self.cuts = self.acks = True
        self._reader = Reader()
        self._arrived: list[pb.ServerStreamMessage] = []
        self._unacked: list[int] = []

    # --- sending

    async def say(self, message: pb.ClientStreamMessage, *, is_told: bool = True) -> None:
        """Send a message, in chunks if the terms allow it, and wait for acks if necessary."""
        if not self.cuts or not self.terms.has_chunks:
            await self.piece(message)
            return
        for piece in cut(message.SerializeToString(), self.terms, is_told=is_told):
            while len(self._unacked) >= self.terms.pending:
                if not await self._pump(None):
                    raise self.failure("no ack of a chunk", "an ack of each chunk as soon as it comes (F-025)")
            await self.piece(piece)

    async def piece(self, message: pb.ClientStreamMessage) -> None:
        """Send a message unchanged; acks of its chunks are expected at the next read."""
        if message.chunked_transfer.WhichOneof("kind") == "data":
            self._unacked.append(message.chunked_transfer.data.chunk_index)
        await self.raw(message.SerializeToString(), shown(message) if self._is_noted else "")

    async def try_in(self, *, acked: bool = False, **fields: Any) -> pb.EligibilityEvalCheckinResponse:
        """Ask for the eligibility task, and return the answer."""
        request = pb.EligibilityEvalCheckinRequest(**self._asking(acked, fields))
        await self.say(pb.ClientStreamMessage(eligibility_eval_checkin_request=request))
        if acked:
            await self.acknowledged()
        response = (await self.kind("eligibility_eval_checkin_response")).eligibility_eval_checkin_response
        self._agree(response)
        return response

    async def ask(
        self, weights: dict[str, float] | None = None, *, acked: bool = False, version: int = 1, **fields: Any
    ) -> pb.CheckinRequestAck | None:
        """Check in, without reading the decision; ``fields`` are those of the request, or of its options."""
        request = pb.CheckinRequest(**self._asking(acked, fields))
        if weights is not None:
            request.task_eligibility_info.version = version
            for name, weight in weights.items():
                request.task_eligibility_info.task_weights.add(task_name=name, weight=weight)
        await self.say(pb.ClientStreamMessage(checkin_request=request))
        return await self.acknowledged() if acked else None

    def _asking(self, acked: bool, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: FBT001 - the callers pass a positional argument
        known = pb.CheckinRequest.DESCRIPTOR.fields_by_name
        given = {name: fields.pop(name) for name in tuple(fields) if name in known}
        options = pb.ProtocolOptionsRequest(should_ack_checkin=acked, **fields)
        return {"population_name": self.population, "protocol_options_request": options, **given}

    async def report(self, update: bytes = b"", status: int = 0, **fields: Any) -> None:
        """Send a report; ``fields`` replace the session's own values."""
        await self.say(pb.ClientStreamMessage(report_request=self.reported(update, status, **fields)))

    def reported(self, update: bytes = b"", status: int = 0, **fields: Any) -> pb.ReportRequest:
        """Make a report of this session."""
        report = pb.Report(update_checkpoint=update, serialized_train_event=fields.pop("events", ()))
        report.status_code = status
        known = {"population_name": self.population, "execution_phase_id": self.info.execution_phase_id}
        return pb.ReportRequest(report=report, **{**known, **fields})

    async def secure(self, *, report: int | None = None, **content: Any) -> None:
        """Send a message of secure aggregation, together with a report of this status unless it is None."""
        wrapped = secagg_pb.ClientToServerWrapperMessage(**content)
        message = pb.ClientStreamMessage(secure_aggregation_client_message=wrapped)
        if report is not None:
            message.report_request.CopyFrom(self.reported(status=report))
        await self.say(message)

    # --- receiving

    async def message(self, timeout_s: float | None = None) -> pb.ServerStreamMessage:
        """Return the next complete message.

        Raises:
            Failure: The session ended, or nothing came in time.
        """
        return await self._further(timeout_s)

    async def kind(self, wanted: str, timeout_s: float | None = None) -> pb.ServerStreamMessage:
        """Return the next message, which must be of this kind."""
        message = await self.message(timeout_s)
        if message.WhichOneof("kind") != wanted:
            raise self.failure(shown(message), wanted)
        return message

    async def secret(self, wanted: str, timeout_s: float | None = None) -> Any:
        """Return the next message, which must be of secure aggregation and of this kind."""
        message = await self.message(timeout_s)
        if message.secure_aggregation_server_message.WhichOneof("message_content") != wanted:
            raise self.failure(shown(message), wanted)
        return getattr(message.secure_aggregation_server_message, wanted)

    async def acknowledged(self) -> pb.CheckinRequestAck:
        """Check that the next message is an ack with both windows (F-002), within a second (F-004)."""
        told = (await self.kind("checkin_request_ack", 1.0)).checkin_request_ack
        if not (told.HasField("retry_window_if_accepted") and told.HasField("retry_window_if_rejected")):
            raise self.failure(shown(told), "an ack with both windows (F-002)")
        return told

    async def decided(self, timeout_s: float | None = None) -> bool:
        """Wait for the decision; returns whether the device is accepted into a round."""
        response = (await self.kind("checkin_response", timeout_s)).checkin_response
        self._agree(response)
        self.info = response.acceptance_info
        return response.HasField("acceptance_info")

    async def accepted(self, timeout_s: float | None = None) -> pb.AcceptanceInfo:
        """Wait for the acceptance into a round; a rejection is a failure."""
        if not await self.decided(timeout_s):
            raise self.failure("a rejection", "an acceptance")
        return self.info

    async def rejected(self, timeout_s: float | None = None) -> None:
        """Wait for a rejection, after which the call may end with OK (F-041)."""
        if await self.decided(timeout_s):
            raise self.failure("an acceptance", "RejectionInfo")
        await self.leaves()

    async def thanked(self, timeout_s: float | None = None) -> pb.ReportResponse:
        """Check that the report is answered, and that the session ends with OK (F-015)."""
        message = await self.kind("report_response", timeout_s)
        await self.leaves()
        return message.report_response

    async def answer(self) -> grpc.StatusCode | None:
        """Wait for the answer to the report; returns None, or the status if the session ended without an answer."""
        try:
            message = await self._next(2 * self._timeout_s)
        except Ending as ending:
            return ending.code
        if message is None or message.WhichOneof("kind") != "report_response":
            raise self.failure(
                "nothing" if message is None else shown(message), "the answer to the report, or the end of the session"
            )
        await self.leaves()
        return None

    async def finished(self) -> grpc.StatusCode:
        """Read to the end of the session, and return its status; half-closes after the answer to the report."""
        try:
            while (message := await self._next(2 * self._timeout_s)) is not None:
                if message.WhichOneof("kind") == "report_response":
                    await self.half_close()
        except Ending as ending:
            return ending.code
        raise self.failure("a session that does not end", "its end")

    async def leaves(self) -> None:
        """Half-close, and check that the call ends with OK, without a message before."""
        await self.half_close()
        await self.ends(grpc.StatusCode.OK, is_silent=True)

    async def ends(
        self, code: grpc.StatusCode, *, timeout_s: float | None = None, is_silent: bool = False
    ) -> list[pb.ServerStreamMessage]:
        """Check that the session ends with this code; returns the messages before the end."""
        expected = f"{code.name} without a message before it" if is_silent else code.name
        got, ending = await self.rest(timeout_s, expected)
        if ending.code is not code or (is_silent and got):
            raise self.failure(f"{self._all(got)}, then {ending}", expected)
        return got

    async def frame(self, timeout_s: float | None = None) -> pb.ServerStreamMessage | None:
        """Return the next message, which may be a chunk; None: nothing came in time."""
        frame = await self._read(timeout_s)
        return None if frame is None else self._parsed(frame)

    async def received(self, index: int) -> None:
        """Check that the next message is the ack of this chunk."""
        frame = await self.frame()
        if frame is None or frame.chunked_transfer.WhichOneof("kind") != "ack":
            raise self.failure("nothing" if frame is None else shown(frame), f"the ack of chunk {index} (F-025)")
        self._acked(frame.chunked_transfer.ack.chunk_index)

    async def _next(self, timeout_s: float | None) -> pb.ServerStreamMessage | None:
        while not self._arrived:
            if not await self._pump(timeout_s):
                return None
        return self._arrived.pop(0)

    async def _pump(self, timeout_s: float | None) -> bool:
        """Read and handle one frame; returns False if none came in time."""
        frame = await self.frame(timeout_s)
        if frame is None:
            return False
        piece, whole = frame.chunked_transfer, None
        kind = piece.WhichOneof("kind") if frame.HasField("chunked_transfer") else None
        if kind is None:
            if self._reader.is_inside:
                raise self.failure(shown(frame), "chunks, until the message that has begun has ended (F-029)")
            whole = frame
        elif kind == "ack":
            self._acked(piece.ack.chunk_index)
        else:
            self._reader.sent = self.sent
            if kind == "data" and self.acks:
                await self.raw(ack(piece.data.chunk_index).SerializeToString(), "")
            if (data := self._reader.take(piece)) is not None:
                whole = self._parsed(data)
        if whole is not None:
            self._judge(check_message(whole))
            self._arrived.append(whole)
        return True

    def _acked(self, index: int) -> None:
        if not self._unacked or self._unacked.pop(0) != index:
            raise self.failure(f"the ack of chunk {index}", "acks of our chunks, in their order (F-025)")

    def _parsed(self, data: bytes) -> pb.ServerStreamMessage:
        try:
            return pb.ServerStreamMessage.FromString(data)
        except DecodeError:
            raise self.failure(f"the bytes {preview(data)}", "a ServerStreamMessage") from None

    def _agree(self, response: pb.CheckinResponse | pb.EligibilityEvalCheckinResponse) -> None:
        if response.HasField("protocol_options_response"):  # F-019: the new terms replace the earlier ones
            told = response.protocol_options_response
            self.terms = Terms(told.chunk_size_for_upload, told.max_pending_chunks, told.compression_level)
        self._reader.terms = self.terms

    def _shown(self, one: pb.ServerStreamMessage) -> str:
        return shown(one)

    def _broken_by(self, code: grpc.StatusCode, detail: str) -> tuple[str, str] | None:
        return check_ending(code, detail)
