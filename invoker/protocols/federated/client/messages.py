"""The events that a device's conversation gives to the code that runs it, and the data that it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import msgspec

from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.errors import Status
from invoker.message import EMPTY
from invoker.protocols.federated.client.downloads import Source
from invoker.protocols.federated.client.windows import Retry


class Hello(msgspec.Struct, frozen=True):
    """The identity of a device, and its capabilities.

    Attributes:
        population: The population whose tasks it runs.
        retry_token: The token of the retry window in which the device checks in; empty: none.
        attestation: A measurement, opaque.
        client_version: The version of its program.
        has_secagg: Whether the device can take part in secure aggregation.
    """

    population: str
    retry_token: str = ""
    attestation: str = ""
    client_version: str = ""
    has_secagg: bool = True


class SecAggTask(msgspec.Struct, frozen=True):
    """The server's terms of secure aggregation.

    Attributes:
        moduli: The moduli of each vector, by its name.
        expected: The most clients of the round.
        threshold: How many must survive.
        min_visible: The fewest clients whose sum the server may see.
    """

    moduli: Mapping[str, int]
    expected: int
    threshold: int
    min_visible: int


class EligibilityAsked(msgspec.Struct, frozen=True):
    """The device finds out for which tasks it is eligible; answered by `DeviceSession.eligible` or `fail`."""

    execution_id: str
    plan: Source
    checkpoint: Source


class Assigned(msgspec.Struct, frozen=True):
    """The device is accepted and runs a plan; answered by `DeviceSession.report` or `fail`."""

    phase_id: str
    task: str
    plan: Source
    checkpoint: Source
    secagg: SecAggTask | None = None
    select_uri: str = ""


class Compute(msgspec.Struct, frozen=True):
    """A job of secure aggregation that takes long, for a thread; answered by `DeviceSession.computed`."""

    job: Callable[[], Turn]


Event: TypeAlias = EligibilityAsked | Assigned | Compute


class Report(msgspec.Struct, frozen=True):
    """The outcome of a plan.

    Attributes:
        update: Bytes of the update; empty if the plan failed.
        vectors: The vectors for secure aggregation by name; None: the report is plain.
        status: OK, INTERNAL if the plan has failed, or UNIMPLEMENTED if this device does not run such plans.
        duration_s: How long the plan ran.
    """

    update: bytes = b""
    vectors: Mapping[str, Any] | None = None
    status: Status = Status.OK
    duration_s: float = 0.0


class Attempt(msgspec.Struct, frozen=True):
    """How one conversation ended.

    Attributes:
        end: ``reported``; ``failed``: the plan failed (the server learns this unless secure aggregation is used);
            ``rejected``; ``ineligible``: the device is eligible for no task; ``aborted``: `should_abort` returned True;
            ``lost``: the conversation ended with ``status``.
        retry: When to check in again.
        status: OK, or what went wrong.
        detail: What went wrong, in words.
        task: The task for which the device was accepted; empty: none.
        sent: Bytes of all frames of the conversation that went out, those of the chunk layer included (F-144).
        received: Bytes of all frames that came.
        duration_s: How long the plan ran.
        metrics: The value of the plan's second output.
    """

    end: str
    retry: Retry
    status: Status = Status.OK
    detail: str = ""
    task: str = ""
    sent: int = 0
    received: int = 0
    duration_s: float = 0.0
    metrics: Any = EMPTY


class Turn(msgspec.Struct, frozen=True):
    """The next actions of secure aggregation after a message.

    Attributes:
        messages: The messages to send, in order.
        is_done: Whether secure aggregation is done, so that the answer to the report comes next.
        error: Why secure aggregation has failed; ``messages`` are still sent, and then the stream is closed.
        job: Work that takes long, and returns the next turn. It may run in a thread; nothing else is received before it
            returns.
    """

    messages: tuple[secagg_pb.ClientToServerWrapperMessage, ...] = ()
    is_done: bool = False
    error: tuple[Status, str] | None = None
    job: Callable[[], Turn] | None = None


class SecAgg(Protocol):
    """The client's side of the four rounds, for one update."""

    def start(self) -> Turn:
        """Give the first turn: advertise two fresh keys."""

    def receive(self, message: secagg_pb.ServerToClientWrapperMessage) -> Turn:
        """Take a message of the server."""

    def abort(self, reason: str) -> Turn:
        """Notify the server that this device leaves."""


class NewSecAgg(Protocol):
    """Makes the `SecAgg` of one update."""

    def __call__(self, task: SecAggTask, vectors: Mapping[str, Any], /) -> SecAgg:
        """Make the client's side for an update.

        Raises:
            ValueError: A vector is missing, empty, or has a value that is not below its modulus (F-095).
        """
