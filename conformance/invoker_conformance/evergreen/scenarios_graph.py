"""The graph of nodes: late binding, order, sharing, cycles, depth. Catalogue 2.5."""

from __future__ import annotations

import random
from itertools import pairwise

import grpc

from invoker_conformance.evergreen.actions import HI, items, replay, upper
from invoker_conformance.evergreen.frames import JSON, TEXT, A, F, K, Part, bytewise, texts
from invoker_conformance.evergreen.rules import FRAG, GRAPH, LIM
from invoker_conformance.evergreen.stage import Stage
from invoker_conformance.scenario import scenario

_DEPTH = 64


@scenario("ET-32", "E-061", "E-068", function="items")
async def late_child(stage: Stage) -> None:
    """A child may come a second after its parent and the action."""
    async with stage.session() as session:
        await session.send(K("p", "a"), items())
        await session.silent(1.0)
        await session.send(F("a", m=TEXT, t="late"))
        await session.succeeds(r=[{"items": ["late"]}])


@scenario("ET-33", "E-060", "E-062", function="items")
async def dfs_order(stage: Stage) -> None:
    """A tree of three levels is read depth first, from left to right, however it is delivered."""
    frames: list[Part] = [K("p", "x", "l0", mark="+"), K("p", "y", seq=1)]
    frames += [K("x", "l1", "xx", "l4"), K("xx", "l2", "l3"), K("y", "yy", "l7"), K("yy", "l5", "l6")]
    frames += [F(f"l{n}", m=TEXT, t=str(n)) for n in range(8)]
    expected = {"items": ["1", "2", "3", "4", "0", "5", "6", "7"]}
    await stage.succeeds(items(), *frames, r=[expected])
    await stage.succeeds(items(), *reversed(frames), r=[expected])
    random.Random(1).shuffle(frames)
    await stage.succeeds(*frames, items(), r=[expected])


@scenario("E-062", "E-092", function="replay")
async def leaves_are_handed_on_early(stage: Stage) -> None:
    """A complete leaf reaches the function while later ones do not exist yet; one after a gap waits for the gap."""
    async with stage.session() as session:
        await session.send(replay(), K("p", "a", mark="+"), F("a", m=TEXT, t="a"))
        await session.begins(b"a")
        await session.send(K("p", "b", "c", seq=1), F("c", m=TEXT, t="c"))
        await session.silent(0.3)
        await session.send(F("b", m=TEXT, t="b"))
        await session.succeeds()
        if (text := "".join(session.read("r"))) != "abc":
            raise session.failure(repr(text), "'abc'")


@scenario("ET-34", "E-063", function="items")
async def shared_child_twice(stage: Stage) -> None:
    """A child that is named twice is read twice, also through different parents."""
    await stage.succeeds(items(), K("p", "a", "a"), F("a", m=TEXT, t="x"), r=[{"items": ["x", "x"]}])
    shared: list[Part] = [K("p", "left", "right", "left"), K("left", "a", "b"), K("right", "b", "a")]
    leaves = [F("a", m=TEXT, t="1"), F("b", m=TEXT, t="2")]
    await stage.succeeds(items(), *shared, *leaves, r=[{"items": ["1", "2", "2", "1", "1", "2"]}])


@scenario("ET-35", "E-063", function=("upper", "items"))
async def one_node_two_actions(stage: Stage) -> None:
    """One node may be the input of several actions, before and after it came."""
    await stage.succeeds(upper(), HI, items("p", "s"), upper("p", "t"), r=["HI"], s=[{"items": ["hi"]}], t=["HI"])


@scenario("ET-35", "E-040", "E-063", "E-095", function=("parts", "pieces", "upper"))
async def one_leaf_whole_and_in_pieces(stage: Stage) -> None:
    """Actions that read a leaf whole and piece by piece, before and after it came, all get the same text."""
    data = "日本 ü".encode()
    whole, late = A("items", {"values": "p"}, {"out": "a"}), A("pieces", {"text": "p"}, {"out": "d"})
    for turn in (1, -1):
        fragments = bytewise("p", data)
        first: list[Part] = [whole, A("pieces", {"text": "p"}, {"out": "b"}), upper("p", "c")]
        frames = [*first[::turn], *fragments[:4], late, *fragments[4:], A("pieces", {"text": "p"}, {"out": "e"})]
        text = data.decode()
        await stage.succeeds(*frames, a=[{"items": [text]}], b=[text], c=[text.upper()], d=[text], e=[text])


@scenario("ET-42", "E-068", "E-109", function=("drip", "pieces", "items"))
async def one_stream_three_readers(stage: Stage) -> None:
    """The stream of an action is read by three others, of which one comes when it is half over."""
    numbers = [F("c", m=JSON, t="10"), F("s", m=JSON, t="0.05")]
    async with stage.session() as session:
        await session.send(A("pieces", {"text": "r"}, {"out": "a"}), items("r", "b"), *numbers)
        await session.send(A("drip", {"count": "c", "seconds": "s"}, {"out": "r"}))
        while len(session.outputs.pieces("r")) < 5:
            await session.fragment()
        await session.send(A("pieces", {"text": "r"}, {"out": "d"}))
        await session.half_close()
        text = "0123456789"
        await session.succeeds(r=[text], a=[text], b=[{"items": [text]}], d=[text])


