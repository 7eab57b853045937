"""`QueuePoller`: of many bodies or events that come at once, some have their turn in each turn of the loop."""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import groupby, pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from invoker.transports.grpc.cygrpc import cygrpc
from invoker.transports.grpc.queue_poller import QueuePoller, QueuePollingLoop
from tests.transports.grpc.test_queue_poller import Lent, Noted

MANY = 3


@pytest.mark.parametrize("closes", [False, True])
def test_H222_of_many_bodies_some_begin_in_each_turn(closes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """When they have begun for long, others have a turn; all of them begin, also if the poller is closed meanwhile."""
    monkeypatch.setattr("invoker.transports.grpc.queue_poller._BEGINNING_S", -1.0)
    found, order = Lent(), list[str]()

    async def main() -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        queue_poller = QueuePoller(found, loop)
        queue_poller.start()

        def turn() -> None:
            order.append("turn")
            if order.count("body") < MANY:
                loop.call_soon(turn)
            else:
                over.set()

        def close() -> None:
            found.put(cygrpc.CompletionType.queue_shutdown)
            queue_poller.close()

        def come() -> None:
            for _ in range(MANY):
                queue_poller.spawn(Noted(order))
            turn()
            if closes:
                close()

        await asyncio.to_thread(found.lent.wait, 5)
        loop.call_soon(come)
        async with asyncio.timeout(5):
            await over.wait()
        if not closes:
            close()

    with asyncio.Runner(loop_factory=QueuePollingLoop) as runner:
        runner.run(main())
    assert order.count("body") == MANY
    assert ("body", "body") not in pairwise(order)


class Crowded(Lent):
    """A completion queue on which more is found at each look, while the test says that there is more."""

    def __init__(self) -> None:
        super().__init__()
        self.ready: deque[Any] = deque()

    def poll(self, deadline: float | None = None) -> SimpleNamespace:
        if deadline is not None and self.ready:
            return SimpleNamespace(completion_type=cygrpc.CompletionType.operation_complete, tag=self.ready.popleft())
        return super().poll(deadline)


def test_of_events_that_take_long_few_are_handled_in_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large frames that come faster than they are taken leave sockets, timers and the end of calls their turns."""
    monkeypatch.setattr("invoker.transports.grpc.queue_poller._DISPATCHING_S", -1.0)
    found, order = Crowded(), list[str]()

    async def main() -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        queue_poller = QueuePoller(found, loop)
        queue_poller.start()

        def turn() -> None:
            order.append("turn")
            if order.count("event") < 40:
                loop.call_soon(turn)
            else:
                over.set()

        def come(_: Any) -> None:
            found.ready.extend([lambda _: order.append("event")] * 40)
            loop.call_soon(turn)

        await asyncio.to_thread(found.lent.wait, 5)
        found.put(cygrpc.CompletionType.operation_complete, come)
        async with asyncio.timeout(5):
            await over.wait()
        found.put(cygrpc.CompletionType.queue_shutdown)
        queue_poller.close()

    with asyncio.Runner(loop_factory=QueuePollingLoop) as runner:
        runner.run(main())
    assert order.count("event") == 40
    assert max(len(list(some)) for kind, some in groupby(order) if kind == "event") <= 4
