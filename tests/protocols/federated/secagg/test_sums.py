"""Running sums: `invoker.protocols.federated.secagg.sums`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from invoker.protocols.federated.secagg.sums import Sums
from invoker.protocols.federated.wire.packing import pack

VECTORS = {"a": (5, 3), "b": (2**62, 2)}


def packed(number: int) -> dict[str, bytes]:
    """Vectors whose sums wrap around."""
    return {
        "a": pack(np.full(3, number % 5, np.uint64), 5),
        "b": pack(np.full(2, 2**62 - 1 - number, np.uint64), 2**62),
    }


def test_F119_vectors_that_come_while_one_is_added_wait_for_it() -> None:
    """One piece of work at a time, because all change the same sums; `finish` waits for the last one."""
    jobs: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []
    sums = Sums(VECTORS, lambda job, then: jobs.append((job, then)))
    found: list[Any] = []
    for number in range(7):
        sums.add(packed(number))
        assert len(jobs) == 1
    sums.finish(found.append)
    rounds = 0
    while jobs:
        assert not found
        ((job, then),) = jobs
        jobs.clear()
        then(job())
        rounds += 1
    assert rounds == 2
    ((total,),) = [found]
    assert total["a"].tolist() == [sum(range(7)) % 5] * 3
    assert total["b"].tolist() == [(-7 - sum(range(7))) % 2**62] * 2


def test_sums_without_anything_to_wait_for_are_given_at_once() -> None:
    """All was added before."""
    sums = Sums(VECTORS, lambda job, then: then(job()))
    sums.add(packed(1))
    found: list[Any] = []
    sums.finish(found.append)
    assert found[0]["a"].tolist() == [1, 1, 1]
