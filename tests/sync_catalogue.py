"""The conformance functions without async ones, so that the fast transport serves each call in a thread of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from functions import conformance
from invoker import Context, function
from invoker.author.decorator import options_of

globals().update({name: value for name, value in vars(conformance).items() if options_of(value) is not None})


@function
def delay(seconds: float, context: Context) -> float:
    """Wait for some seconds; gives up when nobody waits for it."""
    until = time.monotonic() + seconds
    with conformance._marked("delay"):
        while (left := until - time.monotonic()) > 0:
            if context.cancelled:
                raise RuntimeError("nobody waits any more")
            time.sleep(min(left, 0.01))
    return seconds


@function
def greeting(values: Iterator[Any]) -> Iterator[Any]:
    """``hello`` before anything is read, then every value."""
    yield "hello"
    yield from values


@function
def hundred(numbers: Iterator[int]) -> Iterator[int]:
    """The sum of each hundred numbers, at once."""
    batch: list[int] = []
    for number in numbers:
        batch.append(number)
        if len(batch) == 100:
            yield sum(batch)
            batch.clear()
