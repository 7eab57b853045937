"""What a function in a child asks of its scope: both ends, without a pipe between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from invoker.context import Context
from invoker.core.store import Get, Item, Reason, Refused, Scan
from invoker.errors import NestedError, Status
from invoker.execution.isolation.asking import Asking, PipeScope
from invoker.execution.isolation.frames import Frames, FromChild, ToChild, framed
from invoker.message import Message


class Scope:
    """Answers with what it was asked."""

    def __init__(self) -> None:
        self.closed = 0

    async def call(self, caller: Any, name: str, args: Any, kwargs: Any, *, streams: bool) -> AsyncIterator[Any]:
        try:
            if name == "fails":
                raise NestedError(Status.NOT_FOUND, "not here", kind="ToolNotFound")
            if name == "forever":
                await asyncio.Event().wait()
            for one in (*args, *kwargs.values()):
                if isinstance(one, Message):
                    yield one
                else:
                    async for message in one:
                        yield message
        finally:
            self.closed += 1

    async def ask(self, caller: Any, question: Any) -> Any:
        item = Item("n", b"v", 1, 2)
        if isinstance(question, Scan):
            return (item, item)
        return item if question == Get("s", "n") else Refused(Reason.UNKNOWN)


def joined() -> tuple[PipeScope, Asking, Scope]:
    """Both ends; every frame is written and read as on a pipe."""
    context, scope = Context(), Scope()
    context.scope = scope  # type: ignore[assignment]
    to_child, from_child = Frames(ToChild), Frames(FromChild)
    loop = asyncio.get_running_loop()

    def to_parent(frame: Any) -> None:
        for one in from_child.feed(framed(frame)):
            loop.call_soon(asking.heard, one)

    def back(frame: Any) -> None:
        for one in to_child.feed(framed(frame)):
            loop.call_soon(pipe.heard, one)

    asking, pipe = Asking(context, back), PipeScope(to_parent)
    return pipe, asking, scope


def message(number: int) -> Message[bytes]:
    return Message(str(number).encode(), {}, "application/json")


async def test_calls_and_streams_cross() -> None:
    """Values by position and by name, and iterators."""
    pipe, _, scope = joined()

    async def values() -> AsyncIterator[Message[bytes]]:
        for number in range(3):
            yield message(number)

    caller = Context()
    got = [one async for one in pipe.call(caller, "f", [message(7)], {"b": message(8)}, streams=True)]
    assert got == [message(7), message(8)]
    assert [one async for one in pipe.call(caller, "f", [values()], {}, streams=True)] == [message(n) for n in range(3)]
    assert pipe.here(caller, "f", [], {}, streams=False) is None
    assert scope.closed == 2


async def test_errors_cross() -> None:
    """What the callee ended with, and what the caller's own iterator raised."""
    pipe, _, scope = joined()
    with pytest.raises(NestedError, match="not here") as caught:
        await anext(pipe.call(Context(), "fails", [], {}, streams=False))
    assert caught.value.kind == "ToolNotFound"

    async def broken() -> AsyncIterator[Message[bytes]]:
        yield message(1)
        raise ValueError("mine")

    with pytest.raises(Exception, match="mine"):
        _ = [one async for one in pipe.call(Context(), "f", [broken()], {}, streams=True)]
    await asyncio.sleep(0.01)
    assert scope.closed == 2


async def test_a_caller_that_stops_ends_the_callee() -> None:
    """And so does the end of its invocation."""
    pipe, asking, scope = joined()
    replies = pipe.call(Context(), "f", [message(n) for n in range(5)], {}, streams=True)
    await anext(replies)
    await replies.aclose()
    await asyncio.sleep(0.01)
    assert scope.closed == 1
    task = asyncio.create_task(anext(pipe.call(Context(), "forever", [], {}, streams=False)))
    await asyncio.sleep(0.01)
    asking.close()
    await asyncio.sleep(0.01)
    assert scope.closed == 2
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_questions_to_the_store_cross() -> None:
    """Items, several items, refusals."""
    pipe, _, _ = joined()
    item = Item("n", b"v", 1, 2)
    assert await pipe.ask(Context(), Get("s", "n")) == item
    assert await pipe.ask(Context(), Scan("s")) == (item, item)
    assert await pipe.ask(Context(), Get("s", "other")) == Refused(Reason.UNKNOWN)
