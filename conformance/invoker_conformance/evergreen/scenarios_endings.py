"""Endings: failures, missing inputs, cancels and lost connections. Catalogue 2.1, 2.7, 2.8."""

from __future__ import annotations

import grpc

from invoker_conformance.evergreen.actions import HI, items, upper
from invoker_conformance.evergreen.frames import JSON, TEXT, A, F, K, jsons
from invoker_conformance.evergreen.rules import FAIL, FRAG, MISS
from invoker_conformance.evergreen.stage import Stage
from invoker_conformance.scenario import scenario

ENDLESS = A("endless", {}, {"out": "e"})


@scenario("ET-60", "E-112", "E-098", function="stumble")
async def fragments_before_a_failure(stage: Stage) -> None:
    """Three items come, then the status with type and text of the exception."""
    async with stage.session() as session:
        await session.all(A("stumble", {"count": "p"}, {"out": "r"}), F("p", m=JSON, t="3"))
        await session.fails(FAIL, "ValueError", "boom")
        if (pieces := session.outputs.pieces("r")[:3]) != [b"a", b"b", b"c"]:
            raise session.failure(f"{pieces} before the status", "[b'a', b'b', b'c']")


@scenario("E-112", "E-116", function="collapse")
async def failure_text_is_clean(stage: Stage) -> None:
    """The detail holds type and text of the exception, and neither a traceback nor a path."""
    for text in ("plain", "日本", "100% of it"):
        await stage.fails(
            FAIL, A("collapse", {"wanted": "p"}, {"out": "r"}), F("p", m=TEXT, t=text), mentions=["ValueError", text]
        )
    await stage.fails(FAIL, A("collapse", {"wanted": "p"}, {"out": "r"}), F("p", m=TEXT, t="日" * 20_000))
    await stage.survives()


@scenario("E-117", "E-012", function=("collapse", "upper"))
async def exit_in_an_action(stage: Stage) -> None:
    """An exit in a function fails its session only."""
    async with stage.session() as other:
        await other.send(upper())
        await stage.fails(FAIL, A("collapse", {"wanted": "p"}, {"out": "r"}), F("p", m=TEXT, t="exit"))
        await other.send(HI)
        await other.succeeds(r=["HI"])


@scenario("ET-61", "E-112", "E-011", function=("endless", "collapse", "marks"))
async def failure_cancels_others(stage: Stage) -> None:
    """When one action fails the others of its session are cancelled: their clean-up runs within a second."""
    watch = await stage.watch("endless.calls", "endless.closed", "endless.completed")
    async with stage.session() as session:
        await session.send(ENDLESS)
        await session.fragment()
        await session.send(A("collapse", {"wanted": "p"}, {"out": "r"}), F("p", m=TEXT, t="boom"))
        await session.fails(FAIL, "boom")
    await watch.reaches("endless.closed", 1)
    await watch.stays("endless.completed")


@scenario("ET-61", "E-011", "E-012", function=("endless", "marks"))
async def a_bad_fragment_cancels_all(stage: Stage) -> None:
    """A broken rule aborts the session: running actions are cancelled."""
    watch = await stage.watch("endless.closed")
    async with stage.session() as session:
        await session.send(ENDLESS)
        await session.fragment()
        await session.send(F("p", -1))
        await session.fails(FRAG)
    await watch.reaches("endless.closed", 1)


@scenario("ET-62", "E-114", "E-113", function=("upper", "items"))
async def incomplete_input_at_half_close(stage: Stage) -> None:
    """After the half-close a node that will never be complete aborts, and the text names it."""
    for frames in (
        [upper("absent node")],
        [upper("absent node"), F("absent node", 0, "+", m=TEXT, t="x")],
        [upper("absent node"), F("absent node", 1, t="x")],
        [items("q"), K("q", "absent node")],
        [upper("absent node", "s"), upper("s", "t")],
    ):
        async with stage.session() as session:
            await session.all(*frames)
            await session.fails(MISS, "absent node")


@scenario("E-114", function=("upper", "delay"))
async def running_actions_end_before_missing_input_aborts(stage: Stage) -> None:
    """While another action runs, its outputs may still complete an input; the abort comes after it."""
    async with stage.session() as session:
        delay = A("delay", {"seconds": "s"}, {"out": "r"})
        await session.all(delay, F("s", m=JSON, t="0.5"), items("r", "t"), upper("absent node", "u"))
        await session.fails(MISS, "absent node")
        if session.read("r") != [0.5]:
            raise session.failure(f"{session.read('r')} in 'r'", "[0.5] before the status")


