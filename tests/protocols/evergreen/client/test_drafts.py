"""Tests of what values become before anything is sent."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from google.protobuf.any_pb2 import Any as PackedAny
from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct

from invoker.codecs import builtin
from invoker.errors import InvokerError
from invoker.message import Message
from invoker.protocols.evergreen.client.drafts import Draft, packed
from invoker.protocols.evergreen.client.media import Ref
from invoker.protocols.evergreen.client.nodes import FRAGMENT_BYTES, Node
from tests.protocols.evergreen.client.sessions import Noted, parsed


@pytest.fixture
def draft() -> Draft:
    return Draft(Noted(), builtin())


def test_list_is_a_sequence_at_the_top_and_json_below(draft: Draft) -> None:
    """Unless it holds what is no JSON."""
    root = draft.node(["a", [1, 2], [b"b", Message("c")]])
    (tree, a, numbers, inner, b, c) = parsed(draft.frames)
    assert tree.id == root.id
    assert list(tree.child_ids) == [a.id, numbers.id, inner.id]
    assert numbers.chunk_fragment.data == b"[1,2]"
    assert list(inner.child_ids) == [b.id, c.id]
    assert draft.streams == []


def test_iterators_are_streams(draft: Draft) -> None:
    """Nothing of them is taken yet."""

    async def later() -> AsyncIterator[str]:
        raise AssertionError("taken too early")
        yield ""

    for values in (later(), iter(["x"]), (one for one in "ab")):
        tree = draft.node(values)
        assert draft.streams[-1] == (tree, values)
    assert draft.frames == []


def test_large_leaf_is_cut(draft: Draft) -> None:
    """Metadata on the first fragment only."""
    draft.node(bytes(FRAGMENT_BYTES + 1))
    first, second = parsed(draft.frames)
    assert (first.continued, second.continued) == (True, False)
    assert first.chunk_fragment.metadata.mimetype == "application/octet-stream"
    assert not second.chunk_fragment.HasField("metadata")


def test_reference_travels_as_one(draft: Draft) -> None:
    """With its type and headers."""
    draft.node(Ref("data:,x", "image/png", {"role": "user"}))
    (only,) = parsed(draft.frames)
    assert only.chunk_fragment.ref == "data:,x"
    assert (only.chunk_fragment.metadata.mimetype, only.chunk_fragment.metadata.role) == ("image/png", "user")


async def test_what_cannot_be_an_input(draft: Draft) -> None:
    """Is refused, with what to do."""

    async def answer() -> str:
        return "x"

    coming = answer()
    with pytest.raises(TypeError, match="coroutine; await it first"):
        draft.node(coming)
    coming.close()
    with pytest.raises(ValueError, match="belongs to another session"):
        draft.node(["x", Node(Noted(), "id")])
    with pytest.raises(InvokerError):
        draft.node({"x": object()})
    with pytest.raises(ValueError, match="cannot travel with a chunk"):
        draft.node(Message("x", {"X-Id": "1"}))


async def test_items_of_a_stream_are_whole(draft: Draft) -> None:
    """An iterator in an iterator would have nobody to send it."""
    with pytest.raises(TypeError, match="cannot be an iterator"):
        await draft.tree().add(iter("ab"))


def test_configs_are_packed() -> None:
    """Messages by their type, dicts as Struct, and what is packed stays as it is."""
    done = PackedAny(type_url="type.example/x", value=b"1")
    first, second, third = packed([{"k": [1, "a"]}, Duration(seconds=2), done])
    struct, duration = Struct(), Duration()
    assert first.Unpack(struct)
    assert second.Unpack(duration)
    assert dict(struct)["k"][1] == "a"
    assert (duration.seconds, third) == (2, done)
    with pytest.raises(TypeError, match="a protobuf message or a dict, not int"):
        packed([1])
