"""The thread that asks a backend: order, several questions in one go, failures, the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from invoker.core.store import Look, Put
from invoker.stores import asking as module
from invoker.stores.asking import Asking
from invoker.stores.backend import UNAVAILABLE, Asked, Beat, Lose, Sweep, Tell
from tests.conftest import SLOW


class Backend:
    """Answers by the number of the question."""

    epoch = 1

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.regular: list[Asked] = []
        self.more = 0
        self.count = 0
        self.fails = False
        self.is_closed = False

    def open(self, tell: Tell, lose: Lose) -> None:
        self.tell, self.lose = tell, lose

    def perform(self, asked: Sequence[Asked]) -> list[Any]:
        own = [one for one in asked if not isinstance(one, (Beat, Sweep))]
        self.batches.append(len(own))
        self.regular += [one for one in asked if one not in own]
        if self.fails:
            raise ZeroDivisionError
        return [self.number() if one in own else one == Sweep() and self.has_more() for one in asked]

    def number(self) -> int:
        self.count += 1
        return self.count - 1

    def has_more(self) -> bool:
        self.more -= 1
        return self.more >= 0

    def look(self) -> float:
        return 10.0

    def close(self) -> None:
        self.is_closed = True


def made(backend: Backend) -> tuple[Asking, list[Any]]:
    said: list[Any] = []
    asking = Asking(backend, said.append, lambda: said.append("lost"))
    asking.start()
    return asking, said


async def test_answers_come_in_order_and_on_the_loop() -> None:
    """Many questions are one go, but no more than a file may be locked for."""
    backend = Backend()
    asking, _ = made(backend)
    loop, answers = asyncio.get_running_loop(), asyncio.Queue[Any]()
    for _ in range(1000):
        asking.put(Look("s"), lambda said: answers.put_nowait((said, asyncio.get_running_loop())))
    asking.put(Look("nobody waits"))
    assert [await answers.get() for _ in range(1000)] == [(number, loop) for number in range(1000)]
    assert max(backend.batches) <= 256
    asking.close()
    asking.close()
    assert backend.is_closed


async def test_a_backend_that_fails_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    """Who asked meanwhile is told that the store cannot be reached; the traceback is logged."""
    backend = Backend()
    asking, _ = made(backend)
    answers = asyncio.Queue[Any]()
    backend.fails = True
    asking.put(Look("s"), answers.put_nowait)
    assert await answers.get() == UNAVAILABLE
    backend.fails = False
    asking.put(Look("s"), answers.put_nowait)
    assert await answers.get() == 0
    assert "the store failed" in caplog.text
    asking.close()


async def test_what_was_asked_is_answered_before_the_end() -> None:
    """And what the backend tells comes on the loop, too."""
    backend = Backend()
    asking, said = made(backend)
    asking.put(Look("s"), said.append)
    backend.lose()
    asking.close()
    await asyncio.sleep(0)
    assert sorted(map(str, said)) == ["0", "lost"]


async def test_T011_what_expires_is_forgotten_each_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though nobody asks anything, and at once again while there is more; a quarter of a lease passes between beats."""
    backend = Backend()
    backend.more = 3
    assert module._SWEEP_S <= 1
    monkeypatch.setattr(module, "_SWEEP_S", 1000)
    monkeypatch.setattr(module, "LEASE_S", 0.04)
    asking, _ = made(backend)
    async with asyncio.timeout(5 * SLOW):
        while backend.regular.count(Beat(0.04)) < 5:  # noqa: ASYNC110 - it is the thread that asks
            await asyncio.sleep(0.001)
    assert backend.regular[:2] == [Beat(0.04), Sweep()]
    assert backend.regular.count(Sweep()) == 4
    asking.close()
    monkeypatch.setattr(module, "_SWEEP_S", 0.01)
    asking, _ = made(backend)
    backend.regular.clear()
    async with asyncio.timeout(5 * SLOW):
        while backend.regular.count(Sweep()) < 5:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.001)
    asking.close()


