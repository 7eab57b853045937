"""The rules for every message and every status of a federated server, which are checked in all scenarios."""

from __future__ import annotations

import grpc
from google.protobuf.message import Message

from invoker._pb.federated import federated_api_pb2 as pb
from invoker_conformance.faults import DETAIL_BYTES, LEAKS, encoded_size

TOKEN_BYTES = 256
_SHOWN = 160


def check_message(message: pb.ServerStreamMessage) -> tuple[str, str] | None:
    """If a message breaks a rule: what was met, and what was expected; otherwise None."""
    kind = message.WhichOneof("kind")
    wrapped = message.secure_aggregation_server_message.WhichOneof("message_content")
    if kind is None and wrapped is None:
        return "a message of no kind", "one of the kinds of the service"
    if kind is not None and wrapped is not None:
        return f"{kind} together with {wrapped}", "a message of its own for each (F-093, F-094)"
    for window in _windows(message):
        if broken := _check_window(window):
            return broken
    if kind == "checkin_response" and message.checkin_response.WhichOneof("checkin_result") is None:
        return "a CheckinResponse without a result", "acceptance_info or rejection_info (F-047)"
    if kind == "checkin_response" and message.checkin_response.HasField("acceptance_info"):
        info = message.checkin_response.acceptance_info
        if not info.execution_phase_id or not info.task_name:
            return "an acceptance without an id or a task", "execution_phase_id and task_name (F-047)"
    return None


def check_ending(code: grpc.StatusCode, detail: str) -> tuple[str, str] | None:
    """If the status of a session breaks a rule: what was met, and what was expected; otherwise None."""
    if leak := LEAKS.search(detail):
        return f"{code.name} {detail!r}", f"a detail without {leak.group()!r}"
    if encoded_size(detail) > DETAIL_BYTES:
        return f"a detail of {encoded_size(detail)} bytes", f"at most {DETAIL_BYTES}"
    if code is grpc.StatusCode.UNKNOWN:
        return f"{code.name} {detail!r}", "a code that says what a client should do"
    return None


def shown(message: Message) -> str:
    """A message on one line, shortened."""
    size = message.ByteSize()
    if size > 4000:
        return f"{message.WhichOneof('kind')} of {size} bytes"
    text = " ".join(str(message).split())
    return f"{{{text if len(text) <= _SHOWN else text[:_SHOWN] + '...'}}}"


def _windows(message: pb.ServerStreamMessage) -> list[pb.RetryWindow]:
    answers = (
        message.checkin_response.rejection_info,
        message.eligibility_eval_checkin_response.rejection_info,
        message.report_response,
    )
    found = [answer.retry_window for answer in answers if answer.HasField("retry_window")]
    if message.WhichOneof("kind") == "checkin_request_ack":
        found += [message.checkin_request_ack.retry_window_if_accepted]
        found += [message.checkin_request_ack.retry_window_if_rejected]
    return found


def _check_window(window: pb.RetryWindow) -> tuple[str, str] | None:
    least, most = window.delay_min.ToNanoseconds(), window.delay_max.ToNanoseconds()
    if not window.HasField("delay_max") or not 0 <= least <= most:
        return f"a window from {least} to {most} ns", "0 <= delay_min <= delay_max, and delay_max set (F-056)"
    if window.retry_token and not window.HasField("delay_min"):
        return "a token without delay_min", "a delay_min beside each token (F-056)"
    if len(window.retry_token.encode()) > TOKEN_BYTES:
        return f"a token of {len(window.retry_token)} characters", f"at most {TOKEN_BYTES} bytes (F-054)"
    return None
