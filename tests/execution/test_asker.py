"""A service asks the store, and hears of the end of spaces."""

from __future__ import annotations

from invoker.core.store import Create, Drop, Look, Reason, Refused, Space
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
