"""Who takes part: eligibility, attestation, tokens, and the choice among tasks."""

from __future__ import annotations

from collections import Counter

import pytest

from invoker.protocols.federated.config import SecAggConfig
from invoker.protocols.federated.messages import Capabilities, Checkin, Eligibility, Rejected, Verdict, Window
from tests.protocols.federated.house import CAN, Client, House, population, task

SECAGG = {"w": (5, 3)}


class Seals:
    """Tokens that say themselves what they are worth."""

    def make(self, name: str, delay_min_s: float, delay_max_s: float) -> str:
        return f"{name} {delay_min_s:g} {delay_max_s:g}"

    def judge(self, name: str, token: str) -> Verdict:
        return {"early": Verdict.EARLY, "good " + name: Verdict.IN_WINDOW}.get(token, Verdict.ABSENT)


def ask(coordinator: House, name: str = "iris", **more: object) -> object:
    return coordinator.coordinator.eligibility(coordinator.client(), Checkin(name, can=CAN, **more))


def test_F040_an_eligibility_task_is_handed_out_with_an_id_of_its_own():
    """The id is the same for all clients; a population without such a task says so."""
    coordinator = House(population("iris", eligibility=True), population("other"))
    got = [ask(coordinator) for _ in range(2)]
    assert isinstance(got[0], Eligibility)
    assert got[0] == got[1]
    assert (got[0].plan.data, got[0].checkpoint.data, got[0].spec) == (b"which", b"start", b"spec")
    assert len(got[0].execution_id) >= 20
    assert ask(coordinator, "other") is None


def secure(name: str = "safe", **more: object):
    return task(name, secagg=SecAggConfig(vectors=SECAGG), **more)


def test_F040_a_client_that_fits_no_task_is_rejected_before_it_evaluates_anything():
    """One without secure aggregation, where all tasks need that."""
    coordinator = House(
        population("iris", secure(), eligibility=True), population("other", secure(), task(), eligibility=True)
    )
    simple = Capabilities(chunks=True)
    assert coordinator.coordinator.eligibility(coordinator.client(), Checkin("iris", can=simple)) == Rejected(
        "incompatible"
    )
    assert isinstance(
        coordinator.coordinator.eligibility(coordinator.client(), Checkin("other", can=simple)), Eligibility
    )
    assert isinstance(ask(coordinator), Eligibility)


def test_F088_a_task_with_secure_aggregation_takes_only_clients_that_know_it():
    """Others are rejected, or get another task."""
    simple = Capabilities(chunks=True)
    coordinator = House(
        population("iris", secure()), population("other", secure(max_clients=40, goal_clients=40), task())
    )
    assert coordinator.client().check_in(can=simple).notices == [Rejected("incompatible")]
    made = coordinator.clients(2, "other", can=simple)
    assert [one.offer.task for one in made] == ["train", "train"]


def test_F041_where_there_is_an_eligibility_task_a_checkin_needs_its_result():
    """Without one it is rejected, which is no error."""
    coordinator = House(population("iris", eligibility=True))
    assert coordinator.client().check_in().notices == [Rejected("no_eligibility")]
    assert coordinator.client().check_in(weights={"train": 1.0}).is_waiting


def test_F042_weights_without_an_eligibility_task_are_a_filter():
    """Only tasks that are listed are assigned."""
    coordinator = House(
        population("iris", task("a", max_clients=50, goal_clients=50), task("b", max_clients=50, goal_clients=50))
    )
    coordinator.clients(20, weights={"b": 1.0})
    assert [one.waiting for one in coordinator.coordinator.status()] == [0, 20]


@pytest.mark.parametrize("weights", [{}, {"other": 1.0}])
def test_F043_a_client_that_is_eligible_for_nothing_is_rejected(weights):
    """An empty list, or one of tasks that nobody has (F-045)."""
    assert House(population()).client().check_in(weights=weights).notices == [Rejected("ineligible")]


def test_F045_another_version_of_eligibility_is_rejected():
    """Its weights may mean anything; without weights the version means nothing."""
    coordinator = House(population())
    one = coordinator.client().check_in(weights={"train": 1.0}, weights_version=2)
    assert one.notices == [Rejected("eligibility_version")]
    assert coordinator.client().check_in(weights_version=2).is_waiting


def test_F046_tasks_are_assigned_by_weight_among_those_that_are_open():
    """The same seed assigns the same; a task that is full is not chosen, even if its weight is great."""

    def assigned(seed: int, size: int) -> list[str]:
        tasks = [task(name, goal_clients=size, max_clients=size) for name in "ab"]
        coordinator = House(population("iris", *tasks, seed=seed))
        made = [coordinator.client().check_in(weights={"a": 1.0, "b": 3.0}) for _ in range(200)]
        coordinator.passes(60)
        return [one.offer.task if one.offer else "-" for one in made]

    assert assigned(1, 1000) == assigned(1, 1000) != assigned(2, 1000)
    assert 130 <= Counter(assigned(1, 1000))["b"] <= 170
    assert Counter(assigned(1, 90)) == {"a": 90, "b": 90, "-": 20}


