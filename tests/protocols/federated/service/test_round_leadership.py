"""Which of several processes runs the rounds of a population; here they share one store in memory."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from invoker.core.spaces import MemoryStore
from invoker.core.store import Create, Hold, Space
from invoker.execution.asker import Asker
from invoker.protocols.federated.service import round_leadership as leading
from invoker.protocols.federated.service.round_leadership import RoundLeadership
from tests.conftest import SLOW
from tests.execution.memory import driver_of

SPACE = "federated-leader:iris"


def one(x: int) -> int:
    return x


class Process:
    """One of several, with a socket that others look at."""

    def __init__(self, store: MemoryStore, folder: Path, name: str) -> None:
        self.driver = driver_of(one)
        self.driver.store = store
        self.address = str(folder / name)
        self.led: list[str] = []
        self.lost: list[str] = []
        self.failing = 0
        self.server: asyncio.Server | None = None
        self.token = name
        self.leadership = RoundLeadership("iris", self.driver, self)

    async def start(self) -> None:
        # A process that is killed leaves its socket; Python 3.13 would remove it, and older ones know no such word.
        kept: dict[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
        self.server = await asyncio.start_unix_server(lambda _, writer: writer.close(), self.address, **kept)
        self.leadership.start(self.address, self.token)

    async def lead(self, population: str) -> None:
        if self.failing:
            self.failing -= 1
            raise ValueError("cannot lead yet")
        self.led.append(population)

    def lose(self, population: str) -> None:
        self.lost.append(population)

    async def stop(self) -> None:
        await self.leadership.stop()
        self.close()

    def close(self) -> None:
        """Listen no more, as a process that was killed."""
        if self.server is not None:
            self.server.close()


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(5 * SLOW):
        while not is_so():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.005)


@pytest.fixture
async def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[Process]]:
    """Three; none has started."""
    monkeypatch.setattr(leading, "_LOOK_S", 0.02)
    store = MemoryStore()
    made = [Process(store, tmp_path, name) for name in "abc"]
    yield made
    for process in made:
        await process.stop()


async def test_one_leads_and_the_others_know_it(processes: list[Process]) -> None:
    """Where it takes conversations is told to them, with its token."""
    for process in processes:
        await process.start()
        assert await process.leadership.decided(1)
    first, *others = processes
    assert first.leadership.is_here
    assert first.led == ["iris"]
    for other in others:
        assert not other.leadership.is_here
        assert other.leadership.leader is not None
        assert (other.leadership.leader.address, other.leadership.leader.token) == (first.address, "a")
        assert not other.led


async def test_one_that_leaves_lets_another_one_lead(processes: list[Process]) -> None:
    """At once; and the one that is left over follows that."""
    for process in processes:
        await process.start()
        await process.leadership.decided(1)
    await processes[0].stop()
    assert processes[0].lost == ["iris"]
    await until(lambda: any(one.leadership.is_here for one in processes[1:]))
    new = next(one for one in processes[1:] if one.leadership.is_here)
    (other,) = (one for one in processes[1:] if one is not new)
    await until(lambda: other.leadership.leader and other.leadership.leader.address == new.address)


async def test_one_that_was_killed_is_replaced(processes: list[Process]) -> None:
    """Nobody listens on its socket any more, though the store still holds its space."""
    first, second, _ = processes
    await first.start()
    await first.leadership.decided(1)
    await second.start()
    await second.leadership.decided(1)
    assert first.leadership._task is not None
    first.leadership._task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await first.leadership._task
    first.leadership._task = None
    first.close()
    await until(lambda: second.leadership.is_here)
    assert second.led == ["iris"]


async def test_one_that_lost_its_lease_is_replaced_and_hears_of_it(processes: list[Process]) -> None:
    """It holds the space no longer, though its socket still listens; then it follows."""
    first, second, _ = processes
    await first.start()
    await first.leadership.decided(1)
    await second.start()
    await second.leadership.decided(1)
    store = first.driver.store
    assert isinstance(store, MemoryStore)
    space = store._spaces[SPACE]
    assert space.ttl_s < 5  # so that it expires soon after the lease, which ends now
    space.holds, space.used_ns, store._due_ns = 0, space.used_ns - int(space.ttl_s * 1e9), 0
    store.sweep()
    await until(lambda: first.lost == ["iris"])
    await until(lambda: second.leadership.is_here or first.leadership.is_here)
    assert first.leadership.is_here != second.leadership.is_here


async def test_one_that_cannot_begin_tries_again(processes: list[Process], caplog: pytest.LogCaptureFixture) -> None:
    """What went wrong is logged; meanwhile nobody is told that it leads."""
    processes[0].failing = 2
    await processes[0].start()
    await until(lambda: processes[0].leadership.is_here)
    assert caplog.text.count("this process cannot run the rounds of a population") == 2


async def test_one_that_gives_up_follows_who_leads(processes: list[Process]) -> None:
    """Such as one whose commit was refused."""
    first, second, _ = processes
    await first.start()
    await first.leadership.decided(1)
    await second.start()
    first.leadership.give_up()
    await until(lambda: first.lost == ["iris"])
    await until(lambda: first.leadership.is_here != second.leadership.is_here)


async def test_the_space_of_another_is_not_taken_for_its_own(processes: list[Process]) -> None:
    """One that made a space, which was dropped and made anew before it held it, does not lead."""
    first = processes[0]
    store = first.driver.store
    ask = store.ask

    def raced(subscriber: object, key: str, question: object) -> None:
        if isinstance(question, Hold) and not other:
            store.ask = ask  # type: ignore[method-assign]
            store._end(store._spaces[SPACE], leading.Refused)  # type: ignore[attr-defined]
            other.append(
                rival.later(Create(SPACE, 60, b'{"address":"","token":"","host":"x","nonce":"x"}'), seen.append)
            )
            rival.later(Hold(SPACE), seen.append)
        ask(subscriber, key, question)  # type: ignore[arg-type]

    other, seen, rival = list[None](), list[object](), Asker(first.driver.store)
    store.ask = raced  # type: ignore[method-assign,assignment]
    await first.start()
    await until(lambda: first.leadership.leader)
    assert isinstance(seen[0], Space)
    assert not first.led


async def test_one_does_not_follow_what_is_left_of_itself(processes: list[Process]) -> None:
    """Such as a space that it held until its lease was over, and that nobody else has taken."""
    first = processes[0]
    rival = Asker(first.driver.store)
    left = leading.Leader(first.address, "a", leading.socket.gethostname(), "before")
    await rival.ask(Create(SPACE, 60, leading.msgspec.json.encode(left)))
    await first.start()
    await until(lambda: first.leadership.is_here)
