"""Outputs: how values and streams are sent. Catalogue 2.7."""

from __future__ import annotations

from typing import Any

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker_conformance.evergreen.actions import HI, upper
from invoker_conformance.evergreen.frames import EOT, JSON, OCTETS, TEXT, A, F, K, Part, jsons, shown, texts
from invoker_conformance.evergreen.rules import BAD, FAIL
from invoker_conformance.evergreen.session import Session
from invoker_conformance.evergreen.stage import Stage
from invoker_conformance.scenario import scenario


def counted(name: str, count: int, out: str = "r") -> list[Part]:
    """An action that makes ``count`` items."""
    return [A(name, {"count": f"{out} count"}, {"out": out}), F(f"{out} count", m=JSON, t=str(count))]


async def fragments(session: Session, root: str) -> list[pb.NodeFragment]:
    """Read fragments until an output is complete, and return them."""
    found = []
    while not session.outputs.has(root):
        found.append(await session.fragment())
    return found


def check(session: Session, met: list[pb.NodeFragment], *shapes: tuple[int, bool, bytes]) -> None:
    """Check that fragments have these seqs, flags and payloads."""
    got = [(each.seq, each.continued, each.chunk_fragment.data) for each in met]
    if got != list(shapes):
        raise session.failure(", ".join(map(shown, met)), f"(seq, continued, data) {list(shapes)}")


@scenario("ET-54", "E-098", "E-103", function="drip")
async def stream_text_output(stage: Stage) -> None:
    """A stream of text is one leaf: a fragment for each item, then an empty final one; only seq 0 has metadata."""
    async with stage.session() as session:
        await session.send(*counted("drip", 3))
        met = await fragments(session, "r")
        check(session, met, (0, True, b"0"), (1, True, b"1"), (2, True, b"2"), (3, False, b""))
        if (kind := met[0].chunk_fragment.metadata.mimetype.partition(";")[0]) != TEXT:
            raise session.failure(kind, TEXT)
        await session.succeeds(r=["012"])


@scenario("ET-55", "E-098", "E-090", function="drip")
async def first_token_latency(stage: Stage) -> None:
    """Each item is sent at once: the first of three, a second apart, comes within 200 ms."""
    async with stage.session() as warm:
        await warm.send(*counted("drip", 1))
        await warm.succeeds(r=["0"])
    async with stage.session() as session:
        await session.headers()
        await session.send(F("s", m=JSON, t="1"), F("c", m=JSON, t="3"))
        clock = stage.clock()
        await session.send(A("drip", {"count": "c", "seconds": "s"}, {"out": "r"}))
        await session.fragment()
        if (took := stage.clock() - clock) > 0.9:
            raise session.failure(
                f"the first fragment after {took:.2f} s", "within 0.2 s, and before the second is made"
            )
        await session.succeeds(r=["012"])


@scenario("ET-56", "E-099", "E-100", "E-104", function="records")
async def stream_object_output(stage: Stage) -> None:
    """A stream of objects is a root that names a JSON leaf for each item before it comes, then a terminator."""
    async with stage.session() as session:
        await session.send(*counted("records", 3))
        met = await fragments(session, "r")
        roots = [each for each in met if each.id == "r"]
        sizes = [(each.seq, each.continued, len(each.child_ids)) for each in roots]
        if sizes != [(0, True, 1), (1, True, 1), (2, True, 1), (3, False, 0)]:
            raise session.failure(", ".join(map(shown, roots)), "three children, one each, then a terminator")
        leaves = session.outputs.leaves("r")
        if any(leaf.media_type != JSON for leaf in leaves):
            raise session.failure(f"{[leaf.metadata.mimetype for leaf in leaves]}", JSON)
        await session.succeeds(r=[{"n": 0}, {"n": 1}, {"n": 2}])


@scenario("E-099", "E-104", function="words")
async def sequence_of_texts(stage: Stage) -> None:
    """An output that is declared as a sequence has a leaf for each value, also for text."""
    await stage.succeeds(
        A("words", {"text": "p"}, {"out": "r"}), F("p", m=TEXT, t="one two one"), r=["one", "two", "one"]
    )
    await stage.succeeds(A("words", {"text": "p"}, {"out": "r"}), F("p", m=TEXT, t="one"), r=["one"])


