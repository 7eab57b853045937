"""`Cursor`: depth first, left to right, within limits (E-062, E-065, E-066)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.protocols.evergreen.cursor import END, WAIT, Cursor, whole_characters
from invoker.protocols.evergreen.errors import EvergreenError
from invoker.protocols.evergreen.graph import Graph
from invoker.protocols.evergreen.settings import EvergreenSettings
from tests.conftest import cpu_within
from tests.protocols.evergreen.conversation import Conversation
from tests.protocols.evergreen.functions import relay, upper
from tests.protocols.evergreen.models import each
from tests.protocols.evergreen.notation import END_OF_TURN, A, F, K

UPPER = A("upper", {"x": "p"}, {"y": "r"})


def graph_of(*fragments, **settings):
    graph = Graph(EvergreenSettings(**settings))
    for one in fragments:
        graph.accept(one)
    return graph


def all_of(cursor):
    """What is there until the cursor waits or ends."""
    found = []
    while not isinstance(one := cursor.next(), str):
        found.append((one[0].id, one[1]))
    return found, one


def chain(length, last):
    """A chain of nodes; ``last`` makes the lowest."""
    return [*(K(f"n{n}", 0, f"n{n + 1}") for n in range(1, length)), last(f"n{length}")]


def leaf(name):
    return F(name, 0, "x")


def test_E062_leaves_come_depth_first_and_left_to_right():
    """A tree of three levels whose nodes came backwards."""
    parts = [
        K("p", 0, "a", "q", "d"), F("a", 0, "1"), K("q", 0, "b", "w"), F("b", 0, "2"), K("w", 0, "c"), F("c", 0, "3"),
        F("d", 0, "4"),
    ]  # fmt: skip
    for order in (parts, parts[::-1]):
        graph = graph_of(*order)
        found, end = all_of(Cursor(graph.nodes["p"], graph.settings))
        assert (found, end) == ([("a", b"1"), ("b", b"2"), ("c", b"3"), ("d", b"4")], END)


def test_E062_a_leaf_comes_when_all_before_it_are_done():
    """Early leaves are handed on before later ones exist; a later one waits for those before it."""
    graph = graph_of(K("p", 0, "a", "b", "c"), F("a", 0, "1"), F("c", 0, "3"))
    cursor = Cursor(graph.nodes["p"], graph.settings)
    assert all_of(cursor) == ([("a", b"1")], WAIT)
    assert cursor.awaited.id == "b"
    graph.accept(F("b", 0, "2", more=True))
    assert all_of(cursor) == ([], WAIT)
    graph.accept(F("b", 1, "!"))
    assert all_of(cursor) == ([("b", b"2!"), ("c", b"3")], END)


def test_E062_an_interior_node_that_goes_on_is_waited_for():
    """What is named so far comes at once; the end only with the final fragment."""
    graph = graph_of(K("p", 0, "a", more=True), F("a", 0, "1"))
    cursor = Cursor(graph.nodes["p"], graph.settings)
    assert all_of(cursor) == ([("a", b"1")], WAIT)
    assert cursor.awaited.id == "p"
    graph.accept(F("p", 1))
    assert all_of(cursor) == ([], END)
    assert cursor.is_closed


def test_E062_early_leaves_reach_the_function_before_later_ones_exist():
    """The second leaf has not come when the first one's result is sent."""
    c = Conversation(upper).send(UPPER, K("p", 0, "a", "b", more=True), F("a", 0, "x"))
    assert c.invocations["a1"].payloads() == [b"x"]


@pytest.mark.parametrize(("length", "is_too_deep"), [(64, False), (65, True)])
@pytest.mark.parametrize("arrival", ["nodes first", "top down", "bottom up"])
def test_E065_sixty_four_levels_are_read_and_sixty_five_are_not(length, is_too_deep, arrival):
    """The root counts as 1; the order of arrival does not matter."""
    nodes = [K("p", 0, "n1"), *chain(length - 1, leaf)]
    parts = {"nodes first": [*nodes, UPPER], "top down": [UPPER, *nodes], "bottom up": [UPPER, *nodes[::-1]]}
    c = Conversation(upper).send_each(*parts[arrival])
    if is_too_deep:
        c.fails("LIM", "node 'p' is nested deeper than 64 levels")
    else:
        assert c.half_close().is_ok
        assert c.texts("r") == ["X"]


