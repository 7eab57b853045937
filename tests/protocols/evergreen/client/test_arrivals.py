"""Tests of putting nodes together: fragments in, parts out."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.protocols.evergreen.client.arrivals import Arrivals, BadNode, Cursor, End, Part, Reference
from tests.protocols.evergreen.client.peer import inner, leaf

TREE = [
    inner("root", "a", "b", more=True),
    inner("root", "c", seq=1),
    leaf("a", b"1", more=True),
    leaf("a", b"2", seq=1, media_type=None),
    inner("b", "d", "e"),
    leaf("d", b"3"),
    leaf("e", b""),
    leaf("c", b"4", more=True),
    leaf("c", b"5", seq=1, more=True, media_type=None),
    inner("c", seq=2),
]


def read(cursor: Cursor) -> list[bytes | Reference | None]:
    """All parts that are there."""
    found = []
    while isinstance(part := cursor.step(), Part):
        found.append(part.payload)
    return found


def arrived(*fragments: pb.NodeFragment) -> Arrivals:
    arrivals = Arrivals()
    arrivals.list("root")
    for fragment in fragments:
        arrivals.receive(fragment)
    return arrivals


@given(st.randoms(use_true_random=False))
def test_order_of_delivery_means_nothing(shuffle: random.Random) -> None:
    """Shuffled and repeated fragments read as the ordered ones, whatever is read in between; then nothing is held."""
    fragments = [*TREE, *TREE[:4]]
    shuffle.shuffle(fragments)
    arrivals = Arrivals()
    arrivals.list("root")
    cursor = Cursor(arrivals, "root")
    found: list[bytes | Reference | None] = []
    for fragment in fragments:
        arrivals.receive(fragment)
        if shuffle.random() < 0.5:
            found += read(cursor)
    found += read(cursor)
    assert found == [b"1", b"2", None, b"3", None, None, b"4", b"5", None]
    assert isinstance(cursor.step(), End)
    assert arrivals.held_bytes == 0


@given(st.randoms(use_true_random=False), st.integers(0, len(TREE)))
def test_dropped_tree_holds_nothing(shuffle: random.Random, drop_at: int) -> None:
    """Whenever its reader goes away."""
    fragments = list(TREE)
    shuffle.shuffle(fragments)
    arrivals = arrived(*fragments[:drop_at])
    cursor = Cursor(arrivals, "root")
    cursor.step()
    cursor.drop()
    for fragment in fragments[drop_at:]:
        arrivals.receive(fragment)
    assert arrivals.held_bytes == 0


def test_node_is_listed_twice() -> None:
    """By two parents or by one: its content comes as often, and so does what is below it."""
    arrivals = arrived(inner("root", "x", "a", "x"), inner("x", "a"), leaf("a", b"1"))
    assert read(Cursor(arrivals, "root")) == [b"1", None] * 3


def test_node_that_is_listed_again_after_it_was_read() -> None:
    """Is not there any more, and that is said."""
    arrivals = arrived(inner("root", "a", more=True), leaf("a", b"1"))
    cursor = Cursor(arrivals, "root")
    assert read(cursor) == [b"1", None]
    arrivals.receive(inner("root", "a", seq=1))
    with pytest.raises(BadNode, match="node 'a' listed again after it was read"):
        cursor.step()


def test_little_is_left_of_what_was_read() -> None:
    """An endless output must not cost memory; its ids stay taken."""
    arrivals = arrived()
    cursor = Cursor(arrivals, "root")
    for seq in range(1000):
        arrivals.receive(inner("root", str(seq), seq=seq, more=True))
        arrivals.receive(leaf(str(seq), b"x"))
        assert read(cursor) == [b"x", None]
    assert len(arrivals._nodes) == 1
    arrivals.receive(leaf("7", b"again"))
    assert arrivals.held_bytes == 0
    with pytest.raises(BadNode, match="node '7' with seq 1 beyond its final seq 0"):
        arrivals.receive(leaf("7", b"more", seq=1, media_type=None))
    arrivals.receive(inner("root", "7", seq=1000))
    with pytest.raises(BadNode, match="node '7' listed again after it was read"):
        cursor.step()


def test_cycles_are_found() -> None:
    """Through another node, too."""
    arrivals = arrived(inner("root", "x"), inner("x", "root"))
    with pytest.raises(BadNode, match="node 'x' which includes itself"):
        Cursor(arrivals, "root").step()


def test_deep_tree_needs_no_recursion() -> None:
    """The depth is the server's choice."""
    arrivals = arrived(*(inner("root" if not depth else str(depth), str(depth + 1)) for depth in range(20_000)))
    arrivals.receive(leaf("20000", b"deep"))
    assert read(Cursor(arrivals, "root")) == [b"deep", None]


def test_references_are_parts() -> None:
    """And told from bytes."""
    chunk = pb.Chunk(metadata=pb.ChunkMetadata(mimetype="image/png"), ref="https://example.org/cat")
    (part, end) = read(Cursor(arrived(pb.NodeFragment(id="root", chunk_fragment=chunk)), "root"))
    assert isinstance(part, Reference)
    assert (part, end) == ("https://example.org/cat", None)


@pytest.mark.parametrize(
    ("fragments", "says"),
    [
        ([leaf("", b"")], "without an id"),
        ([leaf("root", b"", seq=-2)], "negative seq -2"),
        ([leaf("root", b"", seq=3, more=True, media_type=None), inner("root", seq=1)], "final seq 1, but seq 3"),
        ([inner("root", seq=1), inner("root", seq=2)], "seq 2 beyond its final seq 1"),
        ([leaf("root", b"", more=True), inner("root", "a", seq=1)], "as a leaf and as an interior node"),
        ([inner("root", "")], "a child that has no id"),
        ([pb.NodeFragment(id="root", child_ids=["a"], chunk_fragment=pb.Chunk())], "children and a chunk"),
        ([inner("root", more=True), leaf("root", b"x", seq=1, media_type=None)], "without metadata at seq 0"),
    ],
)
def test_E103_rules_that_a_server_can_break(fragments: list[pb.NodeFragment], says: str) -> None:
    """Each has words of its own."""
    with pytest.raises(BadNode, match=says):
        arrived(*fragments)


def test_second_fragment_of_a_seq_is_dropped() -> None:
    """E-019: whatever it holds, also what would be wrong."""
    arrivals = arrived(leaf("root", b"first"), leaf("root", b"second"), inner("root", "child"))
    assert read(Cursor(arrivals, "root")) == [b"first", None]


def test_what_is_missing_is_said() -> None:
    """For the text of an error."""
    arrivals = arrived(leaf("a", b"1", more=True), leaf("b", b"", seq=2, media_type=None))
    assert arrivals.missing("a") == "never ended after seq 0"
    assert arrivals.missing("b") == "has no seq 0, though later ones came"
    assert arrivals.missing("c") == "never came"
    assert not arrivals.is_complete("a")
