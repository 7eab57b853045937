"""What must hold for any session: names, order, retries and boundaries of fragments mean nothing (E-016 to E-040)."""

from __future__ import annotations

import functools
import random
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.protocols.evergreen import order
from invoker.protocols.evergreen.settings import EvergreenSettings
from tests.protocols.evergreen.notation import A, K
from tests.protocols.evergreen.worlds import (
    Act,
    Interior,
    Leaf,
    Piece,
    Run,
    World,
    a_leaf,
    deliveries,
    expected,
    fragments,
    integers,
    message_of,
    ordered,
    outcome,
    pieces,
    plain_id,
    worlds,
)

pytestmark = pytest.mark.timeout(30)

many = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


# Settings that change when things happen, and nothing else.
session_settings = st.builds(
    EvergreenSettings,
    window=st.sampled_from([1, 2, 64]),
    actions_running=st.sampled_from([1, 2, 64]),
    fragment_bytes=st.sampled_from([4, 7, 1024]),
)


def actions_first(world: World) -> list[bytes]:
    return [message_of([one]) for one in sorted(pieces(world), key=lambda one: isinstance(one, pb.NodeFragment))]


@many
@given(worlds())
def test_E062_E063_a_graph_stands_for_what_a_naive_model_says(world: World) -> None:
    """Shared nodes included: each input is the depth-first, left-to-right list of its leaves."""
    assert outcome(Run().run(ordered(world)), world) == expected(world)


@many
@given(st.data(), worlds(), session_settings)
def test_E009_E018_E019_E033_order_and_retries_mean_nothing(
    data: Any, world: World, setting: EvergreenSettings
) -> None:
    """Fragments and actions in any order, grouping and number; however few actions run and messages wait at once."""
    run = Run(setting)
    for frame in data.draw(deliveries(world)):
        run.receive(frame)
    assert all(run.sent.is_complete(plain_id(one)) for one in expected(world)), "nothing waits for the half-close"
    run.half_close()
    assert outcome(run, world) == expected(world)


@many
@given(worlds(), st.lists(st.text(min_size=1, max_size=8), min_size=10, max_size=10, unique=True))
def test_E016_ET82_renaming_ids_changes_nothing(world: World, names: list[str]) -> None:
    """Any other ids, equal to names of anything else."""
    ids = [*names, *map(plain_id, range(20))]
    run = Run().run(ordered(world, ids.__getitem__))
    assert outcome(run, world, ids.__getitem__) == expected(world)


@many
@given(st.data(), worlds())
def test_E019_E020_a_later_fragment_with_the_same_seq_is_never_looked_at(data: Any, world: World) -> None:
    """Whatever it holds: other bytes, another kind, stray metadata, another end."""
    sent = data.draw(st.permutations(pieces(world)))
    for at in sorted(data.draw(st.lists(st.integers(0, len(sent) - 1), max_size=5)), reverse=True):
        first = sent[at]
        if isinstance(first, pb.NodeFragment):
            spoilt = data.draw(spoilt_fragments(first))
            sent.insert(data.draw(st.integers(at + 1, len(sent))), spoilt)
    assert outcome(Run().run([message_of([one]) for one in sent]), world) == expected(world)


@st.composite
def spoilt_fragments(draw: st.DrawFn, first: pb.NodeFragment) -> pb.NodeFragment:
    made = pb.NodeFragment(id=first.id, seq=first.seq, continued=draw(st.booleans()))
    made.child_ids.extend(draw(st.lists(st.sampled_from(["", "n0", "n1", "new"]), max_size=2)))
    if draw(st.booleans()):
        made.chunk_fragment.data = draw(st.binary(max_size=3))
    if draw(st.booleans()):
        made.chunk_fragment.metadata.mimetype = draw(st.sampled_from(["", "text/plain", "no type"]))
    return made


