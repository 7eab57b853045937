"""`invoker.protocols.federated.coordinator`: large reports wait for room."""

from __future__ import annotations

from invoker.errors import DeadlineExceeded, Status, StatusError
from invoker.protocols.federated.coordinator import CoordinatorLimits
from invoker.protocols.federated.gate import SMALL_BYTES
from tests.protocols.federated.house import Client, House, population, task

LARGE = 1_000_000


def may(client: Client, size: int = LARGE) -> bool:
    """Whether all of a message may come."""
    return client.house.coordinator.may_receive(client, size, size)


def test_F081_large_reports_wait_for_room():
    """Until the function has taken others; a device that leaves makes room, too."""
    several = task(min_clients=1, goal_clients=5, max_clients=5)
    coordinator = House(population("iris", several), limits=CoordinatorLimits(report_bytes=2 * LARGE))
    one, two, third, fourth, fifth = coordinator.clients(5)
    assert may(one)
    assert may(two)
    for ready in (one, two):
        ready.report(b"x" * LARGE)
        coordinator.coordinator.received(ready)
    assert not may(third)
    assert not may(fourth)
    assert coordinator.coordinator.held_bytes == 2 * LARGE
    coordinator.round().take(1)
    assert third.was_resumed
    assert fourth.was_resumed
    assert not may(fifth)
    third.leave()
    assert not fifth.was_resumed
    fourth.leave()
    assert fifth.was_resumed
    coordinator.coordinator.received(fifth)
    assert coordinator.coordinator.held_bytes == LARGE


def test_F138_a_population_whose_function_is_slow_holds_up_no_other():
    """All room is taken by its reports; those of the other one come, one at a time."""
    several = task(min_clients=1, goal_clients=2, max_clients=2)
    coordinator = House(
        population("a", several), population("b", several), limits=CoordinatorLimits(report_bytes=LARGE)
    )
    slow, waits = coordinator.clients(2, "a")
    slow.report(b"x" * LARGE)
    assert not may(waits)
    for one in coordinator.clients(2, "b"):
        assert may(one)
        one.report(b"x" * LARGE)
        coordinator.rounds[-1].take()
    assert not waits.was_resumed


def test_F081_a_device_that_is_over_is_not_resumed():
    """It has waited for room for longer than its round."""
    coordinator = House(
        population("iris", task(min_clients=1, report_timeout_s=5.0)), limits=CoordinatorLimits(report_bytes=LARGE)
    )
    slow, late = coordinator.clients(2)
    assert may(slow, 2 * LARGE)
    assert not may(late)
    coordinator.passes(5)
    slow.leave()
    assert late.error.status == Status.ABORTED
    assert not late.was_resumed
    late.leave()
    assert coordinator.coordinator.held_bytes == 0


def test_F081_a_device_that_keeps_others_waiting_is_let_go():
    """It hears DEADLINE_EXCEEDED and counts as dropped; the one that waits goes on."""
    coordinator = House(population("iris", task(min_clients=1)), limits=CoordinatorLimits(report_bytes=LARGE))
    slow, waits = coordinator.clients(2)
    assert may(slow, 2 * LARGE)
    assert not may(waits)
    coordinator.passes(4)
    assert slow.ending is None
    coordinator.passes(10)
    assert isinstance(slow.error, DeadlineExceeded)
    assert waits.was_resumed
    slow.leave()
    coordinator.coordinator.received(waits)
    waits.report(b"x" * LARGE)
    coordinator.round().take().finish()
    coordinator.stored()
    (record,) = coordinator.coordinator.tally.records
    assert (record.ok, record.dropped) == (1, 1)


def test_F081_only_clients_that_were_accepted_may_send_large_messages():
    """Whoever has nothing to report cannot take the room of those that do: RESOURCE_EXHAUSTED."""
    coordinator = House(population())
    entered, waiting = coordinator.client(), coordinator.client().check_in()
    for one in (entered, waiting):
        assert may(one, SMALL_BYTES)
        assert not may(one, SMALL_BYTES + 1)
        assert one.error.status == Status.RESOURCE_EXHAUSTED
    assert coordinator.coordinator.held_bytes == 0
    waiting.leave()
    assert coordinator.coordinator.status()[0].waiting == 0


def test_F081_a_report_needs_room_until_it_is_taken_or_turned_away():
    """Whether its device is still there or not."""
    coordinator = House(population("iris", task(min_clients=1)))
    one, two = coordinator.clients(2)
    one.report(b"x" * LARGE)
    one.leave()
    assert coordinator.coordinator.held_bytes == LARGE
    coordinator.round().take()
    assert coordinator.coordinator.held_bytes == 0
    two.report(b"x" * LARGE)
    assert coordinator.coordinator.held_bytes == LARGE
    coordinator.round().finish(error=StatusError(Status.INTERNAL, "no"))
    assert coordinator.coordinator.held_bytes == 0
