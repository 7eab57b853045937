"""`invoker.transports.http.connections`: who is ended, and when there is nobody left."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from invoker.transports.http.connections import NEW_S, Connections


class One:
    """A connection, and what it was told."""

    def __init__(self, connections: Connections, *, leaves: tuple[str, ...] = ()) -> None:
        self.told: list[str] = []
        self.connections = connections
        self.leaves = leaves
        self.descriptor = -1
        self.has_unparsed = False

    def fileno(self) -> int:
        return self.descriptor

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


async def test_H173_beyond_the_most_the_longest_idle_one_is_ended() -> None:
    """Once, and never one that has a request, or has only just come."""
    connections = Connections()
    connections.most = 2
    busy, first, second, third = (One(connections) for _ in range(4))
    connections.enter(busy)
    for one in (first, second):
        connections.idle[one] = None
        connections.enter(one)
    assert (first.told, second.told) == (["abort"], [])
    connections.enter(third)
    assert (second.told, busy.told, third.told) == ([], [], [])
    assert connections.evict()
    assert (second.told, busy.told, third.told) == (["abort"], [], [])
    assert not connections.evict()


async def test_H173_then_the_one_whose_request_is_still_to_come() -> None:
    """So that a call is refused only if nobody is left for whom nothing runs."""
    connections = Connections()
    connections.most = 8
    busy = [One(connections) for _ in range(11)]
    for one in busy:
        connections.enter(one)
    slow = One(connections)
    connections.waiting[slow] = None
    connections.enter(slow)
    assert slow.told == ["abort"]
    assert connections.is_full
    later = One(connections)
    connections.waiting[later] = None
    assert not connections.is_full
    assert later.told == ["abort"]
    connections.leave(busy[0])
    assert not connections.is_full
    assert all(one.told == [] for one in busy)


async def test_H173_those_that_were_ended_leave_room_at_once() -> None:
    """A call is not refused because of connections that are over in the next turn."""
    connections = Connections()
    connections.most = 8
    idle = [One(connections) for _ in range(20)]
    for one in idle:
        connections.meet(one, is_new=False)
    assert [one for one in idle if one.told] == idle[:12]
    assert (len(connections.open), connections.count, connections.is_full) == (20, 8, False)
    for one in idle[:12]:
        connections.leave(one)
    assert connections.count == 8
    for one in idle[12:]:
        connections.idle.pop(one)
    for _ in range(connections.spare):
        connections.enter(One(connections))
    assert not connections.is_full
    connections.enter(One(connections))
    assert connections.is_full


async def test_H173_one_that_has_sent_something_is_left() -> None:
    """It may be a request; the next one is ended instead."""
    connections = Connections()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(b"x")
        one, other = One(connections), One(connections)
        one.descriptor = ours.fileno()
        connections.idle.update({one: None, other: None})
        assert connections.evict()
        assert (one.told, other.told) == ([], ["abort"])
        assert not connections.evict()
        ours.recv(1)
        assert connections.evict()
        assert one.told == ["abort"]


async def test_H173_one_that_holds_bytes_is_left() -> None:
    """What was read but not parsed may be a request, although the socket has nothing more to read."""
    connections = Connections()
    one, other = One(connections), One(connections)
    one.has_unparsed = True
    connections.idle.update({one: None, other: None})
    assert connections.evict()
    assert (one.told, other.told) == ([], ["abort"])
    assert not connections.evict()
    one.has_unparsed = False
    assert connections.evict()
    assert one.told == ["abort"]


@pytest.mark.parametrize("is_new", [True, False])
async def test_H173_none_is_ended_to_make_room_for_itself(*, is_new: bool) -> None:
    """Its request may have been read before it came here; then its socket has nothing to read."""
    connections = Connections()
    connections.most = 1
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(b"x")
        asked = [One(connections) for _ in range(connections.spare + 1)]
        for one in asked:
            one.descriptor = ours.fileno()
            connections.meet(one, is_new=True)
        last = One(connections)
        connections.meet(last, is_new=is_new)
        assert [one.told for one in (*asked, last)] == [[]] * (len(asked) + 1)
        later = One(connections)
        connections.meet(later, is_new=True)
        assert (last.told, later.told) == (["abort"], [])


async def test_H212_a_new_one_is_spared_until_its_time_is_over() -> None:
    """Those that are not new are ended instead, also if they came later; without any, nobody is."""
    connections = Connections()
    new, part = One(connections), One(connections)
    with patch("invoker.transports.http.connections.time", SimpleNamespace(monotonic=lambda: 100.0)):
        connections.meet(new, is_new=True)
        connections.meet(part, is_new=False)
        assert connections.evict()
        assert (new.told, part.told) == ([], ["abort"])
        assert not connections.evict()
    with patch("invoker.transports.http.connections.time", SimpleNamespace(monotonic=lambda: 100.0 + NEW_S)):
        assert connections.evict()
    assert new.told == ["abort"]


async def test_H212_the_most_holds_for_new_ones_as_well() -> None:
    """There the newest ones are spared by their number, so that there are never many."""
    connections = Connections()
    connections.most = 1
    first, second = One(connections), One(connections)
    for one in (first, second):
        connections.meet(one, is_new=True)
    assert (first.told, second.told) == (["abort"], [])


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
