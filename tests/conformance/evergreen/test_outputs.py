"""The rules that hold for each fragment of a server, and what its outputs flatten to."""

from __future__ import annotations

import pytest

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker_conformance.evergreen.frames import JSON, OCTETS, TEXT, A, F, K, message
from invoker_conformance.evergreen.outputs import FRAGMENT_BYTES, Broken, Outputs


def outputs(*fragments: pb.NodeFragment) -> Outputs:
    """Outputs of a session that listed r and s and used p, after these fragments."""
    found = Outputs()
    found.sent(message(A("f", {"x": "p"}, {"a": "r", "b": "s"}), F("q", m=TEXT, t="x"), K("k", "child")))
    for fragment in fragments:
        found.take(fragment)
    return found


def test_a_tree_is_flattened_in_order() -> None:
    """Depth first, left to right, each leaf decoded by its type."""
    met = outputs(
        K("r", "1", "2", mark="+"),
        F("2", m=JSON, t="[2]"),
        K("1", "3"),
        F("3", 0, "+", m=TEXT, d="日".encode()),
        F("3", 1, t="!"),
        K("r", "4", seq=1, mark="+"),
        F("4", m=OCTETS, d=b"\xff"),
    )
    assert not met.has("r")
    met.take(F("r", 2))
    assert met.has("r")
    assert met.values("r") == ["日!", [2], b"\xff"]
    assert met.ids == ["r"]
    assert met.children("r") == ["1", "2", "4"]
    assert met.pieces("3") == ["日".encode(), b"!"]
    assert met.incomplete(["r", "s"]) == ["s"]


def test_an_empty_output_flattens_to_nothing() -> None:
    """One terminator, with or without empty data."""
    assert outputs(F("r")).values("r") == []
    assert outputs(F("r", d=b"")).values("r") == []


@pytest.mark.parametrize(
    ("fragments", "expected"),
    [
        ([F("t", m=TEXT, t="x")], "E-086"),
        ([F("p", m=TEXT, t="x")], "E-086"),
        ([F("r", 1, m=TEXT, t="x")], "seq 0"),
        ([F("r", 0, "+", m=TEXT, t="x"), F("r", 2, t="x")], "seq 1"),
        ([F("r", m=TEXT, t="x"), F("r", 1)], "E-103"),
        ([F("r", 0, "+", m=TEXT, t="x"), F("r", 1, m=TEXT, t="x")], "metadata on seq 0 only"),
        ([F("r", t="x")], "metadata at seq 0"),
        ([F("r", 0, "+", d=b"")], "metadata at seq 0"),
        ([F("r", m="", t="x")], "E-104"),
        ([F("r", m="text/*", t="x")], "E-104"),
        ([F("r", m=TEXT, ref="data:,x")], "E-059"),
        ([F("r", 0, "+", m=TEXT, d="日".encode()[:1])], "E-097"),
        ([F("r", m=OCTETS, d=bytes(FRAGMENT_BYTES + 1))], "E-097"),
        ([K("r", "q")], "fresh ids"),
        ([K("r", "child")], "fresh ids"),
        ([K("r", "s")], "fresh ids"),
        ([K("r", "1", mark="+"), K("s", "1")], "fresh ids"),
        ([F("r", 0, "+", m=TEXT, t="x"), K("r", "1", seq=1)], "no children of a leaf"),
        ([K("r", "1", mark="+"), F("r", 1, t="x")], "metadata at seq 0"),
        ([pb.NodeFragment(id="r", child_ids=["1"], chunk_fragment=pb.Chunk(data=b"x"))], "not both"),
    ],
)
def test_what_breaks_a_rule(fragments: list[pb.NodeFragment], expected: str) -> None:
    """The last of these fragments does, and the rule is named."""
    met = outputs(*fragments[:-1])
    with pytest.raises(Broken, match=expected):
        met.take(fragments[-1])


def test_a_leaf_that_is_not_what_its_type_says() -> None:
    """It cannot be read."""
    with pytest.raises(ValueError, match="Expecting value"):
        outputs(F("r", m=JSON, t="x")).values("r")
