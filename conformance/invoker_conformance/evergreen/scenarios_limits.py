"""Limits and pace: sizes, counts, slow readers, many actions. Catalogue 0.2, 2.7, 2.8."""

from __future__ import annotations

import asyncio

import grpc

from invoker_conformance.evergreen.actions import HI, items, upper
from invoker_conformance.evergreen.frames import JSON, OCTETS, TEXT, A, F, K, cut
from invoker_conformance.evergreen.rules import LIM, MISS
from invoker_conformance.evergreen.stage import Stage
from invoker_conformance.scenario import scenario

_SESSION_BYTES = 256 * 1024 * 1024
_NODES = 100_000
_ACTIONS = 64 + 1024


@scenario("ET-75", "E-110", function=("endless", "marks"))
async def a_client_that_does_not_read(stage: Stage) -> None:
    """An endless action pauses while the client does not read, continues when it reads, and ends with the session."""
    watch = await stage.watch("endless.values", "endless.closed")
    async with stage.session() as session:
        await session.send(A("endless", {}, {"out": "r"}))
        await session.fragment()
        before, now = -1, 0
        for _ in range(100):
            await asyncio.sleep(0.1)
            before, now = now, await watch.grown("endless.values")
            if now == before:
                break
        else:
            raise session.failure(f"{now} values made while nobody read", "that the function is suspended")
        for _ in range(now):
            await session.fragment()
        await watch.reaches("endless.values", now + 1)
        session.cancel()
    await watch.reaches("endless.closed", 1, within_s=3.0)


@scenario("E-110", "E-010", "E-091", function=("endless", "marks"))
async def sixty_four_stalled_outputs(stage: Stage) -> None:
    """Sixty-four endless actions without a reader all end with their session."""
    watch = await stage.watch("endless.calls", "endless.closed")
    async with stage.session() as session:
        await session.together(*(A("endless", {}, {"out": f"r{n}"}) for n in range(64)))
        await watch.reaches("endless.calls", 64, within_s=10.0)
        session.cancel()
    await watch.reaches("endless.closed", 64, within_s=10.0)


@scenario("E-110", "E-091", function=("endless", "upper", "marks"))
async def a_client_that_does_not_read_may_write(stage: Stage) -> None:
    """While an output is stalled the session still takes fragments and actions."""
    watch = await stage.watch("upper.calls")
    async with stage.session() as session:
        await session.send(A("endless", {}, {"out": "r"}))
        await session.fragment()
        await asyncio.sleep(0.5)
        for n in range(50):
            await session.send(F(f"n{n}", m=TEXT, t="x" * 1000))
        await session.send(A("upper", {"text": "n7"}))
        await watch.reaches("upper.calls", 1)
        session.cancel()


