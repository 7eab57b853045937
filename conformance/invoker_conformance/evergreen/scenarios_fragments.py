"""Fragments: order, duplicates, boundaries, kinds. Catalogue 2.2."""

from __future__ import annotations

import random
from itertools import pairwise

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker_conformance.evergreen.actions import items, upper
from invoker_conformance.evergreen.frames import JSON, TEXT, A, F, K, bytewise, cut
from invoker_conformance.evergreen.rules import FRAG, LIM
from invoker_conformance.evergreen.stage import Stage
from invoker_conformance.scenario import scenario

_LAST = 2**31 - 1


@scenario("ET-13", "E-018", function="upper")
async def shuffled_fragments(stage: Stage) -> None:
    """A hundred fragments in any order, mixed with those of another node, are read in the order of seq."""
    letters, digits = "".join(chr(ord("a") + n % 26) for n in range(100)), "0123456789" * 5
    every = bytewise("p", letters.encode()) + bytewise("q", digits.encode())
    random.Random(4).shuffle(every)
    await stage.succeeds(upper(), *every, upper("q", "s"), r=[letters.upper()], s=[digits])


@scenario("ET-14", "E-019", function="upper")
async def duplicate_first_wins(stage: Stage) -> None:
    """Of two fragments with one seq the first counts."""
    await stage.succeeds(
        upper(), F("p", 0, "+", m=TEXT, t="a"), F("p", 0, "+", m=TEXT, t="b"), F("p", 1, t="c"), r=["AC"]
    )
    await stage.succeeds(upper(), F("p", 1, t="c"), F("p", 1, t="x"), F("p", 0, "+", m=TEXT, t="a"), r=["AC"])


@scenario("ET-15", "E-019", "E-020", function="upper")
async def duplicate_after_final_with_metadata(stage: Stage) -> None:
    """A fragment that is sent again never aborts, whatever is in it, half-way or after the end."""
    retries = [
        F("p", 1, m=TEXT, t="x"),
        F("p", 1, "+", t="x"),
        F("p", 0, t="x"),
        F("p", 0),
        K("p", "a", seq=1),
        K("p", "", "p", seq=0),
        pb.NodeFragment(id="p", child_ids=["a"], chunk_fragment=pb.Chunk(data=b"x")),
    ]
    await stage.succeeds(upper(), F("p", 0, "+", m=TEXT, t="a"), F("p", 1, t="b"), *retries, r=["AB"])
    half_way = [F("p", 0, "+", t="x"), F("p", 0, m="image/png", t="x"), K("p", "a")]
    await stage.succeeds(upper(), F("p", 0, "+", m=TEXT, t="a"), *half_way, F("p", 1, t="b"), r=["AB"])


@scenario("E-033", function="items")
async def retry_of_a_prefix(stage: Stage) -> None:
    """All fragments of a session so far, sent again, change nothing."""
    prefix = [K("p", "a", "b", mark="+"), F("a", 0, "+", m=TEXT, t="1"), F("a", 1, t="2"), F("b", m=TEXT, t="3")]
    rest = [K("p", "c", seq=1), F("c", m=TEXT, t="4")]
    await stage.succeeds(items(), *prefix, *prefix, *rest, *prefix, r=[{"items": ["12", "3", "4"]}])


@scenario("ET-16", "E-021", function="upper")
async def seq_beyond_final(stage: Stage) -> None:
    """A seq above the final one aborts, with or without an action, for leaves and interior nodes."""
    await stage.fails(FRAG, F("p", 0, m=TEXT, t="a"), F("p", 1, t="b"))
    await stage.fails(FRAG, upper(), F("p", 1), F("p", 2, "+", t="b"))
    await stage.fails(FRAG, K("p", "a"), K("p", "b", seq=3))


@scenario("ET-17", "E-022", function="upper")
async def final_below_received(stage: Stage) -> None:
    """A final seq below one that came already aborts."""
    await stage.fails(FRAG, F("p", 5, "+", t="x"), F("p", 2, t="y"))


@scenario("ET-18", "E-023", function="upper")
async def two_finals(stage: Stage) -> None:
    """Two different final fragments abort, whichever comes first."""
    await stage.fails(FRAG, F("p", 1, t="x"), F("p", 3, t="y"))
    await stage.fails(FRAG, F("p", 3, t="x"), F("p", 1, t="y"))


@scenario("ET-19", "E-024", function="upper")
async def negative_seq(stage: Stage) -> None:
    """A negative seq aborts."""
    await stage.fails(FRAG, F("p", -1, t="x"))
    await stage.fails(FRAG, F("p", -_LAST - 1, m=TEXT, t="x"))


@scenario("ET-20", "E-025", "E-032", function="upper")
async def sparse_seq_int_max(stage: Stage) -> None:
    """The highest seq takes no more room than any other; a node that is incomplete and unused is no error."""
    await stage.succeeds(F("p", _LAST, t="x"))
    many = [F(f"p{n}", _LAST - n, "+", t="x") for n in range(200)]
    await stage.succeeds(*many, upper("q"), F("q", m=TEXT, t="a"), r=["A"])


