"""Tests of nodes that are written piece by piece."""

from __future__ import annotations

import pytest

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.codecs import builtin
from invoker.protocols.evergreen.client.drafts import Draft
from invoker.protocols.evergreen.client.nodes import CHILDREN, FRAGMENT_BYTES, LeafNode, children, new_id, payloads
from tests.protocols.evergreen.client.sessions import Noted, parsed


async def test_leaf_is_sent_as_it_is_written() -> None:
    """Metadata at seq 0, then bytes in the charset of its type, then a terminator."""
    session = Noted()
    node = LeafNode(session, pb.ChunkMetadata(mimetype="text/plain; charset=latin-1"))
    await node.write("é")
    await node.write(b"!")
    await node.end()
    await node.end()
    assert [one.seq for one in session.sent] == [0, 1, 2]
    assert [one.chunk_fragment.data for one in session.sent] == [b"\xe9", b"!", b""]
    assert [one.continued for one in session.sent] == [True, True, False]
    assert [one.chunk_fragment.HasField("metadata") for one in session.sent] == [True, False, False]
    assert session.rooms == 2
    with pytest.raises(RuntimeError, match="has ended"):
        await node.write("late")


async def test_leaf_without_pieces_is_empty() -> None:
    """It still says what it is."""
    session = Noted()
    await LeafNode(session, pb.ChunkMetadata(mimetype="text/plain")).end()
    (only,) = session.sent
    assert (only.seq, only.continued, only.chunk_fragment.metadata.mimetype) == (0, False, "text/plain")


async def test_tree_names_children_before_they_travel() -> None:
    """So that a server may begin with what is there."""
    session = Noted()
    tree = Draft(session, builtin()).tree()
    await tree.add("a", ["b", b"c"])
    await tree.end()
    shape = [(one.id == tree.id, list(one.child_ids), one.chunk_fragment.data) for one in session.sent]
    (first, a, second, inner, *leaves, last) = shape
    assert first == (True, [session.sent[1].id], b"")
    assert a[2] == b"a"
    assert second == (True, [session.sent[3].id], b"")
    assert [data for _, _, data in leaves] == [b"b", b"c"]
    assert inner[1] == [one.id for one in session.sent[4:6]]
    assert last == (True, [], b"")
    assert [one.seq for one in session.sent if one.id == tree.id] == [0, 1, 2]
    with pytest.raises(RuntimeError, match="has ended"):
        await tree.add("late")


def test_large_things_travel_in_several_fragments() -> None:
    """A server takes 4 MiB at once, usually."""
    data = bytes(2 * FRAGMENT_BYTES + 1)
    assert [len(one) for one in payloads(data)] == [FRAGMENT_BYTES, FRAGMENT_BYTES, 1]
    ids = [str(number) for number in range(2 * CHILDREN)]
    parts = parsed(children("n", ids))
    assert [child for one in parts for child in one.child_ids] == ids
    assert [(one.seq, one.continued) for one in parts] == [(0, True), (1, False)]
    (empty,) = parsed(children("n", []))
    assert (empty.continued, list(empty.child_ids)) == (False, [])


def test_ids_are_never_the_same() -> None:
    """In any session."""
    assert len({new_id() for _ in range(1000)}) == 1000
