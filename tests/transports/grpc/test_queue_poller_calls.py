"""Calls that a queue poller begins when all of their frames have been dispatched."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop

from invoker.transports.grpc.cygrpc import cygrpc
from invoker.transports.grpc.queue_poller import QueuePoller, QueuePollingLoop
from tests.transports.grpc.test_queue_poller import Lent, Noted

_LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "lending": QueuePollingLoop,
    "uvloop": uvloop.new_event_loop,
}


class Call:
    """A call that says when it begins."""

    def __init__(self, order: list[str], name: str = "call", then: Callable[[], None] = lambda: None) -> None:
        self.order, self.name, self.then = order, name, then

    def begin(self) -> None:
        self.order.append(self.name)
        self.then()


@pytest.mark.parametrize("loop", _LOOPS)
def test_a_call_begins_once_behind_the_events_of_its_turn(loop: str) -> None:
    """Before the bodies of the turn; a call or a body that it brings itself begins soon, too."""
    found, order = Lent(), list[str]()

    async def main() -> None:
        over = asyncio.Event()
        queue_poller = QueuePoller(found, asyncio.get_running_loop())
        queue_poller.start()

        def accepted(_: SimpleNamespace) -> None:
            queue_poller.spawn(Noted(order))  # type: ignore[arg-type]
            queue_poller.begin_later(Call(order, then=brought))

        def brought() -> None:
            queue_poller.begin_later(Call(order, "brought", over.set))

        def frame(_: SimpleNamespace) -> None:
            order.append("frame")

        await asyncio.to_thread(found.lent.wait, 5)
        queue_poller._events.extend(SimpleNamespace(tag=one) for one in (accepted, frame, frame))
        asyncio.get_running_loop().call_soon(queue_poller._turn)
        await asyncio.wait_for(over.wait(), 5)
        await asyncio.sleep(0)
        found.put(cygrpc.CompletionType.queue_shutdown)
        queue_poller.close()

    with asyncio.Runner(loop_factory=_LOOPS[loop]) as runner:
        runner.run(main())
    assert order[:3] == ["frame", "frame", "call"]
    assert sorted(order[3:]) == ["body", "brought"]
    assert loop == "uvloop" or order[3] == "body"  # on another loop it is a task of the next turn


@pytest.mark.parametrize("loop", _LOOPS)
@pytest.mark.parametrize("closes", [False, True])
def test_a_call_begins_if_no_event_brought_it(loop: str, closes: bool) -> None:
    """Also if the queue poller is closed meanwhile."""
    found, order = Lent(), list[str]()

    async def main() -> Any:
        over = asyncio.Event()
        queue_poller = QueuePoller(found, asyncio.get_running_loop())
        queue_poller.start()
        await asyncio.to_thread(found.lent.wait, 5)
        queue_poller.begin_later(Call(order, then=over.set))
        assert order == []
        if closes:
            found.put(cygrpc.CompletionType.queue_shutdown)
            queue_poller.close()
        await asyncio.wait_for(over.wait(), 5)
        if not closes:
            found.put(cygrpc.CompletionType.queue_shutdown)
            queue_poller.close()
        return queue_poller.waiting

    with asyncio.Runner(loop_factory=_LOOPS[loop]) as runner:
        assert runner.run(main()) == []
    assert order == ["call"]
