"""Extensions that a client may negotiate beyond the specification. Catalogue 2.9."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker_conformance.evergreen.actions import HI, items, upper
from invoker_conformance.evergreen.frames import JSON, OCTETS, TEXT, A, F, K
from invoker_conformance.evergreen.rules import ACT, ANF, NAC
from invoker_conformance.evergreen.session import Session
from invoker_conformance.evergreen.stage import Stage
from invoker_conformance.scenario import NotProvided, scenario

ENDLESS = A("endless", {}, {"out": "e"})


@asynccontextmanager
async def negotiated(stage: Stage, *wanted: str) -> AsyncIterator[Session]:
    """A session with these extensions.

    Raises:
        NotProvided: The server did not accept one of the extensions.
    """
    async with stage.session(extensions=", ".join(wanted)) as session:
        accepted = (await session.headers()).get("evergreen-extensions", "")
        for token in wanted:
            if token not in [each.strip() for each in accepted.split(",")]:
                raise NotProvided(f"extension {token}")
        yield session


def drop(node: str) -> pb.Action:
    """The action ``DROP``, which releases a node."""
    return A("DROP", {"node": node})


def set_ttl(node: str, seconds: float) -> pb.Action:
    """The action ``SET_TTL``, which releases a node later."""
    duration = Duration(seconds=int(seconds), nanos=int(seconds % 1 * 1_000_000_000))
    return A("SET_TTL", {"node": node}, configs=[duration])


def cancel(output: str) -> pb.Action:
    """The action ``CANCEL``, which ends the action of an output."""
    return A("CANCEL", {"output": output})


@scenario("E-118", "E-072", function="upper")
async def extensions_are_off_unless_negotiated(stage: Stage) -> None:
    """Without negotiation the names of extensions have no special meaning; unknown tokens are ignored."""
    for action in (drop("p"), set_ttl("p", 1), cancel("r"), A("__list_actions", {}, {"actions": "a"})):
        await stage.fails(ANF, HI, action)
    async with stage.session(extensions="no-such-thing, , drop;x") as session:
        accepted = (await session.headers()).get("evergreen-extensions", "")
        if accepted.strip():
            raise session.failure(f"evergreen-extensions: {accepted}", "no extension")
        await session.send(upper(), HI)
        await session.succeeds(r=["HI"])


@scenario("ET-87", "E-118", function="upper")
async def drop_not_negotiated(stage: Stage) -> None:
    """DROP is unknown to a session that negotiated another extension."""
    async with negotiated(stage, "ttl") as session:
        await session.send(HI, drop("p"))
        await session.fails(ANF)


@scenario("ET-87", "E-119", function="items")
async def drop_then_use(stage: Stage) -> None:
    """A dropped node cannot be an input, a child or an output any more; its late fragments are ignored."""
    for frames in ([upper()], [K("q", "p")], [upper("x", "p")]):
        async with negotiated(stage, "drop") as session:
            await session.send(HI, drop("p"), F("p", 1, t="late"), F("p", m=TEXT, t="again"), *frames)
            await session.fails(ACT)


@scenario("ET-87", "E-119", function="items")
async def drop_leaves_children(stage: Stage) -> None:
    """Only the node's own content is dropped; an unknown or dropped node is no error."""
    async with negotiated(stage, "drop") as session:
        await session.send(K("p", "a"), F("a", m=TEXT, t="x"), drop("p"), drop("p"), drop("never seen"))
        await session.send(items("a"))
        await session.succeeds(r=[{"items": ["x"]}])


@scenario("ET-87", "E-119", function="both")
async def drop_while_running(stage: Stage) -> None:
    """An action that began before the DROP keeps the node that it reads."""
    async with negotiated(stage, "drop") as session:
        await session.send(HI, A("both", {"left": "p", "right": "q"}, {"out": "r"}), drop("p"))
        await session.send(F("q", m=TEXT, t="ho"))
        await session.succeeds(r=[{"left": ["hi"], "right": ["ho"]}])


@scenario("ET-87", "E-119", function="upper")
async def drop_releases(stage: Stage) -> None:
    """Dropped nodes take no room: more than a session may hold passes through it."""
    payload = bytes(3 * 1024 * 1024)
    async with negotiated(stage, "drop") as session:
        for n in range(100):
            await session.send(F(f"n{n}", m=OCTETS, d=payload), drop(f"n{n}"))
        await session.send(upper(), HI)
        await session.succeeds(r=["HI"], timeout_s=30.0)


