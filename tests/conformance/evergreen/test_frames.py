"""Fragments and actions in the notation of the catalogue."""

from __future__ import annotations

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.struct_pb2 import Struct

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker_conformance.evergreen.frames import TEXT, A, F, K, described, jsons, message, shown, texts


def test_a_leaf() -> None:
    """Final unless it is marked as continued; metadata only where it is given."""
    assert F("p", m=TEXT, t="hi") == pb.NodeFragment(
        id="p", chunk_fragment=pb.Chunk(metadata=pb.ChunkMetadata(mimetype=TEXT), data=b"hi")
    )
    assert F("p", 1, "+", d=b"\xff") == pb.NodeFragment(
        id="p", seq=1, continued=True, chunk_fragment=pb.Chunk(data=b"\xff")
    )
    assert F("p", m="", ref="data:,").chunk_fragment.HasField("metadata")


def test_payloads_are_told_apart() -> None:
    """No chunk, a chunk without payload, with empty data, with a reference are four things."""
    assert not F("p", 3).HasField("chunk_fragment")
    cases = [F("p", m=TEXT), F("p", t=""), F("p", ref="x")]
    assert [each.chunk_fragment.WhichOneof("payload") for each in cases] == [None, "data", "ref"]


def test_an_action_keeps_pairs_and_configs() -> None:
    """Names may come twice; messages are packed, what is packed already stays."""
    packed = AnyMessage(type_url="x/y", value=b"1")
    action = A("f", [("a", "1"), ("a", "2")], {"o": "r"}, configs=[Struct(), packed], target="t")
    assert [(each.name, each.id) for each in action.inputs] == [("a", "1"), ("a", "2")]
    assert [each.type_url for each in action.configs] == ["type.googleapis.com/google.protobuf.Struct", "x/y"]
    assert action.target_spec.id == "t"
    assert not A("f").HasField("target_spec")


def test_roots_with_leaves() -> None:
    """The root comes first and names its leaves."""
    assert texts("p", "a", "b") == [K("p", "p/0", "p/1"), F("p/0", m=TEXT, t="a"), F("p/1", m=TEXT, t="b")]
    assert [each.chunk_fragment.data for each in jsons("p", {"a": 1}, "x")[1:]] == [b'{"a": 1}', b'"x"']  # type: ignore[union-attr]


def test_parts_are_told_in_short() -> None:
    """As the catalogue writes them."""
    assert shown(F("p", 1, "+", m=TEXT, t="hi")) == "F(p, 1, +, m 'text/plain', 'hi')"
    assert shown(K("p", "a", "b")) == "F(p, 0, ., K[a, b])"
    assert shown(F("p", ref="data:,x")) == "F(p, 0, ., ref 'data:,x')"
    assert shown(F("p", m=TEXT)) == "F(p, 0, ., m 'text/plain', no payload)"
    assert shown(A("f", {"x": "p"}, {"y": "r"}, target="t")) == "A(f; x=p; y=r; target 't')"
    assert described(message()) == "{}"
    assert described(message(F("p"))) == "F(p, 0, .)"
    assert described(message(*(F(f"{n}") for n in range(9)))).endswith("... 3 more}")
