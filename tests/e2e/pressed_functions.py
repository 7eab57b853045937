"""Functions that take less than their callers send, and ones that give more than anybody reads."""

from __future__ import annotations

import time
from collections.abc import Iterator

from invoker import function


@function
def slow(xs: Iterator[bytes]) -> Iterator[int]:
    """Takes one item a second."""
    for x in xs:
        yield len(x)
        time.sleep(1)


@function
def fast() -> Iterator[bytes]:
    """Gives without end."""
    while True:
        yield bytes(16_000)
