"""The Evergreen client and our own server, over a socket."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from invoker.client import CallFailed, EvergreenSession, Ref, SyncEvergreenSession
from invoker.errors import Status
from invoker.message import Message
from tests.serving import serving

ALL = ("cancel", "partial-failures", "discovery", "drop", "ttl", "accept")


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with serving("tests.e2e.evergreen_functions") as served:
        yield served.grpc


async def test_E095_pieces_come_back_before_the_input_has_ended(target: str) -> None:
    """A written leaf and its answer stream at the same time."""
    async with EvergreenSession(target) as session:
        leaf = session.node()
        pieces = aiter(session.act("shout", {"words": leaf}))
        for word in ("hel", "lo"):
            await leaf.write(word)
            assert await asyncio.wait_for(anext(pieces), 5) == word.upper()
        await leaf.end()
        assert [piece async for piece in pieces] == []


async def test_objects_come_one_by_one(target: str) -> None:
    """As an interior node; and an output is an input of the next action while both stream."""
    async with EvergreenSession(target) as session:
        answer = session.act("numbers", {"n": 1000})
        assert await answer.items() == [{"n": number} for number in range(1000)]
        chain = session.act("about", {"leaves": session.act("numbers", {"n": 2})})
        assert [one["payload"] for one in await chain.items()] == [{"n": 0}, {"n": 1}]


async def test_outputs_are_read_in_any_order(target: str) -> None:
    """Each by its name; iterators of both kinds feed them."""

    async def some() -> AsyncIterator[int]:
        for number in range(100):
            yield number

    async with EvergreenSession(target) as session:
        for values in (some(), iter(range(100)), list(range(100))):
            answer = session.act("halves", {"xs": values}, outputs=("even", "odd"))
            assert await answer["odd"].items() == list(range(1, 100, 2))
            assert await answer["even"].items() == list(range(0, 100, 2))


async def test_E044_what_travels_beside_a_leaf_reaches_the_function(target: str) -> None:
    """Headers, types, references, configs."""
    picture = Message(bytes(3 << 20), {"role": "user", "original-file-name": "cat.png"}, "image/png")
    async with EvergreenSession(target) as session:
        leaves = [picture, Ref("data:,hello", "text/markdown"), {"a": [1]}]
        (first, second, third) = await session.act("about", {"leaves": leaves}, configs=[{"seed": 1}]).items()
    assert (first["payload"], first["type"]) == (3 << 20, "image/png")
    assert {name: first["headers"][name] for name in picture.headers} == dict(picture.headers)
    assert (second["payload"], second["type"]) == ("hello", "text/markdown")
    assert (third["payload"], third["config"]) == ({"a": [1]}, {"seed": 1})


async def test_E112_failure_ends_the_session_behind_what_came_before(target: str) -> None:
    """With the server's words."""
    async with EvergreenSession(target) as session:
        pieces = aiter(session.act("broken", {"n": 3}))
        assert [await anext(pieces) for _ in range(3)] == ["0", "1", "2"]
        with pytest.raises(CallFailed, match=r"Evergreen: Action Failed: .*ValueError: boom"):
            await anext(pieces)
    async with EvergreenSession(target) as session:
        with pytest.raises(CallFailed) as caught:
            await session.act("nope").text()
        assert caught.value.status is Status.NOT_FOUND


async def test_E121_and_E122_with_extensions_an_action_ends_alone(target: str) -> None:
    """One fails, one is cancelled, and the session goes on."""
    async with EvergreenSession(target, extensions=ALL) as session:
        assert session.extensions == set(ALL)
        with pytest.raises(CallFailed, match="boom"):
            await session.act("broken", {"n": 3}).text()
        answer = session.act("forever", {"n": 10})
        pieces = aiter(answer)
        await anext(pieces)
        answer.cancel()
        with pytest.raises(CallFailed, match="CANCELLED"):
            await anext(pieces)
        node = session.put("hi")
        assert await session.act("shout", {"words": node}).text() == "HI"
        session.drop(node)
        session.set_ttl(session.put("short"), 0.01)
        assert {"shout", "halves"} <= {one["name"] for one in await session.actions()}
        as_text = session.act("numbers", {"n": 1}, accept={"response": "application/json"})
        assert await as_text.items() == [{"n": 0}]


async def test_server_is_held_up_by_a_client_that_does_not_read(target: str) -> None:
    """An endless answer costs the client what its limit says, and goes on when it is read."""
    async with EvergreenSession(target, extensions=("cancel",), held_bytes=4 << 20) as session:
        answer = session.act("forever", {"n": 10_000})
        assert await session.act("shout", {"words": "other"}).text() == "OTHER"
        assert session._inbox.arrivals.held_bytes < 4 << 20
        size = 0
        async for piece in answer:
            size += len(piece)
            if size > 8 << 20:
                break
        answer.cancel()


def test_two_turns_without_a_loop(target: str) -> None:
    """By ids only."""
    with SyncEvergreenSession(target) as session:
        first = session.act("shout", {"words": "hello"})
        assert "".join(first) == "HELLO"
        second = session.act("about", {"leaves": [first.inputs["words"], first, "new"]})
        assert [one["payload"] for one in second.items()] == ["hello", "HELLO", "new"]


async def test_a_session_whose_answer_failed_frees_its_sockets(target: str) -> None:
    """At the end of its block, without the garbage collector, whether somebody heard of the failure or not."""

    async def fail(hears: bool) -> None:
        async with EvergreenSession(target) as session:
            answer = session.act("broken", {"n": 1})
            if hears:
                await answer.items()

    gc.collect()
    gc.disable()
    try:
        before = sockets()
        for number in range(20):
            with pytest.raises(CallFailed):
                await fail(hears=number % 2 == 0)
        assert sockets() < before + 10  # gRPC closes the last ones a moment later
    finally:
        gc.enable()


def sockets() -> int:
    """How many this process has open."""
    found = 0
    for one in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found += str(one.readlink()).startswith("socket:")
    return found
