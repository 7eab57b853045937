"""A service asks the store, and hears of the end of spaces."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from invoker.core.store import Create, Drop, Look, Reason, Refused, Space, Store
from invoker.execution.asker import Asker
from tests.execution.memory import driver_of


def one(x: int) -> int:
    return x


async def test_answers_come_to_who_has_asked() -> None:
    """Each to its own question."""
    asker = Asker(driver_of(one).store)
    assert (await asker.ask(Create("a", 60, b"about"))).about == b"about"
    assert await asker.ask(Look("b")) == Refused(Reason.UNKNOWN)
    answers: list[object] = []
    asker.later(Look("a"), answers.append)
    assert isinstance(answers[0], Space)


async def test_the_end_of_a_space_is_told_once() -> None:
    """Also where there is none; but not to one that has left."""
    asker, ends = Asker(driver_of(one).store), list[Refused]()
    await asker.ask(Create("a", 60))
    asker.on_end("a", ends.append)
    assert not ends
    await asker.ask(Drop("a"))
    asker.on_end("none", ends.append)
    assert [end.reason for end in ends] == [Reason.DROPPED, Reason.UNKNOWN]
    await asker.ask(Create("c", 60))
    asker.on_end("c", ends.append)
    asker.leave()
    await asker.ask(Drop("c"))
    assert len(ends) == 2


class Slow:
    """A store that answers when its test does."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def ask(self, _: Any, key: str, __: Any) -> None:
        self.asked.append(key)

    def leave(self, _: Any) -> None:
        pass


async def test_an_answer_that_nobody_waits_for_any_more_is_dropped() -> None:
    """Since its task was cancelled, or its asker has left."""
    store, answers = Slow(), list[object]()
    asker = Asker(cast(Store, store))
    task = asyncio.create_task(asker.ask(Look("a")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    asker.answered(store.asked[0], "late")
    asker.later(Look("b"), answers.append)
    asker.leave()
    asker.answered(store.asked[1], "late")
    assert answers == []
