"""`invoker.protocols.evergreen.action_engine.nodes`: order, ends and readers of one node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.errors import Status, StatusError
from invoker.protocols.evergreen.action_engine.nodes import OVERHEAD, Node, Reader
from invoker.protocols.evergreen.action_engine.wire import END, Chunk, Fragment, Metadata, NodeRef

TEXT = Metadata("text/plain")


def item(data: bytes, seq: int | None = None, *, last: bool = False) -> Fragment:
    """A fragment with text."""
    return Fragment("n", Chunk(data, metadata=TEXT), seq, continued=not last)


def content(node: Node) -> list[bytes]:
    """The items that are here, from the first place on."""
    found: list[bytes] = []
    while isinstance(chunk := node.at(len(found)), Chunk):
        found.append(chunk.data)
    return found


@given(st.permutations(range(8)), st.lists(st.integers(0, 7)))
def test_order_of_arrival_does_not_matter(order: list[int], again: list[int]) -> None:
    """Places decide; what comes twice counts once."""
    node = Node("n")
    for seq in [*order, *again]:
        node.put(item(b"%d" % seq, seq, last=seq == 7))
    assert content(node) == [b"%d" % seq for seq in range(8)]
    assert node.length == 8
    assert node.size == 8 * (OVERHEAD + 1)


def test_the_first_of_two_counts() -> None:
    """At the same place."""
    node = Node("n")
    node.put(item(b"a", 0))
    node.put(item(b"b", 0, last=True))
    assert (content(node), node.length) == ([b"a"], 1)


@pytest.mark.parametrize("open_place", [None, -1])
def test_an_open_place_is_the_next_one(open_place: int | None) -> None:
    """As the peers count."""
    node = Node("n")
    for data in (b"a", b"b"):
        node.put(item(data, open_place))
    node.put(Fragment("n", END, open_place))
    assert (content(node), node.length) == ([b"a", b"b"], 2)


@pytest.mark.parametrize("continued", [False, True])
def test_a_null_chunk_ends_before_its_place(continued: bool) -> None:
    """It is no item, whatever it says of others to come."""
    node = Node("n")
    node.put(item(b"a", 0))
    node.put(Fragment("n", END, 1, continued=continued))
    assert node.length == 1
    assert not node.has_ended_at(0)
    assert node.has_ended_at(1)


def test_what_is_beyond_the_end_is_dropped() -> None:
    """Whether it comes before or after."""
    node = Node("n")
    node.put(item(b"late", 5))
    node.put(item(b"a", 0, last=True))
    node.put(item(b"b", 1))
    assert (content(node), node.size) == ([b"a"], OVERHEAD + 1)


def test_readers_let_go_of_what_all_have_passed() -> None:
    """Two of them, at different places."""
    node = Node("n")
    first, second = Reader("1", 0, node, 1), Reader("2", 0, node, 1)
    for one in (first, second):
        node.attach(one)
    for data in (b"a", b"b"):
        node.put(item(data))
    first.seq = 2
    node.trim()
    assert node.size == 2 * (OVERHEAD + 1)
    second.seq = 1
    node.trim()
    assert node.size == OVERHEAD + 1
    node.put(item(b"again", 0))
    assert node.size == OVERHEAD + 1


def test_nothing_is_let_go_without_a_reader() -> None:
    """The action may come yet."""
    node = Node("n")
    node.put(item(b"a"))
    node.trim()
    assert content(node) == [b"a"]


def test_a_reader_that_is_too_late_is_refused() -> None:
    """Its beginning is gone."""
    node = Node("n")
    early = Reader("1", 0, node, 1)
    node.attach(early)
    node.put(item(b"a"))
    early.seq = 1
    node.trim()
    with pytest.raises(StatusError, match="'n' was already read by another action") as met:
        node.attach(Reader("2", 0, node, 1))
    assert met.value.status == Status.FAILED_PRECONDITION


def test_a_reference_is_kept_for_its_reader_to_refuse() -> None:
    """It counts as an item."""
    node = Node("n")
    node.put(Fragment("n", NodeRef("x"), 0))
    assert (node.at(0), node.length, node.size) == (NodeRef("x"), 1, OVERHEAD)
