"""`invoker.protocols.federated.aggregators`: means and sums of updates, and which updates are refused."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from invoker import Checkpoint, Update
from invoker.codecs.checkpoint import CHECKPOINT, write_checkpoint
from invoker.errors import CallError, DecodeError
from invoker.message import Message
from invoker.protocols.federated.aggregators import checker, mean
from invoker.protocols.federated.aggregators import sum as total
from invoker.testing import Harness

MODEL = Checkpoint({"w": np.float32([[0, 0], [0, 0]]), "b": np.float64([0]), "n": np.int64(0)})


def update(seed: int, examples: float = 1.0) -> Update:
    """Any update that fits."""
    rng = np.random.default_rng(seed)
    arrays = {"w": rng.normal(size=(2, 2)).astype(np.float32), "b": rng.normal(size=1), "n": rng.integers(100)}
    return Update(arrays, examples=examples)


def test_F085_the_mean_is_that_of_numpy() -> None:
    """Three clients, weighted by their examples, through the codec and the drivers; dtypes are the model's."""
    updates = [update(seed, examples) for seed, examples in enumerate((1, 4, 2.5))]
    (found,) = Harness("invoker.aggregators:mean").run(updates, [MODEL])
    assert {name: array.dtype for name, array in found.items()} == {name: one.dtype for name, one in MODEL.items()}
    for name in ("w", "b"):
        expected = np.average([one[name] for one in updates], axis=0, weights=[1, 4, 2.5])
        np.testing.assert_allclose(found[name], expected, rtol=1e-6)
    assert found["n"] == round(float(np.average([one["n"] for one in updates], weights=[1, 4, 2.5])))


def test_without_weight_the_model_stays() -> None:
    """No updates, or none that has learned from anything."""
    assert mean(iter(()), MODEL) is MODEL
    assert mean(iter([update(1, 0)]), MODEL) is MODEL


def test_F085_the_sum_is_that_of_numpy() -> None:
    """Integers stay exact up to 64 bits; flat vectors get the shape of the model's."""
    updates = [update(seed) for seed in range(3)]
    found = total(iter(updates), MODEL)
    for name in MODEL:
        np.testing.assert_allclose(found[name], np.sum([one[name] for one in updates], axis=0), rtol=1e-6)
    flat = Update({"w": np.uint64([1, 2, 3, 2**62])})
    model = Checkpoint({"w": np.zeros((2, 2))})
    assert total(iter([flat, flat]), model)["w"].tolist() == [[2, 4], [6, 2**63]]
    assert total(iter([flat, flat]), Checkpoint())["w"].tolist() == [2, 4, 6, 2**63]
    assert total(iter(()), model) == Checkpoint()


def test_sums_do_not_wrap_round() -> None:
    """More than 64 bits is an error, for either sign; other kinds of numbers meet in one that holds both."""
    for one, other in ((np.uint64(2**63), np.uint64(2**63)), (np.int64(-(2**63)), np.int64(-1))):
        with pytest.raises(ValueError, match="the sum of 'n' needs more than 64 bits"):
            total(iter([Update({"n": one}), Update({"n": other})]), Checkpoint())
    mixed = total(iter([Update({"n": np.int8(-1)}), Update({"n": np.float32(0.5)})]), Checkpoint())
    assert (mixed["n"].dtype, float(mixed["n"])) == (np.float64, -0.5)
    assert total(iter([Update({"n": [True]}), Update({"n": [True]})]), Checkpoint())["n"].tolist() == [2]


