"""Functions of rounds whose updates and checkpoints are whole numbers in text."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from invoker import Update


def initial() -> bytes:
    """Where the sums begin."""
    return b"100"


def add(updates: Iterator[bytes], model: bytes) -> bytes:
    """The checkpoint plus all updates."""
    return str(int(model) + sum(int(one) for one in updates)).encode()


def slow(updates: Iterator[bytes], model: bytes) -> bytes:
    """The same, but it waits at its end as long as the file is there that a variable names."""
    result = add(updates, model)
    while Path(os.environ["TEST_HOLD"]).exists():
        time.sleep(0.01)
    return result


def grow(updates: Iterator[bytes]) -> bytes:
    """A checkpoint of as many megabytes as the update says."""
    return bytes(1_000_000 * int(next(updates)))


def where(updates: Iterator[bytes], model: bytes) -> bytes:
    """How many updates there were so far, and in which process the last round was."""
    before = int(model.split()[0])
    return f"{before + len(list(updates))} {os.getpid()}".encode()


def broken(updates: Iterator[bytes]) -> bytes:
    """It gives up at the second update."""
    next(updates)
    next(updates)
    raise ValueError("the second update is one too many")


def attest(measurement: str) -> bool:
    """Only one kind of device is right."""
    return measurement == "right"


def nothing() -> None:
    """It is no checkpoint."""


def counted(updates: Iterator[bytes]) -> bytes:
    """How many updates there were."""
    return str(len(list(updates))).encode()


def last(updates: Iterator[bytes]) -> bytes:
    """The only update, as it came."""
    (update,) = updates
    return update


def weigh(updates: Iterator[Update]) -> bytes:
    """How many examples there were; it takes checkpoints only."""
    return str(sum(one.examples for one in updates)).encode()