@scenario("E-126", "E-086", function="sort")
async def outputs_by_name(stage: Stage) -> None:
    """A function sends to its outputs by name, at once.

    The function may end an output; the others end when it returns.
    """
    async with stage.session() as session:
        await session.send(A("sort", {"numbers": "p"}, {"even": "e", "odd": "o"}))
        for n, number in enumerate((1, 2, 3, -2)):
            await session.send(K("p", f"l{n}", seq=n, mark="+"), F(f"l{n}", m=JSON, t=str(number)))
            if number > 0:
                while session.read("o" if number % 2 else "e")[-1:] != [number]:
                    await session.fragment()
        await session.gives("e", 2)
        await session.send(F("p", 4))
        await session.succeeds(o=[1, 3])
    await stage.succeeds(A("sort", {"numbers": "p"}, {"odd": "o"}), *jsons("p", 1, 2, 3, 4), o=[1, 3])


@scenario("E-130", function="sort")
async def a_value_after_the_end_of_its_output(stage: Stage) -> None:
    """A value for an output that the function has ended is an action failure."""
    async with stage.session() as session:
        await session.send(A("sort", {"numbers": "p"}, {"even": "e", "odd": "o"}), *jsons("p", 2, -2, 4))
        await session.fails(FAIL)
        if (met := session.read("e")) != [2]:
            raise session.failure(f"{met} in 'e'", "[2]")


@scenario("E-100", function="records")
async def generated_ids_are_unique(stage: Stage) -> None:
    """Children of different outputs, and children of the client, never share an id."""
    async with stage.session() as session:
        for root in ("a", "b", "c"):
            await session.send(*counted("records", 20, root))
        await session.succeeds()
        ids = [child for root in ("a", "b", "c") for child in session.outputs.children(root)]
        if len(set(ids)) != 60:
            raise session.failure(f"{len(set(ids))} different ids", "60")


@scenario("ET-57", "E-101", function=("drip", "records"))
async def empty_generator(stage: Stage) -> None:
    """A stream without items is one terminator, seq 0, final, without metadata."""
    for name in ("drip", "records"):
        async with stage.session() as session:
            await session.send(*counted(name, 0))
            check(session, await fragments(session, "r"), (0, False, b""))
            await session.succeeds(r=[])


@scenario("ET-58", "E-097", function=("large", "octets"))
async def large_value_split(stage: Stage) -> None:
    """Five MiB come in fragments of at most one MiB, text cut between characters."""
    count = 5 * 1024 * 1024 // 3
    session = await stage.succeeds(A("large", {"size": "n"}, {"out": "r"}), F("n", m=JSON, t=str(count)))
    if session.read("r") != ["日" * count]:
        raise session.failure(f"{sum(map(len, session.outputs.pieces('r')))} bytes", f"{count} times 日")
    data = bytes(range(256)) * (10 * 1024)
    async with stage.session() as session:
        await session.send(
            A("octets", {"value": "p"}, {"out": "r"}), F("p", 0, "+", m=OCTETS, d=data), F("p", 1, d=data)
        )
        await session.succeeds()
        if session.read("r") != [data * 2]:
            raise session.failure(f"{sum(map(len, session.outputs.pieces('r')))} bytes", f"the {2 * len(data)} sent")


@scenario("ET-59", "E-102", function="mixed")
async def mixed_kinds_on_text_output(stage: Stage) -> None:
    """Text and objects on one output fail."""
    await stage.fails(FAIL, A("mixed", {}, {"out": "r"}))


@scenario("ET-73", "E-093", function="square")
async def plain_map_over_leaves(stage: Stage) -> None:
    """A plain function with one parameter gives a result for each leaf, in their order."""
    await stage.succeeds(A("square", {"x": "p"}, {"out": "r"}), *jsons("p", 2, 3, 4), r=[4, 9, 16])
    await stage.succeeds(A("square", {"x": "p"}, {"out": "r"}), F("p", m=JSON, t="5"), r=[25])
    await stage.succeeds(A("square", {"x": "p"}, {"out": "r"}), F("p"), r=[])


@scenario("E-093", "E-062", function="square")
async def mapped_results_come_one_by_one(stage: Stage) -> None:
    """The result of a leaf comes at the latest with the next leaf, since a single result has another form."""
    async with stage.session() as session:
        await session.send(A("square", {"x": "p"}, {"out": "r"}))
        for n in range(5):
            await session.send(K("p", f"l{n}", seq=n, mark="+"), F(f"l{n}", m=JSON, t=str(n)))
            while len(session.outputs.leaves("r")) < n:
                await session.fragment()
        await session.send(F("p", 5))
        await session.succeeds(r=[0, 1, 4, 9, 16])


