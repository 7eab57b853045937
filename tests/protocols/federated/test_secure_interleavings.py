"""Random lives of rounds with secure aggregation: real devices leave, stall and fail, and time passes.

Each device's vector has a single one at its own place, so a sum shows by itself who is in it.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.protocols.federated.config import SecAggConfig
from invoker.protocols.federated.words import Over, ReportTaken
from tests.protocols.federated.house import House, population, task
from tests.protocols.federated.trained import Trained

LIVES = 120


def life(seed: int) -> str:
    """One round; gives how it ended."""
    dice = Random(seed)
    size = dice.randint(3, 7)
    secagg = SecAggConfig(vectors={"w": (2**20, size)}, dropout_rate=0.4)
    least = dice.randint(2, 3)
    desk = House(population("iris", task(secagg=secagg, min_clients=least, goal_clients=size, max_clients=size)))
    jobs: list[tuple] = []
    if dice.random() < 0.5:
        desk.compute = lambda job, then: jobs.append((job, then))
    made = [Trained(one, np.eye(size, dtype=np.uint64)[at]) for at, one in enumerate(desk.clients(size))]
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
            desk.passes(151)
        if desk.round().reports and not desk.commits:
            desk.round().take().finish()
            desk.stored()
    settle(desk, jobs)
    return check(desk, made, here)


def settle(desk: House, jobs: list[tuple]) -> None:
    """Time passes until the round has ended."""
    while not desk.desk.tally.records:
        while jobs:
            job, then = jobs.pop(0)
            then(job())
        if desk.round().reports:
            desk.round().take().finish()
            desk.stored()
        desk.passes(50)
        assert desk.time < 10_000, "a round goes on for ever"
    desk.passes(5)


def check(desk: House, made: list[Trained], here: set[Trained]) -> str:
    (record,) = desk.desk.tally.records
    assert record.accepted == len(made)
    assert record.accepted == sum((record.ok, record.failed, record.invalid, record.late, record.dropped, record.cut))
    for one in here:
        assert one.client.ending is not None, "a device waits for ever"
    if desk.round().reports:
        (report,) = desk.round().reports
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
    assert not +desk.desk.tally.states
    assert desk.desk.next_tick() is None
    return record.outcome + record.reason


@pytest.mark.parametrize("block", range(4))
def test_F124_rounds_of_secure_aggregation_end_whatever_happens(block):
    """Counts add up, whoever is thanked is in the sum, and nothing is left."""
    outcomes = Counter(life(seed) for seed in range(block * LIVES // 4, (block + 1) * LIVES // 4))
    assert outcomes["committed"] > 3
    assert outcomes["failedtoo_few_clients"] > 0