@scenario("E-110", "E-062", function="both")
async def an_input_that_is_read_late(stage: Stage) -> None:
    """Five thousand leaves of an input that the function does not read yet are accepted, and none is lost."""
    numbers = [str(n) for n in range(5000)]
    leaves = [F(f"l{n}", m=TEXT, t=text) for n, text in enumerate(numbers)]
    async with stage.session() as session:
        await session.send(A("both", {"left": "p", "right": "q"}, {"out": "r"}))
        for begin in range(0, 5000, 100):
            children = K("p", *(leaf.id for leaf in leaves[begin : begin + 100]), seq=begin // 100, mark="+")
            await session.together(children, *leaves[begin : begin + 100])
        await session.send(F("p", 50), F("q", m=TEXT, t="x"))
        await session.succeeds(r=[{"left": numbers, "right": ["x"]}], timeout_s=20.0)


@scenario("ET-76", "E-107", "E-115", function="endless")
async def infinite_retained_output(stage: Stage) -> None:
    """An endless output that is read and kept exceeds the limit of the session."""
    size = 2 * 1024 * 1024
    async with stage.session() as session:
        await session.send(A("endless", {"size": "n"}, {"out": "r"}), F("n", m=JSON, t=str(size)))
        await session.fails(LIM, timeout_s=30.0)
        got = sum(map(len, session.outputs.pieces("r")))
        if not _SESSION_BYTES // 2 <= got <= _SESSION_BYTES + 8 * size:
            raise session.failure(f"{got} bytes before the status", f"about {_SESSION_BYTES}")


@scenario("ET-75", "E-107", "E-110", function=("fountain", "marks"))
async def infinite_output_that_is_not_retained(stage: Stage) -> None:
    """An output that is not kept passes any amount through a session; a slow reader suspends its function."""
    size = 3 * 1024 * 1024
    watch = await stage.watch("fountain.values", "fountain.closed")
    async with stage.session() as session:
        await session.send(A("fountain", {"size": "n"}, {"out": "r"}), F("n", m=JSON, t=str(size)))
        got = 0
        while got < _SESSION_BYTES + 10 * size:
            got += len((await session.fragment()).chunk_fragment.data)
        await asyncio.sleep(1.0)
        made = await watch.grown("fountain.values")
        if made * size > got + _SESSION_BYTES // 2:
            raise session.failure(f"{made * size} bytes made, {got} read", "that the function is suspended")
        session.cancel()
    await watch.reaches("fountain.closed", 1, within_s=3.0)


@scenario("E-108", function=("fountain", "items"))
async def an_output_that_is_not_retained_is_no_input(stage: Stage) -> None:
    """The use of an output that is not retained aborts, and the text names it."""
    for action in (items("thrown away", "s"), items("q", "s")):
        async with stage.session() as session:
            await session.send(A("fountain", {}, {"out": "thrown away"}))
            await session.fragment()
            await session.send(K("q", "thrown away"), action)
            await session.fails(MISS, "thrown away")


@scenario("ET-77", "E-115", function="upper")
async def session_memory_limit(stage: Stage) -> None:
    """Fragments above the session's limit of bytes abort, even if no action uses them; other sessions continue."""
    payload = bytes(3 * 1024 * 1024)
    async with stage.session() as other, stage.session() as session:
        await other.send(upper())
        for n in range(100):
            if not await session.send(F(f"n{n}", m=OCTETS, d=payload)):
                break
        await session.fails(LIM, timeout_s=30.0)
        await other.send(HI)
        await other.succeeds(r=["HI"])


@scenario("ET-77", "E-115", "E-019", function="upper")
async def retries_do_not_count(stage: Stage) -> None:
    """A fragment that is dropped as a retry takes no room."""
    payload = bytes(3 * 1024 * 1024)
    async with stage.session() as session:
        for _ in range(100):
            await session.send(F("n", m=OCTETS, d=payload))
        await session.send(upper(), HI)
        await session.succeeds(r=["HI"], timeout_s=30.0)


@scenario("E-115", function="upper")
async def nodes_of_a_session(stage: Stage) -> None:
    """A hundred thousand nodes are held; one more is above the limit."""
    for count, is_fine in ((_NODES - 10, True), (_NODES + 1, False)):
        async with stage.session() as session:
            for begin in range(0, count, 10_000):
                await session.together(*(F(f"n{n}") for n in range(begin, min(begin + 10_000, count))))
            await session.half_close()
            if is_fine:
                await session.succeeds(timeout_s=30.0)
            else:
                await session.fails(LIM, timeout_s=30.0)


@scenario("E-115", function="items")
async def waiting_actions_of_a_session(stage: Stage) -> None:
    """Sixty-four actions run, a thousand and twenty-four wait and have their turn, one more is above the limit."""
    async with stage.session() as session:
        await session.together(*(items("late", f"r{n}") for n in range(_ACTIONS)))
        await session.send(F("late", m=TEXT, t="x"))
        await session.succeeds(timeout_s=30.0)
        if wrong := [n for n in range(_ACTIONS) if session.read(f"r{n}") != [{"items": ["x"]}]]:
            raise session.failure(f"{session.read(f'r{wrong[0]}')} in 'r{wrong[0]}'", "[{'items': ['x']}] in each")
    async with stage.session() as session:
        await session.together(*(items("absent", f"r{n}") for n in range(_ACTIONS + 1)))
        await session.fails(LIM, timeout_s=30.0)


@scenario("ET-80", "E-010", "E-115", function=("total", "marks"))
async def oversize_message(stage: Stage) -> None:
    """A message above the limit is RESOURCE_EXHAUSTED; a running action gets an error, not the end of its input."""
    watch = await stage.watch("total.calls", "total.failed", "total.completed")
    async with stage.session() as session:
        await session.send(A("total", {"numbers": "p"}, {"out": "r"}), K("p", "a", mark="+"), F("a", m=JSON, t="1"))
        await watch.reaches("total.calls", 1)
        await session.send(F("big", m=OCTETS, d=bytes(stage.target.message_bytes + 1024 * 1024)))
        await session.has_code(grpc.StatusCode.RESOURCE_EXHAUSTED)
    await watch.is_cut_off("total", 1, within_s=3.0)
    await stage.survives()


@scenario("ET-84", "E-007", "E-091", function="upper")
async def thousand_actions_one_session(stage: Stage) -> None:
    """A thousand small actions of one session all give their outputs."""
    async with stage.session() as session:
        await session.send(HI)
        for begin in range(0, 1000, 100):
            await session.together(*(upper("p", f"r{n}") for n in range(begin, begin + 100)))
        await session.succeeds(timeout_s=30.0)
        if wrong := [n for n in range(1000) if session.read(f"r{n}") != ["HI"]]:
            raise session.failure(f"{session.read(f'r{wrong[0]}')} in 'r{wrong[0]}'", "['HI'] in each")


@scenario("E-018", "E-070", function="upper")
async def ten_thousand_fragments(stage: Stage) -> None:
    """Ten thousand fragments of a leaf, delivered backwards, are read as when delivered in order."""
    count = 10_000
    frames = cut("p", [b"%d," % n for n in range(count)])
    expected = "".join(f"{n}," for n in range(count))
    for order in (frames, frames[::-1]):
        async with stage.session() as session:
            await session.send(upper())
            for begin in range(0, count, 50):
                await session.together(*order[begin : begin + 50])
            await session.succeeds(r=[expected], timeout_s=30.0)