@many
@given(st.data(), worlds(), session_settings)
def test_E032_E114_what_is_missing_matters_only_to_who_needs_it(
    data: Any, world: World, setting: EvergreenSettings
) -> None:
    """Until the client half-closes nothing is missing; then the session ends in MISS, or in OK when nobody needs it."""
    sent = pieces(world)
    lost = data.draw(st.sets(st.sampled_from([one.id for one in sent if isinstance(one, pb.NodeFragment)]), max_size=2))
    kept = [one for one in sent if isinstance(one, pb.Action) or one.id not in lost]
    run = Run(setting)
    for one in data.draw(st.permutations(kept)):
        run.receive(message_of([one]))
    assert not run.is_closed
    run.half_close()
    needs = {act: set(map(plain_id, below(world, act))) for act in expected(world)}
    for act, needed in needs.items():
        assert run.sent.is_complete(plain_id(act)) == (not needed & lost), "who can finish does, even so"
    if lost & set().union(*needs.values()):
        assert str(run.error).startswith("Evergreen: Incomplete Input: ")
        assert any(repr(one) in str(run.error) for one in lost), run.error
    else:
        assert outcome(run, world) == expected(world)


def below(world: World, number: int) -> set[int]:
    """The thing and all that it is made of."""
    thing = world[number]
    if isinstance(thing, Leaf):
        return {number}
    children = thing.inputs if isinstance(thing, Act) else [child for part in thing.parts for child in part]
    return {number}.union(*(below(world, child) for child in children))


# Boundaries.


def split_everywhere(leaf: Leaf) -> Leaf:
    return Leaf(leaf.media_type, tuple(leaf.data[at : at + 1] for at in range(len(leaf.data))) or (b"",), leaf.role)


@many
@given(st.data(), a_leaf(), st.lists(st.sampled_from(["leaves", "text", "blob", "mapped"]), min_size=1, max_size=4))
def test_E040_ET83_boundaries_of_fragments_mean_nothing(data: Any, leaf: Leaf, readers: list[str]) -> None:
    """Whole or byte by byte, inside characters and tokens, for any readers of the same leaf at once."""
    acts = [Act(function, (0,)) for function in readers]
    whole: World = [Leaf(leaf.media_type, (leaf.data,), leaf.role), *acts]
    said = outcome(Run().run(ordered(whole)), whole)
    for one in (leaf, split_everywhere(leaf)):
        world = [one, *acts]
        assert outcome(Run().run(ordered(world)), world) == said
        assert outcome(Run().run(actions_first(world)), world) == said
        assert outcome(Run().run(data.draw(deliveries(world))), world) == said


