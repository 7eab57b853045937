"""Tests of `invoker.protocols.federated.session`: what it says when, and to whom."""

from __future__ import annotations

import pytest

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.core.steps import Send
from invoker.errors import Cancelled, LimitExceeded, Status, StatusError
from invoker.message import Headers
from invoker.protocols.federated.messages import Accepted, Over, Rejected, ReportTaken
from invoker.protocols.federated.negotiation import DeviceSettings
from tests.protocols.federated.coordinators import (
    OFFER,
    TASK,
    NotedCoordinator,
    Talk,
    checkin,
    report,
    trying,
)


def accepted(talk: Talk | None = None) -> Talk:
    """A conversation in which the client has its task."""
    talk = talk or Talk()
    talk.say(checkin())
    talk.tell(Accepted(OFFER))
    return talk


def refused(talk: Talk, text: str) -> None:
    """It has ended, with the status that clients take for lasting."""
    assert isinstance(talk.error, StatusError)
    assert talk.error.status is Status.INVALID_ARGUMENT
    assert text in talk.error.detail


def test_F015_a_whole_conversation_with_an_eligibility_task() -> None:
    """Ack, payload, acceptance, answer; then the client half-closes, and the status is OK."""
    talk = Talk(NotedCoordinator(TASK))
    assert talk.say(trying()) == [
        "checkin_request_ack",
        "eligibility_eval_checkin_response eligibility_eval_payload",
    ]
    assert talk.say(checkin(weights=[("train", 2.0)])) == []
    assert talk.tell(Accepted(OFFER)) == ["checkin_response acceptance_info"]
    assert talk.say(report()) == []
    assert talk.tell(ReportTaken()) == ["report_response"]
    assert talk.close is None
    talk.half_close()
    assert talk.close is not None
    assert talk.close.error is None
    assert [name for name in talk.coordinator.names() if name not in ("may_receive", "received")] == [
        "enter", "windows", "eligibility", "check_in", "report",
    ]  # fmt: skip
    assert talk.coordinator.bytes[0] > 0
    assert talk.coordinator.bytes[1] > 0


def test_F001_the_first_message_is_a_checkin() -> None:
    """A report, a message of secure aggregation, or none at all: INVALID_ARGUMENT."""
    secure = pb.ClientStreamMessage()
    secure.secure_aggregation_client_message.advertise_keys.SetInParent()
    for message in (report(), secure):
        talk = Talk()
        talk.say(message)
        refused(talk, "a checkin is expected first")
    talk = Talk()
    talk.half_close()
    refused(talk, "no checkin")


def test_F034_a_client_that_takes_no_part_sends_no_large_message() -> None:
    """Reading 4 MiB of weights or levels would stop all others for half a second, and it may have no key at all."""
    large = checkin()
    large.checkin_request.client_version = "v" * 70_000
    for talk in (Talk(), Talk(NotedCoordinator(TASK))):
        if talk.coordinator.task is not None:
            talk.say(trying())
        talk.force(large)
        assert isinstance(talk.error, LimitExceeded)
        assert "takes no part" in talk.error.detail
    talk = accepted()
    talk.force(report(b"u" * 70_000))
    assert talk.close is None


@pytest.mark.parametrize("first", [trying, checkin])
def test_F002_the_ack_has_both_windows_and_comes_first(first: type) -> None:
    """Before anything is decided (F-004), with the token where there is one."""
    talk = Talk(NotedCoordinator(TASK))
    assert talk.say(first(ack=True))[0] == "checkin_request_ack"
    ack = talk.heard[0].checkin_request_ack
    assert ack.retry_window_if_accepted.retry_token == "for the accepted"
    assert ack.retry_window_if_accepted.delay_max.nanos == 500_000_000
    assert ack.retry_window_if_rejected.delay_max.seconds == 2


def test_F004_the_ack_does_not_wait_for_the_decision() -> None:
    """It is sent in the turn that brings the checkin; nothing else is, until the coordinator has decided."""
    talk = Talk(settings=DeviceSettings(chunk_bytes=8))
    assert talk.say(checkin(ack=True)) == ["checkin_request_ack"]
    assert talk.coordinator.names()[-1] == "check_in"
    assert sum(isinstance(one, Send) for one in talk.steps) == 1


