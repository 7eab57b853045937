"""`Saved`: the state of a task that the store keeps between rounds; and the commit of a checkpoint (F-083).

Each task has a space of its own, so that even the largest checkpoint fits. The space has one item. A commit writes the
whole item and requires the version from which the round started. So a round is either committed completely or not at
all; and if two processes believe that they lead a population, one of them is refused.
"""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from invoker.core.store import ABSENT, Create, Get, Item, Put

_ITEM = "checkpoint"
_TTL_S = 10 * 365 * 24 * 3600.0
"""The time to live of a model that is not used: ten years."""


class Saved(msgspec.Struct, frozen=True):
    """The state of a task after its last committed round.

    Attributes:
        round: The number of the round; 0: none was committed.
        checkpoint: The checkpoint of that round, or the initial one.
        version: The version of the item, which the next commit requires; `ABSENT` if nothing was committed.
        phase_id: The phase id of the round.
    """

    round: int
    checkpoint: bytes
    version: int = ABSENT
    phase_id: str = ""


class _About(msgspec.Struct, frozen=True):
    round: int
    phase_id: str


def create(population: str, task: str) -> Create:
    """The request that makes the space of a task, unless it exists."""
    return Create(_space(population, task), _TTL_S)


def lookup(population: str, task: str) -> Get:
    """The request for the committed state; `saved_of` reads the answer."""
    return Get(_space(population, task), _ITEM)


def commit(population: str, task: str, before: Saved, checkpoint: bytes, phase_id: str) -> Put:
    """The request that writes the checkpoint of the round after ``before``, if nothing was written since.

    The answer is an `Item`, from which `saved_of` makes the new `Saved`; or `Refused`: the round has failed, and
    ``before`` is still the last committed state.
    """
    about = msgspec.json.encode(_About(before.round + 1, phase_id))
    return Put(_space(population, task), _ITEM, checkpoint, expects=before.version, about=about, is_durable=True)


def rewrite(population: str, task: str, item: Item) -> Put:
    """The request that writes the item again, which gives it a version that no earlier leader knows."""
    return Put(_space(population, task), _ITEM, item.value, expects=item.updated_ns, about=item.about)


def saved_of(item: Item | None, initial: bytes = b"") -> Saved:
    """The state in an item; without an item, the state before the first round."""
    if item is None:
        return Saved(0, initial)
    about = msgspec.json.decode(item.about, type=_About)
    return Saved(about.round, item.value, item.updated_ns, about.phase_id)


def _space(population: str, task: str) -> str:
    return ":".join(("federated", quote(population, safe=""), quote(task, safe="")))