@scenario("E-026", function="upper")
async def ids_empty_or_long(stage: Stage) -> None:
    """An empty id aborts, one of 1025 bytes is above the limit, one of 1024 is not."""
    await stage.fails(FRAG, F("", m=TEXT, t="x"))
    await stage.fails(LIM, F("é" * 512 + "x", m=TEXT, t="x"))
    longest = "é" * 512
    await stage.succeeds(upper(longest, "r"), F(longest, m=TEXT, t="x"), r=["X"])


@scenario("ET-24", "E-027", function="upper")
async def both_kinds_in_one_fragment(stage: Stage) -> None:
    """Children and a chunk in one fragment abort, even an empty chunk."""
    metadata = pb.ChunkMetadata(mimetype=TEXT)
    for chunk in (pb.Chunk(metadata=metadata, data=b"x"), pb.Chunk(), pb.Chunk(metadata=metadata)):
        await stage.fails(FRAG, pb.NodeFragment(id="p", child_ids=["a"], chunk_fragment=chunk))


@scenario("ET-25", "E-028", function="upper")
async def kind_conflict_out_of_order(stage: Stage) -> None:
    """A node that is a leaf in one fragment and interior in another aborts, in any order."""
    leaf, interior = F("p", 0, "+", m=TEXT, t="x"), K("p", "a", seq=1)
    await stage.fails(FRAG, interior, leaf)
    await stage.fails(FRAG, leaf, interior)
    await stage.fails(FRAG, F("p", 2, "+", t="x"), K("p", "a", mark="+"))


@scenario("ET-26", "E-029", "E-092", function=("items", "replay"))
async def empty_node_final(stage: Stage) -> None:
    """An empty node flattens to nothing, alone and as a child: the function gets no item."""
    await stage.succeeds(items(), F("p"), r=[{"items": []}])
    await stage.succeeds(items(), K("p", "a", "b", "c"), F("a"), HI_B, F("c"), r=[{"items": ["b"]}])
    await stage.succeeds(A("replay", {"values": "p"}, {"out": "r"}), F("p"), r=[])


HI_B = F("b", m=TEXT, t="b")


@scenario("ET-27", "E-029", function=("upper", "items"))
async def terminator_ends_leaf(stage: Stage) -> None:
    """A fragment without anything ends a leaf, and a node with children."""
    await stage.succeeds(upper(), F("p", 0, "+", m=TEXT, t="a"), F("p", 1), r=["A"])
    await stage.succeeds(upper(), F("p", 1, d=b""), F("p", 0, "+", m=TEXT, t="a"), r=["A"])
    await stage.succeeds(items(), K("p", "b", mark="+"), F("p", 1), HI_B, r=[{"items": ["b"]}])


@scenario("E-030", function=("upper", "items"))
async def terminator_at_zero(stage: Stage) -> None:
    """After an empty fragment at seq 0 that does not end the node, chunks abort and children are legal."""
    await stage.fails(FRAG, F("p", 0, "+"), F("p", 1, t="a"))
    await stage.fails(FRAG, F("p", 1, t="a"), F("p", 0, "+"))
    await stage.succeeds(items(), F("p", 0, "+"), K("p", "b", seq=1), HI_B, r=[{"items": ["b"]}])


@scenario("E-031", function="upper")
async def gap_keeps_a_leaf_incomplete(stage: Stage) -> None:
    """Nothing comes while a seq below the final one is missing."""
    async with stage.session() as session:
        await session.send(upper(), F("p", 2, t="c"), F("p", 0, "+", m=TEXT, t="a"))
        await session.silent(0.3)
        await session.send(F("p", 1, "+", t="b"))
        await session.gives("r", "ABC")
        await session.succeeds()


@scenario("ET-83", "E-018", "E-019", "E-040", function="items")
async def refragment_property(stage: Stage) -> None:
    """Random splits, shuffles and duplicates of the same tree give the same values."""
    contents = {"a": "日本語 text", "b": '{"k": [1, "ü"]}', "c": "", "d": "last"}
    types = {"b": JSON}
    expected = {"items": ["日本語 text", {"k": [1, "ü"]}, "", "last"]}
    for seed in range(12):
        dice = random.Random(seed)
        frames = _interior("p", list(contents), dice)
        for id_, content in contents.items():
            frames += _leaf(id_, content.encode(), types.get(id_, TEXT), dice)
        frames += dice.sample(frames, len(frames) // 2)
        dice.shuffle(frames)
        frames.insert(dice.randrange(len(frames)), _ITEMS)
        async with stage.session() as session:
            while frames:
                count = dice.randint(1, 4)
                await session.together(*frames[:count])
                del frames[:count]
            await session.succeeds(r=[expected])


_ITEMS = items()


def _cuts(size: int, dice: random.Random) -> list[tuple[int, int]]:
    places = sorted({0, size, *(dice.randint(0, size) for _ in range(dice.randint(0, 6)))})
    return list(pairwise(places)) or [(0, 0)]


def _leaf(id_: str, content: bytes, media_type: str, dice: random.Random) -> list[pb.NodeFragment | pb.Action]:
    return cut(id_, [content[a:b] for a, b in _cuts(len(content), dice)], media_type)


def _interior(id_: str, children: list[str], dice: random.Random) -> list[pb.NodeFragment | pb.Action]:
    cuts = _cuts(len(children), dice)
    return [K(id_, *children[a:b], seq=n, mark="." if n == len(cuts) - 1 else "+") for n, (a, b) in enumerate(cuts)]