@scenario("ET-36", "E-079", "E-063", function="both")
async def one_node_two_inputs(stage: Stage) -> None:
    """One node may be two inputs of one action: both get all of it."""
    both = A("both", {"left": "p", "right": "p"}, {"out": "r"})
    await stage.succeeds(both, *texts("p", "a", "b"), r=[{"left": ["a", "b"], "right": ["a", "b"]}])


@scenario("ET-37", "E-064", function="items")
async def cycles(stage: Stage) -> None:
    """A node that includes itself aborts as soon as the edge that closes the circle arrives, used or not."""
    await stage.fails(GRAPH, K("p", "p"))
    await stage.fails(GRAPH, items(), K("p", "a", "p"))
    await stage.fails(GRAPH, K("a", "b"), K("b", "c"), K("c", "x", "a"))
    await stage.fails(GRAPH, K("c", "a"), K("a", "b"), K("b", "c"))
    await stage.fails(GRAPH, K("a", "b", mark="+"), K("b", "c"), K("c", "d"), K("a", "e", seq=1, mark="+"), K("d", "a"))


@scenario("E-064", "E-063", function="items")
async def a_diamond_is_no_cycle(stage: Stage) -> None:
    """Two paths to one node are allowed, and so is a node that is a sibling of its descendant."""
    frames = [K("p", "a", "b", "leaf"), K("a", "b", "leaf"), K("b", "leaf"), F("leaf", m=TEXT, t="x")]
    await stage.succeeds(items(), *frames, r=[{"items": ["x"] * 4}])


def chain(levels: int) -> list[Part]:
    """A chain of ``levels`` nodes, from ``p`` down to a leaf, which comes last."""
    ids = ["p", *(f"c{n}" for n in range(levels - 1))]
    return [*(K(above, below) for above, below in pairwise(ids)), F(ids[-1], m=TEXT, t="x")]


@scenario("ET-38", "E-065", "E-115", function="items")
async def depth_64_ok_65_fails(stage: Stage) -> None:
    """An input of 64 levels is read, one of 65 is above the limit, in either order of delivery."""
    for turn in (1, -1):
        await stage.succeeds(items(), *chain(_DEPTH)[::turn], r=[{"items": ["x"]}])
        await stage.fails(LIM, items(), *chain(_DEPTH + 1)[::turn])


@scenario("ET-39", "E-065", "E-115", function="items")
async def depth_without_recursion(stage: Stage) -> None:
    """A chain of ninety thousand levels exceeds a limit, and does not crash the server."""
    frames = chain(90_000)
    async with stage.session() as session:
        await session.together(*frames)
        await session.send(items())
        await session.fails(LIM, timeout_s=30.0)
    await stage.survives()


def laughs(*bottom: Part) -> list[Part]:
    """Forty levels that each name the level below twice."""
    return [*(K(f"n{n}", f"n{n + 1}", f"n{n + 1}") for n in range(40)), *bottom]


@scenario("ET-40", "E-066", "E-115", function="sink")
async def billion_laughs(stage: Stage) -> None:
    """Forty levels that each name the level below twice exceed a limit soon, and the process continues."""
    async with stage.session() as session:
        await session.together(*laughs(F("n40", m=TEXT, t="ha" * 32_768)), A("sink", {"values": "n0"}))
        await session.fails(LIM, timeout_s=30.0)
    await stage.survives()


@scenario("E-066", "E-091", function=("sink", "upper"))
async def billion_nothings(stage: Stage) -> None:
    """Forty such levels above an empty node are read in bounded time, and do not block other sessions."""
    async with stage.session() as session, stage.session() as other:
        await session.together(*laughs(F("n40")), A("sink", {"values": "n0"}))
        await session.half_close()
        await other.send(upper(), HI)
        await other.succeeds(r=["HI"])
        ending = await session.ends(timeout_s=30.0)
        if ending.code is not grpc.StatusCode.OK and not LIM.matches(ending.code, ending.detail):
            raise session.failure(f"{ending}", f"OK, since there is no leaf, or {LIM}")


@scenario("ET-41", "E-070", function="leave")
async def edges_50k_linear(stage: Stage) -> None:
    """Fifty thousand edges, wide and deep, delivered backwards, take no more than a few seconds."""
    wide: list[Part] = []
    for n in range(50):
        children = [f"w{n}.{m}" for m in range(500)]
        wide += [K(f"w{n}", *children), *(F(child) for child in children)]
    deep = [K(f"d{n}", f"d{n + 1}", f"d{n + 2}") for n in range(12_500)]
    clock = stage.clock()
    async with stage.session() as session:
        for frames in (wide[::-1], deep[::-1]):
            for begin in range(0, len(frames), 2000):
                await session.together(*frames[begin : begin + 2000])
        await session.succeeds(timeout_s=30.0)
    if (took := stage.clock() - clock) > 10.0:
        raise session.failure(f"{took:.1f} s for 50,000 edges", "2 s, and not more than 10 on a busy machine (E-070)")


