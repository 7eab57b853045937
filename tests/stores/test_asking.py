"""The thread that asks a backend: order, several questions in one go, failures, the end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from invoker.core.store import Look
from invoker.stores.asking import Asking
from invoker.stores.backend import UNAVAILABLE, Asked, Lose, Tell


class Backend:
    """Answers by the number of the question."""

    epoch = 1

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.count = 0
        self.fails = False
        self.is_closed = False

    def open(self, tell: Tell, lose: Lose) -> None:
        self.tell, self.lose = tell, lose

    def perform(self, asked: Sequence[Asked]) -> list[Any]:
        self.batches.append(len(asked))
        if self.fails:
            raise ZeroDivisionError
        self.count += len(asked)
        return list(range(self.count - len(asked), self.count))

    def idle(self) -> float:
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
