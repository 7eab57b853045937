"""The Evergreen conformance functions without async ones, so that the fast transport serves each action in a thread."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from functions import conformance_evergreen
from functions.conformance import _mark, _marked
from invoker import Context, function
from invoker.author.decorator import options_of
from tests import sync_catalogue

for module in (conformance_evergreen, sync_catalogue):
    globals().update({name: value for name, value in vars(module).items() if options_of(value) is not None})
del globals()["generate"]  # its name in the catalogue is taken below

_NOTHING: Iterator[Any] = iter(())


def _rest(seconds: float, context: Context) -> None:
    """Sleep; raise when nobody waits any more."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if context.cancelled:
            raise RuntimeError("nobody waits any more")
        time.sleep(min(left, 0.01))


@function
def replay(values: Iterator[Any]) -> Iterator[Any]:
    """Each leaf as it comes."""
    yield from values


@function
def pieces(text: Iterator[str]) -> Iterator[str]:
    """Each piece of a text as it comes."""
    yield from text


@function(name="GENERATE")
def generate_in_turn(prompt: Iterator[Any] = _NOTHING, text: Iterator[Any] = _NOTHING) -> Iterator[str]:
    """Answers each leaf of a prompt: text in upper case, anything else by its size."""
    _mark("GENERATE.calls")
    for leaves in (prompt, text):
        for leaf in leaves:
            _mark("GENERATE.leaves")
            yield conformance_evergreen._said(leaf)


@function
def drip(context: Context, count: int = 3, seconds: float = 0.0) -> Iterator[str]:
    """0, 1, 2 ... as text, so many, so many seconds apart."""
    with _marked("drip"):
        for number in range(count):
            if number:
                _rest(seconds, context)
            yield str(number)
