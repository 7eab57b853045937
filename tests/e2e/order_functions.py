"""Sync generators that give to two outputs in an order that no rule would guess."""

from __future__ import annotations

from collections.abc import Iterator

from invoker import Output, function

ORDER = "baabbbabaabb"
OUTPUTS = ("a", "b")


def given(times: int) -> Iterator[Output]:
    for number, name in enumerate(ORDER * times):
        yield Output(name, number)


@function(outputs=OUTPUTS)
def plain(times: int = 1) -> Iterator[Output]:
    """In a thread."""
    return given(times)


@function(outputs=OUTPUTS, timeout_s=60)
def timed(times: int = 1) -> Iterator[Output]:
    """In a thread that is watched."""
    return given(times)


@function(outputs=OUTPUTS)
def fed(xs: Iterator[int]) -> Iterator[Output]:
    """With a stream to read."""
    for x in xs:
        yield from given(x)
