"""The tools of the tool bridge chapters without async ones, so that the fast transport runs calls in its threads."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

from functions import conformance_toolbridge
from functions.conformance import _mark, _marked
from functions.conformance_toolbridge import _busy
from invoker import Context, function
from invoker.author.decorator import options_of

_TAKEN = {name: value for name, value in vars(conformance_toolbridge).items() if options_of(value) is not None}
del _TAKEN["hungry"]  # with a function in a child process, no call runs in the thread that has its frames
globals().update(_TAKEN)


def _wait(seconds: float, context: Context) -> None:
    """Sleep until the time is up, or nobody waits any more."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if context.cancelled:
            raise RuntimeError("nobody waits any more")
        time.sleep(min(left, 0.01))


@function
def waiting(seconds: float, context: Context) -> float:
    """Wait for some seconds; gives up when nobody waits for it."""
    with _marked("waiting"):
        _wait(seconds, context)
    return seconds


@function
def remember(name: str, value: Any, context: Context) -> Any:
    """Set a variable of the session, and give what it was before."""
    before = context.variables.get(name)
    context.variables.set(name, value)
    return before


@function
def busy(seconds: float) -> int:
    """Wait for some seconds, and give how many calls were waiting here at once, this one included."""
    _busy.append(0)
    try:
        _busy[:] = [max(each, len(_busy)) for each in _busy]
        time.sleep(seconds)
        return max(_busy)
    finally:
        _busy.pop()


@function(timeout_s=0.5)
def brief(seconds: float, context: Context) -> float:
    """Wait for some seconds, of which there may be half a one."""
    _wait(seconds, context)
    return seconds


@function(max_calls=1)
def single(seconds: float) -> float:
    """Wait for some seconds, alone."""
    _mark("single.calls")
    time.sleep(seconds)
    return seconds


@function
def counted_async(n: int = 3) -> Iterator[int]:
    """The numbers below another one."""
    with _marked("counted_async"):
        yield from range(n)


@function
def endless() -> Iterator[int]:
    """Numbers without end."""
    with _marked("endless"):
        for number in itertools.count():
            _mark("endless.items")
            yield number
