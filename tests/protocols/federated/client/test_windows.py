"""`invoker.protocols.federated.client.windows`: when a device comes again."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.errors import Status
from invoker.protocols.federated.client.messages import Report
from invoker.protocols.federated.client.windows import Windows
from tests.protocols.federated.client.script import (
    NOW,
    Device,
    accepted,
    ack,
    eligibility,
    no_eligibility,
    rejected,
    taken,
    window,
)

PERMANENT = (NOW + 14_400 * 0.8, NOW + 14_400 * 1.2)
TRANSIENT = (NOW + 900 * 0.8, NOW + 900 * 1.2)
ACCEPTED = (NOW + 100, NOW + 100)
REJECTED = (NOW + 200, NOW + 200)
FAILED = Report(status=Status.INTERNAL)


def running() -> Device:
    """A device that was accepted."""
    return Device().start().hear(ack(), no_eligibility(), accepted())


def then(device: Device, *acts: Callable[[Device], object]) -> Device:
    """Go on."""
    for act in acts:
        act(device)
    return device


STATES = {
    "reported": (
        lambda: then(running(), lambda one: one.session.report(Report(b"u")), lambda one: one.hear(taken())),
        ("reported", Status.OK, ACCEPTED),
    ),
    "plan failed and reported": (
        lambda: then(running(), lambda one: one.session.report(FAILED), lambda one: one.hear(taken())),
        ("failed", Status.INTERNAL, ACCEPTED),
    ),
    "accepted, then the round was closed": (
        lambda: then(running(), lambda one: one.session.ended(Status.ABORTED, "too late")),
        ("lost", Status.ABORTED, ACCEPTED),
    ),
    "rejected at the checkin": (
        lambda: Device().start().hear(ack(), no_eligibility(), rejected()),
        ("rejected", Status.OK, REJECTED),
    ),
    "rejected at eligibility": (
        lambda: Device().start().hear(ack(), not_even_asked()),
        ("rejected", Status.OK, REJECTED),
    ),
    "eligible for no task": (
        lambda: then(Device().start().hear(ack(), eligibility()), lambda one: one.session.eligible({})),
        ("ineligible", Status.OK, REJECTED),
    ),
    "eligibility plan failed": (
        lambda: then(
            Device().start().hear(ack(), eligibility()), lambda one: one.session.fail(Status.INTERNAL, "it failed")
        ),
        ("lost", Status.INTERNAL, REJECTED),
    ),
    "lost after the ack": (
        lambda: then(Device().start().hear(ack()), lambda one: one.session.ended(Status.UNAVAILABLE)),
        ("lost", Status.UNAVAILABLE, REJECTED),
    ),
    "lost before the ack": (
        lambda: then(Device().start(), lambda one: one.session.ended(Status.UNAVAILABLE)),
        ("lost", Status.UNAVAILABLE, TRANSIENT),
    ),
    "unknown population": (
        lambda: then(Device().start(), lambda one: one.session.ended(Status.NOT_FOUND)),
        ("lost", Status.NOT_FOUND, PERMANENT),
    ),
    "permanent after acceptance": (
        lambda: then(running(), lambda one: one.session.fail(Status.NOT_FOUND, "plan fetch failed")),
        ("lost", Status.NOT_FOUND, PERMANENT),
    ),
    "aborted before acceptance": (
        lambda: then(Device().start().hear(ack()), lambda one: one.session.abort()),
        ("aborted", Status.CANCELLED, REJECTED),
    ),
}


def not_even_asked() -> pb.ServerStreamMessage:
    """A rejection of the eligibility checkin."""
    response = pb.EligibilityEvalCheckinResponse(rejection_info=pb.RejectionInfo(retry_window=window(5, 5)))
    return pb.ServerStreamMessage(eligibility_eval_checkin_response=response)


@pytest.mark.parametrize("name", STATES)
def test_F058_how_a_conversation_ended_decides_when_the_next_one_begins(name: str) -> None:
    """A window of the ack, or a time of the client's own, for each way to end."""
    make, (end, status, (least, most)) = STATES[name]
    attempt = make().session.attempt()
    assert (attempt.end, attempt.status) == (end, status)
    assert least <= attempt.retry.at <= most
    token = {ACCEPTED: "token-a", REJECTED: "token-r"}.get((least, most), "")
    assert attempt.retry.token == token


@pytest.mark.parametrize(
    ("code", "is_permanent"), [(3, True), (5, True), (12, True), (13, False), (14, False), (7, False)]
)
def test_F058_three_codes_are_permanent(code: int, is_permanent: bool) -> None:
    """NOT_FOUND, INVALID_ARGUMENT and UNIMPLEMENTED, and no others; times are spread by a fifth, both ways."""
    windows = Windows(lambda: NOW, random.Random(3))
    times = [windows.choose(Status(code), was_accepted=False).at for _ in range(500)]
    least, most = PERMANENT if is_permanent else TRANSIENT
    assert least <= min(times) < least + (most - least) / 20
    assert most - (most - least) / 20 < max(times) <= most


def test_F057_a_time_is_drawn_once_and_kept() -> None:
    """The draw is uniform and made when the ack comes; what is left of it has no width."""
    clock, found = [NOW], []
    for seed in range(400):
        clock[0] = NOW
        windows = Windows(lambda: clock[0], random.Random(seed))
        message = pb.CheckinRequestAck(
            retry_window_if_accepted=window(100, 300, "a"), retry_window_if_rejected=window(0, 0)
        )
        windows.acked(message)
        clock[0] = NOW + 50
        first, second = (windows.choose(Status.OK, was_accepted=True) for _ in range(2))
        assert first == second
        assert first.in_s(clock[0]) == first.at - NOW - 50
        assert first.in_s(first.at + 1) == 0
        found.append(first.at - NOW)
    assert 100 <= min(found) < 110
    assert 290 < max(found) <= 300
    assert 190 < sum(found) / len(found) < 210


@pytest.mark.parametrize(("least", "most", "delay"), [(-1, -2, 0), (1234, 1233, 1234), (-5, 0, 0), (7.5, 7.5, 7.5)])
def test_F057_windows_that_cannot_be_are_mended(least: float, most: float, delay: float) -> None:
    """A negative start is now, and an end before the start is the start."""
    windows = Windows(lambda: NOW, random.Random(1))
    one = window(least, most)
    windows.acked(pb.CheckinRequestAck(retry_window_if_accepted=one, retry_window_if_rejected=one))
    assert windows.choose(Status.OK, was_accepted=True).at == NOW + delay


def test_F059_windows_for_old_clients_count_only_without_an_ack() -> None:
    """Ours asks for an ack, so what rejections and answers to reports say is not used."""
    windows = Windows(lambda: NOW, random.Random(1))
    windows.told(window(5, 5, "old"))
    assert windows.choose(Status.OK, was_accepted=True).at == NOW + 5
    windows.acked(ack().checkin_request_ack)
    assert windows.choose(Status.OK, was_accepted=True).at == NOW + 100
    assert windows.choose(Status.OK, was_accepted=False).at == NOW + 200
