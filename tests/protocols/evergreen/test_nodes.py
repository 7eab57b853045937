"""`Node`: what it knows of itself."""

from __future__ import annotations

from invoker.protocols.evergreen.graph import Graph
from invoker.protocols.evergreen.nodes import INTERIOR, LEAF, MOST, UNDECIDED, Node, Reference
from invoker.protocols.evergreen.settings import EvergreenSettings
from tests.protocols.evergreen.notation import F, K


def graph_of(*fragments):
    graph = Graph(EvergreenSettings())
    for one in fragments:
        graph.accept(one)
    return graph


def test_a_new_node_is_neither_kind_and_not_complete():
    """Nothing is known of a node that was only referred to."""
    node = graph_of(K("p", 0, "a")).nodes["a"]
    assert (node.kind, node.is_complete, node.is_known, node.is_received) == (UNDECIDED, False, False, False)
    assert node.references() == []


def test_a_node_has_what_came_below_and_above_a_gap():
    """Both count as received."""
    node = graph_of(F("p", 0, "a", more=True), F("p", 3, "d", more=True)).nodes["p"]
    assert [node.has(seq) for seq in range(5)] == [True, False, False, True, False]


def test_a_node_is_complete_once_nothing_is_missing_below_its_final_seq():
    """The final seq alone is not enough, nor is a lack of gaps."""
    graph = graph_of(F("p", 1, "b"))
    assert not graph.nodes["p"].is_complete
    graph.accept(F("p", 0, "a", more=True))
    assert graph.nodes["p"].is_complete
    assert graph.nodes["p"].payload() == b"ab"


def test_a_leaf_is_joined_once_and_stays_so():
    """Reading it twice does not join it twice."""
    node = graph_of(*(F("p", seq, "x", more=seq < 9) for seq in range(10))).nodes["p"]
    first = node.payload()
    assert first == b"x" * 10
    assert node.payload() is first
    assert node.content == [first]


def test_a_leaf_is_not_joined_while_somebody_reads_it_piece_by_piece():
    """Places of readers would shift."""
    node = graph_of(F("p", 0, "a", more=True), F("p", 1, "b")).nodes["p"]
    node.readers = 1
    assert node.payload() == b"ab"
    assert node.content == [b"a", b"b"]


def test_a_leaf_with_a_reference_has_no_payload_until_that_is_resolved():
    """The reference's bytes stand in its place."""
    graph = graph_of(F("p", 0, "a", more=True), F("p", 1, ref="http://x/y", more=True), F("p", 2, "c"))
    node = graph.nodes["p"]
    (reference,) = node.references()
    assert (reference.uri, reference.node) == ("http://x/y", node)
    assert node.payload() is None
    reference.chunks, reference.is_done = [b"b", b"B"], True
    assert node.payload() == b"abBc"


def test_sums_are_known_when_all_below_is_complete():
    """Leaves, bytes and levels add up once the last of them came, in any order."""
    parts = [K("p", 0, "a", "q", "a"), K("q", 0, "b"), F("a", 0, "xy"), F("b", 0, "z")]
    for order in (parts, [parts[0], parts[3], parts[1], parts[2]], [parts[2], parts[1], parts[0], parts[3]]):
        graph = graph_of(*order[:-1])
        assert "p" not in graph.nodes or not graph.nodes["p"].is_known
        graph.accept(order[-1])
        node = graph.nodes["p"]
        assert (node.is_known, node.leaves, node.size, node.height) == (True, 3, 5, 3)


def test_sums_of_an_exponential_graph_stop_to_grow():
    """A hundred levels that each name the next one twice do not make a number of a hundred bits."""
    levels = [K(f"n{level}", 0, f"n{level + 1}", f"n{level + 1}") for level in range(100)]
    node = graph_of(*levels, F("n100", 0, "x")).nodes["n0"]
    assert node.leaves == node.size == MOST
    assert node.height == 101


def test_an_empty_node_has_no_leaves():
    """It is complete and one level high."""
    node = graph_of(F("p")).nodes["p"]
    assert (node.kind, node.is_known, node.leaves, node.height) == (UNDECIDED, True, 0, 1)


def test_above_and_below_follow_edges_and_actions():
    """Children, those above a gap, sources and sinks."""
    graph = graph_of(K("p", 0, "a", more=True), K("p", 2, "c"), F("leaf", 0, "x"))
    nodes = graph.nodes
    assert nodes["p"].below() == [nodes["a"], nodes["c"]]
    assert nodes["c"].above() == [nodes["p"]]
    output = graph.new_output("r")
    graph.produces(nodes["leaf"], output)
    assert output.below() == [nodes["leaf"]]
    assert nodes["leaf"].above() == [output]
    assert (nodes["p"].kind, nodes["leaf"].kind) == (INTERIOR, LEAF)


def test_a_reference_starts_unasked():
    """Nothing is fetched before somebody reads it."""
    reference = Reference("data:,x", Node("p", 0))
    assert (reference.is_asked, reference.is_done, reference.error, reference.chunks) == (False, False, None, [])
