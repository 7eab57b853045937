"""Whole simulations: what the server counts and what the devices know must fit together."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from invoker.errors import ConfigError
from invoker.protocols.federated.verbs.simulation.simulated_server import House
from tests.protocols.federated.verbs.simulation import functions
from tests.protocols.federated.verbs.simulation.scenes import HERE, rounds, simulate

pytest.importorskip("cryptography")


@pytest.mark.parametrize("dropout", [0.0, 0.3, 1.0])
def test_each_accepted_device_is_counted_once(tmp_path: Path, dropout: float) -> None:
    done = simulate(rounds(tmp_path), dropout=dropout)
    assert done.why == "done"
    assert len(done.results.rounds) == 2
    for one in done.results.rounds:
        lost = one.failed + one.invalid + one.late + one.dropped + one.cut
        assert one.accepted == one.reported + lost
        assert sum(one.left.values()) == one.dropped
        assert (one.outcome, one.why) == (("committed", "") if one.reported >= 10 else ("failed", "too_few"))
        assert set(one.left) <= {"before report"}
    assert (sum(one.dropped for one in done.results.rounds) == 0) == (dropout == 0.0)
    assert sum(done.results.totals.ends.values()) == done.results.totals.conversations


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_the_same_seed_gives_the_same_and_another_one_does_not(tmp_path: Path, dropout: float) -> None:
    path = rounds(tmp_path)

    def told(seed: int) -> bytes:
        done = simulate(path, dropout=dropout, seed=seed, metric=functions.level)
        return msgspec.json.encode((done.results.rounds, done.results.totals), order="sorted")

    first = told(1)
    assert first == told(1)
    assert first != told(2)


def test_the_choice_between_tasks_has_the_seed_too(tmp_path: Path) -> None:
    path = Path(rounds(tmp_path, min_clients=3, goal_clients=6, max_clients=6, rounds=1))
    head, task = path.read_text().split("[[population.task]]")
    path.write_text("[[population.task]]".join((head, task + "\n", task.replace('"train"', '"other"', 1))))

    def told() -> bytes:
        results = simulate(str(path)).results
        assert {one.task for one in results.rounds} == {"train", "other"}
        return msgspec.json.encode(results.rounds, order="sorted")

    assert told() == told() == told()


def test_secure_sums_are_those_of_the_devices_that_stayed(tmp_path: Path) -> None:
    """Each device adds a bit of its own, so the sum tells who is in it."""
    functions.STAYED.clear()
    done = simulate(rounds(tmp_path, secagg=True, rounds=4), dropout=0.15, seed=3)
    committed = [one for one in done.results.rounds if one.outcome == "committed"]
    assert len(committed) == len(functions.STAYED) > 0
    for one, total in zip(committed, functions.STAYED, strict=True):
        assert total.bit_count() == one.summed
        early = sum(many for phase, many in one.left.items() if phase != "R3")
        assert one.summed == one.accepted - early - one.late - one.failed - one.invalid
    assert {"R0", "R1", "R2", "R3"} & set().union(*(one.left for one in done.results.rounds))


def test_devices_that_all_stay_are_all_in_the_secure_sum(tmp_path: Path) -> None:
    functions.STAYED.clear()
    simulate(
        rounds(tmp_path, secagg=True, rounds=1, plan="nowhere:fn"), devices=20, updates=lambda n, _: functions.given(n)
    )
    assert functions.STAYED == [2**20 - 1]


def test_plain_sums_are_those_of_the_devices_that_reported(tmp_path: Path) -> None:
    functions.STAYED.clear()
    done = simulate(rounds(tmp_path), dropout=0.2)
    assert [one.bit_count() for one in functions.STAYED] == [one.reported for one in done.results.rounds]


def test_a_metric_judges_each_checkpoint(tmp_path: Path) -> None:
    functions.STAYED.clear()
    done = simulate(rounds(tmp_path), metric=functions.level)
    assert [one.metric for one in done.results.rounds] == [float(one) for one in functions.STAYED]


def test_a_metric_that_fails_is_told_once(tmp_path: Path) -> None:
    done = simulate(rounds(tmp_path), metric=lambda model: model["missing"])
    assert [one.metric for one in done.results.rounds] == [None, None]
    assert len(done.notes) == 1
    assert "the metric failed: KeyError" in done.notes[0]


def test_a_plan_that_fails_is_told_once_with_the_device(tmp_path: Path) -> None:
    done = simulate(rounds(tmp_path, plan=f"{HERE}:broken", min_clients=1))
    (note,) = done.notes
    assert note.startswith("device ")
    assert int(note.split()[1].rstrip(":")) > 3
    assert "RuntimeError: too many flowers" in note
    assert "functions.py:" in note
    assert sum(one.failed for one in done.results.rounds) > 2


def test_a_plan_that_is_not_here_is_replaced_and_that_is_told(tmp_path: Path) -> None:
    done = simulate(rounds(tmp_path, plan="nowhere:train"))
    assert [one.outcome for one in done.results.rounds] == ["committed", "committed"]
    assert len(done.notes) == 1
    assert "nowhere:train cannot be imported" in done.notes[0]


def test_rounds_that_never_come_about_end_the_simulation(tmp_path: Path) -> None:
    done = simulate(rounds(tmp_path), devices=5)
    assert done.why == "no round of 'p' can take place"
    assert done.results.rounds == []
    assert done.results.totals.ends["rejected"] > 0


def test_random_bytes_that_the_aggregator_cannot_read_are_invalid(tmp_path: Path) -> None:
    path = rounds(tmp_path, aggregate="invoker.aggregators:sum", rounds=1)
    (one,) = simulate(path, update_bytes=1000).results.rounds[:1]
    assert (one.outcome, one.invalid, one.reported) == ("failed", 20, 0)


def test_an_eligibility_task_is_run(tmp_path: Path) -> None:
    more = f'eligibility = "{HERE}:train"'  # it gives no weights, which is an error of the plan
    done = simulate(rounds(tmp_path, more=more))
    assert done.results.totals.ends == {"ineligible": done.results.totals.conversations}
    assert "the eligibility plan failed" in done.notes[0]


def test_a_population_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no population 'q'; it has p"):
        House(rounds(tmp_path), populations=["q"], rounds=0, seed=0)