@scenario("ET-63", "E-114", "E-061", function="upper")
async def incomplete_input_before_half_close(stage: Stage) -> None:
    """Before the half-close an action waits for a missing node."""
    async with stage.session() as session:
        await session.send(upper())
        await session.silent(1.0)
        await session.send(HI)
        await session.gives("r", "HI")
        await session.succeeds()


@scenario("ET-64", "E-111", function="leave")
async def function_ignores_incomplete_input(stage: Stage) -> None:
    """A function may return before its input has come; the input may then be incomplete."""
    early = A("leave", {"values": "p"}, {"out": "r"})
    await stage.succeeds(early, r=["done"])
    await stage.succeeds(early, K("p", "a", "b"), F("a", m=TEXT, t="x"), r=["done"])
    await stage.succeeds(early, F("p", 0, "+", m=TEXT, t="x"), r=["done"])


@scenario("ET-78", "E-010", function=("endless", "marks"))
async def cancel_mid_session(stage: Stage) -> None:
    """A cancel ends an endless action: its clean-up runs within a second."""
    watch = await stage.watch("endless.closed", "endless.completed")
    async with stage.session() as session:
        await session.send(ENDLESS)
        await session.fragment()
        session.cancel()
    await watch.reaches("endless.closed", 1, within_s=3.0)
    await watch.stays("endless.completed")


@scenario("ET-78", "E-010", function=("delay", "items", "marks"))
async def cancel_while_nothing_moves(stage: Stage) -> None:
    """A cancel reaches actions that sleep, and actions that wait for input."""
    watch = await stage.watch("delay.closed", "delay.calls", "items.closed", "items.completed", "delay.completed")
    async with stage.session() as session:
        await session.send(A("delay", {"seconds": "s"}, {"out": "r"}), F("s", m=JSON, t="60"))
        await session.send(items("p", "t"), K("p", "a", mark="+"), F("a", m=TEXT, t="x"))
        await watch.reaches("delay.calls", 1)
        session.cancel()
    await watch.reaches("delay.closed", 1, within_s=3.0)
    await watch.stays("items.completed")
    await watch.stays("delay.completed")


@scenario("ET-79", "E-010", function=("total", "marks"))
async def cancel_is_not_half_close(stage: Stage) -> None:
    """A cancel never looks like the end of the input: fifty aggregating actions all end by an error."""
    watch = await stage.watch("total.calls", "total.failed", "total.completed")
    for n in range(50):
        async with stage.session() as session:
            await session.send(A("total", {"numbers": "p"}, {"out": "r"}), K("p", "a", mark="+"), F("a", m=JSON, t="1"))
            await watch.reaches("total.calls", n + 1)
            session.cancel()
    await watch.is_cut_off("total", within_s=5.0)


@scenario("E-010", function=("endless", "total", "marks"))
async def session_deadline(stage: Stage) -> None:
    """A deadline ends the actions of a session, and does not look like the end of the input."""
    watch = await stage.watch("endless.closed", "total.completed")
    async with stage.session(deadline_s=1.0) as session:
        await session.send(A("total", {"numbers": "p"}, {"out": "r"}), *jsons("p", 1)[:1], ENDLESS)
        await session.has_code(grpc.StatusCode.DEADLINE_EXCEEDED)
    await watch.reaches("endless.closed", 1, within_s=3.0)
    await watch.stays("total.completed")


@scenario("E-010", function=("endless", "total", "marks"))
async def session_connection_lost(stage: Stage) -> None:
    """A lost connection cancels the actions, and does not look like the end of the input."""
    watch = await stage.watch("endless.closed", "total.calls", "total.failed", "total.completed")
    async with stage.severed("endless") as (channel, sever), stage.session(channel=channel) as session:
        await session.send(A("total", {"numbers": "p"}, {"out": "r"}), K("p", "a", mark="+"), F("a", m=JSON, t="1"))
        await session.send(ENDLESS)
        await session.fragment()
        await watch.reaches("total.calls", 1)
        sever()
        await watch.reaches("endless.closed", 1, within_s=3.0)
        await watch.is_cut_off("total", 1, within_s=3.0)
