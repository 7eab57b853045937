"""`Backing`: the operations that the coordinator needs from its service, since it does no I/O; and their data.

The coordinator calls these operations on the event loop and never waits. If an operation takes a callback, the callback
is called in a later turn of the loop, never within the call.
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
"""The limit of a plan and a checkpoint together, in bytes. Devices accept messages of 64 MiB, which contain both with
names and sizes."""

Check: TypeAlias = Callable[[bytes], object]
"""A check of an update, which raises if the update does not fit."""


def excess(plan: bytes, checkpoint: bytes) -> str:
    """The reason why this plan and checkpoint are too large for devices; empty: they are not."""
    size = len(plan) + len(checkpoint)
    if size <= DEVICE_BYTES:
        return ""
    return (
        f"the checkpoint has {len(checkpoint)} bytes and the plan {len(plan)}; the limit for both together "
        f"is {DEVICE_BYTES} bytes"
    )


@dataclass(frozen=True, slots=True)
class TaskSetup:
    """A task, with the data that the service has loaded for it.

    Attributes:
        config: The task in the file.
        plan: The plan that devices run.
        checkpoint: The checkpoint from which the next round starts: the last committed one, or the initial one.
        committed: The number of the last committed round; 0: none.
        takes_model: Whether the aggregation function has a second parameter, which gets the checkpoint.
        checker: Makes a check for the updates of a round from the checkpoint at its start. If ``checker`` or its result
            is None, only the function checks updates. A check raises ValueError or InvocationError, with a text for the
            client; only this client is excluded (F-086).
    """

    config: TaskConfig
    plan: Blob
    checkpoint: Blob
    committed: int = 0
    takes_model: bool = False
    checker: Callable[[bytes], Check | None] | None = None


@dataclass(frozen=True, slots=True)
class EligibilitySetup:
    """The eligibility task of a population; ``spec`` is opaque to the server."""

    plan: Blob
    checkpoint: Blob
    spec: bytes = b""


@dataclass(frozen=True, slots=True)
class PopulationSetup:
    """A population, with the data that the service has loaded for it.

    Attributes:
        config: The population in the file.
        tasks: The tasks in the order of the file.
        tokens: Makes and verifies retry tokens; None: windows have no tokens.
        eligibility: The eligibility task; None: there is none.
        attest: Returns whether a measurement is valid; called on the event loop. None: all measurements are accepted
            (D17).
        api_key: The API key that clients must send; empty: none.
    """

    config: PopulationConfig
    tasks: tuple[TaskSetup, ...]
    tokens: Tokens | None = None
    eligibility: EligibilitySetup | None = None
    attest: Callable[[str], object] | None = None
    api_key: str = ""


@dataclass(frozen=True, slots=True)
class Commit:
    """The result of a round, which becomes valid when it is stored.

    Attributes:
        population: The name of the population.
        task: The name of the task.
        number: The number of the round; the last stored round must be ``number - 1``, otherwise another process is
            ahead.
        phase_id: The id of the round.
        checkpoint: The checkpoint that the round produced.
    """

    population: str
    task: str
    number: int
    phase_id: str
    checkpoint: bytes


class Backing(Protocol):
    """The operations of the service that the coordinator uses."""

    def aggregate(self, session: AggregatingSession) -> Callable[[Word], None]:
        """Run the conversation of a round, with a window of `AHEAD` messages.

        Returns:
            A function that passes a message to the session, in a later turn and in order; after the end of the session
                it does nothing.
        """

    def commit(self, commit: Commit, done: Callable[[bool], None]) -> None:
        """Store a checkpoint, and later call ``done`` with whether it was stored."""

    def new_id(self) -> str:
        """Make an unguessable id for a round or an eligibility task (F-048)."""

    def publish(self, checkpoint: bytes) -> Blob:
        """Make a checkpoint available to devices."""

    def compute(self, job: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Run ``job`` in a thread, then call ``then`` with its result, or with the Exception that it raised."""

    def wake(self, at: float) -> None:
        """Arrange a call of `tick` at this time of the coordinator's clock, which is earlier than all times before."""
