"""`invoker.protocols.federated.client.session`: the conversation of a device, frame by frame."""

from __future__ import annotations

from typing import Any

import pytest

from invoker._pb.federated import federated_api_pb2 as pb
from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.errors import Status
from invoker.protocols.federated.client.downloads import Source
from invoker.protocols.federated.client.messages import Assigned, EligibilityAsked, Hello, Report, SecAggTask, Turn
from tests.protocols.federated.client.script import (
    Device,
    accepted,
    ack,
    eligibility,
    no_eligibility,
    options,
    rejected,
    seconds,
    taken,
)

CHUNKED = {"chunk_size_for_upload": 8, "max_pending_chunks": 2}
SECAGG = {
    "side_channels": {
        "w": pb.SideChannelExecutionInfo(
            secure_aggregand=pb.SideChannelExecutionInfo.SecureAggregandExecutionInfo(modulus=1 << 20)
        )
    },
    "side_channel_protocol_execution_info": pb.SideChannelProtocolExecutionInfo(
        secure_aggregation=pb.SideChannelProtocolExecutionInfo.SecureAggregationProtocolExecutionInfo(
            expected_number_of_clients=5,
            minimum_surviving_clients_for_reconstruction=3,
            minimum_clients_in_server_visible_aggregate=2,
        )
    ),
}


def test_the_first_checkin_says_what_the_device_can_do() -> None:
    """All of section 2's first line, and who the device is."""
    device = Device(Hello("iris", "token", "measured", "v7", has_secagg=True), new_secagg=FakeSecAgg).start()
    (message,) = device.sent
    request = message.eligibility_eval_checkin_request
    said = (request.population_name, request.retry_token, request.attestation_measurement, request.client_version)
    assert said == ("iris", "token", "measured", "v7")
    can = request.protocol_options_request
    assert can.should_ack_checkin
    assert can.supports_chunked_blob_transfer
    assert can.supports_http_download
    assert can.supports_eligibility_eval_http_download
    assert list(can.supported_compression_levels) == [0, 1, 2, 3]
    assert list(can.supported_http_compression_formats) == [pb.HTTP_COMPRESSION_FORMAT_GZIP]
    assert list(can.side_channels.secure_aggregation.client_variant) == [2]


def test_a_device_without_secure_aggregation_offers_none() -> None:
    """Neither if it cannot, nor if it does not want to."""
    for device in (Device().start(), Device(Hello("iris", has_secagg=False), new_secagg=FakeSecAgg).start()):
        assert not device.sent[0].eligibility_eval_checkin_request.protocol_options_request.HasField("side_channels")


def test_the_second_checkin_repeats_who_the_device_is_and_asks_for_no_ack() -> None:
    """Without an eligibility task it says nothing of eligibility."""
    device = Device(Hello("iris", "token", "measured", "v7")).start().hear(ack(), no_eligibility())
    request = device.sent[1].checkin_request
    said = (request.population_name, request.retry_token, request.attestation_measurement, request.client_version)
    assert said == ("iris", "token", "measured", "v7")
    assert not request.protocol_options_request.should_ack_checkin
    assert request.protocol_options_request.supports_chunked_blob_transfer
    assert not request.HasField("task_eligibility_info")


def test_a_plain_round() -> None:
    """Accepted, reported with the time that the plan took, answered, half-closed."""
    device = Device().start().hear(ack(), no_eligibility(), accepted())
    assert device.events == [Assigned("p1", "train", Source(b"plan"), Source(b"start"))]
    assert not device.session.is_over
    device.session.report(Report(b"update", duration_s=1.25))
    request = device.drain().sent[-1].report_request
    assert (request.population_name, request.execution_phase_id) == ("iris", "p1")
    assert (request.report.update_checkpoint, request.report.status_code) == (b"update", 0)
    stats = pb.ClientExecutionStats()
    assert request.report.serialized_train_event[0].Unpack(stats)
    assert stats.duration == seconds(1.25)
    assert not device.session.is_over
    device.hear(taken())
    assert device.session.is_over
    assert not device.session.is_broken
    attempt = device.session.attempt(metrics={"loss": 1})
    assert (attempt.end, attempt.task, attempt.duration_s, attempt.metrics) == ("reported", "train", 1.25, {"loss": 1})


