"""Tests of `invoker.protocols.federated.session`: messages of secure aggregation."""

from __future__ import annotations

from typing import Any

import pytest

from invoker._pb.federated import federated_api_pb2 as pb
from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.errors import Status
from invoker.protocols.federated.messages import Accepted, Over, ReportIn, ReportTaken, Secure
from tests.protocols.federated.coordinators import OFFER, SECURE_OFFER, Talk, checkin, report


def accepted() -> Talk:
    """A conversation in which the client takes part in secure aggregation."""
    talk = Talk()
    talk.say(checkin())
    talk.tell(Accepted(SECURE_OFFER))
    return talk


def secure(content: str, **fields: Any) -> pb.ClientStreamMessage:
    """A message of the client."""
    message = pb.ClientStreamMessage()
    part = getattr(message.secure_aggregation_client_message, content)
    part.SetInParent()
    for name, value in fields.items():
        setattr(part, name, value)
    return message


def masked() -> pb.ClientStreamMessage:
    """The masked input, which comes with the report."""
    message: pb.ClientStreamMessage = report(phase="phase-2", status_code=0)
    message.secure_aggregation_client_message.masked_input_response.vectors["w"].encoded_vector = b"masked"
    return message


def asks(content: str) -> Secure:
    """A message of the server."""
    message = secagg_pb.ServerToClientWrapperMessage()
    getattr(message, content).SetInParent()
    return Secure(message)


def test_F089_F134_the_acceptance_says_all_of_it() -> None:
    """The variant, with the chunks that were agreed on, and the moduli."""
    talk = accepted()
    response = talk.heard[-1].checkin_response
    options = response.protocol_options_response
    assert options.side_channels.secure_aggregation.client_variant == 2
    assert options.chunk_size_for_upload > 0
    assert options.max_pending_chunks > 0
    assert options.compression_level == 1
    assert response.acceptance_info.side_channels["w"].secure_aggregand.modulus == 1 << 20


def test_F094_all_four_rounds_and_then_the_answer() -> None:
    """The answer comes by itself, behind the last message of secure aggregation."""
    talk = accepted()
    assert talk.say(secure("advertise_keys")) == []
    assert talk.tell(asks("share_keys_request")) == ["secure share_keys_request"]
    assert talk.say(secure("share_keys_response")) == []
    assert talk.tell(asks("masked_input_request")) == ["secure masked_input_request"]
    assert talk.say(masked()) == []
    assert talk.tell(asks("unmasking_request")) == ["secure unmasking_request"]
    assert talk.say(secure("unmasking_response")) == []
    assert talk.tell(ReportTaken()) == ["report_response"]
    talk.half_close()
    assert talk.close is not None
    assert talk.close.error is None
    assert [value for name, value in talk.coordinator.noted if name == "secure"] == [
        ("advertise_keys", None),
        ("share_keys_response", None),
        ("masked_input_response", ReportIn(b"update", 0, None)),
        ("unmasking_response", None),
    ]


def test_F094_early_success_and_the_answer_are_two_messages() -> None:
    """Also if the coordinator tells both at once; what it tells behind the answer is dropped."""
    talk = accepted()
    talk.say(masked())
    assert talk.tell(asks("abort"), ReportTaken(), asks("abort")) == ["secure abort", "report_response"]


@pytest.mark.parametrize(
    "message",
    [
        report(phase="phase-2"),
        pb.ClientStreamMessage(secure_aggregation_client_message=masked().secure_aggregation_client_message),
        pb.ClientStreamMessage(
            report_request=report(phase="phase-2").report_request,
            secure_aggregation_client_message=secure("advertise_keys").secure_aggregation_client_message,
        ),
    ],
)
def test_F093_the_masked_input_and_the_report_come_together(message: pb.ClientStreamMessage) -> None:
    """Either alone, or another message with a report, ends this conversation; the coordinator hears nothing of it."""
    talk = accepted()
    talk.say(message)
    assert talk.error.status is Status.INVALID_ARGUMENT
    assert "secure" not in talk.coordinator.names()


def test_F093_a_checkin_carries_nothing_else() -> None:
    """Neither does a plain report."""
    for talk, message in ((Talk(), checkin()), (Talk(), report())):
        if message.HasField("report_request"):
            talk.say(checkin())
            talk.tell(Accepted(OFFER))
        message.secure_aggregation_client_message.advertise_keys.SetInParent()
        talk.say(message)
        assert talk.error.status is Status.INVALID_ARGUMENT
        assert not {"report", "secure"} & set(talk.coordinator.names())


def test_F017_the_report_beside_a_masked_input_is_checked_too() -> None:
    """It is of this round."""
    talk = accepted()
    message = masked()
    message.report_request.execution_phase_id = "phase-1"
    talk.say(message)
    assert "the report is of another round" in str(talk.error)


def test_F122_a_client_that_half_closes_behind_its_unmasking_gets_its_answer() -> None:
    """It has done all it had to; one that leaves before that is quietly let go."""
    early = accepted()
    early.say(masked())
    early.half_close()
    assert early.close is not None
    assert early.close.error is None
    talk = accepted()
    talk.say(masked(), secure("unmasking_response"))
    talk.half_close()
    assert talk.close is None
    assert talk.tell(ReportTaken()) == ["report_response"]
    assert talk.close is not None


@pytest.mark.parametrize("crossing", ["unmasking_response", "abort"])
def test_F123_a_reply_that_crosses_with_early_success_is_no_fault(crossing: str) -> None:
    """A client that was let off has sent its reply before it heard of that; a second one, or another, is a fault."""
    talk = accepted()
    talk.say(masked())
    talk.tell(asks("unmasking_request"))
    talk.tell(asks("abort"), ReportTaken())
    assert talk.say(secure(crossing)) == []
    assert talk.close is None
    assert [value[0] for name, value in talk.coordinator.noted if name == "secure"] == ["masked_input_response"]
    talk.say(secure(crossing))
    assert talk.error is not None


def test_F123_whoever_has_replied_has_nothing_more_to_say() -> None:
    """Only one reply of a client can cross with its answer; and its shares never can."""
    talk = accepted()
    talk.say(masked(), secure("unmasking_response"))
    talk.tell(ReportTaken())
    talk.say(secure("unmasking_response"))
    assert talk.error is not None
    early = accepted()
    early.say(masked())
    early.tell(asks("abort"), ReportTaken())
    early.say(secure("share_keys_response"))
    assert early.error is not None


def test_F110_an_abort_of_the_client_is_passed_on() -> None:
    """The coordinator decides what becomes of the conversation."""
    talk = accepted()
    talk.say(secure("abort", diagnostic_info="battery"))
    assert ("secure", ("abort", None)) in talk.coordinator.noted
    talk.tell(Over(None))
    assert talk.close is not None
    assert talk.close.error is None


def test_F098_shares_of_a_thousand_clients_go_in_chunks() -> None:
    """About 104 kB each way, uncompressed by us, for they are as good as random."""
    talk = accepted()
    shares = secure("share_keys_response")
    shares.secure_aggregation_client_message.share_keys_response.encrypted_key_shares.extend([bytes(104)] * 1000)
    talk.say(shares)
    assert talk.coordinator.noted[-1][0] == "received"
    assert talk.coordinator.noted[-2] == ("secure", ("share_keys_response", None))
    request = asks("masked_input_request")
    request.message.masked_input_request.encrypted_key_shares.extend([bytes(104)] * 1000)
    before = talk.client.received
    assert talk.tell(request) == ["secure masked_input_request"]
    assert talk.client.received - before > 104_000
