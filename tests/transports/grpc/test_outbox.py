"""Frames that wait, joined."""

from __future__ import annotations

from invoker.transports.grpc import outbox
from invoker.transports.grpc.outbox import JOINED_BYTES, ROOM_BYTES, Outbox, Singles


def test_what_waits_leaves_in_one_message():
    """In the order in which it came; then there is nothing."""
    box = Outbox()
    assert not box
    for one in (b"a", b"bc", b"", b"d"):
        box.put(one)
    assert box
    assert box.size == 4
    assert box.take() == b"abcd"
    assert not box
    assert box.size == 0


def test_a_message_is_not_larger_than_the_most(monkeypatch):
    """A frame is never cut, and one that is longer leaves alone."""
    monkeypatch.setattr(outbox, "JOINED_BYTES", 4)
    box, taken = Outbox(), []
    for one in (b"aa", b"bb", b"c", b"dddddd", b"e", b"f"):
        box.put(one)
    while box:
        taken.append(box.take())
    assert taken == [b"aabb", b"c", b"dddddd", b"ef"]
    assert box.size == 0


def test_there_is_room_below_the_mark():
    """By bytes, however many frames they are."""
    box = Outbox()
    box.put(b"x" * (ROOM_BYTES - 1))
    assert box.has_room
    box.put(b"x")
    assert not box.has_room
    box.clear()
    assert box.has_room
    assert not box


def test_the_room_is_less_than_a_message():
    """So what waits for a slow peer leaves in one piece."""
    assert ROOM_BYTES < JOINED_BYTES


def test_R127_singles_leave_one_by_one():
    """None is joined; whoever writes waits as soon as one waits behind another."""
    box = Singles()
    assert box.has_room
    box.put(b"a")
    assert box.has_room
    box.put(b"b")
    assert not box.has_room
    assert [box.take(), box.take()] == [b"a", b"b"]
    assert not box
    assert box.has_room