def test_F077_a_failed_plan_is_reported_without_an_update() -> None:
    """The status is INTERNAL, and the stats are there."""
    device = Device().start().hear(ack(), no_eligibility(), accepted())
    device.session.report(Report(status=Status.INTERNAL, duration_s=0.5))
    report = device.drain().sent[-1].report_request.report
    assert (report.update_checkpoint, report.status_code, len(report.serialized_train_event)) == (b"", 13, 1)


def test_F078_weights_go_with_the_checkin() -> None:
    """What the eligibility plan gave is told by names and weights, version 1."""
    device = Device().start().hear(ack(), eligibility())
    assert device.events == [EligibilityAsked("x1", Source(b"plan"), Source(b"start"))]
    device.session.eligible({"train": 2.0, "test": 0.5})
    info = device.drain().sent[-1].checkin_request.task_eligibility_info
    assert info.version == 1
    assert {one.task_name: one.weight for one in info.task_weights} == {"train": 2.0, "test": 0.5}
    assert device.hear(accepted()).events[-1].task == "train"


def test_F078_a_device_that_is_eligible_for_nothing_half_closes() -> None:
    """There is no second checkin."""
    device = Device().start().hear(ack(), eligibility())
    device.session.eligible({})
    assert device.drain().kinds == ["eligibility_eval_checkin_request"]
    assert device.session.is_over
    assert not device.session.is_broken


def test_F068_plans_may_be_elsewhere_or_nowhere() -> None:
    """An address is handed on as it is, an empty one too; what is neither inline nor elsewhere is empty."""
    away = pb.UriResource(uri="https://h/p", client_cache_id="c", max_age=seconds(60))
    device = Device().start().hear(ack(), no_eligibility())
    message = accepted()
    message.checkin_response.acceptance_info.plan_resource.CopyFrom(away)
    message.checkin_response.acceptance_info.ClearField("init_checkpoint")
    (event,) = device.hear(message).events
    assert event.plan == Source(b"", "https://h/p", "c", 60.0)
    assert event.checkpoint == Source(b"")
    device = Device().start().hear(ack(), no_eligibility())
    message.checkin_response.acceptance_info.plan_resource.Clear()
    assert device.hear(message).events[0].plan == Source(b"", "")


def test_F024_a_report_waits_for_acks() -> None:
    """With chunks of 8 bytes and two pending: Start, two Data, then nothing until an ack comes."""
    device = Device().start().hear(ack(), no_eligibility(**CHUNKED))
    chunks = [one.chunked_transfer.WhichOneof("kind") for one in device.sent[1:]]
    assert chunks == ["start", "data", "data"]
    answer = pb.ServerStreamMessage()
    answer.chunked_transfer.ack.chunk_index = 0
    device.hear(answer)
    assert device.sent[-1].chunked_transfer.data.chunk_index == 2


def test_F019_a_later_word_on_chunks_replaces_the_earlier_one() -> None:
    """Zeros switch chunks off; an answer without options leaves them as they are."""
    for later, kind in ((options(), "report_request"), (None, "chunked_transfer")):
        device = Device().start().hear(ack(), no_eligibility(chunk_size_for_upload=1 << 16, max_pending_chunks=4))
        answer = pb.ServerStreamMessage()
        answer.chunked_transfer.ack.chunk_index = 0
        device.hear(answer)
        message = accepted()
        if later is not None:
            message.checkin_response.protocol_options_response.CopyFrom(later)
        device.hear(message)
        device.session.report(Report(b"u" * 100))
        assert device.drain().kinds[-1] == kind


def test_F144_bytes_are_those_of_all_frames() -> None:
    """Sent and received, the frames of the chunk layer included, and deferred ones only when they go."""
    device = Device().start()
    messages = [ack(), no_eligibility(**CHUNKED), rejected()]
    device.hear(*messages)
    attempt = device.session.attempt()
    assert attempt.sent == sum(one.ByteSize() for one in device.sent)
    assert attempt.received == sum(one.ByteSize() for one in messages)
    answer = pb.ServerStreamMessage()
    answer.chunked_transfer.ack.chunk_index = 0
    device = Device().start().hear(ack(), no_eligibility(**CHUNKED), answer)
    assert device.session.attempt().sent == sum(one.ByteSize() for one in device.sent)


def half_acked() -> pb.ServerStreamMessage:
    """An ack that lacks a window."""
    message = ack()
    message.checkin_request_ack.ClearField("retry_window_if_rejected")
    return message


def bad_level() -> pb.ServerStreamMessage:
    """A compression level that nobody knows."""
    return no_eligibility(chunk_size_for_upload=8, max_pending_chunks=2, compression_level=9)