@scenario("ET-41", "E-070", function="items")
async def layers_in_any_order(stage: Stage) -> None:
    """Nearly fifty thousand edges between sixty layers, one by one in any order, take a few seconds at most."""
    dice = random.Random(2)
    layers = [[f"n{layer}.{n}" for n in range(200)] for layer in range(60)]
    frames: list[Part] = []
    for above, below in pairwise(layers):
        frames += [K(id_, dice.choice(below), seq=n, mark="+") for id_ in above for n in range(4)]
    dice.shuffle(frames)
    clock = stage.clock()
    async with stage.session() as session:
        await session.send(K("root", *(id_ for layer in layers[::-1] for id_ in layer)))
        for begin in range(0, len(frames), 2000):
            await session.together(*frames[begin : begin + 2000])
        await session.succeeds(timeout_s=30.0)
    if (took := stage.clock() - clock) > 10.0:
        raise session.failure(f"{took:.1f} s for 47,200 edges", "2 s, and not more than 10 on a busy machine (E-070)")


@scenario("E-067", "E-029", function="items")
async def empty_child_id(stage: Stage) -> None:
    """An empty child id aborts; no children at the end of an interior node are legal."""
    await stage.fails(FRAG, K("p", "a", ""))
    await stage.succeeds(items(), K("p", "a", mark="+"), K("p", seq=1), F("a", m=TEXT, t="x"), r=[{"items": ["x"]}])


@scenario("ET-42", "E-068", "E-107", function="upper")
async def output_as_input(stage: Stage) -> None:
    """An action reads the output of another action before that is finished; also as a child among others."""
    frames: list[Part] = [upper("p", "r"), upper("r", "s"), HI]
    await stage.succeeds(*frames, r=["HI"], s=["HI"])
    second: list[Part] = [
        A("items", {"values": "q"}, {"out": "t"}),
        K("q", "p", "r", "more"),
        F("more", m=TEXT, t="ho"),
    ]
    await stage.succeeds(*second, *frames, t=[{"items": ["hi", "HI", "ho"]}])


@scenario("ET-43", "E-082", "E-068", function="upper")
async def consumer_action_before_producer(stage: Stage) -> None:
    """An id that is named as an input or a child does not count as used: its producer may come later."""
    await stage.succeeds(upper("r", "s"), HI, upper("p", "r"), r=["HI"], s=["HI"])
    await stage.succeeds(K("q", "r"), items("q", "s"), HI, upper("p", "r"), r=["HI"], s=[{"items": ["HI"]}])


@scenario("ET-42", "E-068", "E-090", function=("drip", "pieces"))
async def stream_feeds_a_stream(stage: Stage) -> None:
    """An action reads the stream of another while that still runs."""
    numbers = [F("c", m=JSON, t="4"), F("d", m=JSON, t="0.5")]
    async with stage.session() as session:
        await session.send(A("pieces", {"text": "r"}, {"out": "s"}), *numbers)
        await session.send(A("drip", {"count": "c", "seconds": "d"}, {"out": "r"}))
        began = stage.clock()
        while not session.outputs.pieces("s"):
            await session.fragment()
        if session.outputs.has("r"):
            met = f"the first of 's' after {stage.clock() - began:.1f} s, when 'r' was over"
            raise session.failure(met, "that it comes while 'r' goes on")
        await session.succeeds(r=["0123"], s=["0123"])


@scenario("ET-46", "E-069", function="upper")
async def action_cycle(stage: Stage) -> None:
    """An action that needs, through others, its own output aborts."""
    await stage.fails(GRAPH, upper("r", "s"), upper("s", "r"))
    await stage.fails(GRAPH, K("q", "s"), items("q", "r"), upper("r", "s"))


@scenario("ET-82", "E-016", function=("upper", "items"))
async def rename_ids_property(stage: Stage) -> None:
    """Random graphs give the same values when all ids are renamed consistently."""
    for seed in range(8):
        dice = random.Random(seed)
        names: dict[str, str] = {}
        for id_ in ("p", "a", "b", "c", "d", "r", "s", "t"):
            names[id_] = "".join(dice.choices('aZ0 \n"日🙂/.', k=dice.randint(1, 20))) + str(len(names))
        for rename in (names.__getitem__, str):
            p, a, b, c, d, r, s, t = map(rename, "pabcdrst")
            frames: list[Part] = [
                K(p, a, b, d),
                K(b, c, a),
                *(F(x, m=TEXT, t=y) for x, y in ((a, "1"), (c, "2"), (d, "3"))),
            ]
            frames += [items(p, r), upper(a, s), A("both", {"left": b, "right": s}, {"out": t})]
            random.Random(seed).shuffle(frames)
            session = await stage.succeeds(*frames)
            met = [session.read(root) for root in (r, s, t)]
            expected = [[{"items": ["1", "2", "1", "3"]}], ["1"], [{"left": ["2", "1"], "right": ["1"]}]]
            if met != expected:
                raise session.failure(f"{met}", f"{expected}")