@pytest.mark.parametrize(("answer", "takes"), [(True, True), (False, False), (1, False), (None, False)])
def test_D17_the_operator_judges_measurements(answer, takes):
    """Anything but True is a refusal, in both checkins; it is told as a rejection."""
    asked: list[str] = []

    def attest(measurement: str) -> object:
        asked.append(measurement)
        return answer

    coordinator = House(population("iris", attest=attest))
    client = coordinator.client().check_in(attestation="m1")
    assert client.is_waiting if takes else client.notices == [Rejected("attestation")]
    assert ask(coordinator, attestation="m2") == (None if takes else Rejected("attestation"))
    assert asked == ["m1", "m2"]


def test_D17_a_judge_that_raises_has_not_agreed(caplog):
    """The client is rejected, the log tells of it."""

    def attest(measurement: str) -> object:
        raise ValueError("no such format")

    coordinator = House(population("iris", attest=attest))
    assert coordinator.client().check_in(attestation="secret").notices == [Rejected("attestation")]
    assert "the attestation function raised" in caplog.text
    assert "secret" not in caplog.text


def test_F055_a_token_before_its_time_is_rejected():
    """At both checkins, whatever the round needs; a population without tokens takes none for anything."""
    coordinator = House(population("iris", tokens=Seals()))
    assert coordinator.client().check_in(retry_token="early").notices == [Rejected("early")]
    assert ask(coordinator, retry_token="early") == Rejected("early")
    assert coordinator.client().check_in(retry_token="forged").is_waiting
    assert House(population()).client().check_in(retry_token="early").is_waiting


def test_F055_clients_with_a_good_token_are_preferred():
    """They are chosen first when there are more than enough, and take the place of others when no more may wait."""
    few = task(min_clients=1, goal_clients=2, max_clients=3)
    coordinator = House(population("iris", few, tokens=Seals()))
    plain = [coordinator.client().check_in() for _ in range(3)]
    good = [coordinator.client().check_in(retry_token="good iris")]
    assert plain[2].notices == [Rejected("full")]
    good.append(coordinator.client().check_in(retry_token="good iris"))
    assert plain[1].notices == [Rejected("full")]
    coordinator.passes(0)
    assert [bool(one.offer) for one in good] == [True, True]
    assert plain[0].notices == [Rejected("full")]


def test_F055_clients_with_good_tokens_do_not_displace_each_other():
    """When all that wait have one, the next is rejected."""
    coordinator = House(population("iris", tokens=Seals()))
    good = [coordinator.client().check_in(retry_token="good iris") for _ in range(3)]
    assert [one.notices for one in good] == [[], [], [Rejected("full")]]


def test_F056_windows_are_those_of_the_file_with_tokens_for_them():
    """One for clients that are accepted, one for all others; without tokens there are none in them."""
    times = {"retry_min_s": 1.0, "retry_max_s": 2.0, "rejected_min_s": 3.0, "rejected_max_s": 4.0}
    coordinator = House(population("iris", tokens=Seals(), **times), population("other", **times))
    windows = coordinator.coordinator.windows(coordinator.client(), Checkin("iris"))
    assert windows == (Window(1, 2, "iris 1 2"), Window(3, 4, "iris 3 4"))
    assert coordinator.coordinator.windows(coordinator.client(), Checkin("other")) == (Window(1, 2), Window(3, 4))


def test_F138_tasks_of_a_population_run_rounds_at_once():
    """One that fails leaves the other as it is."""
    coordinator = House(population("iris", task("a"), task("b")))
    made: dict[str, list[Client]] = {"a": [], "b": []}
    for name in "abba":
        made[name].append(coordinator.client().check_in(weights={name: 1.0}))
    coordinator.passes(0)
    for one in made["b"]:
        one.report(b"b")
    made["a"][0].report(b"a")
    b, a = sorted(coordinator.rounds, key=lambda one: len(one.reports), reverse=True)
    b.take().finish(b"model b")
    assert coordinator.stored().task == "b"
    made["a"][1].leave()
    assert a.is_abandoned
    assert [(one.task, one.outcome) for one in coordinator.coordinator.tally.records] == [
        ("b", "committed"),
        ("a", "failed"),
    ]
    (again, other) = (coordinator.client().check_in(weights={name: 1.0}) for name in "ab")
    coordinator.clients(1, weights={"a": 1.0})
    coordinator.clients(1, weights={"b": 1.0})
    assert (again.offer.checkpoint.data, other.offer.checkpoint.data) == (b"model 0", b"model b")
