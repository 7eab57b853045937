"""`invoker.doors.http.connections`: who is ended, and when there is nobody left."""

from __future__ import annotations

import asyncio

from invoker.doors.http.connections import Connections


class One:
    """A connection, and what it was told."""

    def __init__(self, connections: Connections, *, leaves: tuple[str, ...] = ()) -> None:
        self.told: list[str] = []
        self.connections = connections
        self.leaves = leaves

    def _told(self, what: str) -> None:
        self.told.append(what)
        if what in self.leaves:
            self.connections.leave(self)

    def end_when_idle(self) -> None:
        self._told("end")

    def abort(self) -> None:
        self._told("abort")

    def cut(self) -> None:
        self._told("cut")


async def test_beyond_the_most_the_longest_idle_one_is_ended() -> None:
    """Once, and never one that has a request."""
    connections = Connections()
    connections.most = 2
    busy, first, second, third = (One(connections) for _ in range(4))
    connections.enter(busy)
    for one in (first, second):
        connections.idle[one] = None
        connections.enter(one)
    assert (first.told, second.told) == (["abort"], [])
    connections.enter(third)
    assert (first.told, second.told, busy.told, third.told) == (["abort"], ["abort"], [], [])
    assert not connections.evict()


async def test_the_end_waits_for_those_that_have_a_request() -> None:
    """Whoever leaves in time is not cut."""
    connections = Connections()
    quick, slow = One(connections, leaves=("end",)), One(connections)
    connections.enter(quick)
    connections.enter(slow)
    asyncio.get_running_loop().call_later(0.01, connections.leave, slow)
    assert await connections.end(5, 0) == 0
    assert (quick.told, slow.told) == (["end"], ["end"])


async def test_the_end_is_bounded() -> None:
    """Whoever is left is cut, and counted; one that stays even so is given up."""
    connections = Connections()
    cut, stuck = One(connections, leaves=("cut",)), One(connections)
    connections.enter(cut)
    connections.enter(stuck)
    assert await connections.end(0.01, 0.01) == 2
    assert (cut.told, stuck.told) == (["end", "cut"], ["end", "cut"])
    connections.leave(stuck)
    assert await connections.end(5, 5) == 0
