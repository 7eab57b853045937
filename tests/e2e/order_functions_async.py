"""The same beside an async generator and one in a process of its own, so that all of them are served by the loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from invoker import Output, function
from tests.e2e.order_functions import OUTPUTS, fed, given, plain, timed

__all__ = ["fed", "isolated", "on_loop", "plain", "timed"]


@function(outputs=OUTPUTS)
async def on_loop(times: int = 1) -> AsyncIterator[Output]:
    """On the loop."""
    for one in given(times):
        yield one


@function(outputs=OUTPUTS, isolation="process")
def isolated(times: int = 1) -> Iterator[Output]:
    """In a process of its own."""
    return given(times)