@pytest.mark.parametrize("is_action_first", [True, False])
def test_E065_levels_that_hold_nothing_count_too(is_action_first):
    """A chain that ends in an empty node is as deep as another, whatever came first."""
    nodes = chain(8, F)
    action, root = A("upper", {"x": "p"}, {"y": "r"}), K("p", 0, "n1")
    parts = [action, root, *nodes[::-1]] if is_action_first else [*nodes, root, action]
    Conversation(upper, depth=5).send_each(*parts).fails("LIM", "nested deeper than 5 levels")


@pytest.mark.parametrize(("length", "last"), [(100_000, leaf), (5000, lambda name: F(name, 0, "x", more=True))])
def test_E065_a_chain_of_100000_levels_is_refused_without_recursion(length, last):
    """Also where nothing of it is complete, and by all that walks the graph (ET-39)."""
    c = Conversation(upper, nodes=200_000).send(*chain(length, last))
    c.send(A("upper", {"x": "n1"}, {"y": "r"})).fails("LIM", "nested deeper than 64 levels")


@pytest.mark.parametrize("last", [leaf, lambda name: F(name, 0, "x", more=True)], ids=["known", "unknown"])
def test_E066_exponential_sharing_is_refused_at_once(last, slow):
    """Forty levels that name the next one twice: told by sums where they are known, else after the allowed leaves."""
    with cpu_within(1.0 * slow):
        c = Conversation(upper).send(*(K(f"n{n}", 0, f"n{n + 1}", f"n{n + 1}") for n in range(40)), last("n40"))
        c.send(A("upper", {"x": "n0"}, {"y": "r"}))
        if c.is_open:
            c.send(F("n40", 1))
        c.fails("LIM", "node 'n0' exceeds the limit of 1000000 leaves when it is flattened")


def test_E066_exponential_bytes_are_refused_at_once():
    """The limit of the session's bytes holds for what a flattened input would hand on."""
    c = Conversation(upper, session_bytes=100_000)
    c.send(*(K(f"n{n}", 0, f"n{n + 1}", f"n{n + 1}") for n in range(10)), F("n10", 0, "x" * 1000))
    c.send(A("upper", {"x": "n0"}, {"y": "r"})).fails("LIM", "exceeds the limit of 100000 bytes when it is flattened")


def test_E066_leaves_are_counted_while_they_stream():
    """Each leaf is handed on until one is too many."""
    c = Conversation(relay, leaves=3).send(A("relay", {"x": "p"}, {"y": "r"}), F("a", 0, "x", more=True))
    c.send(K("p", 0, "a", "a", "a", "a", more=True))
    assert c.is_open
    c.send(F("a", 1))
    c.fails("LIM", "node 'p' exceeds the limit of 3 leaves when it is flattened")


@pytest.mark.parametrize("is_action_first", [True, False])
def test_E066_markers_count_as_leaves_in_every_order(is_action_first):
    """Whether a limit is exceeded does not depend on what came first."""
    nodes = [F("a", 0, "x"), F("e", 0, type=END_OF_TURN), K("p", 0, "a", more=True), K("p", 1, "e", "e")]
    parts = [UPPER, *nodes] if is_action_first else [*nodes, UPPER]
    Conversation(upper, leaves=2).send_each(*parts).fails("LIM", "exceeds the limit of 2 leaves")


def test_E066_many_places_of_an_endless_marker_do_not_spin():
    """A marker that is not complete is not passed by, so that nobody walks 2**13 places of it for nothing."""
    c = Conversation(upper, leaves=100).send(F("n13", 0, type=END_OF_TURN, more=True))
    c.send(*(K(f"n{n}", 0, f"n{n + 1}", f"n{n + 1}") for n in range(13)), A("upper", {"x": "n0"}, {"y": "r"}))
    assert not c.sent.is_complete("r")
    if c.is_open:
        c.send(F("n13", 1))
    c.fails("LIM", "exceeds the limit of 100 leaves")


def test_E066_places_of_empty_nodes_cost_nothing(slow):
    """A thousand levels of nothing are passed by at once."""
    with cpu_within(1.0 * slow):
        c = Conversation(upper).send(F("n40"), *(K(f"n{n}", 0, f"n{n + 1}", f"n{n + 1}") for n in range(40)))
        assert c.send(A("upper", {"x": "n0"}, {"y": "r"})).texts("r") == []


