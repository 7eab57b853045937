"""Rounds of secure aggregation with real devices, by a script, and in random lives: they leave, stall and fail.

In random lives each device's vector has a single one at its own place, so a sum shows by itself who is in it.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.errors import Status
from invoker.protocols.federated.config import SecAggConfig
from invoker.protocols.federated.messages import Over, ReportTaken, Secure
from tests.protocols.federated.house import House, population, task
from tests.protocols.federated.trained import Trained

LIVES = 120


def vector(seed: int) -> Any:
    return np.random.default_rng(seed).integers(0, 1000, 20, np.uint64)


@pytest.mark.parametrize(
    ("until", "summed"), [("", 5), ("advertise_keys", 4), ("share_keys_response", 4), ("masked_input_response", 4),
                          ("unmasking_response", 5)]
)  # fmt: skip
def test_F122_a_round_of_real_devices_gives_their_exact_sum(until, summed):
    """The server and the devices of this house; one device leaves where it should send a message."""
    secagg = SecAggConfig(vectors={"w": (2**20, 20)}, dropout_rate=0.3)
    coordinator = House(population("iris", task(secagg=secagg, min_clients=3, goal_clients=5, max_clients=5)))
    made = [Trained(one, vector(seed), until if seed == 2 else "") for seed, one in enumerate(coordinator.clients(5))]
    for one in made:
        one.turn(one.machine.start())
    while any(one.listen() for one in made):
        pass
    (report,) = coordinator.round().reports
    total_ = pb.Checkpoint.FromString(report.message.payload).aggregands["w"].values
    inside = [one for one in made if summed == 5 or one.until == ""]
    assert list(total_) == sum(one.values["w"] for one in inside).tolist()
    assert report.message.headers["num_clients"] == str(summed)
    coordinator.round().take().finish()
    coordinator.stored()
    (record,) = coordinator.coordinator.tally.records
    assert (record.ok, record.dropped, record.summed) == (4 + (until == ""), int(until != ""), summed)
    assert [one.client.ending for one in made if one.until == ""] == [ReportTaken()] * record.ok


def test_F123_devices_that_are_not_needed_any_more_hear_of_early_success_and_then_the_answer():
    """Four of five replies are enough to unmask; the fifth device has not even been asked what it knows."""
    secagg = SecAggConfig(vectors={"w": (2**20, 20)}, dropout_rate=0.2)
    coordinator = House(population("iris", task(secagg=secagg, min_clients=3, goal_clients=5, max_clients=5)))
    made = [Trained(one, vector(seed)) for seed, one in enumerate(coordinator.clients(5))]
    for one in made:
        one.turn(one.machine.start())
    for _ in range(2):
        for one in made:
            one.listen()
    for one in made[:4]:
        one.listen()
    coordinator.round().take()
    *_, asked, early, answer = made[4].client.notices
    assert asked.message.WhichOneof("message_content") == "unmasking_request"
    assert early.message.abort.early_success
    assert answer == ReportTaken()
    assert "unmasking_response" not in made[4].said
    assert made[0].client.notices[-1] == ReportTaken()
    assert not any(one.message.HasField("abort") for one in made[0].client.notices if isinstance(one, Secure))


def test_F129_a_round_of_real_devices_below_its_threshold_has_no_sum():
    """Two of five leave with their shares given, and four must stay: all others hear ABORTED."""
    secagg = SecAggConfig(vectors={"w": (2**20, 20)}, dropout_rate=0.2)
    coordinator = House(population("iris", task(secagg=secagg, min_clients=3, goal_clients=5, max_clients=5)))
    made = [
        Trained(one, vector(seed), "masked_input_response" if seed < 2 else "")
        for seed, one in enumerate(coordinator.clients(5))
    ]
    for one in made:
        one.turn(one.machine.start())
    while any(one.listen() for one in made):
        pass
    assert not coordinator.round().reports
    assert coordinator.coordinator.tally.records[-1].reason == "too_few_clients"
    assert [one.client.error.status for one in made[2:]] == [Status.ABORTED] * 3


def life(seed: int) -> str:
    """One round; gives how it ended."""
    dice = Random(seed)
    size = dice.randint(3, 7)
    secagg = SecAggConfig(vectors={"w": (2**20, size)}, dropout_rate=0.4)
    least = dice.randint(2, 3)
    coordinator = House(population("iris", task(secagg=secagg, min_clients=least, goal_clients=size, max_clients=size)))
    jobs: list[tuple] = []
    if dice.random() < 0.5:
        coordinator.compute = lambda job, then: jobs.append((job, then))
    made = [Trained(one, np.eye(size, dtype=np.uint64)[at]) for at, one in enumerate(coordinator.clients(size))]
    rate = dice.choice([0.0, 0.02, 0.1])
    for one in dice.sample(made, size):
        if dice.random() > rate:
            one.turn(one.machine.start())
    here = set(made)
    for _ in range(400):
        one = dice.choice(made)
        if one in here and (dice.random() < rate / 10 or any(isinstance(n, Over) for n in one.client.notices)):
            here.remove(one)
            one.client.leave()
        elif one in here:
            one.listen()
        if jobs and dice.random() < 0.5:
            job, then = jobs.pop(0)
            then(job())
        if dice.random() < 0.006:
            coordinator.passes(151)
        if coordinator.round().reports and not coordinator.commits:
            coordinator.round().take().finish()
            coordinator.stored()
    settle(coordinator, jobs)
    return check(coordinator, made, here)


def settle(coordinator: House, jobs: list[tuple]) -> None:
    """Time passes until the round has ended."""
    while not coordinator.coordinator.tally.records:
        while jobs:
            job, then = jobs.pop(0)
            then(job())
        if coordinator.round().reports:
            coordinator.round().take().finish()
            coordinator.stored()
        coordinator.passes(50)
        assert coordinator.time < 10_000, "a round goes on for ever"
    coordinator.passes(5)


def check(coordinator: House, made: list[Trained], here: set[Trained]) -> str:
    (record,) = coordinator.coordinator.tally.records
    assert record.accepted == len(made)
    assert record.accepted == sum((record.ok, record.failed, record.invalid, record.late, record.dropped, record.cut))
    for one in here:
        assert one.client.ending is not None, "a device waits for ever"
    if coordinator.round().reports:
        (report,) = coordinator.round().reports
        inside = list(pb.Checkpoint.FromString(report.message.payload).aggregands["w"].values)
        assert set(inside) <= {0, 1}
        assert sum(inside) == int(report.message.headers["num_clients"]) == record.summed
        threshold = made[0].client.offer.secagg.threshold
        assert sum(inside) >= threshold
        for one, is_in in zip(made, inside, strict=True):
            assert not is_in or "masked_input_response" in one.said
            assert is_in or one.client.ending != ReportTaken(), "a device was thanked that is not in the sum"
    for one in here:
        one.client.leave()
    assert not +coordinator.coordinator.tally.states
    assert coordinator.coordinator.next_tick() is None
    return record.outcome + record.reason


@pytest.mark.parametrize("block", range(4))
def test_F124_rounds_of_secure_aggregation_end_whatever_happens(block):
    """Counts add up, whoever is thanked is in the sum, and nothing is left."""
    outcomes = Counter(life(seed) for seed in range(block * LIVES // 4, (block + 1) * LIVES // 4))
    assert outcomes["committed"] > 3
    assert outcomes["failedtoo_few_clients"] > 0
