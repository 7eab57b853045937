"""Thousands of random lives of a coordinator: devices come, go and report, time passes, functions and the store fail.

Whatever happens, each device hears one ending, counts add up, and no report is counted twice or half.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from invoker.errors import FunctionError, InvocationError, ShuttingDown
from invoker.protocols.federated.coordinator import CoordinatorLimits
from invoker.protocols.federated.messages import Checkin, Over, Rejected, ReportTaken
from invoker.protocols.federated.tally import RoundRecord
from tests.protocols.federated.house import Aggregator, Client, House, caught, population, task

LIVES = 320
STEPS = 800


class Life:
    """One random life; `step` does something, `check` looks at everything."""

    def __init__(self, seed: int) -> None:
        self.dice = dice = Random(seed)
        tasks = []
        for name in "ab"[: dice.randint(1, 2)]:
            least = dice.randint(1, 4)
            goal = least + dice.randint(0, 4)
            numbers = {"min_clients": least, "goal_clients": goal, "max_clients": goal + dice.randint(0, 5)}
            tasks.append(task(name, **numbers, over_selection=dice.choice([1.0, 1.3, 2.0]), checker=lambda _: check))
        self.house = House(
            population("iris", *tasks, eligibility=dice.random() < 0.3 or None),
            population("other", task(checker=lambda _: check)),
            limits=CoordinatorLimits(sessions=40, report_bytes=300_000),
        )
        self.here: list[Client] = []
        self.all: list[Client] = []
        self.updates: dict[bytes, Client] = {}
        self.sizes: dict[Client, int] = {}
        self.left: dict[Client, int] = {}
        self.jobs: list[Callable[[], None]] = []
        if dice.random() < 0.5:
            self.house.compute = lambda job, then: self.jobs.append(lambda: then(caught(job)))
        self.tasks = [one for each in self.house.coordinator._populations.values() for one in each.tasks.values()]

    def step(self) -> None:
        act = self.dice.choice(ACTS)
        act(self)
        for one in self.left:
            assert len(one.notices) == self.left[one], "something was told to a device that has left"

    # What may happen.

    def enter(self) -> None:
        try:
            self.here.append(self.house.client())
        except ShuttingDown:
            pass
        except InvocationError:
            assert len(self.here) >= 40
        else:
            self.all.append(self.here[-1])

    def any(self) -> Client | None:
        return self.dice.choice(self.here) if self.here else None

    def evaluate(self) -> None:
        one = self.any()
        if one is not None and not one.ever:
            one.ever = "evaluating"
            got = self.house.coordinator.eligibility(one, Checkin("iris"))
            if isinstance(got, Rejected):
                one.ever = "done"

    def check_in(self) -> None:
        one = self.any()
        if one is not None and one.ever in ("", "evaluating"):
            one.ever = "in"
            weights = self.dice.choice([None, {"a": 1.0}, {"a": 1.0, "b": 2.0}, {}])
            one.check_in(self.dice.choice(["iris", "iris", "iris", "other"]), weights=weights)

    def announce(self) -> None:
        one = self.any()
        if one is not None and one.offer and one.ever == "in":
            one.ever = "announced"
            size = self.dice.choice([100, 100, 100_000, 200_000, 900_000])
            self.sizes[one] = size
            one.may = self.house.coordinator.may_receive(one, size, size)

    def report(self) -> None:
        one = self.any()
        if one is None or one.ever != "announced" or not (one.may or one.was_resumed):
            return
        one.ever = "reported"
        update = (b"%d " % len(self.updates)).ljust(self.sizes[one], b".")
        if self.dice.random() < 0.1:
            update = update[:-1] + b"!"
        one.status = 13 if self.dice.random() < 0.1 else 0
        self.updates[update] = one
        if self.dice.random() < 0.5:
            self.house.coordinator.received(one)
            one.report(update, status=one.status)
        else:
            one.report(update, status=one.status)
            self.house.coordinator.received(one)

    def leave(self) -> None:
        one = self.any()
        if one is not None and (one.ending is not None or self.dice.random() < 0.1):
            self.go(one)

    def go(self, one: Client) -> None:
        self.here.remove(one)
        self.left[one] = len(one.notices)
        one.leave()

    def obey(self) -> None:
        """Sessions do what they are told: whoever is over leaves."""
        for one in list(self.here):
            if any(isinstance(notice, Over) for notice in one.notices):
                self.go(one)

    def wait(self) -> None:
        self.house.passes(self.dice.choices([0, 0.1, 1, 61, 601], [20, 10, 10, 3, 1])[0])

    def take(self) -> None:
        for one in self.running():
            one.take(self.dice.randint(0, 6))

    def finish(self) -> None:
        for one in self.running():
            if (one.has_enough and one.taken == len(one.reports)) or self.dice.random() < 0.004:
                one.is_over = True
                one.finish(b"model", FunctionError("no") if self.dice.random() < 0.1 else None)

    def obey_abandon(self) -> None:
        for one in self.running():
            if one.is_abandoned:
                one.is_over = True
                one.finish(error=FunctionError("given up"))

    def running(self) -> list[Aggregator]:
        return [one for one in self.house.rounds if not one.is_over]

    def compute(self) -> None:
        if self.jobs:
            self.jobs.pop(self.dice.randrange(len(self.jobs)))()

    def store(self) -> None:
        if self.house.commits:
            _, done = self.house.commits.pop(self.dice.randrange(len(self.house.commits)))
            done(self.dice.random() < 0.9)

    # What must be true.

    def check(self) -> None:
        """At the end, when everybody has left."""
        records = {one.phase_id: one for one in self.house.coordinator.tally.records}
        accepted = Counter(one.offer.phase_id for one in self.all if one.offer)
        assert accepted == {phase_id: one.accepted for phase_id, one in records.items()}
        taken: Counter[bytes] = Counter()  # in rounds that count
        for one in self.house.rounds:
            record = records[one.session._hears.phase_id]
            if record.outcome == "committed":
                assert len(one.updates) == record.ok
                taken.update(one.updates)
        assert not [update for update, many in taken.items() if many > 1], "a report was counted twice"
        for one in records.values():
            parts = (one.ok, one.failed, one.invalid, one.late, one.dropped, one.cut)
            assert one.accepted == sum(parts), one
            assert min(parts) >= 0
            config = next(t.setup.config for t in self.tasks if t.setup.config.name == one.task)
            assert config.min_clients <= one.accepted <= config.cohort
            assert one.ok <= config.goal_clients
            assert one.ok >= config.min_clients or one.outcome == "failed"
        for one in self.all:
            self.check_client(one, taken, records)
        tally = self.house.coordinator.tally
        assert not +tally.states
        assert self.house.coordinator.held_bytes == 0
        assert self.house.coordinator.next_tick() is None
        assert sum(tally.accepted.values()) == sum(tally.reports.values()) == sum(accepted.values())

    def check_client(self, one: Client, taken: Counter[bytes], records: dict[str, RoundRecord]) -> None:
        mine = [update for update, sender in self.updates.items() if sender is one]
        was_taken = any(update in taken for update in mine)
        if one.ending == ReportTaken() and records[one.offer.phase_id].outcome == "committed":
            assert was_taken or one.status == 13
        elif isinstance(one.ending, (Over, Rejected)):
            assert not was_taken, "a report was counted whose sender was turned away"
        if one.status == 13 or any(update.endswith(b"!") for update in mine):
            assert not was_taken


def check(update: bytes) -> None:
    if update.endswith(b"!"):
        raise ValueError("it does not fit")


ACTS = [
    *[Life.enter] * 4, Life.evaluate, *[Life.check_in] * 6, *[Life.announce] * 5, *[Life.report] * 6,
    Life.leave, *[Life.obey] * 3, *[Life.wait] * 2, *[Life.take] * 3, *[Life.finish] * 2, Life.obey_abandon,
    *[Life.store] * 2, *[Life.compute] * 3,
]  # fmt: skip


@pytest.mark.parametrize("block", range(4))
def test_F053_no_report_is_counted_twice_or_half_whatever_happens(block):
    """Three hundred lives of 800 steps; see the module for what is checked."""
    outcomes: Counter[str] = Counter()
    for seed in range(block * LIVES // 4, (block + 1) * LIVES // 4):
        life = Life(seed)
        for _ in range(STEPS):
            life.step()
        if seed % 2:
            life.house.coordinator.drain()
            for _ in range(20):
                life.step()
        life.house.coordinator.stop()
        assert all(one.ending is not None or one.ever == "done" for one in life.here), "a device waits for ever"
        for one in list(life.here):
            life.go(one)
        for job in life.jobs:
            job()
        for one in life.running():
            one.finish(error=FunctionError("given up"))
        life.check()
        outcomes.update(one.outcome + one.reason for one in life.house.coordinator.tally.records)
    assert {"committed", "failedaggregation", "failedcommit", "failedtoo_few", "failedclosed"} <= set(outcomes), (
        outcomes
    )