@pytest.mark.parametrize("function", ["leaves", "text", "blob", "mapped"])
@pytest.mark.parametrize(
    "content", ["日本𝄞 e\u0301\ufeff".encode(), b'{"a": [1.5e3, "\\u65e5", null]}', b"\xff\xfe\xe6", b"\xe6"]
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_E040_every_cut_in_two_is_the_same(function: str, content: bytes, when: str) -> None:
    """Wherever it falls, and whether the action or the leaf is there first."""
    for at in range(len(content) + 1):
        world: World = [Leaf("text/plain", (content[:at], content[at:])), Act(function, (0,))]
        frames = ordered(world)
        run = Run().run(frames if when == "after" else [frames[-1], *frames[:-1]])
        assert outcome(run, world) == expected(world)


def test_E063_one_reader_does_not_take_bytes_from_another() -> None:
    """One action reads a leaf whole, another piece by piece and holds half of a character."""
    world: World = [Leaf("text/plain", (b"\xe6", b"\x97\xa5")), Act("leaves", (0,)), Act("text", (0,))]
    first, second, whole, by_piece = ordered(world)
    run = Run().run([whole, by_piece, first, second])
    assert outcome(run, world) == expected(world)


# Cycles.


@functools.cache
def _includes(count: int) -> st.SearchStrategy[list[list[int]]]:
    return st.lists(st.lists(integers(0, count - 1), min_size=1, max_size=2), max_size=3)


@st.composite
def knots(draw: st.DrawFn) -> list[tuple[Piece, list[tuple[int, int]]]]:
    """Nodes and actions that include each other as they please, in any order, each with the edges that it adds."""
    count = draw(integers(1, 7))
    number = integers(0, count - 1)
    made: list[tuple[Piece, list[tuple[int, int]]]] = []
    for one in range(count):
        if draw(integers(0, 3)):
            parts = draw(_includes(count))
            sent = fragments(plain_id(one), Interior(tuple(map(tuple, parts)), ends_apart=True), plain_id)
            made += [(fragment, [(one, child) for child in part]) for fragment, part in zip(sent, parts, strict=False)]
        else:
            source = draw(number.filter(lambda source, own=one: source != own or count == 1))
            if source != one:
                action = A("leaves", {"x": plain_id(source)}, {"out": plain_id(one)})
                made.append((action, [(one, source)]))
    return draw(st.permutations(made))


def is_cyclic(edges: list[tuple[int, int]]) -> bool:
    """Whether some node is above itself: takes away nodes without children until none is left, or none goes."""
    left = set(edges)
    while left:
        parents = {parent for parent, _ in left}
        kept = {edge for edge in left if edge[1] in parents}
        if kept == left:
            return True
        left = kept
    return False


@settings(many, max_examples=400)
@given(knots())
def test_E064_E069_a_cycle_ends_the_session_when_its_last_edge_arrives(knot: list) -> None:
    """Through nodes and actions, used or not; and nothing else does."""
    check_knot(knot)


@settings(many, max_examples=400)
@given(knots(), st.sampled_from([8, 12]))
def test_E064_a_cycle_is_found_where_there_is_no_room_between_places(knot: list, gap: int) -> None:
    """Nodes get new places all the time then."""
    with mock.patch.object(order, "_GAP", gap):
        check_knot(knot)


def check_knot(knot: list) -> None:
    run, edges = Run(), []
    for piece, added in knot:
        run.receive(message_of([piece]))
        edges += added
        if is_cyclic(edges):
            assert run.is_closed
            assert str(run.error).startswith("Evergreen: Invalid Node Graph: ")
            return
        assert not run.is_closed, run.error


@pytest.mark.parametrize("arrangement", ["downwards", "upwards", "shuffled"])
def test_E064_a_long_cycle_is_found(arrangement: str) -> None:
    """By its last edge, whichever that is."""
    count = 5000
    edges = [K(f"n{one}", 0, f"n{(one + 1) % count}") for one in range(count)]
    arrange(edges, arrangement)
    run = Run()
    run.receive(message_of(edges[:-1]))
    assert not run.is_closed
    run.receive(message_of(edges[-1:]))
    assert str(run.error).startswith("Evergreen: Invalid Node Graph: ")
    assert len(str(run.error)) < 1000


def arrange(some: list[Any], arrangement: str) -> None:
    if arrangement == "upwards":
        some.reverse()
    elif arrangement == "shuffled":
        random.Random(7).shuffle(some)


@settings(many, max_examples=60)
@given(st.integers(2, 16), st.randoms(use_true_random=False), st.booleans())
def test_parents_stand_before_children_after_each_edge(count: int, chance: random.Random, is_tight: bool) -> None:
    """What cycles are found by: the order of all nodes, mended edge by edge; there is room for each of them once."""
    names = chance.sample(range(count), count)
    parents = [chance.randrange(count - 1) for _ in range(3 * count)]
    edges = [(names[one], names[chance.randrange(one + 1, count)]) for one in parents]
    with mock.patch.object(order, "_GAP", count + 1 if is_tight else 1 << 40):
        run = Run()
        for at, (parent, child) in enumerate(edges):
            seq = sum(before == parent for before, _ in edges[:at])
            run.receive(message_of([K(plain_id(parent), seq, plain_id(child), more=True)]))
            nodes = run.session.graph.nodes
            assert all(nodes[plain_id(a)].order < nodes[plain_id(b)].order for a, b in edges[: at + 1])
    assert not run.is_closed
