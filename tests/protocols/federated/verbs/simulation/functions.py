"""Functions of simulated rounds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from invoker import Checkpoint, Update

STAYED: list[int] = []
"""The sums that `gather` has seen, of one element each."""

LENGTH = 3


def initial() -> Checkpoint:
    """Where the sums begin."""
    return Checkpoint({"w": np.zeros(LENGTH, np.uint64)})


def examples(number: int, devices: int) -> list[int]:
    """Something that tells devices apart, in a sum too: device 0 has 1, device 1 has 2, device 2 has 4 and so on."""
    return [1 << number] if number < devices else []


def train(checkpoint: Checkpoint, given: Iterator[int], factor: int = 1) -> Update:
    """The device's own example in each element."""
    return Update({"w": np.full(LENGTH, next(given) * factor, np.uint64)}, examples=1.0)


def broken(checkpoint: Checkpoint, given: Iterator[int]) -> Update:
    """It fails on some devices."""
    if next(given) > 8:
        raise RuntimeError("too many flowers")
    return Update({"w": np.ones(LENGTH, np.uint64)}, examples=1.0)


def given(number: int) -> Update:
    """An update that no plan has made."""
    return Update({"w": np.full(LENGTH, 1 << number, np.uint64)}, examples=1.0)


def gather(updates: Iterator[Update], model: Checkpoint) -> Checkpoint:
    """The sum of all updates; each round is remembered."""
    total = sum((one["w"].astype(np.uint64) for one in updates), np.zeros(LENGTH, np.uint64))
    assert len(set(total.tolist())) == 1
    STAYED.append(int(total[0]))
    return Checkpoint({"w": total})


def level(model: Checkpoint) -> float:
    """A number of a checkpoint."""
    return float(model["w"][0])