def bad_modulus() -> pb.ServerStreamMessage:
    """A modulus that cannot be (F-090)."""
    message = accepted(**SECAGG)
    message.checkin_response.acceptance_info.side_channels["w"].secure_aggregand.modulus = 1
    return message


@pytest.mark.parametrize(
    ("messages", "status", "text"),
    [
        ([no_eligibility()], Status.INTERNAL, "eligibility_eval_checkin_response while the device was asked"),
        ([ack(), ack()], Status.INTERNAL, "checkin_request_ack while the device was acked"),
        ([half_acked()], Status.UNIMPLEMENTED, "lacks a retry window"),
        ([ack(), no_eligibility(), no_eligibility()], Status.INTERNAL, "while the device was checked_in"),
        ([ack(), no_eligibility(), taken()], Status.INTERNAL, "report_response while"),
        ([ack(), no_eligibility(), accepted(), accepted()], Status.INTERNAL, "while the device was running"),
        (
            [ack(), no_eligibility(), pb.ServerStreamMessage(checkin_response=pb.CheckinResponse())],
            Status.INTERNAL,
            "empty",
        ),
        ([ack(), bad_level()], Status.INTERNAL, "no compression level 9"),
        ([ack(), no_eligibility(), bad_modulus()], Status.INTERNAL, "the modulus 1 of vector 'w' is not possible"),
        ([ack(), no_eligibility(), accepted(**SECAGG)], Status.INTERNAL, "a variant"),
        (
            [pb.ServerStreamMessage(secure_aggregation_server_message=secagg_pb.ServerToClientWrapperMessage())],
            Status.INTERNAL,
            "secure aggregation that does not belong there",
        ),
    ],
)
def test_what_does_not_belong_there_ends_the_conversation(messages: list[Any], status: Status, text: str) -> None:
    """The error is INTERNAL, as real clients have it; a missing window is UNIMPLEMENTED (F-002)."""
    device = Device().start().hear(*messages)
    attempt = device.session.attempt()
    assert (attempt.end, attempt.status) == ("lost", status)
    assert text in attempt.detail
    assert device.session.is_broken
    count = len(device.sent)
    assert device.hear(ack()).sent[count:] == []


def test_bytes_that_are_no_message_end_the_conversation() -> None:
    """So does a chunk that was not agreed on (F-028)."""
    device = Device().start()
    device.session.receive(b"\xff")
    assert "1 bytes are not a valid ServerStreamMessage" in device.session.attempt().detail
    message = pb.ServerStreamMessage()
    message.chunked_transfer.end.chunk_count = 1
    assert "an End came without a Start" in Device().start().hear(message).session.attempt().detail


def test_messages_without_content_are_ignored() -> None:
    """They change nothing."""
    device = Device().start().hear(pb.ServerStreamMessage(), ack(), pb.ServerStreamMessage(), no_eligibility())
    assert device.kinds == ["eligibility_eval_checkin_request", "checkin_request"]


def test_a_server_that_ends_too_early_is_an_error() -> None:
    """OK before the answer is INTERNAL; after the end nothing changes what is known."""
    device = Device().start().hear(ack())
    device.session.ended(Status.OK)
    assert device.session.attempt().status is Status.INTERNAL
    device = Device().start().hear(ack(), no_eligibility(), rejected())
    device.session.ended(Status.UNAVAILABLE)
    assert device.session.attempt().status is Status.OK


class FakeSecAgg:
    """Two rounds that do nothing but talk."""

    made: list[Any]

    def __init__(self, task: SecAggTask, vectors: Any) -> None:
        if vectors == {}:
            raise ValueError("vector 'w' is missing")
        self.task = task

    def start(self) -> Turn:
        """Say something."""
        return Turn((secagg_pb.ClientToServerWrapperMessage(advertise_keys=secagg_pb.AdvertiseKeys()),))

    def receive(self, message: secagg_pb.ServerToClientWrapperMessage) -> Turn:
        """Send the input, or be done, or fail."""
        kind = message.WhichOneof("message_content")
        if kind == "share_keys_request":
            made = secagg_pb.ClientToServerWrapperMessage()
            made.masked_input_response.vectors["w"].encoded_vector = b"masked"
            return Turn((made,))
        if kind == "masked_input_request":
            later = secagg_pb.ClientToServerWrapperMessage(unmasking_response=secagg_pb.UnmaskingResponse())
            return Turn(job=lambda: Turn((later,)))
        if kind == "abort":
            return Turn(error=(Status.CANCELLED, "SecAgg aborted"))
        return Turn(is_done=True)

    def abort(self, reason: str) -> Turn:
        """Say so."""
        message = secagg_pb.ClientToServerWrapperMessage()
        message.abort.diagnostic_info = reason
        return Turn((message,))


