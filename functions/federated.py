r"""Learning on devices: a logistic regression of iris flowers; each device has a few flowers. Needs numpy.

python -m invoker functions/iris.toml --federated-peer-sessions 100
python -m invoker device functions.federated:train functions.federated:eligible --server localhost:8081 \
    --population iris --examples functions.federated:examples --devices 50

`train` runs on devices, and `mean` on the server, which gets updates but no flowers. With functions/iris_secagg.toml
the server does not even get single updates: `train_secure` returns integers, and secure aggregation passes only their
sum to `mean_secure`. Both write the model to the file that the variable IRIS_MODEL names; `python -m
functions.federated FILE` prints its accuracy.
"""

import csv
import functools
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from invoker import Checkpoint, Update
from invoker.protocols.federated import aggregators
from invoker.protocols.federated.secagg import dequantize, quantize

DATA = Path(__file__).parent / "data" / "iris.csv"
CENTRE, SPREAD = np.array([5.8, 3.0, 3.8, 1.2]), np.array([0.8, 0.4, 1.8, 0.8])
"""The approximate mean and spread of the four lengths, in cm, from general knowledge of the flowers."""

SPECIES = ("setosa", "versicolor", "virginica")
DECAY = 1e-3
MODULUS, SCALE, CLIP = 1 << 32, 1e5, 100.0
"""The scale for secure sums: five decimal places, and room for 200 devices that each change a weight by at most 100."""

Example = tuple[list[float], int]


def initial() -> Checkpoint:
    """The initial weights, all zero: (features + 1, species); the last row is the bias."""
    return Checkpoint({"weights": np.zeros((5, 3))})


def train(checkpoint: Checkpoint, examples: Iterator[Example], learning_rate: float = 0.5, steps: int = 5) -> Update:
    """Train with the device's own flowers, by a few steps of gradient descent. Runs on the device."""
    lengths, labels = zip(*examples, strict=True)
    features = np.hstack([(np.array(lengths) - CENTRE) / SPREAD, np.ones((len(lengths), 1))])
    wanted, weights = np.eye(len(SPECIES))[list(labels)], checkpoint["weights"].copy()
    for _ in range(steps):
        slope = features.T @ (_softmax(features @ weights) - wanted) / len(features)
        weights -= learning_rate * (slope + DECAY * weights)
    return Update({"weights": weights}, examples=len(labels))


def eligible(checkpoint: Checkpoint, examples: Iterator[Example]) -> dict[str, float]:
    """The device is eligible for the task `train` if it has a flower. Runs on the device."""
    return {"train": 1.0} if next(examples, None) is not None else {}


def mean(updates: Iterator[Update], model: Checkpoint) -> Checkpoint:
    """The mean of the devices' weights, weighted by the number of flowers; prints its accuracy. Runs on the server."""
    return _told(aggregators.mean(updates, model))


def train_secure(
    checkpoint: Checkpoint, examples: Iterator[Example], learning_rate: float = 0.5, steps: int = 5
) -> Update:
    """Train, and return the change of the weights as integers, for secure aggregation. Runs on the device."""
    update = train(checkpoint, examples, learning_rate, steps)
    change = (update["weights"] - checkpoint["weights"]) * update.examples
    flowers = np.array([update.examples], np.uint64)
    return Update({"weights": quantize(change, scale=SCALE, modulus=MODULUS, clip=CLIP), "flowers": flowers})


def mean_secure(updates: Iterator[Update], model: Checkpoint) -> Checkpoint:
    """Add the mean change to the model; the only update is the sum over all devices. Runs on the server."""
    (total,) = updates
    change = dequantize(total["weights"], scale=SCALE, modulus=MODULUS) / int(total["flowers"][0])
    return _told(Checkpoint({"weights": model["weights"] + change.reshape(5, 3)}))


def examples(device: int = 0, devices: int = 50) -> list[Example]:
    """The flowers of the device with this number, from 0; each flower is on exactly one device, in random order."""
    return [flowers()[index] for index in _shuffled()[device::devices]]


def central(rounds: int, learning_rate: float = 0.5, steps: int = 5) -> Checkpoint:
    """The same model, trained in one place with all flowers, by as many steps as ``rounds`` rounds have."""
    everything = iter(flowers())
    return Checkpoint({"weights": train(initial(), everything, learning_rate, rounds * steps)["weights"]})


def accuracy(model: Checkpoint) -> float:
    """The fraction of all flowers that the model classifies correctly."""
    lengths, labels = zip(*flowers(), strict=True)
    features = np.hstack([(np.array(lengths) - CENTRE) / SPREAD, np.ones((len(lengths), 1))])
    return float(((features @ model["weights"]).argmax(1) == np.array(labels)).mean())


@functools.cache
def flowers() -> list[Example]:
    """All flowers: four lengths in cm, and the number of the species."""
    with DATA.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [([float(one) for one in row[:4]], SPECIES.index(row[4])) for row in rows]


@functools.cache
def _shuffled() -> list[int]:
    order = list(range(len(flowers())))
    random.Random(1936).shuffle(order)
    return order


def _told(model: Checkpoint) -> Checkpoint:
    print(f"accuracy {accuracy(model):.3f}", flush=True)
    if path := os.environ.get("IRIS_MODEL"):
        np.savez(path, **dict(model))
    return model


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


if __name__ == "__main__":
    with np.load(sys.argv[1]) as file:
        print(f"this model {accuracy(Checkpoint(dict(file))):.3f}, trained in one place {accuracy(central(20)):.3f}")
