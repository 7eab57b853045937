"""Actions: names, inputs, outputs, targets, configs, and that they run side by side. Catalogue 2.6."""

from __future__ import annotations

from typing import Any

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.struct_pb2 import Struct

from invoker_conformance.evergreen.actions import HI, items, upper
from invoker_conformance.evergreen.frames import JSON, TEXT, A, F, K
from invoker_conformance.evergreen.rules import ACT, ANF, FRAG, LIM, TNF
from invoker_conformance.evergreen.stage import Stage
from invoker_conformance.scenario import scenario


@scenario("ET-47", "E-071", "E-072", function="upper")
async def unknown_action(stage: Stage) -> None:
    """An unknown or empty name of an action aborts; upper and lower case differ."""
    for name in ("no such action", "", "Upper", "upper "):
        await stage.fails(ANF, A(name, {"text": "p"}, {"out": "r"}))


@scenario("ET-48", "E-073", "E-074", function="upper")
async def targets(stage: Stage) -> None:
    """No target and an empty one are the default; an unknown one aborts."""
    for target in (None, ""):
        await stage.succeeds(A("upper", {"text": "p"}, {"out": "r"}, target=target), HI, r=["HI"])
    await stage.fails(TNF, A("upper", {"text": "p"}, {"out": "r"}, target="no such target"), HI)


@scenario("ET-49", "E-075", "E-076", "E-077", "E-078", "E-113", function=("upper", "multiply", "join", "options"))
async def input_names(stage: Stage) -> None:
    """Inputs have the names of the parameters: unknown, missing and double names abort; defaults are used."""
    await stage.fails(ACT, A("upper", [("text", "p"), ("text", "q")], {"out": "r"}))
    await stage.fails(ACT, A("upper", {"text": "p", "prompt": "q"}, {"out": "r"}))
    await stage.fails(ACT, A("upper", {"Text": "p"}, {"out": "r"}))
    await stage.fails(ACT, A("upper", {}, {"out": "r"}))
    await stage.fails(ACT, A("join", {"right": "p"}, {"out": "r"}))
    await stage.fails(ACT, A("multiply", {"times": "p"}, {"out": "r"}))
    await stage.succeeds(A("multiply", {"text": "p"}, {"out": "r"}), HI, r=["hihi"])
    three = F("q", m=JSON, t="3")
    await stage.succeeds(A("multiply", {"times": "q", "text": "p"}, {"out": "r"}), HI, three, r=["hihihi"])


@scenario("E-075", "E-094", function="join")
async def order_of_inputs_is_irrelevant(stage: Stage) -> None:
    """Inputs are bound by name, in any order of their ports and of their fragments."""
    leaves = [F("p", m=TEXT, t="left "), F("q", m=TEXT, t="right")]
    for pairs in ([("left", "p"), ("right", "q")], [("right", "q"), ("left", "p")]):
        for turn in (1, -1):
            await stage.succeeds(A("join", pairs, {"out": "r"}), *leaves[::turn], r=["left right"])


@scenario("E-076", function="options")
async def any_input_names(stage: Stage) -> None:
    """A function that takes any names gets every input that is given."""
    action = A("options", {"one": "p", "ü 2": "q"}, {"out": "r"})
    await stage.succeeds(action, HI, F("q", m=JSON, t="[2]"), r=[{"one": "hi", "ü 2": [2]}])
    await stage.fails(ACT, A("options", [("one", "p"), ("one", "q")], {"out": "r"}))


@scenario("E-080", function="upper")
async def empty_names_and_ids(stage: Stage) -> None:
    """An empty name or id of a parameter aborts."""
    await stage.fails(ACT, A("upper", {"": "p"}, {"out": "r"}))
    await stage.fails(ACT, A("upper", {"text": ""}, {"out": "r"}))
    await stage.fails(ACT, A("upper", {"text": "p"}, {"": "r"}))
    await stage.fails(ACT, A("upper", {"text": "p"}, {"out": ""}))