def test_F003_no_ack_without_being_asked() -> None:
    """The next message is the response."""
    talk = Talk(NotedCoordinator(TASK))
    assert talk.say(trying(ack=False)) == ["eligibility_eval_checkin_response eligibility_eval_payload"]


@pytest.mark.parametrize("ack", [False, True])
def test_F003_a_second_checkin_that_asks_for_an_ack_gets_another(ack: bool) -> None:
    """With windows of that moment; else those of the first count."""
    talk = Talk(NotedCoordinator(None))
    assert talk.say(trying()) == [
        "checkin_request_ack",
        "eligibility_eval_checkin_response no_eligibility_eval_configured",
    ]
    assert talk.say(checkin(ack=ack)) == ["checkin_request_ack"] * ack
    assert talk.coordinator.names().count("windows") == 1 + ack


def test_F005_an_unknown_population_gets_no_ack() -> None:
    """What the coordinator says against a checkin is the status, before anything is sent."""
    coordinator = NotedCoordinator()
    coordinator.error["windows"] = StatusError(Status.NOT_FOUND, "no such population")
    talk = Talk(coordinator)
    assert talk.say(trying()) == []
    assert talk.error.status is Status.NOT_FOUND


def test_F006_the_metadata_reach_the_coordinator() -> None:
    """It compares them with what the checkin says."""
    talk = Talk(metadata=Headers({"x-goog-population": "iris"}))
    talk.say(checkin())
    assert dict(talk.coordinator.noted)["enter"] == {"x-goog-population": "iris"}
    assert dict(talk.coordinator.noted)["check_in"].metadata == {"x-goog-population": "iris"}


def test_F139_a_coordinator_that_lets_nobody_in_ends_it_at_once() -> None:
    """Before a message has come."""
    coordinator = NotedCoordinator()
    coordinator.error["enter"] = LimitExceeded("too many")
    talk = Talk(coordinator)
    assert talk.error.status is Status.RESOURCE_EXHAUSTED


def test_F008_nothing_comes_twice() -> None:
    """A second checkin of either kind, a report before its time, a second report."""
    for before, message, text in (
        (Talk(NotedCoordinator(TASK)), trying(), "after an eligibility task"),
        (accepted(), checkin(), "the report is expected next"),
        (accepted(), trying(), "the report is expected next"),
    ):
        if before.coordinator.task is not None:
            before.say(trying())
        before.say(message)
        refused(before, text)
    free = Talk()
    free.say(trying(), trying())
    refused(free, "since there is no eligibility task")
    waiting = Talk()
    waiting.say(checkin(), checkin())
    refused(waiting, "until the checkin is decided")
    reporting = Talk()
    reporting.say(checkin(), report())
    refused(reporting, "until the checkin is decided")
    assert "report" not in reporting.coordinator.names()
    twice = accepted()
    twice.say(report(), report())
    refused(twice, "nothing is expected after the report")
    assert twice.coordinator.names().count("report") == 1


@pytest.mark.parametrize("field", ["population_name", "retry_token", "attestation_measurement", "client_version"])
def test_F009_the_second_checkin_says_the_same(field: str) -> None:
    """Each of the four."""
    talk = Talk(NotedCoordinator(TASK))
    fields = {"population_name": "iris", "retry_token": "t", "attestation_measurement": "a", "client_version": "1"}
    talk.say(trying(fields.pop("population_name"), **fields))
    fields["population_name"] = "iris"
    fields[field] += "?"
    talk.say(checkin(fields.pop("population_name"), weights=[("train", 1.0)], **fields))
    refused(talk, "of the second checkin differs from that of the first")
    assert "check_in" not in talk.coordinator.names()


def test_F010_the_internal_client_id_is_ignored() -> None:
    """Alone it makes an empty message; with a checkin it changes nothing."""
    talk = Talk()
    message = checkin()
    message.internal_client_id = "someone"
    talk.say(pb.ClientStreamMessage(internal_client_id="someone"), message)
    assert talk.close is None
    assert talk.session.ignored == 1
    assert "someone" not in repr(talk.coordinator.noted)


