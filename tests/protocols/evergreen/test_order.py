"""`Order`: cycles are found when the closing edge comes, used or not (E-064, E-069, E-070)."""

from __future__ import annotations

import random
import time
from itertools import permutations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from invoker.protocols.evergreen import order as order_module
from invoker.protocols.evergreen.errors import EvergreenError
from invoker.protocols.evergreen.graph import Graph
from invoker.protocols.evergreen.settings import EvergreenSettings
from tests.protocols.evergreen.conversation import Conversation
from tests.protocols.evergreen.functions import join, relay, upper
from tests.protocols.evergreen.models import each
from tests.protocols.evergreen.notation import A, F, K


def test_E064_a_node_that_names_itself_aborts():
    """Nobody has to read it."""
    Conversation().send(K("p", 0, "a", "p")).fails("GRAPH", "node 'p' includes itself")


@pytest.mark.parametrize("edges", list(permutations([("a", "b"), ("b", "c"), ("c", "a")])))
def test_E064_a_cycle_of_three_aborts_with_its_closing_edge(edges):
    """In any order of the edges: two pass, the third names the way round."""
    c = Conversation()
    for parent, child in edges[:2]:
        c.send(K(parent, 0, child))
    assert c.is_open
    parent, child = edges[2]
    error = c.send(K(parent, 0, child)).fails("GRAPH", f"node '{parent}' includes itself: '{parent}' > '{child}' > ")
    assert str(error).endswith(f"> '{parent}'")


def test_E064_a_cycle_above_a_gap_aborts():
    """Children that no reader can come to yet count."""
    Conversation().send(K("a", 0, "b"), K("b", 7, "a", more=True)).fails("GRAPH", "'b' > 'a' > 'b'")


def test_E064_a_long_way_round_is_shortened():
    """Eight places of it, and the node once more."""
    c = Conversation().send(*(K(f"n{n}", 0, f"n{n + 1}") for n in range(50))).send(K("n50", 0, "n0"))
    error = c.fails("GRAPH", r"'n50' > 'n0' > .* > \.\.\. > ")
    assert str(error).count("'n") <= 1 + 9


def test_E063_sharing_is_no_cycle():
    """A diamond is legal."""
    assert Conversation().send(K("a", 0, "b", "c"), K("b", 0, "d"), K("c", 0, "d", "d")).is_open


def test_E069_a_cycle_through_two_actions_aborts():
    """Each would wait for the other."""
    c = Conversation(relay).send(A("relay", {"x": "r"}, {"y": "r2"}))
    c.send(A("relay", {"x": "r2"}, {"y": "r"})).fails("GRAPH", "includes itself")


@pytest.mark.parametrize("is_action_first", [True, False])
def test_E069_a_cycle_through_an_action_and_a_node_aborts(is_action_first):
    """The input of an action holds its output, in both orders."""
    parts = (A("relay", {"x": "p"}, {"y": "r"}), K("p", 0, "r"))
    c = Conversation(relay).send_each(*(parts if is_action_first else parts[::-1]))
    c.fails("GRAPH", "includes itself")


def test_E069_only_the_input_that_holds_the_output_matters():
    """A second input that is fine changes nothing."""
    c = Conversation(join).send(F("q", 0, "x"), K("p", 0, "r"))
    c.send(A("join", {"x": "q", "y": "p"}, {"out": "r"})).fails("GRAPH")


def test_E069_chains_of_actions_are_no_cycle():
    """A later action may read an earlier one's output beside its input."""
    c = Conversation(relay, join, models={"relay": each(str.upper)})
    c.send(
        A("join", {"x": "p", "y": "r"}, {"out": "r2"}), A("relay", {"x": "p"}, {"y": "r"}), K("q", 0, "r2", "r", "p")
    )
    assert c.is_open


def test_E069_a_status_node_that_is_waited_for_in_a_circle_aborts():
    """What says how an action ended is made of its inputs as well."""
    c = Conversation(relay, models={"relay": each(str)}, extensions="partial-failures")
    c.send(A("relay", {"x": "s2"}, {"__status__": "s1"})).send(A("relay", {"x": "s1"}, {"__status__": "s2"}))
    c.fails("GRAPH", "includes itself")


def edges_of(shape: str, count: int) -> list[tuple[int, int]]:
    chance = random.Random(5)
    if shape == "deep":
        return [(n, n + 1) for n in range(count)]
    if shape == "wide":
        return [(0, n) for n in range(1, count)]
    half = count // 2
    made = [(chance.randrange(n), n) for n in range(1, half)] + [
        tuple(sorted(chance.sample(range(half), 2))) for _ in range(half)
    ]
    if shape == "shuffled":
        chance.shuffle(made)
    return made[::-1] if shape == "children first" else made


