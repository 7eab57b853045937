"""`Backing`: the operations of its service that the coordinator needs, since it cannot wait itself; and its data.

The coordinator calls these on the loop and never waits for them. Where an operation takes a callback, the callback is
called in a later turn of the loop, never from within the call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from invoker.protocols.federated.config import PopulationConfig, TaskConfig
from invoker.protocols.federated.messages import Blob, Tokens

if TYPE_CHECKING:
    from invoker.protocols.federated.aggregating import AggregatingSession, Word

DEVICE_BYTES: Final = 64 * 1024 * 1024 - 64 * 1024
"""The most bytes of a plan and a checkpoint together. Devices take messages of 64 MiB, in which both come with names
and sizes."""

Check: TypeAlias = Callable[[bytes], object]
"""A check that raises for an update that cannot be taken."""


def excess(plan: bytes, checkpoint: bytes) -> str:
    """Why devices cannot take bytes of this size; empty if they can."""
    size = len(plan) + len(checkpoint)
    if size <= DEVICE_BYTES:
        return ""
    return (
        f"the checkpoint has {len(checkpoint)} bytes and the plan {len(plan)}; the limit for both together "
        f"is {DEVICE_BYTES} bytes"
    )


@dataclass(frozen=True, slots=True)
class TaskSetup:
    """A task with the data that the service has looked up for it.

    Attributes:
        config: The task, as the file has it.
        plan: The plan that devices run.
        checkpoint: The checkpoint that the next round starts from: the last committed one, or the initial one.
        committed: Number of the last round that was committed; 0: none.
        takes_model: Whether the aggregation function has a second parameter, which gets that checkpoint.
        checker: Makes a check of a round's updates from the checkpoint that the round starts from. If ``checker`` or
            its result is None, only the function checks them. A check raises ValueError or InvocationError, with a text
            for the client, which alone is excluded (F-086).
    """

    config: TaskConfig
    plan: Blob
    checkpoint: Blob
    committed: int = 0
    takes_model: bool = False
    checker: Callable[[bytes], Check | None] | None = None


@dataclass(frozen=True, slots=True)
class EligibilitySetup:
    """The eligibility task of a population; ``spec`` is opaque."""

    plan: Blob
    checkpoint: Blob
    spec: bytes = b""


@dataclass(frozen=True, slots=True)
class PopulationSetup:
    """A population with the data that the service has looked up for it.

    Attributes:
        config: The population, as the file has it.
        tasks: The tasks in the order of the file.
        tokens: Makes and judges retry tokens; None: windows have none.
        eligibility: None: there is no eligibility task.
        attest: Returns whether a measurement is valid; called on the loop. None: all measurements are accepted (D17).
        api_key: The key that clients must send; empty: none.
    """

    config: PopulationConfig
    tasks: tuple[TaskSetup, ...]
    tokens: Tokens | None = None
    eligibility: EligibilitySetup | None = None
    attest: Callable[[str], object] | None = None
    api_key: str = ""


@dataclass(frozen=True, slots=True)
class Commit:
    """The result of a round, which counts only once it is stored.

    Attributes:
        population: Its name.
        task: Its name.
        number: The number of the round; the stored round must be ``number - 1``, otherwise another process is ahead.
        phase_id: Names the round.
        checkpoint: The checkpoint that the round has given.
    """

    population: str
    task: str
    number: int
    phase_id: str
    checkpoint: bytes


class Backing(Protocol):
    """The methods of the service that the coordinator uses."""

    def aggregate(self, session: AggregatingSession) -> Callable[[Word], None]:
        """Run a conversation without a peer, with at most `AHEAD` messages of window.

        Returns:
            A function that gives the session a message, in a later turn and in order; it does nothing once the session
            has closed.
        """

    def commit(self, commit: Commit, done: Callable[[bool], None]) -> None:
        """Store a checkpoint, and report later whether it is stored."""

    def new_id(self) -> str:
        """Make an unguessable name for a round or an eligibility task (F-048)."""

    def publish(self, checkpoint: bytes) -> Blob:
        """Make a checkpoint available to devices, from its commit on."""

    def compute(self, job: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Run ``job`` off the loop, then call ``then`` with its result, or with the Exception that it raised."""

    def wake(self, at: float) -> None:
        """Have `tick` called at this time of the coordinator's clock, which is earlier than any time given before."""