@scenario("ET-87", "E-119", function=("endless", "marks"))
async def drop_an_output(stage: Stage) -> None:
    """A dropped output of a running action is closed in the function, and is no longer sent."""
    watch = await stage.watch("endless.closed")
    async with negotiated(stage, "drop") as session:
        await session.send(ENDLESS)
        await session.fragment()
        await session.send(drop("e"))
        session.unlist("e")
        await session.succeeds(timeout_s=10.0)
    await watch.reaches("endless.closed", 1)


@scenario("ET-88", "E-120", function="upper")
async def ttl_expiry_descendants(stage: Stage) -> None:
    """After its time a node and all nodes below it are dropped, but not before."""
    for frames in ([items("p")], [upper("a")]):
        async with negotiated(stage, "ttl") as session:
            await session.send(K("p", "a"), F("a", m=TEXT, t="x"), set_ttl("p", 0.3), upper("a", "before"))
            await session.gives("before", "X")
            await session.silent(1.0)
            await session.send(*frames)
            await session.fails(ACT)


@scenario("ET-88", "E-120", function="upper")
async def ttl_shared_child_kept(stage: Stage) -> None:
    """A child that another node holds longer is kept; the last time that was set counts."""
    async with negotiated(stage, "ttl") as session:
        await session.send(K("p", "a"), K("q", "a"), F("a", m=TEXT, t="x"), set_ttl("p", 0.2))
        await session.send(F("b", m=TEXT, t="y"), set_ttl("b", 0.2), set_ttl("b", 3600))
        await session.silent(0.8)
        await session.send(items("q"), upper("b", "s"))
        await session.succeeds(r=[{"items": ["x"]}], s=["Y"])


@scenario("ET-88", "E-120", function="upper")
async def ttl_zero_and_wrong_config(stage: Stage) -> None:
    """A time of zero or below drops the node at once; a missing config, or another one, aborts."""
    for seconds in (0, -5):
        async with negotiated(stage, "ttl") as session:
            await session.send(HI, set_ttl("p", seconds))
            await asyncio.sleep(0.1)
            await session.send(upper())
            await session.fails(ACT)
    broken = AnyMessage(type_url="type.googleapis.com/google.protobuf.Duration", value=b"\xff\xff")
    for configs in ([], [Struct()], [broken]):
        async with negotiated(stage, "ttl") as session:
            await session.send(HI, A("SET_TTL", {"node": "p"}, configs=configs))
            await session.fails(ACT)


@scenario("ET-91", "E-123", "E-125", function=("split", "upper"))
async def list_actions(stage: Stage) -> None:
    """The list of actions names them with their inputs, outputs and description."""
    async with negotiated(stage, "discovery") as session:
        await session.send(A("__list_actions", {}, {"actions": "r"}))
        await session.succeeds()
        told: dict[str, dict[str, Any]] = {each["name"]: each for each in session.read("r")}
        names = {side: [one["name"] for one in told["split"][side]] for side in ("inputs", "outputs")}
        if names != {"inputs": ["numbers"], "outputs": ["even", "odd"]}:
            raise session.failure(f"{told['split']}", "input numbers, outputs even and odd")
        if not told["upper"]["description"] or not all(one["type"] for one in told["upper"]["inputs"]):
            raise session.failure(f"{told['upper']}", "a description, and a type for each input")


@scenario("ET-92", "E-124", function="upper")
async def accept_extension(stage: Stage) -> None:
    """A config can choose an output's type; an impossible type aborts; without the extension, the config is ignored."""
    for accept, media_type in (
        ("application/json", JSON),
        ("application/json;q=0.5, text/plain", TEXT),
        ("image/png, application/*", JSON),
        ("image/png", None),
    ):
        config = Struct()
        config.update({"accept": {"out": accept}})
        action = A("upper", {"text": "p"}, {"out": "r"}, configs=[config])
        async with negotiated(stage, "accept") as session:
            await session.all(action, HI)
            if media_type is None:
                await session.fails(NAC)
                continue
            await session.succeeds(r=["HI"])
            if (met := session.outputs.leaves("r")[0].media_type) != media_type:
                raise session.failure(met, media_type)
        await stage.succeeds(action, HI, r=["HI"])


@scenario("E-124", "E-088", function="upper")
async def accept_that_cannot_be_read(stage: Stage) -> None:
    """A Struct that cannot be parsed makes an action invalid if the extension has to read it."""
    broken = AnyMessage(type_url="type.googleapis.com/google.protobuf.Struct", value=b"\xff\xff")
    async with negotiated(stage, "accept") as session:
        await session.send(A("upper", {"text": "p"}, {"out": "r"}, configs=[broken]))
        await session.fails(ACT)
