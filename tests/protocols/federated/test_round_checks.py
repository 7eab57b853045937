"""Rounds of one task: updates are checked before they count."""

from __future__ import annotations

from collections.abc import Callable

from invoker.errors import Status
from tests.protocols.federated.house import Client, House, caught
from tests.protocols.federated.onetask import LARGE, accepted, house


def fits(_: bytes) -> Callable[[bytes], object]:
    """A check that takes what does not end with an exclamation mark."""

    def check(update: bytes) -> None:
        if update.endswith(b"!"):
            raise ValueError("it does not fit")

    return check


def checking(many: int, **numbers: object) -> tuple[House, list[Client], list[Callable[[], None]]]:
    """A house whose checks end when a test says so."""
    coordinator = house(min_clients=1, goal_clients=many, max_clients=many, checker=fits, **numbers)
    jobs: list[Callable[[], None]] = []
    coordinator.compute = lambda job, then: jobs.append(lambda: then(caught(job)))
    return coordinator, accepted(coordinator, many), jobs


def test_F086_updates_are_checked_beside_the_loop_however_small_they_are():
    """Few bytes may inflate to many. They are fed in the order in which their checks end."""
    coordinator, made, jobs = checking(4)
    for one, update in zip(made, (LARGE + b"0", b"!", LARGE + b"2", b"l"), strict=True):
        one.report(update)
    assert not coordinator.round().reports
    assert coordinator.coordinator.held_bytes == 2 * len(LARGE) + 4
    for job in reversed(jobs):
        job()
    assert [one.message.payload[-1:] for one in coordinator.round().reports] == [b"l", b"2", b"0"]
    assert made[1].error.status == Status.INVALID_ARGUMENT
    coordinator.round().take().finish()
    coordinator.stored()
    assert (coordinator.coordinator.tally.records[-1].ok, coordinator.coordinator.tally.records[-1].invalid) == (3, 1)
    assert coordinator.coordinator.held_bytes == 0


def test_F053_a_report_that_is_still_checked_when_its_round_closes_does_not_count():
    """Its device has heard ABORTED, or has left; its room is free when the check has ended."""
    coordinator, made, jobs = checking(3, report_timeout_s=5.0)
    made[0].report(b"small")
    jobs.pop()()
    made[1].report(LARGE)
    made[2].report(LARGE)
    made[2].leave()
    coordinator.passes(5)
    assert made[1].error.status == Status.ABORTED
    for job in jobs:
        job()
    assert [one.message.payload for one in coordinator.round().reports] == [b"small"]
    coordinator.round().take().finish()
    coordinator.stored()
    (record,) = coordinator.coordinator.tally.records
    assert (record.ok, record.late, record.dropped) == (1, 1, 1)
    assert coordinator.coordinator.held_bytes == 0
