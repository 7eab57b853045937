"""What the coordinator has its service do: commit, compute, run rounds to their end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from invoker.codecs.chunks import Packed
from invoker.core.spaces import StoreLimits
from invoker.core.store import Item
from invoker.errors import Cancelled, InvocationError
from invoker.execution.asker import Asker
from invoker.execution.driver import Driver
from invoker.message import EMPTY, Message
from invoker.protocols.federated import saved
from invoker.protocols.federated.aggregating import CHECKPOINT, AggregatingSession, Begin, Enough, Report
from invoker.protocols.federated.backing import Commit
from invoker.protocols.federated.saved import Saved
from invoker.protocols.federated.service import backing
from invoker.protocols.federated.service.backing import RoundBacking
from invoker.protocols.federated.service.resources import Resources
from tests.conftest import SLOW
from tests.execution.memory import driver_of
from tests.protocols.federated.service.functions import add


async def nothing() -> None:
    """There are no other processes."""


class World:
    """A backing over a store in memory."""

    def __init__(self) -> None:
        self.driver: Driver = driver_of(add)
        self.behind: list[str] = []
        self.backing = RoundBacking(self.driver, Resources(str, nothing), lambda at: None, self.behind.append)
        self.asker = Asker(self.driver.store)

    async def begin(self) -> None:
        await self.asker.ask(saved.create("iris", "train"))
        self.backing.remember("iris", {"train": Saved(0, b"100")})

    async def commit(self, number: int, checkpoint: bytes) -> bool:
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.backing.commit(Commit("iris", "train", number, f"p{number}", checkpoint), done.set_result)
        assert not done.done(), "it is answered in a later turn"
        return await done

    async def stored(self) -> bytes:
        item = await self.asker.ask(saved.lookup("iris", "train"))
        assert isinstance(item, Item)
        return item.value


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    await made.begin()
    yield made
    made.backing.close()
    made.driver.close()


async def test_F048_no_two_rounds_have_the_same_id(world: World) -> None:
    ids = {world.backing.new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert {len(one) for one in ids} == {24}  # 144 bits


class Round:
    """Hears what becomes of its reports."""

    def __init__(self) -> None:
        self.accepted: list[int] = []
        self.ending: asyncio.Future[tuple[bytes | None, InvocationError | None]]
        self.ending = asyncio.get_running_loop().create_future()

    def taken(self, ordinal: int) -> None:
        self.accepted.append(ordinal)

    def finished(self, checkpoint: bytes | None, error: InvocationError | None) -> None:
        self.ending.set_result((checkpoint, error))


def session(heard: Round) -> AggregatingSession:
    return AggregatingSession(heard, "add", b"100", EMPTY)


def report(ordinal: int, update: bytes) -> Report:
    return Report(ordinal, Message(update, EMPTY, CHECKPOINT))


async def test_F083_rounds_are_committed_one_after_the_other(world: World) -> None:
    """Each on top of the one before."""
    assert await world.commit(1, b"101")
    assert await world.commit(2, b"102")
    assert await world.stored() == b"102"
    assert not await world.commit(2, b"again")
    assert await world.stored() == b"102"


async def test_F083_a_round_of_a_process_that_was_overtaken_is_not_committed(world: World) -> None:
    """It is behind, of which the service is told, so that it leads no more."""
    put = saved.commit("iris", "train", Saved(0, b"100"), b"others", "other")
    assert isinstance(await world.asker.ask(put), Item)
    assert not await world.commit(1, b"mine")
    assert await world.stored() == b"others"
    await asyncio.sleep(0)
    assert world.behind == ["iris"]


async def test_F131_long_computations_run_in_a_thread(world: World) -> None:
    """Their result, or what they raised, comes back on the loop."""
    found: asyncio.Queue[Any] = asyncio.Queue()
    here = threading.get_ident()
    world.backing.compute(threading.get_ident, found.put_nowait)
    assert await found.get() != here
    world.backing.compute(lambda: 1 // 0, found.put_nowait)
    assert isinstance(await found.get(), ZeroDivisionError)


async def test_F079_a_round_is_one_invocation(world: World) -> None:
    """Reports are fed in the order of the words; the end gives the next checkpoint."""
    heard = Round()
    give = world.backing.aggregate(session(heard))
    for word in (Begin(), *(report(number, b"%d" % number) for number in range(100)), Enough()):
        give(word)
    assert await heard.ending == (b"5050", None)
    assert heard.accepted == list(range(100))
    assert not world.driver.conversations
    assert world.driver.sessions.running == 0
    give(Begin())  # nobody is there any more
    await asyncio.sleep(0)


async def test_F143_a_drain_neither_refuses_nor_ends_a_round(world: World) -> None:
    """Devices have reported, so it may finish; cutting it tells it."""
    heard, cut = Round(), Round()
    world.driver.engine.is_draining = True
    give, give_more = world.backing.aggregate(session(heard)), world.backing.aggregate(session(cut))
    give(Begin())
    give_more(Begin())
    await asyncio.sleep(0)
    drain = asyncio.ensure_future(world.driver.drain(0.2))
    give(report(0, b"1"))
    give(Enough())
    assert await heard.ending == (b"101", None)
    assert not await drain
    checkpoint, error = await cut.ending
    assert checkpoint is None
    assert isinstance(error, Cancelled)


async def test_a_large_answer_is_packed_once_for_all_who_wait(world: World) -> None:
    """In a thread; who leaves meanwhile spoils nothing for the others."""
    jobs: list[int] = []

    def job() -> Packed:
        jobs.append(threading.get_ident())
        return Packed(b"x", 0, 1)

    one, two, gone = (asyncio.ensure_future(world.backing.pack("key", job)) for _ in range(3))
    await asyncio.sleep(0)
    gone.cancel()
    assert await one is await two
    (thread,) = jobs
    assert thread != threading.get_ident()


async def test_a_checkpoint_for_which_the_store_has_no_room_fails_its_round(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says why; the one before stays, and so does the leader."""
    assert await world.commit(1, b"101")
    too_large = bytes(StoreLimits().space_bytes)
    assert not await world.commit(2, too_large)
    assert "round not committed: the space, or all of them together, would be too large" in caplog.text
    assert await world.stored() == b"101"
    assert await world.commit(2, b"102")
    assert not world.behind


async def test_F083_a_store_that_does_not_answer_gives_up_the_population(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows what it has, so it has to be read again; an answer that comes later starts no round."""
    monkeypatch.setattr(backing, "_COMMIT_S", 0.01)
    asked: list[Any] = []
    monkeypatch.setattr(world.backing._asker, "later", lambda put, answer: asked.append((put, answer)))
    told: list[bool] = []
    world.backing.commit(Commit("iris", "train", 1, "p1", b"101"), told.append)
    async with asyncio.timeout(5 * SLOW):
        while not world.behind:  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.005)
    assert world.behind == ["iris"]
    assert not told
    ((_, answer),) = asked
    answer(Item("checkpoint", b"101", 1, 2, b'{"round":1,"phase_id":"p1"}'))
    world.backing.commit(Commit("iris", "train", 1, "p2", b"102"), told.append)
    await asyncio.sleep(0)
    assert told == [True, False]
    assert world.behind == ["iris", "iris"]
