"""Room for reports."""

from __future__ import annotations

from invoker.protocols.federated.gate import SMALL_BYTES, Gate

BIG = SMALL_BYTES + 1


def gate(most: int) -> tuple[Gate[str], list[str]]:
    resumed: list[str] = []
    return Gate(most, resumed.append), resumed


def test_F081_large_messages_wait_for_room_in_the_order_of_their_coming():
    """Two fit; the third and fourth go on when there is room; a later one does not overtake them."""
    door, resumed = gate(2 * BIG)
    assert door.enter("a", BIG)
    assert door.enter("b", BIG)
    assert not door.enter("c", BIG)
    assert not door.enter("d", BIG)
    assert door.waiting == 2
    door.leave("a")
    assert resumed == ["c"]
    assert not door.enter("e", BIG)
    door.leave("c")
    door.leave("c")
    assert resumed == ["c", "d"]
    assert door.held == 2 * BIG


def test_F081_small_messages_need_no_room():
    """They come even if there is none."""
    door, _ = gate(BIG)
    assert door.enter("a", BIG)
    assert door.enter("b", SMALL_BYTES)
    assert door.held == BIG


def test_F081_one_message_comes_however_large_it_is():
    """Else nobody would ever report it; all others wait until it is taken."""
    door, resumed = gate(BIG)
    assert door.enter("a", 10 * BIG)
    assert not door.enter("b", BIG)
    door.leave("a")
    assert resumed == ["b"]


def test_F081_a_report_keeps_its_room_until_it_is_taken():
    """Its size replaces that of its message, and a report that came without room takes it all the same."""
    door, resumed = gate(2 * BIG)
    assert door.enter("a", BIG)
    door.keep("a", 2 * BIG)
    assert door.held == 2 * BIG
    door.keep("b", 3)
    assert not door.enter("c", BIG)
    door.leave("b")
    assert not resumed
    door.leave("a")
    assert resumed == ["c"]
    assert door.held == BIG


def test_who_leaves_the_line_is_not_resumed():
    """The next one is."""
    door, resumed = gate(BIG)
    door.enter("a", BIG)
    door.enter("b", BIG)
    door.enter("c", BIG)
    door.leave("b")
    door.leave("a")
    assert resumed == ["c"]
    door.leave("c")
    assert door.held == 0