@scenario("E-026", "E-115", function="upper")
async def long_names(stage: Stage) -> None:
    """Ids in an action are limited in their length, too."""
    await stage.fails(LIM, A("upper", {"text": "p" * 1025}, {"out": "r"}))
    await stage.fails(LIM, A("upper", {"text": "p"}, {"out": "r" * 1025}))
    await stage.fails(LIM, K("p", "a" * 1025))


@scenario("ET-44", "E-081", function=("upper", "split"))
async def output_ids_in_use(stage: Stage) -> None:
    """The id of an output must be new: not another output's, a received node's or one of the action's inputs."""
    await stage.fails(ACT, upper("p", "r"), upper("q", "r"))
    await stage.fails(ACT, F("r", m=TEXT, t="x"), upper("p", "r"))
    await stage.fails(ACT, F("r", 7, "+", t="x"), upper("p", "r"))
    await stage.fails(ACT, A("split", {"numbers": "p"}, {"even": "r", "odd": "r"}))
    await stage.fails(ACT, upper("p", "p"))


@scenario("E-084", function=("upper", "note", "marks"))
async def the_same_action_again(stage: Stage) -> None:
    """An action that is sent again aborts, since its outputs are taken; one without outputs runs twice."""
    async with stage.session() as session:
        await session.send(upper(), HI)
        await session.gives("r", "HI")
        await session.send(upper())
        await session.fails(ACT)
    watch = await stage.watch("twice")
    note = A("note", {"key": "p"})
    await stage.succeeds(F("p", m=TEXT, t="twice"), note, note)
    await watch.stays("twice", by=2)


@scenario("ET-45", "E-083", function="upper")
async def client_writes_output_node(stage: Stage) -> None:
    """A fragment of the client for an output aborts, before and after it was made, whatever is in it."""
    for fragment in (F("r", m=TEXT, t="x"), K("r", "a"), F("r"), F("r", 1000, t="x")):
        await stage.fails(FRAG, upper(), fragment)
    async with stage.session() as session:
        await session.send(upper(), HI)
        await session.gives("r", "HI")
        await session.send(F("r", m=TEXT, t="x"))
        await session.fails(FRAG)


@scenario("ET-52", "E-085", function=("split", "upper"))
async def output_names(stage: Stage) -> None:
    """Unknown, surplus and double names of outputs abort; a single output takes any name."""
    await stage.fails(ACT, A("split", {"numbers": "p"}, {"even": "r", "prime": "s"}))
    await stage.fails(ACT, A("split", {"numbers": "p"}, [("even", "r"), ("even", "s")]))
    await stage.fails(ACT, A("upper", {"text": "p"}, {"out": "r", "more": "s"}))
    await stage.succeeds(A("upper", {"text": "p"}, {"whatever it is": "r"}), HI, r=["HI"])


@scenario("ET-50", "E-086", "E-085", function="split")
async def unlisted_output_not_sent(stage: Stage) -> None:
    """Only listed outputs are sent; the function runs to its end."""
    numbers = F("p", m=JSON, t="1"), F("q", m=JSON, t="2"), K("n", "p", "q", "p")
    cases: list[tuple[dict[str, str], dict[str, Any]]] = [
        ({"even": "r"}, {"r": [2]}),
        ({"odd": "r"}, {"r": [1, 1]}),
        ({"odd": "r", "even": "s"}, {"r": [1, 1], "s": [2]}),
    ]
    for names, expected in cases:
        await stage.succeeds(A("split", {"numbers": "n"}, names), *numbers, **expected)


@scenario("ET-51", "E-087", function=("note", "upper", "marks"))
async def no_outputs_listed(stage: Stage) -> None:
    """Without outputs an action runs for its effect, and nothing is sent."""
    watch = await stage.watch("effect", "upper.calls")
    session = await stage.succeeds(A("note", {"key": "q"}), F("q", m=TEXT, t="effect"), A("upper", {"text": "p"}), HI)
    if session.outputs.fragments:
        raise session.failure(f"{session.outputs.fragments} fragments", "none")
    await watch.stays("effect", by=1)
    await watch.stays("upper.calls", by=1)