@scenario("ET-74", "E-094", "E-113", function="join")
async def plain_two_params_two_leaves(stage: Stage) -> None:
    """A plain function with two parameters takes exactly one leaf each."""
    join = A("join", {"left": "p", "right": "q"}, {"out": "r"})
    await stage.fails(BAD, join, *texts("p", "a", "b"), F("q", m=TEXT, t="c"))
    await stage.fails(BAD, join, F("p", m=TEXT, t="a"), F("q"))
    await stage.succeeds(join, *texts("p", "a"), F("q", m=TEXT, t="c"), r=["ac"])
    late = [
        K("p", "a", mark="+"),
        F("a", m=TEXT, t="a"),
        F("q", m=TEXT, t="c"),
        K("p", "b", seq=1),
        F("b", m=TEXT, t="b"),
    ]
    await stage.fails(BAD, join, *late)
    turn = [K("p", "a", "e"), F("a", m=TEXT, t="a"), F("e", m=EOT)]
    await stage.succeeds(join, *turn, F("q", m=TEXT, t="c"), r=["ac"])


@scenario("E-095", function="pieces")
async def text_stream_reads_fragments(stage: Stage) -> None:
    """A text stream gets the first piece of a leaf before the next one is sent."""
    async with stage.session() as session:
        await session.send(A("pieces", {"text": "p"}, {"out": "r"}), F("p", 0, "+", m=TEXT, t="one "))
        await session.begins(b"one ")
        await session.send(F("p", 1, "+", t="two "))
        await session.begins(b"two ")
        await session.send(F("p", 2, t="three"))
        await session.succeeds(r=["one two three"])


@scenario("E-104", function=("upper", "octets", "square", "picture"))
async def types_of_outputs(stage: Stage) -> None:
    """Text is text/plain, bytes are octets, other values JSON; a message has its own type."""
    numbers = F("n", m=JSON, t="3")
    async with stage.session() as session:
        await session.send(HI, numbers, upper("p", "a"), A("octets", {"value": "p"}, {"out": "b"}))
        await session.send(A("square", {"x": "n"}, {"out": "c"}), A("picture", {"data": "p"}, {"out": "d"}))
        await session.succeeds(a=["HI"], b=[b"hi"], c=[9], d=[b"hi"])
        types = [session.outputs.leaves(root)[0].media_type for root in "abcd"]
        if types != [TEXT, OCTETS, JSON, "image/png"]:
            raise session.failure(f"the types {types}", f"{[TEXT, OCTETS, JSON, 'image/png']}")


@scenario("E-104", "E-044", function="page")
async def metadata_of_outputs(stage: Stage) -> None:
    """A message from a function has the type, role and file name that the function has set."""
    session = await stage.succeeds(A("page", {"text": "p"}, {"out": "r"}), HI, r=["hi"])
    page = session.outputs.leaves("r")[0].metadata
    if page.mimetype.partition(";")[0] != "text/html":
        raise session.failure(page.mimetype, "text/html")
    if (page.role, page.original_file_name) != ("model", "page.html"):
        raise session.failure(f"role {page.role!r}, file {page.original_file_name!r}", "'model', 'page.html'")


@scenario("E-106", "E-116", function="odd")
async def results_that_cannot_be_sent(stage: Stage) -> None:
    """NaN, a list in itself, an opaque object, a lone surrogate: each is an action failure."""
    for kind in ("nan", "circle", "opaque", "surrogate"):
        await stage.fails(FAIL, A("odd", {"kind": "p"}, {"out": "r"}), F("p", m=TEXT, t=kind))


@scenario("E-107", "E-068", "E-007", function=("upper", "records", "items"))
async def outputs_are_kept(stage: Stage) -> None:
    """Outputs are inputs of later actions, text and sequences, long after they were sent."""
    async with stage.session() as session:
        await session.send(upper(), HI, *counted("records", 3, "s"))
        await session.gives("r", "HI")
        await session.gives("s", {"n": 0}, {"n": 1}, {"n": 2})
        await session.send(K("q", "s", "r", "s"), A("items", {"values": "q"}, {"out": "t"}))
        await session.half_close()
        sequence = [{"n": 0}, {"n": 1}, {"n": 2}]
        await session.succeeds(t=[{"items": [*sequence, "HI", *sequence]}])


@scenario("E-109", function="drip")
async def concurrent_outputs(stage: Stage) -> None:
    """Ten streams of one session at once: each has its own order, none waits for another to end."""
    async with stage.session() as session:
        await session.send(F("c", m=JSON, t="20"), F("s", m=JSON, t="0.05"))
        roots = [f"r{n}" for n in range(10)]
        await session.send(*(A("drip", {"count": "c", "seconds": "s"}, {"out": root}) for root in roots))
        while not all(session.outputs.pieces(root) for root in roots):
            await session.fragment()
        if ended := [root for root in roots if session.outputs.has(root)]:
            raise session.failure(f"{ended[0]!r} over before all had begun", "streams side by side")
        await session.half_close()
        text = "".join(str(n) for n in range(20))
        expected: dict[str, Any] = {root: [text] for root in roots}
        await session.succeeds(**expected)
