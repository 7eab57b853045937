"""A session: how it begins, what it ignores, how it ends, and that sessions do not see each other. Catalogue 2.1."""

from __future__ import annotations

import asyncio

from invoker_conformance.evergreen.actions import HI, items, replay, upper
from invoker_conformance.evergreen.frames import TEXT, A, F, K, texts
from invoker_conformance.evergreen.rules import FRAG
from invoker_conformance.evergreen.stage import Stage
from invoker_conformance.scenario import scenario


@scenario("ET-01", "E-001", "E-015", "E-017", "E-059", "E-075", "E-089", "E-096", "E-097", "E-103", function="upper")
async def single_text(stage: Stage) -> None:
    """An action and its leaf are answered with one final fragment, HI as text/plain, and then OK."""
    session = await stage.succeeds(upper(), HI, r=["HI"])
    (leaf,) = session.outputs.leaves("r")
    if leaf.id != "r" or leaf.media_type != TEXT or session.outputs.fragments != 1:
        met = f"{session.outputs.fragments} fragments, leaf {leaf.id!r} of {leaf.metadata.mimetype!r}"
        raise session.failure(met, "one fragment of leaf 'r', text/plain")


@scenario("ET-02", "E-089", function="upper")
async def nodes_before_action(stage: Stage) -> None:
    """A leaf that comes before its action gives the same output."""
    await stage.succeeds(HI, upper(), r=["HI"])


@scenario("ET-03", "E-009", "E-089", function=("upper", "items"))
async def same_message(stage: Stage) -> None:
    """Fragments and actions in one message have no order between them."""
    async with stage.session() as session:
        await session.together(HI, upper())
        await session.succeeds(r=["HI"])
    children = [F("b", m=TEXT, t="b"), F("a", m=TEXT, t="a"), K("q", "a", "b")]
    async with stage.session() as session:
        await session.together(items("q", "s"), *children, upper(), HI)
        await session.succeeds(r=["HI"], s=[{"items": ["a", "b"]}])


@scenario("ET-09", "E-005", function="upper")
async def empty_session(stage: Stage) -> None:
    """A half-close without a message, or without an action, is OK at once."""
    async with stage.session() as session:
        await session.succeeds()
    await stage.succeeds(HI, K("q", "nobody", mark="+"))


@scenario("ET-10", "E-008", function="upper")
async def empty_message_keepalive(stage: Stage) -> None:
    """Empty messages are ignored, wherever they come."""
    async with stage.session() as session:
        for _ in range(3):
            await session.together()
        await session.send(upper())
        await session.together()
        await session.send(HI)
        await session.gives("r", "HI")
        await session.together()
        await session.succeeds()


@scenario("ET-11", "E-006", "E-007", function="upper")
async def idle_then_second_action(stage: Stage) -> None:
    """A session outlives its actions: after a second of rest a further action works, on new and on old nodes."""
    async with stage.session() as session:
        await session.send(upper(), HI)
        await session.gives("r", "HI")
        await session.silent(1.0)
        await session.send(upper("q", "s"), F("q", m=TEXT, t="ho"), upper("p", "r2"))
        await session.succeeds(s=["HO"], r2=["HI"])


@scenario("ET-12", "E-004", function="delay")
async def half_close_waits_for_slow_action(stage: Stage) -> None:
    """After the half-close a running action finishes, its output comes, then OK."""
    await stage.succeeds(A("delay", {"seconds": "p"}, {"out": "r"}), F("p", m="application/json", t="1.0"), r=[1.0])


@scenario("ET-86", "E-013", "E-012", "E-011", function=("upper", "replay"))
async def garbage_wire_bytes(stage: Stage) -> None:
    """Bytes that are not a message abort only their own session."""
    async with stage.session() as other:
        await other.send(upper())
        for garbage in (b"\xff\xff\xff\xff", b"\x0a\x05ab", b"\x0a\x03\x0a\x01\xff"):
            async with stage.session() as session:
                await session.raw(garbage)
                await session.fails(FRAG)
        await other.send(HI)
        await other.succeeds(r=["HI"])


@scenario("ET-81", "E-002", "E-012", function=("upper", "replay"))
async def sessions_isolated(stage: Stage) -> None:
    """Fifty sessions with the same ids at the same time do not mix; an aborted one does not affect the others."""

    async def one(number: int) -> None:
        async with stage.session() as session:
            await session.send(replay(), K("p", "a", mark="+"), F("a", m=TEXT, t=f"{number} "))
            await session.fragment()
            if number % 10 == 3:
                await session.send(F("a", 5))
                await session.fails(FRAG)
                return
            await session.send(F("b", m=TEXT, t=f"of {number}"), K("p", "b", seq=1))
            await session.succeeds()
            text = "".join(session.read("r"))
            if text != f"{number} of {number}":
                raise session.failure(repr(text), repr(f"{number} of {number}"))

    async with asyncio.TaskGroup() as group:
        for number in range(50):
            group.create_task(one(number))


@scenario("E-014", "E-118", function="upper")
async def initial_metadata_at_start(stage: Stage) -> None:
    """Initial metadata comes before anything is sent, and names no extension that was not requested."""
    async with stage.session() as session:
        headers = await session.headers()
        if headers.get("evergreen-extensions", "").strip():
            raise session.failure(
                f"evergreen-extensions: {headers['evergreen-extensions']}", "no extension, since none was asked for"
            )
        await session.succeeds()


@scenario("ET-94", "E-001", function=("upper", "items"))
async def riff_and_evergreen_same_function(stage: Stage) -> None:
    """The same function gives the same values through both protocols, at one address."""
    values = ["hi", "日本", ""]
    async with stage.call() as call:
        await call.start([TEXT], ["text"], ["out"])
        for value in values:
            await call.data(value.encode(), TEXT)
        await call.half_close()
        frames, ending = await call.rest()
    met = [frame.payload.decode() for frame in frames]
    if met != ["HI", "日本", ""]:
        raise call.failure(f"{met} through riff, then {ending}", "['HI', '日本', '']")
    session = await stage.succeeds(upper(), *texts("p", *values))
    if (joined := "".join(session.read("r"))) != "".join(met):
        raise session.failure(f"{joined!r} in 'r'", repr("".join(met)))
