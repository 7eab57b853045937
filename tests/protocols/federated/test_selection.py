"""Who waits for a round, and who is chosen."""

from __future__ import annotations

from invoker.protocols.federated.messages import Rejected
from tests.protocols.federated.house import House, population, task


def house(**numbers: object) -> House:
    return House(population("iris", task(**numbers)))


def test_F050_a_selection_that_is_too_small_rejects_all_and_starts_again():
    """At its time limit after the first client, not before; it is no failed round."""
    desk = house(goal_clients=5, max_clients=5, min_clients=3)
    one = desk.client().check_in()
    desk.passes(30)
    (two,) = desk.clients(1)
    desk.passes(29.9)
    assert one.is_waiting
    desk.passes(0.1)
    assert [client.notices for client in (one, two)] == [[Rejected("too_few")]] * 2
    assert not desk.rounds
    assert not desk.desk.tally.records
    assert desk.desk.tally.selections == {("iris", "train", "too_few"): 1}
    (three,) = desk.clients(1)
    desk.passes(59)
    assert three.is_waiting


def test_F050_a_round_begins_at_its_time_limit_with_the_least():
    """Exactly min_clients are enough; the others of the cohort are not waited for."""
    desk = house(goal_clients=5, max_clients=5, min_clients=3)
    made = desk.clients(3)
    assert all(one.is_waiting for one in made)
    desk.passes(60)
    assert all(one.offer for one in made)


def test_F050_a_round_begins_when_the_goal_and_those_that_may_be_lost_are_there():
    """Ten times 1.3 are 13."""
    desk = house(min_clients=5, goal_clients=10, max_clients=20, over_selection=1.3)
    made = desk.clients(12)
    assert all(one.is_waiting for one in made)
    assert desk.clients(1)[0].offer
    assert all(one.offer for one in made)


def test_F052_clients_beyond_the_most_are_rejected_at_once():
    """Also while the round reports; those that wait still wait."""
    desk = house(min_clients=1, goal_clients=2, max_clients=3, over_selection=1.0)
    made = [desk.client().check_in() for _ in range(4)]
    assert made[3].notices == [Rejected("full")]
    assert all(one.is_waiting for one in made[:3])
    desk.passes(0)
    assert [one.offer is not None for one in made] == [True, True, False, False]
    assert made[2].notices == [Rejected("full")]
    assert desk.client().check_in().notices == [Rejected("full")]


def test_F013_a_client_that_leaves_while_it_waits_gives_its_place_back():
    """The round goes on selecting, with the time limit of the first one."""
    desk = house(goal_clients=3, max_clients=3)
    one, two, three = (desk.client().check_in() for _ in range(3))
    three.leave()
    desk.passes(0)
    assert one.is_waiting
    desk.clients(1)
    assert one.offer
    assert two.offer
    assert three.notices == []


def test_a_selection_that_everybody_left_has_no_time_limit():
    """The next client waits as long as any other."""
    desk = house()
    desk.client().check_in().leave()
    assert desk.desk.next_tick() is None
    desk.passes(30)
    (one,) = desk.clients(1)
    desk.passes(59)
    assert one.is_waiting
    desk.passes(1)
    assert one.notices == [Rejected("too_few")]
