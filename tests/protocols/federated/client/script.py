"""What scripted servers say, and a device that is driven by hand."""

from __future__ import annotations

import random
from typing import Any

from google.protobuf.duration_pb2 import Duration

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.protocols.federated.client.messages import Hello
from invoker.protocols.federated.client.session import DeviceSession
from invoker.protocols.federated.client.windows import Windows

NOW = 1_000.0


def window(least: float, most: float, token: str = "") -> pb.RetryWindow:
    """A retry window."""
    return pb.RetryWindow(retry_token=token, delay_min=seconds(least), delay_max=seconds(most))


def seconds(value: float) -> Duration:
    """A duration."""
    return Duration(seconds=int(value), nanos=round(value % 1 * 1e9))


def ack(accepted: float = 100.0, rejected: float = 200.0) -> pb.ServerStreamMessage:
    """An ack with windows of no width."""
    return pb.ServerStreamMessage(
        checkin_request_ack=pb.CheckinRequestAck(
            retry_window_if_accepted=window(accepted, accepted, "token-a"),
            retry_window_if_rejected=window(rejected, rejected, "token-r"),
        )
    )


def options(**said: Any) -> pb.ProtocolOptionsResponse:
    """What the server wants of what is sent."""
    return pb.ProtocolOptionsResponse(**said)


def no_eligibility(**said: Any) -> pb.ServerStreamMessage:
    """There is no eligibility task."""
    response = pb.EligibilityEvalCheckinResponse(
        no_eligibility_eval_configured=pb.NoEligibilityEvalConfigured(), protocol_options_response=options(**said)
    )
    return pb.ServerStreamMessage(eligibility_eval_checkin_response=response)


def eligibility(**said: Any) -> pb.ServerStreamMessage:
    """There is one."""
    payload = pb.EligibilityEvalPayload(plan=b"plan", init_checkpoint=b"start", execution_id="x1")
    response = pb.EligibilityEvalCheckinResponse(
        eligibility_eval_payload=payload, protocol_options_response=options(**said)
    )
    return pb.ServerStreamMessage(eligibility_eval_checkin_response=response)


def accepted(**said: Any) -> pb.ServerStreamMessage:
    """The device takes part in the round p1 of the task train."""
    info = {"execution_phase_id": "p1", "task_name": "train", "plan": b"plan", "init_checkpoint": b"start"} | said
    response = pb.CheckinResponse(acceptance_info=pb.AcceptanceInfo(**info))
    if "side_channel_protocol_execution_info" in info:
        response.protocol_options_response.side_channels.secure_aggregation.client_variant = 2
    return pb.ServerStreamMessage(checkin_response=response)


def rejected() -> pb.ServerStreamMessage:
    """It takes no part; the window in it is for old clients."""
    info = pb.RejectionInfo(retry_window=window(5, 5, "old"))
    return pb.ServerStreamMessage(checkin_response=pb.CheckinResponse(rejection_info=info))


def taken() -> pb.ServerStreamMessage:
    """The report has come."""
    return pb.ServerStreamMessage(report_response=pb.ReportResponse(retry_window=window(5, 5, "old")))


class Device:
    """A session that is driven by hand.

    Attributes:
        session: The session.
        sent: What it has sent, as messages.
        events: What it has asked for.
    """

    def __init__(self, hello: Hello | None = None, **said: Any) -> None:
        self.windows = Windows(lambda: NOW, random.Random(1))
        self.session = DeviceSession(hello or Hello("iris"), self.windows, **said)
        self.sent: list[pb.ClientStreamMessage] = []
        self.events: list[Any] = []

    def start(self) -> Device:
        """Check in."""
        self.session.start()
        self.drain()
        return self

    def hear(self, *messages: pb.ServerStreamMessage) -> Device:
        """Take messages of the server."""
        for message in messages:
            self.events += self.session.receive(message.SerializeToString())
            self.drain()
        return self

    def drain(self) -> Device:
        """Note what was sent."""
        self.sent += [pb.ClientStreamMessage.FromString(frame) for frame in self.session.drain()]
        return self

    @property
    def kinds(self) -> list[str]:
        """What was sent, by its names."""
        return [message.WhichOneof("kind") or "secagg" for message in self.sent]
