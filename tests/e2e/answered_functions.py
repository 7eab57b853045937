"""Functions that end in every way that a line of the log tells; all sync, so threads answer plain requests."""

from __future__ import annotations

import time
from collections.abc import Iterator

from invoker import Context, Message, function

WAIT_S = 30


def fail(how: str, when: str) -> None:
    """Raise if that is asked for."""
    if how.startswith(when):
        raise ValueError("as asked")


def chosen(value: str, how: str) -> Message:
    """A value, with a status of the function's own if that is asked for."""
    return Message(value, headers={"X-Http-Status": "202"} if how.startswith("chooses") else {})


def _wait(ctx: Context) -> None:
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until and not ctx.cancelled:
        time.sleep(0.01)


@function
def whole(how: str, ctx: Context) -> Message:
    """One value for HTTP."""
    fail(how, "fails")
    if how.startswith(("waits", "hesitates")):
        _wait(ctx)
    return chosen(how, how)


@function
def stream(how: str, ctx: Context) -> Iterator[Message]:
    """Two values for HTTP."""
    fail(how, "fails")
    if how.startswith("hesitates"):
        _wait(ctx)
    yield chosen("1", how)
    fail(how, "breaks")
    if how.startswith("waits"):
        _wait(ctx)
    yield Message("2")


@function
def word(how: str, ctx: Context) -> str:
    """One value for any wire."""
    fail(how, "fails")
    if how.startswith(("waits", "hesitates")):
        _wait(ctx)
    return how


@function
def words(how: str, ctx: Context) -> Iterator[str]:
    """Two values for any wire."""
    fail(how, "fails")
    if how.startswith("hesitates"):
        _wait(ctx)
    yield "1"
    fail(how, "breaks")
    if how.startswith("waits"):
        _wait(ctx)
    yield "2"
