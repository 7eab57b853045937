"""What the store keeps of a task, and which of two rounds may commit."""

from __future__ import annotations

from typing import Any

import pytest

from invoker.core.spaces import MemoryStore
from invoker.core.store import ABSENT, Item, Question, Reason, Refused
from invoker.protocols.federated import saved


class Asker:
    """Asks a store in memory, which answers at once."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.answer: Any = None

    def answered(self, key: str, value: Any) -> None:
        self.answer = value

    def has_news(self, news: object) -> None:
        raise AssertionError("nobody listens")

    def ask(self, question: Question) -> Any:
        self.store.ask(self, "", question)
        return self.answer


@pytest.fixture
def asker() -> Asker:
    asker = Asker()
    assert asker.ask(saved.create("iris", "train")).is_new
    return asker


def test_F083_a_round_follows_the_one_from_which_it_started(asker: Asker) -> None:
    """Its number and phase id are committed with its checkpoint, and read again after a restart."""
    first = saved.saved_of(asker.ask(saved.lookup("iris", "train")), b"initial")
    assert first == saved.Saved(0, b"initial", ABSENT, "")
    item = asker.ask(saved.commit("iris", "train", first, b"one", "p1"))
    second = saved.saved_of(item)
    assert (second.round, second.checkpoint, second.phase_id) == (1, b"one", "p1")
    third = saved.saved_of(asker.ask(saved.commit("iris", "train", second, b"two", "p2")))
    again = asker.ask(saved.lookup("iris", "train"))
    assert saved.saved_of(again) == third == saved.Saved(2, b"two", again.updated_ns, "p2")


def test_F083_of_two_rounds_from_one_checkpoint_one_is_refused(asker: Asker) -> None:
    """Neither before the first commit nor later does the second one overwrite the first."""
    before = saved.Saved(0, b"initial")
    for number in (1, 2):
        won = asker.ask(saved.commit("iris", "train", before, b"won", f"w{number}"))
        assert isinstance(won, Item)
        lost = asker.ask(saved.commit("iris", "train", before, b"lost", f"l{number}"))
        assert lost == Refused(Reason.CHANGED)
        before = saved.saved_of(asker.ask(saved.lookup("iris", "train")))
        assert (before.round, before.checkpoint) == (number, b"won")


def test_names_of_populations_and_tasks_are_never_mistaken_for_each_other(asker: Asker) -> None:
    """Also where they have the sign that stands between them."""
    assert asker.ask(saved.create("a:b", "c")).is_new
    assert asker.ask(saved.create("a", "b:c")).is_new


def test_F083_a_commit_is_to_survive_a_crash_of_the_machine() -> None:
    """The store is told so, and the answer waits for that."""
    assert saved.commit("iris", "train", saved.Saved(0, b""), b"one", "p1").is_durable


def test_F083_a_leader_that_has_slept_cannot_commit(asker: Asker) -> None:
    """The next one writes the checkpoint once more, and with it all that is known of its round."""
    item = asker.ask(saved.commit("iris", "train", saved.Saved(0, b"initial"), b"one", "p1"))
    slept = saved.saved_of(item)
    awake = saved.saved_of(asker.ask(saved.rewrite("iris", "train", item)))
    assert (awake.round, awake.checkpoint, awake.phase_id) == (1, b"one", "p1")
    assert asker.ask(saved.commit("iris", "train", slept, b"late", "p2")) == Refused(Reason.CHANGED)
    assert isinstance(asker.ask(saved.commit("iris", "train", awake, b"two", "p3")), Item)