def test_F011_messages_without_content_are_counted_to_a_thousand() -> None:
    """The next one ends it; events of side channels and empty messages of secure aggregation are no content."""
    talk = Talk()
    events, empty = pb.ClientStreamMessage(), pb.ClientStreamMessage()
    events.serialized_side_channel_event.add().type_url = "x/y"
    empty.secure_aggregation_client_message.SetInParent()
    talk.say(events, empty, *[pb.ClientStreamMessage()] * 998)
    assert talk.close is None
    talk.say(pb.ClientStreamMessage())
    refused(talk, "no content")


def test_F012_a_client_may_leave_before_it_reports() -> None:
    """Behind the eligibility task, while the coordinator decides, and behind the acceptance: OK."""
    tried, waiting = Talk(NotedCoordinator(TASK)), Talk()
    tried.say(trying())
    waiting.say(checkin())
    for talk in (tried, waiting, accepted()):
        talk.half_close()
        assert talk.close is not None
        assert talk.close.error is None
        assert "report" not in talk.coordinator.names()


def test_F013_however_it_ends_the_mailbox_is_awaited_until_then() -> None:
    """One wait from before the first message on, so that its cancel tells the coordinator."""
    talk = Talk()
    assert talk.awaits == 1
    talk.say(checkin())
    talk.tell(Accepted(OFFER))
    assert talk.awaits == 1


def test_F014_the_coordinator_may_end_it_at_any_time() -> None:
    """With the status that it says."""
    for talk in (Talk(), accepted()):
        talk.tell(Over(StatusError(Status.DEADLINE_EXCEEDED, "too late")))
        assert talk.error.status is Status.DEADLINE_EXCEEDED


def test_F015_a_client_that_does_not_half_close_is_left_with_ok() -> None:
    """Behind the last answer whatever the coordinator says means OK: the client has all."""
    talk = accepted()
    talk.say(report())
    talk.tell(ReportTaken(), Over(Cancelled("any")))
    assert talk.close is not None
    assert talk.close.error is None


def test_F015_a_client_that_half_closes_early_still_gets_its_answer() -> None:
    """Behind the report it has nothing more to say."""
    talk = accepted()
    talk.say(report())
    talk.half_close()
    assert talk.close is None
    assert talk.tell(ReportTaken()) == ["report_response"]
    assert talk.close is not None
    assert talk.close.error is None


def test_F016_a_report_behind_the_end_of_the_round_is_aborted() -> None:
    """As the coordinator answers it."""
    talk = accepted()
    talk.say(report())
    talk.tell(Over(StatusError(Status.ABORTED, "the round is closed")))
    assert talk.error.status is Status.ABORTED


def test_F017_a_report_is_of_its_own_round_and_population() -> None:
    """Else the round hears nothing of it."""
    for message in (report(phase="phase-2"), report(population="other")):
        talk = accepted()
        talk.say(message)
        refused(talk, "the report is of")
        assert "report" not in talk.coordinator.names()


def test_F028_behind_the_last_answer_nothing_may_come() -> None:
    """Not even what was right before."""
    rejected = Talk()
    rejected.say(checkin())
    assert rejected.tell(Rejected("full")) == ["checkin_response rejection_info"]
    rejected.say(checkin())
    refused(rejected, "after the last answer")


def test_F045_an_eligibility_task_may_be_refused() -> None:
    """The client gets a rejection, and half-closes."""
    talk = Talk(NotedCoordinator(Rejected("incompatible")))
    assert talk.say(trying(ack=False)) == ["eligibility_eval_checkin_response rejection_info"]
    window = talk.heard[0].eligibility_eval_checkin_response.rejection_info.retry_window
    assert window.retry_token == "for the rejected"
    talk.half_close()
    assert talk.close is not None
    assert talk.close.error is None


def test_F059_old_clients_are_told_when_to_come_again() -> None:
    """In the response, if they asked for no ack; with one, there is nothing there."""
    for ack in (False, True):
        rejected, done = Talk(), Talk()
        rejected.say(checkin(ack=ack))
        rejected.tell(Rejected("full"))
        assert rejected.heard[-1].checkin_response.rejection_info.HasField("retry_window") is not ack
        done.say(checkin(ack=ack))
        done.tell(Accepted(OFFER))
        done.say(report())
        done.tell(ReportTaken())
        assert done.heard[-1].report_response.HasField("retry_window") is not ack
        if not ack:
            assert done.heard[-1].report_response.retry_window.retry_token == "for the accepted"
