"""`Streams`: sends the items of iterators that are inputs, each iterator in a task of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Any

from invoker.connect.failure import CallFailed
from invoker.connect.feeds import iterate
from invoker.protocols.evergreen.client.drafts import Streamed
from invoker.protocols.evergreen.client.inbox import Inbox
from invoker.protocols.evergreen.client.outcome import Outcome

CLOSE_GRACE_S = 2.0
"""The time in seconds that iterators may take to close after the end of the session."""


class Streams:
    """The tasks that feed the inputs of a session.

    Args:
        inbox: The inbox of the session.
        on_error: Called with the error that an iterator raised, the ids of the outputs of its action, and their
            outcome.
    """

    def __init__(self, inbox: Inbox, on_error: Callable[[BaseException, Sequence[str], Outcome], None]) -> None:
        self._inbox = inbox
        self._on_error = on_error
        self._running: dict[asyncio.Task[Any], Sequence[str]] = {}

    def start(self, streams: Iterable[Streamed], outputs: Sequence[str], outcome: Outcome) -> None:
        """Start the tasks that send the items of these iterators."""
        for stream in streams:
            task = asyncio.create_task(self._feed(stream, outputs, outcome), name="invoker-evergreen-input")
            self._running[task] = outputs
            task.add_done_callback(self._running.pop)

    def is_own(self, task: asyncio.Task[Any] | None) -> bool:
        """Whether ``task`` is one of the tasks that feed inputs."""
        return task in self._running

    async def finish(self) -> None:
        """Wait until all items are sent, except those of inputs whose actions have all ended."""
        ended = asyncio.ensure_future(self._inbox.ended.wait())
        try:
            while self._running and not self._inbox.ended.is_set():
                self._inbox.grown.clear()
                for task, outputs in tuple(self._running.items()):
                    if outputs and all(map(self._inbox.arrivals.is_complete, outputs)):
                        task.cancel()  # E-111: a function may end before it has read all its inputs
                grown = asyncio.ensure_future(self._inbox.grown.wait())
                await asyncio.wait({*self._running, ended, grown}, return_when=asyncio.FIRST_COMPLETED)
                grown.cancel()
        finally:
            ended.cancel()

    async def close(self) -> None:
        """Cancel all tasks, and wait for a bounded time until the iterators are closed."""
        tasks = tuple(self._running)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_GRACE_S)

    async def _feed(self, stream: Streamed, outputs: Sequence[str], outcome: Outcome) -> None:
        node, values = stream
        try:
            async with aclosing(iterate(values)) as each:
                async for value in each:
                    await node.add(value)
                    if self._inbox.ended.is_set():
                        return
            await node.end()
        except CallFailed as error:
            if not self._inbox.ended.is_set():
                self._on_error(error, outputs, outcome)
        except Exception as error:  # noqa: BLE001 - around the caller's iterator
            self._on_error(error, outputs, outcome)