# What takes more than a step for each edge shows by ten thousand; the shape that takes longest has all.
@pytest.mark.parametrize(
    ("shape", "count"),
    [("deep", 10_000), ("wide", 10_000), ("parents first", 10_000), ("children first", 10_000), ("shuffled", 50_000)],
)
def test_E070_fifty_thousand_edges_are_taken_in_quickly(shape, count, slow):
    """In less than two seconds for as many, with less than two steps for each, whatever their order."""
    edges = edges_of(shape, count)
    graph = Graph(EvergreenSettings())
    parts = [K(f"n{parent}", place, f"n{child}", more=True) for place, (parent, child) in enumerate(edges)]
    began = time.process_time()
    for part in parts:
        graph.accept(part)
    assert time.process_time() - began < 2.0 * slow * count / 50_000
    assert graph._order._work < 2 * count
    for parent, child in edges:
        assert graph.nodes[f"n{parent}"].order < graph.nodes[f"n{child}"].order


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=30))
def test_E064_exactly_the_edges_that_close_a_cycle_abort(edges):
    """Against a search of the whole graph, for any edges in any order."""
    graph = Graph(EvergreenSettings())
    children: dict[int, set[int]] = {}
    for seq, (parent, child) in enumerate(edges):
        fragment = K(f"n{parent}", seq, f"n{child}", more=True)
        if reaches(children, child, parent):
            with pytest.raises(EvergreenError, match="includes itself"):
                graph.accept(fragment)
            return
        graph.accept(fragment)
        children.setdefault(parent, set()).add(child)


@pytest.mark.parametrize("gap", [16, 17, 40, 1 << 40])
@given(edges=st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_E064_the_order_holds_where_gaps_between_places_are_used_up(monkeypatch, gap, edges):
    """Whatever edges come: each parent stands before its child, and all nodes are given new places when needed."""
    monkeypatch.setattr(order_module, "_GAP", gap)
    graph = Graph(EvergreenSettings())
    children: dict[int, set[int]] = {}
    for seq, (parent, child) in enumerate(edges):
        if reaches(children, child, parent):
            continue
        graph.accept(K(f"n{parent}", seq, f"n{child}", more=True))
        children.setdefault(parent, set()).add(child)
        for above, below in children.items():
            assert all(graph.nodes[f"n{above}"].order < graph.nodes[f"n{one}"].order for one in below)


def reaches(children: dict[int, set[int]], one: int, other: int) -> bool:
    seen, stack = set(), [one]
    while stack:
        node = stack.pop()
        if node == other:
            return True
        if node not in seen:
            seen.add(node)
            stack.extend(children.get(node, ()))
    return False


def work_of(below: list[int], above: list[int]) -> int:
    """Edges that are looked at for an edge from the end of a chain to the head of an older one.

    Args:
        below: How many children each node of the older chain has, from its head on.
        above: How many parents each node of the younger chain has, from its end on.
    """
    graph = Graph(EvergreenSettings())
    parts = []
    for at, count in enumerate(below):
        children = (f"d{at + 1}", *(f"d{at}leaf{one}" for one in range(count - 1)))
        parts += [K(f"d{at}", seq, child, more=True) for seq, child in enumerate(children)]
    for at, count in reversed(list(enumerate(above))):
        parents = (f"u{at + 1}", *(f"u{at}root{one}" for one in range(count - 1)))
        parts += [K(parent, 0, f"u{at}", more=True) for parent in parents]
    for part in parts:
        graph.accept(part)
    before = graph._order._work
    graph.accept(K("u0", 7, "d0", more=True))
    assert graph.nodes["u0"].order < graph.nodes["d0"].order
    return graph._order._work - before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1] * 5, [1] * 1000),
        ([2] + [1] * 4, [1] * 1000),
        ([2] * 5, [1] * 1000),
        ([1] * 5, [1, 1000] + [1] * 5),
        ([1] * 5, [1000] + [1] * 5),
    ],
)
def test_E070_the_cheaper_side_of_a_new_edge_ends_the_search(one, other):
    """A short chain on either side: neither a long one nor a node with many edges on the other side is gone through."""
    for below, above in ((one, other), (other, one)):
        assert 0 < work_of(below, above) < 60


def test_E115_a_graph_made_to_be_slow_is_refused(monkeypatch):
    """The search for cycles has a budget for each session."""
    monkeypatch.setattr(order_module, "_MOST_WORK", 50)
    chains = [K(f"{side}{n}", 0, f"{side}{n + 1}") for side in "du" for n in range(60)]
    Conversation(upper).send(*chains, K("u60", 0, "d0")).fails("LIM", "more than 50 steps")
