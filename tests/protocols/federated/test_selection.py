"""Who waits for a round, and who is chosen."""

from __future__ import annotations

from invoker.protocols.federated.messages import Rejected
from tests.protocols.federated.house import House, population, task


def house(**numbers: object) -> House:
    return House(population("iris", task(**numbers)))


def test_F050_a_selection_that_is_too_small_rejects_all_and_starts_again():
    """At its time limit after the first client, not before; it is no failed round."""
    coordinator = house(goal_clients=5, max_clients=5, min_clients=3)
    one = coordinator.client().check_in()
    coordinator.passes(30)
    (two,) = coordinator.clients(1)
    coordinator.passes(29.9)
    assert one.is_waiting
    coordinator.passes(0.1)
    assert [client.notices for client in (one, two)] == [[Rejected("too_few")]] * 2
    assert not coordinator.rounds
    assert not coordinator.coordinator.tally.records
    assert coordinator.coordinator.tally.selections == {("iris", "train", "too_few"): 1}
    (three,) = coordinator.clients(1)
    coordinator.passes(59)
    assert three.is_waiting


def test_F050_a_round_begins_at_its_time_limit_with_the_least():
    """Exactly min_clients are enough; the others of the cohort are not waited for."""
    coordinator = house(goal_clients=5, max_clients=5, min_clients=3)
    made = coordinator.clients(3)
    assert all(one.is_waiting for one in made)
    coordinator.passes(60)
    assert all(one.offer for one in made)


def test_F050_a_round_begins_when_the_goal_and_those_that_may_be_lost_are_there():
    """Ten times 1.3 are 13."""
    coordinator = house(min_clients=5, goal_clients=10, max_clients=20, over_selection=1.3)
    made = coordinator.clients(12)
    assert all(one.is_waiting for one in made)
    assert coordinator.clients(1)[0].offer
    assert all(one.offer for one in made)


def test_F052_clients_beyond_the_most_are_rejected_at_once():
    """Also while the round reports; those that wait still wait."""
    coordinator = house(min_clients=1, goal_clients=2, max_clients=3, over_selection=1.0)
    made = [coordinator.client().check_in() for _ in range(4)]
    assert made[3].notices == [Rejected("full")]
    assert all(one.is_waiting for one in made[:3])
    coordinator.passes(0)
    assert [one.offer is not None for one in made] == [True, True, False, False]
    assert made[2].notices == [Rejected("full")]
    assert coordinator.client().check_in().notices == [Rejected("full")]


def test_F013_a_client_that_leaves_while_it_waits_gives_its_place_back():
    """The round goes on selecting, with the time limit of the first one."""
    coordinator = house(goal_clients=3, max_clients=3)
    one, two, three = (coordinator.client().check_in() for _ in range(3))
    three.leave()
    coordinator.passes(0)
    assert one.is_waiting
    coordinator.clients(1)
    assert one.offer
    assert two.offer
    assert three.notices == []


def test_a_selection_that_everybody_left_has_no_time_limit():
    """The next client waits as long as any other."""
    coordinator = house()
    coordinator.client().check_in().leave()
    assert coordinator.coordinator.next_tick() is None
    coordinator.passes(30)
    (one,) = coordinator.clients(1)
    coordinator.passes(59)
    assert one.is_waiting
    coordinator.passes(1)
    assert one.notices == [Rejected("too_few")]
