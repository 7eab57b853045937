"""What is checked in every message, and at every end."""

from __future__ import annotations

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from invoker._pb.federated import federated_api_pb2 as pb
from invoker_conformance.federated.rules import check_ending, check_message, shown


def told(**window: object) -> pb.ServerStreamMessage:
    message = pb.ServerStreamMessage()
    message.report_response.retry_window.CopyFrom(pb.RetryWindow(**window))  # type: ignore[arg-type]
    return message


def test_right_messages() -> None:
    """Windows from below to above, an acceptance with its ids, a message of secure aggregation."""
    ack = pb.ServerStreamMessage()
    for window in (ack.checkin_request_ack.retry_window_if_accepted, ack.checkin_request_ack.retry_window_if_rejected):
        window.CopyFrom(pb.RetryWindow(retry_token="x", delay_min=Duration(), delay_max=Duration(seconds=1)))
    accepted = pb.ServerStreamMessage()
    accepted.checkin_response.acceptance_info.execution_phase_id = "a"
    accepted.checkin_response.acceptance_info.task_name = "b"
    secure = pb.ServerStreamMessage()
    secure.secure_aggregation_server_message.unmasking_request.SetInParent()
    thanks = pb.ServerStreamMessage(report_response={})
    assert [check_message(one) for one in (ack, accepted, secure, thanks)] == [None] * 4


def test_wrong_messages() -> None:
    """Each rule has a message that breaks it."""
    both = pb.ServerStreamMessage(report_response={})
    both.secure_aggregation_server_message.abort.SetInParent()
    undecided = pb.ServerStreamMessage(checkin_response={})
    nameless = pb.ServerStreamMessage()
    nameless.checkin_response.acceptance_info.task_name = "b"
    one = Duration(seconds=1)
    for message, expected in (
        (pb.ServerStreamMessage(), "one of the kinds"),
        (both, "F-093"),
        (undecided, "F-047"),
        (nameless, "F-047"),
        (told(delay_min=one), "F-056"),
        (told(delay_min=Duration(seconds=2), delay_max=one), "F-056"),
        (told(delay_min=Duration(seconds=-1), delay_max=one), "F-056"),
        (told(retry_token="x", delay_max=one), "beside each token"),
        (told(retry_token="x" * 257, delay_min=one, delay_max=one), "F-054"),
    ):
        broken = check_message(message)
        assert broken is not None, expected
        assert expected in broken[1]


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        (grpc.StatusCode.INTERNAL, 'Traceback (most recent call last): File "x"'),
        (grpc.StatusCode.ABORTED, "x" * 5000),
        (grpc.StatusCode.UNKNOWN, "something"),
    ],
)
def test_wrong_endings(code: grpc.StatusCode, detail: str) -> None:
    """One that tells of the inside, one without end, and one that tells nothing."""
    assert check_ending(code, detail) is not None
    assert check_ending(grpc.StatusCode.ABORTED, "the round has closed") is None


def test_messages_are_shown_on_one_line() -> None:
    """Large ones by their size."""
    large = pb.ClientStreamMessage(report_request={"report": {"update_checkpoint": bytes(5000)}})
    assert shown(large) == "report_request of 5009 bytes"
    assert shown(told(retry_token="x")) == '{report_response { retry_window { retry_token: "x" } }}'