class Hanging(Backend):
    """Answers once it may."""

    def __init__(self) -> None:
        super().__init__()
        self.goes = threading.Event()
        self.goes.set()
        self.asked: list[Asked] = []

    def perform(self, asked: Sequence[Asked]) -> list[Any]:
        assert self.goes.wait(5 * SLOW)
        self.asked += [one for one in asked if not isinstance(one, Sweep)]
        return super().perform(asked)


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Hanging:
    monkeypatch.setattr("invoker.stores.asking.PATIENCE_S", 0.2)
    return Hanging()


async def answer(asking: Asking, name: str) -> tuple[Any, float]:
    """What is answered, and after how long."""
    loop = asyncio.get_running_loop()
    came, began = loop.create_future(), loop.time()
    asking.put(Look(name), came.set_result, is_waited_for=True)
    return await came, loop.time() - began


async def test_a_backend_that_hangs_is_told_soon_and_from_then_on_at_once(
    hanging: Hanging, caplog: pytest.LogCaptureFixture
) -> None:
    """It is asked again by itself; what was told so is not done, unless it was under way, and who held is not told."""
    late: list[Any] = []
    asking = Asking(hanging, lambda _: None, lambda: None, late.append)
    asking.start()
    assert await answer(asking, "well") == (0, pytest.approx(0, abs=0.1 * SLOW))
    hanging.goes.clear()
    held = asyncio.get_running_loop().create_future()
    first = asyncio.create_task(answer(asking, "first"))
    await asyncio.sleep(0.05)
    asking.put(Look("held"), held.set_result)
    second = asyncio.create_task(answer(asking, "second"))
    for one in (first, second):
        said, took = await one
        assert said is UNAVAILABLE
        assert 0.19 <= took < 0.2 + 0.3 * SLOW
    for _ in range(3):
        said, took = await answer(asking, "third")
        assert said is UNAVAILABLE
        assert took < 0.1 * SLOW
    hanging.goes.set()
    assert await held != UNAVAILABLE
    async with asyncio.timeout(5 * SLOW):
        while (await answer(asking, "again"))[0] is UNAVAILABLE:  # noqa: ASYNC110 - the store is asked now and then
            await asyncio.sleep(0.01)
    names = [one.space for one in hanging.asked if isinstance(one, Look)]
    assert names == ["well", "first", "held", "again"]
    assert late == [1]
    assert caplog.text.count("the store does not answer") == 1
    asking.close()


async def test_a_crowd_that_is_served_in_time_makes_no_alarm(hanging: Hanging) -> None:
    """Each question has its own time; answers come in order."""
    asking, _ = made(hanging)
    for round_ in range(5):
        said = await asyncio.gather(*(answer(asking, "s") for _ in range(300)))
        assert [one for one, _ in said] == list(range(300 * round_, 300 * (round_ + 1)))
        await asyncio.sleep(0.1)
    assert not asking._open
    asking.close()


async def test_a_backend_that_fails_to_answer_is_probed_until_it_does(
    hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each second; failures do not end that."""
    monkeypatch.setattr("invoker.stores.asking._PROBE_S", 0.01)
    asking, _ = made(hanging)
    hanging.goes.clear()
    assert (await answer(asking, "first"))[0] is UNAVAILABLE
    hanging.fails = True
    hanging.goes.set()
    async with asyncio.timeout(5 * SLOW):
        while len(hanging.asked) < 5:  # noqa: ASYNC110 - it is the thread that asks
            await asyncio.sleep(0.01)
    assert (await answer(asking, "second"))[0] is UNAVAILABLE
    hanging.fails = False
    async with asyncio.timeout(5 * SLOW):
        while (await answer(asking, "third"))[0] is UNAVAILABLE:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)
    asking.close()


async def test_a_large_value_has_the_time_that_a_slow_disk_takes(
    hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And so have those behind it; what was refused counts no more."""
    monkeypatch.setattr("invoker.stores.asking._BYTES_S", 1024)
    asking, _ = made(hanging)
    loop = asyncio.get_running_loop()
    hanging.goes.clear()
    put = loop.create_future()
    asking.put(Put("s", "a", b"x" * 512), put.set_result, is_waited_for=True)
    said, took = await answer(asking, "behind")
    assert said is UNAVAILABLE
    assert 0.69 <= took < 0.7 + 0.3 * SLOW
    assert await put is UNAVAILABLE
    assert asking._bytes == 0
    hanging.goes.set()
    asking.close()