def test_E095_pieces_come_as_they_arrive():
    """A reader of pieces gets what is there before the leaf is complete, each piece once."""
    graph = graph_of(F("p", 0, b"ab", type="application/octet-stream", more=True))
    cursor = Cursor(graph.nodes["p"], graph.settings, pieces="bytes")
    assert all_of(cursor) == ([("p", b"ab")], WAIT)
    graph.accept(F("p", 1, b"c", more=True))
    assert all_of(cursor) == ([("p", b"c")], WAIT)
    graph.accept(F("p", 2))
    assert all_of(cursor) == ([], END)


def test_E095_an_empty_leaf_is_one_empty_piece():
    """The function hears of it."""
    graph = graph_of(F("p", 0, type="text/plain"))
    assert all_of(Cursor(graph.nodes["p"], graph.settings, pieces="text")) == ([("p", b"")], END)


def test_E095_characters_stay_whole_in_pieces():
    """A character whose bytes came in three fragments is one piece."""
    graph = graph_of(*(F("p", seq, "日".encode()[seq : seq + 1], more=True) for seq in range(2)))
    cursor = Cursor(graph.nodes["p"], graph.settings, pieces="text")
    assert all_of(cursor) == ([], WAIT)
    graph.accept(F("p", 2, "日!".encode()[2:]))
    assert all_of(cursor) == ([("p", "日!".encode())], END)


def test_E095_what_is_cut_off_at_the_end_is_handed_on_for_the_decoder_to_refuse():
    """Half a character is not swallowed."""
    graph = graph_of(F("p", 0, b"a\xe6\x97"))
    assert all_of(Cursor(graph.nodes["p"], graph.settings, pieces="text")) == ([("p", b"a"), ("p", b"\xe6\x97")], END)


@pytest.mark.parametrize("is_whole_first", [True, False])
def test_E063_readers_of_pieces_and_of_whole_leaves_do_not_disturb_each_other(is_whole_first):
    """A leaf that is joined for one reader keeps its places for another who has seen half a character."""
    c = Conversation(upper, relay, models={"relay": each(str)})
    actions = [A("upper", {"x": "p"}, {"y": "r"}), A("relay", {"x": "p"}, {"y": "r2"})]
    c.send_each(*(actions if is_whole_first else actions[::-1]))
    c.send(F("p", 0, b"\xe6", more=True)).send(F("p", 1, b"\x97", more=True)).send(F("p", 2, b"\xa5!"))
    assert c.half_close().is_ok
    assert (c.texts("r"), c.texts("r2")) == (["日!"], ["日!"])


def test_E095_a_mark_of_the_byte_order_inside_a_leaf_is_kept():
    """A decoder drops one at the start of each message; the cursor puts one before a piece that begins with it."""
    graph = graph_of(F("p", 0, "a", more=True), F("p", 1, "\ufeffb"))
    found, _ = all_of(Cursor(graph.nodes["p"], graph.settings, pieces="text"))
    assert [data.decode("utf-8-sig") for _, data in found] == ["a", "\ufeffb"]


def test_a_closed_cursor_reads_nothing():
    """And a leaf that it had begun may be joined again."""
    graph = graph_of(F("p", 0, "a", more=True))
    cursor = Cursor(graph.nodes["p"], graph.settings, pieces="text")
    all_of(cursor)
    assert graph.nodes["p"].readers == 1
    cursor.close()
    cursor.close()
    assert graph.nodes["p"].readers == 0
    assert cursor.next() is END


def test_a_node_with_a_fault_raises_it():
    """Wherever it stands below the root."""
    graph = graph_of(K("p", 0, "a"))
    graph.nodes["a"].fault = EvergreenError(9, "Title", "why")
    with pytest.raises(EvergreenError, match="why"):
        Cursor(graph.nodes["p"], graph.settings).next()


@given(st.text(), st.integers(0, 12))
def test_whole_characters_cuts_before_an_incomplete_one(text, cut):
    """What is handed on decodes; the rest is less than one character."""
    data = text.encode()[:cut]
    whole, rest = whole_characters(data)
    assert whole + rest == data
    whole.decode()
    assert len(rest) < 4


@given(st.binary(max_size=8))
def test_whole_characters_never_loses_a_byte(data):
    """What is no UTF-8 is left to the decoder."""
    whole, rest = whole_characters(data)
    assert whole + rest == data
    assert len(rest) < 4
