"""`functions.federated`: learning on devices ends where learning in one place does."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from functions import federated
from invoker import Checkpoint, Update
from invoker.protocols.federated.config import parse
from invoker.testing import Harness

ROOT = Path(__file__).resolve().parents[2] / "functions"
ROUNDS, DEVICES, COHORT = 20, 50, 40
TOLERANCE = 0.02
"""Of accuracy after twenty rounds, against central training by as many steps; docs/tutorial/federated.md tells it."""


def plain(model: Checkpoint, devices: list[int]) -> Checkpoint:
    """One round of functions/iris.toml."""
    updates = [federated.train(model, iter(federated.examples(one, DEVICES))) for one in devices]
    return federated.mean(iter(updates), model)


def secure(model: Checkpoint, devices: list[int]) -> Checkpoint:
    """One round of functions/iris_secagg.toml; sums are made modulo, as unmasking gives them."""
    updates = [federated.train_secure(model, iter(federated.examples(one, DEVICES))) for one in devices]
    sums = {}
    for name, modulus in (("weights", federated.MODULUS), ("flowers", 1 << 20)):
        sums[name] = np.uint64(sum(one[name].reshape(-1).astype(object) for one in updates) % modulus)
    return federated.mean_secure(iter([Update(sums, examples=len(updates))]), model)


def test_each_flower_is_on_one_device() -> None:
    """Fifty devices have three each; seven have all of them, too."""
    for devices, most in ((50, 3), (7, 22)):
        given = [federated.examples(one, devices) for one in range(devices)]
        assert max(map(len, given)) == most
        together = sorted(one for some in given for one in some)
        assert together == sorted(federated.flowers())


@pytest.mark.parametrize("round_", [plain, secure])
def test_twenty_rounds_are_as_good_as_central_training(round_: Callable[[Checkpoint, list[int]], Checkpoint]) -> None:
    """With forty of fifty devices in each round; the first model knows nothing."""
    model, rng = federated.initial(), random.Random(7)
    assert federated.accuracy(model) < 0.4
    for _ in range(ROUNDS):
        model = round_(model, rng.sample(range(DEVICES), COHORT))
    central = federated.accuracy(federated.central(ROUNDS))
    assert central > 0.94
    assert abs(federated.accuracy(model) - central) <= TOLERANCE


def test_a_secure_round_is_a_plain_round() -> None:
    """Of the same devices; integers of five decimal places lose next to nothing."""
    devices = list(range(COHORT))
    one, other = (make(federated.initial(), devices)["weights"] for make in (plain, secure))
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_all_of_them_are_functions_like_any_other() -> None:
    """They run in a harness: plans with a checkpoint and a stream of examples, and aggregators."""
    model, flowers = federated.initial(), federated.examples(3)
    (update,) = Harness(federated.train).run([model], flowers)
    assert update == federated.train(model, iter(flowers))
    assert Harness(federated.eligible).run([model], flowers) == [{"train": 1.0}]
    assert Harness(federated.eligible).run([model], []) == [{}]
    (made,) = Harness(federated.mean).run([update, update], [model])
    np.testing.assert_allclose(made["weights"], update["weights"])


@pytest.mark.parametrize("name", ["iris.toml", "iris_secagg.toml"])
def test_the_rounds_files_are_understood(name: str) -> None:
    """And the vectors of the secure one are those that the plan gives, with room for all devices."""
    (population,) = parse((ROOT / name).read_bytes().decode(), name).populations
    (task,) = population.tasks
    assert task.rounds == ROUNDS
    if task.secagg is not None:
        model = federated.initial()
        update = federated.train_secure(model, iter(federated.examples(0)))
        assert {key: size for key, (_, size) in task.secagg.vectors.items()} == {
            key: one.size for key, one in update.items()
        }
        modulus, _ = task.secagg.vectors["weights"]
        assert modulus == federated.MODULUS
        most = federated.CLIP * federated.SCALE
        assert most * task.cohort < modulus / 2
