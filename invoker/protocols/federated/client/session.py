"""`DeviceSession`: one conversation of a device; frames in, frames out, without I/O.

Theory. The states and their transitions::

    START --start()--> ASKED --ack, eligibility response--> DECIDING (there is an eligibility plan) or CHECKED_IN
    DECIDING --eligible()--> CHECKED_IN, or ENDED (for no task)
    CHECKED_IN --checkin response--> RUNNING (accepted) or ENDED (rejected)
    RUNNING --report()--> REPORTED, or SECURE --the four rounds--> REPORTED
    REPORTED --report response--> ENDED

In every state the stream may break (`ended`), the device may be stopped (`abort`), and the server may send a message
that is not allowed, which ends the conversation with INTERNAL, as in real clients. In ENDED the call half-closes after
the last frame. `attempt()` says how the conversation ended, and when the device checks in again (F-058).

Source: docs/reference/federated.md, 2.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Final

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.codecs.chunks import ChunkStream, Limits, Terms
from invoker.errors import InvocationError, Status, StatusError
from invoker.protocols.federated.client.messages import (
    Assigned,
    Attempt,
    Compute,
    EligibilityAsked,
    Event,
    Hello,
    NewSecAgg,
    Report,
    SecAgg,
    Turn,
)
from invoker.protocols.federated.client.reading import parsed, source_of, terms_of
from invoker.protocols.federated.client.windows import Windows
from invoker.protocols.federated.wire.durations import duration_of
from invoker.protocols.federated.wire.names import COMPRESSION_LEVELS, HTTP_GZIP, NATIVE_SECAGG, WEIGHTS_VERSION

ABORT_REASON: Final = "Abort upon external request"


class _At(enum.Enum):
    """The states of a conversation."""

    START = enum.auto()
    ASKED = enum.auto()
    ACKED = enum.auto()
    DECIDING = enum.auto()
    CHECKED_IN = enum.auto()
    RUNNING = enum.auto()
    SECURE = enum.auto()
    REPORTED = enum.auto()
    ENDED = enum.auto()


class DeviceSession:
    """One conversation of a device.

    Args:
        hello: The identity and the capabilities of the device.
        windows: Records the retry windows.
        new_secagg: Makes the client's side of secure aggregation; not called if ``hello`` does not offer it.
        limits: The limits of messages in chunks.
    """

    def __init__(
        self, hello: Hello, windows: Windows, *, new_secagg: NewSecAgg | None = None, limits: Limits | None = None
    ) -> None:
        self._hello, self._windows, self._new_secagg = hello, windows, new_secagg
        self._stream = ChunkStream(parse=parsed, writes=pb.ClientStreamMessage, limits=limits)
        self._at = _At.START
        self._assigned: Assigned | None = None
        self._secagg: SecAgg | None = None
        self._report = Report()
        self._end = ""
        self._status, self._detail = Status.OK, ""

    # Methods for the code that carries frames.

    def start(self) -> None:
        """Check in, and ask for the eligibility task."""
        request = pb.EligibilityEvalCheckinRequest(**self._about(wants_ack=True))
        self._at = _At.ASKED
        self._send(pb.ClientStreamMessage(eligibility_eval_checkin_request=request))

    def receive(self, frame: bytes) -> list[Event]:
        """Handle a frame of the server, and return the events that the device has to handle."""
        if self._at is _At.ENDED:
            return []
        events: list[Event] = []
        try:
            for message in self._stream.receive(frame):
                events += self._heard(message)
        except InvocationError as error:
            self._broken(f"the server broke the protocol: {error.detail}")
        return events

    def drain(self) -> list[bytes]:
        """Return the frames that can be sent now."""
        return self._stream.drain()

    @property
    def has_ended(self) -> bool:
        """Whether the end of the conversation is decided; there may still be frames to send."""
        return self._at is _At.ENDED

    @property
    def is_over(self) -> bool:
        """Whether the device adds no more frames; the call half-closes after those of `drain`."""
        return self._at is _At.ENDED and self._stream.is_idle

    @property
    def is_broken(self) -> bool:
        """Whether the conversation has failed, so that the server's status need not be awaited."""
        return self._at is _At.ENDED and self._status is not Status.OK

    def ended(self, status: Status, detail: str = "") -> None:
        """Handle the end of the stream, with its status.

        After the end of the conversation was decided, this has no effect.
        """
        if status is Status.OK:
            status, detail = Status.INTERNAL, "the server ended the conversation too early"
        self._lost(status, detail)

    # Methods by which the device reports results.

    def eligible(self, weights: Mapping[str, float]) -> None:
        """Check in with the tasks for which the device is eligible; without any, half-close (F-078)."""
        if self._at is not _At.DECIDING:
            return
        if not weights:
            self._finish("ineligible")
            return
        info = pb.TaskEligibilityInfo(version=WEIGHTS_VERSION)
        for name, weight in weights.items():
            info.task_weights.add(task_name=name, weight=weight)
        self._check_in(info)

    def report(self, report: Report) -> None:
        """Report the result of the plan."""
        if self._at is not _At.RUNNING:
            return
        assert self._assigned is not None
        self._report = report
        if self._assigned.secagg is None:
            self._at = _At.REPORTED
            self._send(self._reporting(report))
            return
        if report.status is not Status.OK or report.vectors is None:
            # F-112: with secure aggregation, a failure is reported only by the end of the stream
            self._finish("failed", report.status, "the plan has failed")
            return
        assert self._new_secagg is not None
        try:
            self._secagg = self._new_secagg(self._assigned.secagg, report.vectors)
        except ValueError as error:
            self._finish("failed", Status.INTERNAL, f"the update does not fit secure aggregation: {error}")
            return
        self._at = _At.SECURE
        self._turned(self._secagg.start())

    def computed(self, turn: Turn) -> None:
        """Continue with the result of a job of secure aggregation."""
        if self._at is _At.SECURE:
            self._turned(turn)

    def fail(self, status: Status, detail: str) -> None:
        """End the conversation because it cannot continue, for example without a checkpoint."""
        self._lost(status, detail)

    def abort(self) -> None:
        """Stop the device, in any state of the conversation (F-145)."""
        if self._at is _At.ENDED:
            return
        if self._at is _At.SECURE and self._secagg is not None:
            for message in self._secagg.abort(ABORT_REASON).messages:
                self._send(pb.ClientStreamMessage(secure_aggregation_client_message=message))
        self._finish("aborted", Status.CANCELLED, ABORT_REASON)

    def attempt(self, *, metrics: Any = None) -> Attempt:
        """Return how the conversation ended, and when to check in again (F-058)."""
        task = "" if self._assigned is None else self._assigned.task
        status = self._status if self._end != "failed" else Status.OK
        return Attempt(
            self._end,
            self._windows.choose(status, was_accepted=self._assigned is not None),
            self._status,
            self._detail,
            task,
            self._stream.sent,
            self._stream.received,
            self._report.duration_s,
            metrics,
        )

    # Messages of the server.

    def _heard(self, message: pb.ServerStreamMessage) -> list[Event]:
        kind = message.WhichOneof("kind")
        if message.HasField("secure_aggregation_server_message"):
            # After the device's last message the server may still report that the device was not needed, or that the
            # round failed.
            if self._at in (_At.SECURE, _At.REPORTED) and kind is None and self._secagg is not None:
                return self._turned(self._secagg.receive(message.secure_aggregation_server_message))
            self._broken("the server sent a message of secure aggregation that does not belong there")
            return []
        if kind is None or self._at is _At.ENDED:
            return []
        if self._at is _At.ASKED and kind == "checkin_request_ack":
            return self._acked(message.checkin_request_ack)
        if self._at is _At.ACKED and kind == "eligibility_eval_checkin_response":
            return self._asked(message.eligibility_eval_checkin_response)
        if self._at is _At.CHECKED_IN and kind == "checkin_response":
            return self._decided(message.checkin_response)
        if self._at is _At.REPORTED and kind == "report_response":
            if message.report_response.HasField("retry_window"):
                self._windows.told(message.report_response.retry_window)
            self._finish("reported" if self._report.status is Status.OK else "failed", self._report.status)
            return []
        self._broken(f"the server sent {kind} while the device was {self._at.name.lower()}")
        return []

    def _acked(self, ack: pb.CheckinRequestAck) -> list[Event]:
        if not ack.HasField("retry_window_if_accepted") or not ack.HasField("retry_window_if_rejected"):
            self._lost(Status.UNIMPLEMENTED, "the server's ack lacks a retry window")
            return []
        self._windows.acked(ack)
        self._at = _At.ACKED
        return []

    def _asked(self, response: pb.EligibilityEvalCheckinResponse) -> list[Event]:
        self._agree(response)
        kind = response.WhichOneof("checkin_result")
        if kind == "eligibility_eval_payload":
            payload = response.eligibility_eval_payload
            self._at = _At.DECIDING
            return [
                EligibilityAsked(
                    payload.execution_id, source_of(payload, "plan"), source_of(payload, "init_checkpoint")
                )
            ]
        if kind == "no_eligibility_eval_configured":
            self._check_in(None)
        elif kind == "rejection_info":
            self._rejected(response.rejection_info)
        else:
            self._broken("the server's answer to the checkin is empty")
        return []

    def _decided(self, response: pb.CheckinResponse) -> list[Event]:
        self._agree(response)
        kind = response.WhichOneof("checkin_result")
        if kind == "rejection_info":
            self._rejected(response.rejection_info)
            return []
        if kind != "acceptance_info":
            self._broken("the server's answer to the checkin is empty")
            return []
        info = response.acceptance_info
        wants_secagg = info.HasField("side_channel_protocol_execution_info")
        self._assigned = Assigned(
            info.execution_phase_id,
            info.task_name,
            source_of(info, "plan"),
            source_of(info, "init_checkpoint"),
            terms_of(info) if wants_secagg else None,
            info.federated_select_uri_info.uri_template,
        )
        variant = response.protocol_options_response.side_channels.secure_aggregation.client_variant
        if wants_secagg and (variant != NATIVE_SECAGG or not self._offers_secagg):
            self._broken("the server uses a variant of secure aggregation other than NATIVE_V1")
            return []
        self._at = _At.RUNNING
        return [self._assigned]

    def _rejected(self, info: pb.RejectionInfo) -> None:
        if info.HasField("retry_window"):
            self._windows.told(info.retry_window)
        self._finish("rejected")

    def _agree(self, response: pb.EligibilityEvalCheckinResponse | pb.CheckinResponse) -> None:
        """Send by the server's terms from now on; zeros mean that messages are sent whole (F-019, D1)."""
        if response.HasField("protocol_options_response"):
            said = response.protocol_options_response
            if said.compression_level not in COMPRESSION_LEVELS:
                raise StatusError(Status.INTERNAL, f"there is no compression level {said.compression_level}")
            self._stream.agree(Terms(said.chunk_size_for_upload, said.max_pending_chunks, said.compression_level))

    def _turned(self, turn: Turn) -> list[Event]:
        for message in turn.messages:
            framed = pb.ClientStreamMessage(secure_aggregation_client_message=message)
            # F-093: the masked input is sent in the same frame as the report
            if message.HasField("masked_input_response"):
                framed.MergeFrom(self._reporting(Report(duration_s=self._report.duration_s)))
            self._send(framed)
        if turn.error is not None:
            self._lost(*turn.error)
        elif turn.is_done:
            self._at = _At.REPORTED
        return [] if turn.job is None else [Compute(turn.job)]

    # Messages of the device.

    @property
    def _offers_secagg(self) -> bool:
        return self._hello.has_secagg and self._new_secagg is not None

    def _options(self, *, wants_ack: bool) -> pb.ProtocolOptionsRequest:
        options = pb.ProtocolOptionsRequest(
            supports_chunked_blob_transfer=True,
            supported_compression_levels=COMPRESSION_LEVELS,
            should_ack_checkin=wants_ack,
            supports_http_download=True,
            supports_eligibility_eval_http_download=True,
            supported_http_compression_formats=[HTTP_GZIP],
        )
        if self._offers_secagg:
            options.side_channels.secure_aggregation.client_variant.append(NATIVE_SECAGG)
        return options

    def _about(self, *, wants_ack: bool) -> dict[str, Any]:
        """The fields that both kinds of checkin have."""
        return {
            "population_name": self._hello.population,
            "retry_token": self._hello.retry_token,
            "attestation_measurement": self._hello.attestation,
            "protocol_options_request": self._options(wants_ack=wants_ack),
            "client_version": self._hello.client_version,
        }

    def _check_in(self, info: pb.TaskEligibilityInfo | None) -> None:
        request = pb.CheckinRequest(**self._about(wants_ack=False), task_eligibility_info=info)
        self._at = _At.CHECKED_IN
        self._send(pb.ClientStreamMessage(checkin_request=request))

    def _reporting(self, report: Report) -> pb.ClientStreamMessage:
        assert self._assigned is not None
        message = pb.ClientStreamMessage()
        request = message.report_request
        request.population_name = self._hello.population
        request.execution_phase_id = self._assigned.phase_id
        request.report.update_checkpoint = report.update
        request.report.status_code = report.status
        stats = pb.ClientExecutionStats(duration=duration_of(report.duration_s))
        request.report.serialized_train_event.add().Pack(stats)
        return message

    def _send(self, message: pb.ClientStreamMessage) -> None:
        self._stream.send(message.SerializeToString(deterministic=True))

    # Endings.

    def _broken(self, detail: str) -> None:
        self._lost(Status.INTERNAL, detail)

    def _lost(self, status: Status, detail: str) -> None:
        self._finish("lost", status, detail)

    def _finish(self, end: str, status: Status = Status.OK, detail: str = "") -> None:
        if self._at is not _At.ENDED:
            self._at, self._end, self._status, self._detail = _At.ENDED, end, status, detail