@scenario("ET-53", "E-088", function=("configs", "upper"))
async def configs_passed(stage: Stage) -> None:
    """Configs reach the function in their order, a Struct with its fields, an unknown type as bytes."""
    struct = Struct()
    struct.update({"temperature": 0.5, "stop": ["a", None], "deep": {"x": True}})
    opaque = AnyMessage(type_url="type.googleapis.com/no.such.Config", value=b"\x01\x02")
    action = A("configs", {"text": "p"}, {"out": "r"}, configs=[struct, opaque])
    expected = {
        "text": "hi",
        "configs": [
            {
                "type": "type.googleapis.com/google.protobuf.Struct",
                "value": {"temperature": 0.5, "stop": ["a", None], "deep": {"x": True}},
            },
            {"type": "type.googleapis.com/no.such.Config", "value": {"bytes": 2, "hex": "0102"}},
        ],
    }
    await stage.succeeds(action, HI, r=[expected])
    await stage.succeeds(A("configs", {"text": "p"}, {"out": "r"}), HI, r=[{"text": "hi", "configs": []}])
    await stage.succeeds(A("upper", {"text": "p"}, {"out": "r"}, configs=[struct, opaque]), HI, r=["HI"])


@scenario("E-090", "E-089", function="drip")
async def an_action_starts_at_once(stage: Stage) -> None:
    """An action runs as soon as it has its inputs, while the client is still sending."""
    async with stage.session() as session:
        await session.send(F("c", m=JSON, t="2"), A("drip", {"count": "c"}, {"out": "r"}))
        await session.gives("r", "01")
        await session.succeeds()


@scenario("E-090", "E-062", function="GENERATE")
async def output_before_the_last_input(stage: Stage) -> None:
    """The first of the output comes before the last of the input is sent."""
    async with stage.session() as session:
        await session.send(
            A("GENERATE", {"prompt": "p"}, {"response": "r"}), K("p", "a", "b"), F("a", m=TEXT, t="one ")
        )
        await session.begins(b"ONE ")
        await session.send(F("b", m=TEXT, t="two"))
        await session.succeeds(r=["ONE TWO"])


@scenario("E-091", "E-109", function=("delay", "upper"))
async def slow_and_quick_actions(stage: Stage) -> None:
    """A slow action, or one that waits for its input, does not delay a quick one."""
    async with stage.session() as session:
        await session.send(A("delay", {"seconds": "s"}, {"out": "slow"}), F("s", m=JSON, t="1.5"), items("nobody", "w"))
        clock = stage.clock()
        await session.send(upper(), HI)
        await session.gives("r", "HI")
        if session.outputs.has("slow"):
            raise session.failure(f"the quick output after {stage.clock() - clock:.1f} s", "that it comes first")
        await session.send(F("nobody"))
        await session.succeeds(slow=[1.5], w=[{"items": []}])


@scenario("ET-85", "E-016", function=("upper", "options"))
async def unicode_ids_and_names(stage: Stage) -> None:
    """Ids and names may be any text: line ends, quotes, other alphabets."""
    odd = '日\n"\\\u202e\x00🙂'
    expected: dict[str, Any] = {f"{odd} out": ["HI"]}
    await stage.succeeds(upper(odd, f"{odd} out"), F(odd, m=TEXT, t="hi"), **expected)
    await stage.succeeds(A("options", {odd: "p"}, {odd: "r"}), HI, r=[{odd: "hi"}])
    await stage.fails(FRAG, F(odd, -1, t="x"))
    await stage.fails(ANF, A(odd))


@scenario("E-082", "E-091", function="upper")
async def consumers_do_not_starve_their_producer(stage: Stage) -> None:
    """A hundred actions that wait for an output do not keep the one that makes it from running."""
    await stage.succeeds(*(upper("x", f"r{n}") for n in range(100)), HI, upper("p", "x"), r0=["HI"], r99=["HI"])