def secure() -> Device:
    """A device that takes part in secure aggregation."""
    return Device(new_secagg=FakeSecAgg).start().hear(ack(), no_eligibility(), accepted(**SECAGG))


def said(kind: str) -> pb.ServerStreamMessage:
    """A message of secure aggregation of the server."""
    message = pb.ServerStreamMessage()
    getattr(message.secure_aggregation_server_message, kind).SetInParent()
    return message


def test_F093_the_masked_input_shares_its_message_with_the_report() -> None:
    """All other messages of secure aggregation have a frame of their own, whose kind is unset."""
    device = secure()
    assert device.events[0].secagg == SecAggTask({"w": 1 << 20}, 5, 3, 2)
    device.session.report(Report(vectors={"w": [1]}, duration_s=2.0))
    assert device.drain().kinds[-1] == "secagg"
    device.hear(said("share_keys_request"))
    last = device.sent[-1]
    assert last.secure_aggregation_client_message.masked_input_response.vectors["w"].encoded_vector == b"masked"
    assert last.report_request.execution_phase_id == "p1"
    assert last.report_request.report.update_checkpoint == b""
    assert len(last.report_request.report.serialized_train_event) == 1
    device.hear(said("unmasking_request"), taken())
    assert device.session.attempt().end == "reported"


def test_what_takes_long_is_asked_for() -> None:
    """A job of the rounds is an event, and what it gives is sent."""
    device = secure()
    device.session.report(Report(vectors={"w": [1]}))
    device.drain().hear(said("masked_input_request"))
    turn = device.events[-1].job()
    device.session.computed(turn)
    assert device.drain().sent[-1].secure_aggregation_client_message.HasField("unmasking_response")
    device.session.abort()
    count = len(device.drain().sent)
    device.session.computed(turn)
    assert device.drain().sent[count:] == []


def test_F094_an_answer_before_the_end_of_the_rounds_is_an_error() -> None:
    """ReportResponse comes only when the rounds are done."""
    device = secure()
    device.session.report(Report(vectors={"w": [1]}))
    assert device.drain().hear(taken()).session.attempt().status is Status.INTERNAL


def test_F112_a_plan_that_failed_says_nothing_under_secure_aggregation() -> None:
    """The device half-closes without a message; it comes again as one that was accepted."""
    failed = Report(vectors={"w": [1]}, status=Status.INTERNAL)
    for report in (Report(status=Status.INTERNAL), failed, Report(vectors={})):
        device = secure()
        count = len(device.sent)
        device.session.report(report)
        assert device.drain().sent[count:] == []
        assert device.session.is_over
        assert device.session.attempt().end == "failed"
        assert device.session.attempt().retry.token == "token-a"


def test_F110_an_abort_of_the_server_is_the_end() -> None:
    """CANCELLED, as real clients have it."""
    device = secure()
    device.session.report(Report(vectors={"w": [1]}))
    attempt = device.drain().hear(said("abort")).session.attempt()
    assert (attempt.status, attempt.detail) == (Status.CANCELLED, "SecAgg aborted")


def test_F145_a_device_that_is_told_to_stop_half_closes_in_any_state() -> None:
    """Under secure aggregation it says so first; nothing that comes later moves it."""
    ways = [
        Device().start(),
        Device().start().hear(ack()),
        Device().start().hear(ack(), eligibility()),
        Device().start().hear(ack(), no_eligibility()),
        Device().start().hear(ack(), no_eligibility(), accepted()),
        secure(),
    ]
    for device in ways:
        count = len(device.sent)
        device.session.abort()
        assert device.drain().sent[count:] == []
        assert device.session.is_over
        assert (device.session.attempt().end, device.session.attempt().status) == ("aborted", Status.CANCELLED)
        device.session.report(Report(b"u"))
        device.session.eligible({"train": 1.0})
        assert device.drain().sent[count:] == []
    device = secure()
    device.session.report(Report(vectors={"w": [1]}))
    device.drain().session.abort()
    message = device.drain().sent[-1].secure_aggregation_client_message
    assert message.abort.diagnostic_info == "Abort upon external request"
    assert device.session.is_over
