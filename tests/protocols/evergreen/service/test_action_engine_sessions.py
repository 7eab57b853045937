"""`invoker.protocols.evergreen.service.action_engine`: whole sessions on real connections."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from invoker.errors import Status
from invoker.protocols.evergreen.action_engine.wire import HALF_CLOSE, Action, decode
from tests.transports.served import until
from tests.transports.socketed import UPPER, Held, code_of, echo, upper
from tests.transports.sockets import item, serving, texts


@pytest.mark.parametrize("deflate", [False, True])
async def test_an_action_is_called_and_answered(deflate: bool) -> None:
    """Item by item, then the half-close of both sides and code 1000; also to a client that offers to compress."""
    async with serving(upper) as served, served.peer(deflate=deflate) as peer:
        await peer.say(UPPER)
        await peer.say(item("A#x", 0, b"a" * 5000), item("A#x", 1, b"b", last=True))
        found = await peer.fragments()
        assert texts(found, "A#y") == [b"A" * 5000, b"B"]
        assert [one.seq for one in found] == [0, 1, 2, 0]
        assert code_of(found[-1]) == Status.OK
        await peer.say()
        assert await peer.hear() == decode(HALF_CLOSE)
        assert await peer.closed() == 1000
        await until(lambda: not served.app.running)


async def test_sessions_are_strangers_to_each_other() -> None:
    """Equal ids do not meet, and the end of one is not that of another."""
    async with serving(upper) as served, served.peer() as one, served.peer() as other:
        for peer, data in ((one, b"one"), (other, b"other")):
            await peer.say(UPPER, item("A#x", 0, data, last=True))
        assert texts(await other.fragments(), "A#y") == [b"OTHER"]
        await other.raw(b"\xff\xff\xff\xff")
        await other.closed()
        assert texts(await one.fragments(), "A#y") == [b"ONE"]
        await one.say(UPPER, item("A#x", 0, b"again", last=True))
        assert texts(await one.fragments(), "A#y") == [b"AGAIN"]


async def test_what_runs_is_finished_after_the_half_close() -> None:
    """The answer comes, and then the close."""
    held = Held()
    async with serving(held.run) as served, served.peer() as peer:
        await peer.say(Action("A", "run", (("x", "A#x"),)), item("A#x", last=True))
        await held.started.wait()
        await peer.say()
        held.go.set()
        assert texts(await peer.fragments(), "A#out") == [b"1"]
        assert await peer.closed() == 1000


async def test_who_waits_for_what_never_comes_is_told_after_the_half_close() -> None:
    """On the loop and in a thread, whether it waited before or not."""

    def consume(x: Iterator[str]) -> Iterator[str]:
        yield from x

    async with serving(consume, echo) as served, served.peer() as peer:
        for name in ("echo", "consume"):
            await peer.say(Action(name, name, (("x", f"{name}#x"),)), item(f"{name}#x", 0, b"here"))
        found = await peer.hear(), await peer.hear()
        assert found
        await peer.say()
        ended = {one.id: code_of(one) for _ in range(2) for one in await peer.fragments() if one.id.endswith("__")}
        assert ended == dict.fromkeys(("echo#__status__", "consume#__status__"), Status.FAILED_PRECONDITION)
        assert await peer.closed() == 1000
