"""Stops the clocks and makes random bytes the same in each run, for what takes no clock by its constructor."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import time
from collections.abc import Iterator
from itertools import count
from unittest import mock

NOW_S = 1_700_000_000


@contextlib.contextmanager
def still() -> Iterator[None]:
    """Within it the time is `NOW_S`, and the same bytes are drawn each time."""
    draws = count()

    def drawn(size: int) -> bytes:
        seed = next(draws)
        blocks = (hashlib.sha256(f"{seed} {number}".encode()).digest() for number in range(size // 32 + 1))
        return b"".join(blocks)[:size]

    def now_ns() -> int:
        return NOW_S * 1_000_000_000

    def now() -> float:
        return float(NOW_S)

    # Functions, since making a mock for each scenario took a third of all that the scenarios take.
    with contextlib.ExitStack() as stack:
        for name in ("time_ns", "perf_counter_ns"):
            stack.enter_context(mock.patch.object(time, name, now_ns))
        stack.enter_context(mock.patch.object(time, "time", now))
        stack.enter_context(mock.patch.object(os, "urandom", drawn))
        stack.enter_context(mock.patch.object(random, "_urandom", drawn))
        yield
