"""`Lender.begin_all`: of many bodies that come at once, some begin in each turn of the loop."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from invoker.transports.grpc.cygrpc import cygrpc
from invoker.transports.grpc.lending import Lender, LendingLoop
from tests.transports.grpc.test_lending import Lent, Noted

MANY = 3


@pytest.mark.parametrize("closes", [False, True])
def test_H222_of_many_bodies_some_begin_in_each_turn(closes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """When they have begun for long, others have a turn; all of them begin, also if the lender is closed meanwhile."""
    monkeypatch.setattr("invoker.transports.grpc.lending._BEGINNING_S", -1.0)
    found, order = Lent(), list[str]()

    async def main() -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        lender = Lender(found, loop)
        lender.start()

        def turn() -> None:
            order.append("turn")
            if order.count("body") < MANY:
                loop.call_soon(turn)
            else:
                over.set()

        def close() -> None:
            found.put(cygrpc.CompletionType.queue_shutdown)
            lender.close()

        def come() -> None:
            for _ in range(MANY):
                lender.spawn(Noted(order))
            turn()
            if closes:
                close()

        await asyncio.to_thread(found.lent.wait, 5)
        loop.call_soon(come)
        async with asyncio.timeout(5):
            await over.wait()
        if not closes:
            close()

    with asyncio.Runner(loop_factory=LendingLoop) as runner:
        runner.run(main())
    assert order.count("body") == MANY
    assert ("body", "body") not in pairwise(order)