@pytest.mark.parametrize("function", [mean, total])
def test_memory_does_not_grow_with_the_updates(function: Any) -> None:
    """Two hundred updates of 800 kB take the memory of a few."""
    model = Checkpoint({"w": np.zeros(100_000)})

    def many() -> Iterator[Update]:
        for _ in range(200):
            yield Update({"w": np.ones(100_000)})

    tracemalloc.start()
    try:
        function(many(), model)
        assert tracemalloc.get_traced_memory()[1] < 8 * 800_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({"v": [1.0]}, "it has the arrays 'v'; the model has 'w'"),
        ({"w": [1.0, 2.0], "v": [1]}, "it has the arrays 'v', 'w'"),
        ({}, "it has the arrays none"),
        ({"w": [[1.0, 2.0]]}, r"the shape of 'w' is \[1, 2\], and the model's \[2\]"),
        ({"w": [1.0, float("nan")]}, "'w' has elements that are too large, or not numbers"),
        ({"w": [1.0, -1e301]}, "'w' has elements that are too large"),
    ],
)
@pytest.mark.parametrize("name", ["mean", "sum"])
def test_F086_an_update_that_does_not_fit_is_told_from_others(name: str, arrays: Any, problem: str) -> None:
    """The check before a round is fed refuses it with a reason, and the functions raise it."""
    model = Checkpoint({"w": [0.0, 0.0]})
    check = checker(f"invoker.aggregators:{name}", Update, write_checkpoint(model))
    assert check is not None
    check(write_checkpoint(Update({"w": [1.0, 2.0]})))
    with pytest.raises(ValueError, match=problem):
        check(write_checkpoint(Update(arrays)))
    if "too large" not in problem or name == "mean":
        with pytest.raises(CallError, match=problem):
            Harness(f"invoker.aggregators:{name}").run([Update(arrays)], [model])


@pytest.mark.parametrize("name", ["mean", "sum"])
def test_F086_what_inflates_to_more_than_the_model_is_not_inflated(name: str) -> None:
    """60 MB in 58 kB, for a model of two numbers; compressed updates of its size pass, in any dtype that may be."""
    check = checker(f"invoker.aggregators:{name}", Update, write_checkpoint(Checkpoint({"w": [0.0, 0.0]})))
    assert check is not None
    for dtype in (np.float64, np.int8, *([np.complex128] if name == "sum" else [])):
        check(compressed(np.zeros(2, dtype)))
    bomb = compressed(np.zeros(60_000_000, np.int8))
    assert len(bomb) < 64 * 1024
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError, match="inflates to 60000128 bytes, which exceeds the 8224 bytes that are left"):
            check(bomb)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def compressed(array: Any) -> bytes:
    """An update as numpy compresses it."""
    file = io.BytesIO()
    np.savez_compressed(file, w=array)
    return file.getvalue()


def test_F086_bytes_that_are_no_update_are_refused() -> None:
    """The check reads them as the function would."""
    check = checker("invoker.aggregators:mean", Update, b"")
    assert check is not None
    with pytest.raises(DecodeError, match=r"checkpoint: .* cannot become Update"):
        check(b"garbage")
    junk = [Message(b"garbage", {}, CHECKPOINT)]
    with pytest.raises(DecodeError, match="cannot become Update"):
        Harness("invoker.aggregators:mean").run(junk, [MODEL])


def test_each_function_has_refusals_of_its_own() -> None:
    """Complex numbers have a sum, but no mean; integers of one update leave room for a million others."""
    wave = write_checkpoint(Update({"w": [1j]}))
    for name, problem in (("mean", "needs real numbers"), ("sum", "")):
        check = checker(f"invoker.aggregators:{name}", Update, write_checkpoint(Checkpoint({"w": [0.0]})))
        assert check is not None
        if problem:
            with pytest.raises(ValueError, match=problem):
                check(wave)
        else:
            check(wave)
    check = checker("invoker.aggregators:sum", Update, b"")
    assert check is not None
    check(write_checkpoint(Update({"n": [2**43]})))
    for payload, problem in (({"n": [2**43 + 1]}, "too large"), ({"n": [-(2**63)]}, "too large"), ({"m": [1]}, "'m'")):
        with pytest.raises(ValueError, match=problem):
            check(write_checkpoint(Update(payload)))


def test_F086_updates_of_other_functions_must_only_be_what_these_take() -> None:
    """Bytes that cannot be decoded would fail the round for all; what is in an update is the function's business."""
    check = checker("functions.federated:mean", Update, b"no checkpoint")
    assert check is not None
    check(write_checkpoint(Update({"whatever": [1.0]})))
    with pytest.raises(DecodeError):
        check(b"no update")
    assert checker("functions.federated:mean", None, b"no checkpoint") is None
