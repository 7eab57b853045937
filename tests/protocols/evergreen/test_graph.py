"""Fragments of the client: which are taken in, which are dropped, and which error wins (E-017 to E-036, E-067)."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from invoker.protocols.evergreen.graph import Graph
from invoker.protocols.evergreen.settings import EvergreenSettings
from tests.protocols.evergreen.conversation import Conversation
from tests.protocols.evergreen.functions import either, raw, relay, upper
from tests.protocols.evergreen.models import each
from tests.protocols.evergreen.notation import A, F, K, M

UPPER = A("upper", {"x": "p"}, {"y": "r"})


def both(*parts):
    """The parts in every order, each in a message of its own."""
    return [Conversation(upper).send_each(*order) for order in permutations(parts)]


def test_E017_a_lone_fragment_is_a_complete_node():
    """Missing seq is 0 and missing continued is false."""
    c = Conversation(upper).send(UPPER, F("p", data="hi"))
    assert c.texts("r") == ["HI"]


def test_E018_fragments_in_any_order_are_ordered_by_seq():
    """A hundred shuffled fragments of two nodes that interleave give both contents in the order of seq."""
    parts = [F(name, seq, f"{name}{seq};", more=seq < 49) for name in "pq" for seq in range(50)]
    random.Random(7).shuffle(parts)
    c = Conversation(upper).send(UPPER, A("upper", {"x": "q"}, {"y": "r2"})).send_each(*parts)
    assert c.texts("r") == ["".join(f"P{seq};" for seq in range(50))]
    assert c.texts("r2") == ["".join(f"Q{seq};" for seq in range(50))]


def test_E019_the_first_of_two_equal_seqs_wins():
    """A second fragment with the same seq is dropped, whatever it holds."""
    c = Conversation(upper).send_each(UPPER, F("p", 0, "a", more=True), F("p", 0, "b", more=True), F("p", 1, "c"))
    assert c.texts("r") == ["AC"]


@pytest.mark.parametrize(
    "again",
    [
        F("p", 1, "z", type="text/plain"),
        F("p", 1, "z", more=True),
        K("p", 1, "child"),
        K("p", 1, "p"),
        K("p", 1, ""),
        F("p", 1),
    ],
    ids=["metadata", "flags", "kind", "cycle", "empty child", "terminator"],
)
def test_E020_a_corrupt_retry_never_aborts(again):
    """The check for duplicates comes before all checks of content, also once the node is complete."""
    c = Conversation(upper).send(F("p", 0, "a", more=True), F("p", 1, "b"), again, UPPER).send(again).half_close()
    assert c.is_ok
    assert c.texts("r") == ["AB"]


def test_E020_a_duplicate_above_a_gap_is_dropped_too():
    """What waits above a gap is known by its seq as well."""
    c = Conversation(upper).send(
        UPPER, F("p", 1, "b"), F("p", 1, "z", type="a/b", more=True), F("p", 0, "a", more=True)
    )
    assert c.texts("r") == ["AB"]


def test_E021_a_seq_above_the_final_one_aborts():
    """The text names the node and both seqs."""
    c = Conversation().send(F("p", 2, "c"), F("p", 3, "d", more=True))
    c.fails("FRAG", "node 'p': seq 3 is beyond final seq 2")


def test_E022_a_final_seq_below_a_received_one_aborts():
    """It does not matter that the higher one came first."""
    c = Conversation().send(F("p", 5, "x", more=True), F("p", 2, "y"))
    c.fails("FRAG", "node 'p': seq 5 is beyond final seq 2")


@pytest.mark.parametrize("seqs", [(1, 3), (3, 1), (0, 1), (1, 0)])
def test_E023_two_final_seqs_abort(seqs):
    """A node has one end, in whatever order two of them come."""
    Conversation().send_each(*(F("p", seq, "x") for seq in seqs)).fails("FRAG", "beyond final seq")


def test_E023_two_finals_of_output_kind_abort():
    """Terminators are final fragments like others."""
    Conversation().send(F("p", 1), F("p", 3)).fails("FRAG", "seq 3 is beyond final seq 1")


@pytest.mark.parametrize("seq", [-1, -(2**31)])
def test_E024_a_negative_seq_aborts(seq):
    """Seqs count from 0."""
    Conversation().send(F("p", seq, "x", more=True)).fails("FRAG", f"node 'p': seq {seq}")


def test_E025_a_sparse_seq_is_stored_without_room_for_those_below():
    """The highest seq alone costs one entry, and leaves its node incomplete and unused."""
    c = Conversation().send(F("p", 2**31 - 1, "x"))
    node = c.session.graph.nodes["p"]
    assert not node.is_complete
    assert (len(node.content), len(node.ahead)) == (0, 1)
    assert c.session.graph.held < 1000
    assert c.half_close().is_ok


def test_E026_an_empty_id_aborts():
    """A fragment must say which node it is of."""
    Conversation().send(F("", 3, "x")).fails("FRAG", "seq 3 has no node id")


@pytest.mark.parametrize(("name", "is_too_long"), [("x" * 1024, False), ("x" * 1025, True), ("日" * 342, True)])
def test_E026_an_id_above_the_limit_aborts(name, is_too_long):
    """The limit of 1,024 counts bytes of UTF-8; the text shows 64 characters of the id."""
    c = Conversation().send(F(name, 0, "x"))
    if not is_too_long:
        assert c.is_open
        return
    error = c.fails("LIM", "exceeds the limit of 1024")
    assert name[:64] in str(error)
    assert name[:65] not in str(error)


def test_E026_a_child_id_above_the_limit_aborts():
    """Ids that are only referred to count alike."""
    Conversation().send(K("p", 0, "x" * 1025)).fails("LIM", "1025 bytes")


def test_E027_both_kinds_in_one_fragment_abort():
    """A node is a leaf or has children."""
    both_kinds = F("p", 0, "x")
    both_kinds.child_ids.append("a")
    Conversation().send(both_kinds).fails("FRAG", "node 'p', seq 0: .*both")


@pytest.mark.parametrize("chunk_seq", [0, 1])
@pytest.mark.parametrize("is_chunk_first", [True, False])
def test_E028_fragments_of_two_kinds_abort_in_any_order(chunk_seq, is_chunk_first):
    """One node cannot have a chunk and children in different fragments."""
    chunk = F("p", chunk_seq, "x", more=chunk_seq == 0)
    children = K("p", 1 - chunk_seq, "a", more=chunk_seq == 1)
    parts = (chunk, children) if is_chunk_first else (children, chunk)
    Conversation().send_each(*parts).fails("FRAG", "node 'p', seq")


def test_E029_a_terminator_ends_a_leaf():
    """A fragment with neither kind adds nothing."""
    for c in both(UPPER, F("p", 0, "a", more=True), F("p", 1)):
        assert c.texts("r") == ["A"]


def test_E029_an_empty_chunk_ends_a_leaf():
    """So does a chunk without bytes."""
    for c in both(UPPER, F("p", 0, "a", more=True), F("p", 1, "")):
        assert c.texts("r") == ["A"]


def test_E029_a_terminator_ends_an_interior_node():
    """It fits either kind."""
    for c in both(UPPER, K("p", 0, "a", more=True), F("p", 1), F("a", 0, "x")):
        assert c.half_close().is_ok
        assert c.texts("r") == ["X"]


def test_E029_a_terminator_alone_is_an_empty_node():
    """It flattens to nothing, so a function mapped over it is never called."""
    for c in both(UPPER, F("p", 0)):
        assert c.half_close().is_ok
        assert c.texts("r") == []
        assert c.sent.shape("r") == [(0, None, False)]


def test_E030_a_chunk_after_an_empty_first_fragment_aborts():
    """Seq 0 had no metadata; it does not matter which of both comes first."""
    for parts in permutations((F("p", 0, more=True), F("p", 1, "x"))):
        Conversation().send_each(*parts).fails("FRAG", "metadata")


def test_E030_children_after_an_empty_first_fragment_are_legal():
    """They need no metadata."""
    for c in both(UPPER, F("p", 0, more=True), K("p", 1, "a"), F("a", 0, "x")):
        assert c.half_close().is_ok
        assert c.texts("r") == ["X"]


def test_E031_a_gap_keeps_readers_waiting():
    """Output comes only when nothing is missing below the final seq."""
    c = Conversation(upper).send(UPPER, F("p", 0, "a", more=True), F("p", 2, "c"))
    assert c.sent.fragments == []
    assert not c.session.graph.nodes["p"].is_complete
    c.send(F("p", 1, "b", more=True))
    assert c.texts("r") == ["ABC"]


def test_E032_unused_incomplete_nodes_are_no_error():
    """They are kept until the session ends, and used if an action comes for them."""
    c = Conversation(upper).send(F("q", 1, "x"), K("w", 0, "nobody"), F("p", 0, "hi", more=True))
    assert set(c.session.graph.nodes) == {"q", "w", "nobody", "p"}
    c.send(UPPER, F("p", 1, "!"))
    assert c.texts("r") == ["HI!"]
    assert c.half_close().is_ok


def test_E033_a_client_may_send_all_fragments_again():
    """The outcome is that of sending them once."""
    parts = [K("p", 0, "a", "b", more=True), F("a", 0, "x"), K("p", 1), F("b", 0, "y", more=True), F("b", 1, "z")]
    once = Conversation(upper).send(UPPER).send(*parts)
    again = Conversation(upper).send(UPPER).send(*parts[:3]).send(*parts).send(*parts)
    assert once.texts("r") == again.texts("r") == ["X", "YZ"]
    assert again.session.graph.held == once.session.graph.held


def test_E034_a_first_chunk_without_metadata_aborts():
    """What a leaf is must be said."""
    Conversation().send(F("p", 0, "x", type=None)).fails("FRAG", "node 'p': the chunk at seq 0 has no metadata")


@pytest.mark.parametrize("mimetype", ["text/plain", "image/png", ""])
@pytest.mark.parametrize("is_first_there", [True, False])
def test_E035_metadata_on_a_later_seq_aborts_at_once(mimetype, is_first_there):
    """Even if it is empty or equal to that of seq 0, and whether that is there or not."""
    c = Conversation()
    if is_first_there:
        c.send(F("p", 0, "x", more=True))
    c.send(F("p", 1, "y", mimetype=mimetype, more=True))
    c.fails("FRAG", "node 'p', seq 1: it has metadata")


LATER = F("p", 1, "b", mimetype="text/plain", role="user")


@pytest.mark.parametrize("parts", list(permutations((F("p", 0, "a", role="user", more=True), LATER))))
def test_E036_identical_tolerates_an_equal_copy(parts):
    """The first example of the text repeats its metadata on each fragment."""
    c = Conversation(upper, metadata="identical").send(UPPER).send_each(*parts)
    assert c.texts("r") == ["AB"]


@pytest.mark.parametrize("first", ["text/plain", "text/html", ""])
@pytest.mark.parametrize("later", ["text/plain", "text/html", ""])
def test_E036_identical_refuses_any_other_metadata_in_both_orders(first, later):
    """Metadata that differ abort, whichever comes first, and also if one of them is empty."""
    parts = (F("p", 0, "a", mimetype=first, more=True), F("p", 1, "b", mimetype=later))
    for order in permutations(parts):
        c = Conversation(metadata="identical").send_each(*order)
        if first == later:
            assert c.is_open
        else:
            c.fails("FRAG", "node 'p'.*metadata.*differs")


@pytest.mark.parametrize("parts", list(permutations((F("p", 0, "a", more=True), F("p", 1, "b", type="image/png")))))
def test_E036_ignore_passes_over_later_metadata(parts):
    """Only that of seq 0 counts."""
    c = Conversation(upper, metadata="ignore").send(UPPER).send_each(*parts)
    assert c.texts("r") == ["AB"]
    assert c.invocations["a1"].fed[0][0].media_type == "text/plain"


def test_E036_every_mode_needs_metadata_at_seq_0():
    """The switch is about later seqs only."""
    for mode in ("strict", "identical", "ignore"):
        Conversation(metadata=mode).send(F("p", 0, "x", type=None)).fails("FRAG", "no metadata")


def test_E037_the_metadata_of_seq_0_applies_to_the_whole_leaf():
    """Also where seq 0 comes last."""
    c = Conversation(raw).send(A("raw", {"x": "p"}, {"y": "r"}), F("p", 1, b"b"))
    c.send(F("p", 0, b"a", type="application/x-thing", more=True))
    (fed,) = c.invocations["a1"].fed[0]
    assert (fed.payload, fed.media_type) == (b"ab", "application/x-thing")


def test_E038_an_empty_mimetype_is_octets():
    """Present metadata without a type are enough (E-131)."""
    c = Conversation(raw).send(A("raw", {"x": "p"}, {"y": "r"}), F("p", 0, b"ab", mimetype=""))
    (fed,) = c.invocations["a1"].fed[0]
    assert fed.media_type in ("", "application/octet-stream")
    assert c.sent.flatten("r")[0].data == b"ba"


def test_E039_a_malformed_mimetype_is_no_error_by_itself():
    """It reaches a function that takes anything, and does not matter where nobody decodes the leaf."""
    c = Conversation(either).send(F("p", 0, b"ab", type="no type"), F("q", 0, b"x", type="//;"))
    c.send(A("either", {"x": "p"}, {"y": "r"})).half_close()
    assert c.is_ok
    assert c.invocations["a1"].fed[0][0].media_type == "no type"


def test_E041_a_leaf_without_payload_is_an_empty_one():
    """Metadata alone make a leaf, as of the mark at the end of a turn."""
    c = Conversation(upper).send(UPPER, F("p", 0, type="text/plain"))
    assert c.invocations["a1"].payloads() == [b""]
    assert c.texts("r") == [""]


def test_E060_child_lists_are_joined_by_seq():
    """In whatever order the fragments come."""
    leaves = [F(name, 0, name) for name in "abcd"]
    parts = (K("p", 0, "a", more=True), K("p", 1, "b", "c", more=True), K("p", 2, "d"))
    for order in permutations(parts):
        c = Conversation(upper).send(UPPER, *leaves).send_each(*order)
        assert c.texts("r") == ["A", "B", "C", "D"]


def test_E061_children_may_be_named_before_they_come():
    """Readers wait for them."""
    c = Conversation(upper).send(K("p", 0, "a"), UPPER)
    assert c.sent.fragments == []
    assert c.send(F("a", 0, "late")).texts("r") == ["LATE"]


def test_E063_a_node_may_have_several_parents_and_places():
    """Its content is repeated."""
    c = Conversation(upper).send(K("p", 0, "a", "b", "a"), K("b", 0, "a"), F("a", 0, "x"), UPPER)
    c.send(A("upper", {"x": "a"}, {"y": "r2"}))
    assert c.texts("r") == ["X", "X", "X"]
    assert c.texts("r2") == ["X"]


def test_E067_an_empty_child_id_aborts():
    """A child must be named."""
    Conversation().send(K("p", 0, "a", "")).fails("FRAG", "node 'p', seq 0: it has an empty child id")


def test_E040_boundaries_of_fragments_have_no_meaning():
    """A character may be cut anywhere, for whole leaves and for pieces alike."""
    data = "日本語 and ü 🙂".encode()
    for model in ({}, {"relay": each(str)}):
        function = relay if model else upper
        c = Conversation(function, models=model).send(A(function.__name__, {"x": "p"}, {"y": "r"}))
        c.send_each(*(F("p", seq, data[seq : seq + 1], more=True) for seq in range(len(data))), F("p", len(data)))
        assert c.texts("r")[0].lower() == data.decode().lower()


def test_a_graph_is_released_at_once():
    """Clearing leaves no node and no bytes."""
    graph = Graph(EvergreenSettings())
    graph.accept(K("p", 0, "a"))
    graph.accept(F("a", 0, "xyz"))
    assert graph.held > 3
    graph.clear()
    assert (graph.nodes, graph.held, graph.woken) == ({}, 0, [])


def test_messages_are_what_protobuf_says():
    """The notation makes serialised messages."""
    assert M(F("p", 0, "hi")).hex() == "0a170a01702a120a0c0a0a746578742f706c61696e52026869"
