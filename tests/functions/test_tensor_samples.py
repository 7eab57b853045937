"""The samples that take arrays: what they compute, in memory and as they are served by riff."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from functions import edges, iris, similarity
from invoker import Message
from invoker.errors import InvocationError
from invoker.tensors import write_tensor
from invoker.tensors.arrays import to_tensor
from invoker.testing import Harness

TENSOR = "application/vnd.graphpipe.tensor"


def table() -> tuple[np.ndarray, np.ndarray]:
    """Fisher's measurements and species."""
    with iris.DATA.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return np.array([row[:4] for row in rows], np.float32), np.array([row[4] for row in rows])


def sent(value: np.ndarray) -> Message[bytes]:
    """An array as a tensor; without a word it would be JSON, which keeps neither types nor empty sizes."""
    return Message(bytes(write_tensor(to_tensor(value))), media_type=TENSOR)


def test_the_data_are_fishers() -> None:
    """Fifty of each species, with the means that his paper gives."""
    rows, names = table()
    assert rows.shape == (150, 4)
    means = {name: rows[names == name].mean(0).round(3).tolist() for name in np.unique(names)}
    assert {name: np.float32(mean).tolist() for name, mean in means.items()} == {
        "setosa": np.float32([5.006, 3.428, 1.462, 0.246]).tolist(),
        "versicolor": np.float32([5.936, 2.770, 4.260, 1.326]).tolist(),
        "virginica": np.float32([6.588, 2.974, 5.552, 2.026]).tolist(),
    }


def test_the_regression_has_learnt_its_flowers() -> None:
    """At most six of the 150 are taken for another species, and chances add up to one."""
    rows, names = table()
    assert (iris.species(rows) == names).sum() >= 144
    chances = iris.iris(rows)
    assert (chances.dtype, chances.shape) == (np.float32, (150, 3))
    assert np.allclose(chances.sum(1), 1, atol=1e-6)


def test_the_regression_can_tell_flowers_it_has_not_seen() -> None:
    """Trained on two of three flowers of the table, it knows the third."""
    rows, names = table()
    is_left_out = np.arange(150) % 3 == 0
    model = iris.Softmax.trained(rows[~is_left_out].astype(float), names[~is_left_out])
    found = model.names[model.chances(rows[is_left_out]).argmax(1)]
    assert (found == names[is_left_out]).mean() > 0.9


def test_iris_is_served() -> None:
    """Tensors in and out; JSON too; none at all; strings."""
    harness = Harness("functions.iris:iris")
    setosa = np.float32([[5.1, 3.5, 1.4, 0.2]])
    (found,) = harness.run([sent(setosa)], accept=TENSOR)
    assert (found.dtype, found.shape) == (np.float32, (1, 3))
    assert found[0, 0] > 0.9
    assert np.allclose(harness.run([setosa.tolist()], accept="application/json"), found[None])
    (none,) = harness.run([sent(np.zeros((0, 4), np.float32))], accept=TENSOR)
    assert none.shape == (0, 3)
    (names,) = Harness("functions.iris:species").run([setosa], accept=TENSOR)
    assert names.tolist() == [b"setosa"]


def test_edges_are_where_brightness_changes() -> None:
    """Nowhere in a plain image; along the border of black and white."""
    plain = np.full((5, 6, 3), 200, np.uint8)
    assert not edges.edges(plain).any()
    halves = np.zeros((4, 6, 3), np.uint8)
    halves[:, 3:] = 255
    assert edges.edges(halves).tolist() == [[0, 0, 255, 255, 0, 0]] * 4
    assert np.array_equal(edges.edges(halves.transpose(1, 0, 2)), edges.edges(halves).T)


@pytest.mark.parametrize("shape", [(1, 1, 3), (0, 5, 3), (5, 0, 3), (1, 7, 3)])
def test_images_may_be_as_small_as_they_like(shape: tuple[int, ...]) -> None:
    """Also empty."""
    found = edges.edges(np.zeros(shape, np.uint8))
    assert (found.dtype, found.shape, found.any()) == (np.uint8, shape[:2], False)


def test_images_are_streamed() -> None:
    """One answer each."""
    images = [np.zeros((2, 3, 3), np.uint8), np.zeros((4, 1, 3), np.uint8)]
    assert [one.shape for one in Harness("functions.edges:edges").run(map(sent, images), accept=TENSOR)] == [
        (2, 3),
        (4, 1),
    ]


def test_similarity_is_a_cosine() -> None:
    """Of every query with every item."""
    found = similarity.similarity(np.float32([[1, 0], [3, 3], [0, 0]]), np.float32([[0, 2], [5, 0]]))
    assert found.dtype == np.float32
    assert np.allclose(found, [[0, 1], [0.5**0.5, 0.5**0.5], [0, 0]])


def test_similarity_has_two_inputs() -> None:
    """Bound in their order; each pair of messages gives one answer."""
    harness = Harness("functions.similarity:similarity")
    (found,) = harness.run([sent(np.float32([[1, 0], [1, 1]]))], [sent(np.float32([[0, 1]]))], accept=TENSOR)
    assert np.allclose(found, [[0], [0.5**0.5]])


def test_another_type_is_refused() -> None:
    """Nothing is cast without a word."""
    with pytest.raises(InvocationError, match="Float64, not float32"):
        Harness("functions.iris:iris").run([sent(np.zeros((1, 4)))], accept=TENSOR)
