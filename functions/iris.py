r"""A model with arrays: a logistic regression that is trained when the function starts. Needs `pip install numpy`.

python -m invoker functions.iris:iris
curl -H 'Content-Type: application/json' -d '[[5.1, 3.5, 1.4, 0.2], [6.3, 3.3, 6.0, 2.5]]' localhost:8080

A flower is four numbers: length and width of its sepals and of its petals, in centimetres. The result has the
probability of each species; `functions.iris:species` returns names instead.
"""

import csv
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray

from invoker import function

DATA = Path(__file__).parent / "data" / "iris.csv"
STEPS = 500
RATE = 0.5
DECAY = 1e-3

Flowers = Annotated[NDArray[np.float32], ("flowers", 4), "sepal length, sepal width, petal length, petal width, in cm"]
Chances = Annotated[NDArray[np.float32], ("flowers", 3), "of setosa, versicolor and virginica"]
Names = Annotated[NDArray[np.str_], ("flowers",), "the most probable species"]


@dataclass(frozen=True)
class Softmax:
    """A logistic regression with several classes; ``weights`` are (features + 1, classes); the last row is the bias."""

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    weights: NDArray[np.float64]
    names: NDArray[np.str_]

    @classmethod
    def trained(cls, rows: NDArray[np.float64], names: NDArray[np.str_]) -> Self:
        """Train by gradient descent over all rows; the result is always the same, since there are no random choices."""
        species, labels = np.unique(names, return_inverse=True)
        made = cls(rows.mean(0), rows.std(0), np.zeros((rows.shape[1] + 1, len(species))), species)
        features, wanted = made._features(rows), np.eye(len(species))[labels]
        for _ in range(STEPS):
            slope = features.T @ (_softmax(features @ made.weights) - wanted) / len(rows)
            made.weights[:] -= RATE * (slope + DECAY * made.weights)
        return made

    def chances(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """The probabilities of the classes, (rows, classes)."""
        return _softmax(self._features(rows) @ self.weights)

    def _features(self, rows: NDArray[np.floating]) -> NDArray[np.float64]:
        return np.hstack([(rows - self.mean) / self.scale, np.ones((len(rows), 1))])


@functools.cache
def model() -> Softmax:
    """Train the model, once per process, when the function starts."""
    with DATA.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return Softmax.trained(np.array([row[:4] for row in rows], float), np.array([row[4] for row in rows]))


@function(init=model)
def iris(flowers: Flowers) -> Chances:
    """The probability of each species, for each flower."""
    return model().chances(flowers).astype(np.float32)


@function(init=model)
def species(flowers: Flowers) -> Names:
    """The most probable species of each flower."""
    return model().names[model().chances(flowers).argmax(1)]


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)
