"""The events of a device's session, for the code that runs it; and the data that this code passes to the session."""

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
        retry_token: The token of the current retry window; empty: none.
        attestation: A measurement, which is opaque to the client.
        client_version: The version of the program.
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
        moduli: The modulus of each vector, by name.
        expected: The largest number of clients in the round.
        threshold: How many clients must stay until the end.
        min_visible: The smallest number of clients whose sum the server may see.
    """

    moduli: Mapping[str, int]
    expected: int
    threshold: int
    min_visible: int


class EligibilityAsked(msgspec.Struct, frozen=True):
    """The device has to find out for which tasks it is eligible; answered by `DeviceSession.eligible` or `fail`."""

    execution_id: str
    plan: Source
    checkpoint: Source


class Assigned(msgspec.Struct, frozen=True):
    """The device was accepted and has to run a plan; answered by `DeviceSession.report` or `fail`."""

    phase_id: str
    task: str
    plan: Source
    checkpoint: Source
    secagg: SecAggTask | None = None
    select_uri: str = ""


class Compute(msgspec.Struct, frozen=True):
    """A long job of secure aggregation has to run in a thread; answered by `DeviceSession.computed`."""

    job: Callable[[], Turn]


Event: TypeAlias = EligibilityAsked | Assigned | Compute


class Report(msgspec.Struct, frozen=True):
    """The outcome of a plan.

    Attributes:
        update: The bytes of the update; empty if the plan failed.
        vectors: The vectors for secure aggregation, by name; None: the report is plain.
        status: OK; INTERNAL: the plan failed; UNIMPLEMENTED: this device does not run such plans.
        duration_s: How many seconds the plan ran.
    """

    update: bytes = b""
    vectors: Mapping[str, Any] | None = None
    status: Status = Status.OK
    duration_s: float = 0.0


class Attempt(msgspec.Struct, frozen=True):
    """How one conversation ended.

    Attributes:
        end: ``reported``: the report was taken. ``failed``: the plan failed. ``rejected``: the server rejected the
            device. ``ineligible``: the device is eligible for no task. ``aborted``: `should_abort` returned True.
            ``lost``: the conversation ended with ``status``.
        retry: When to check in again.
        status: The status of the conversation.
        detail: The text of the error; empty: there was none.
        task: The task for which the device was accepted; empty: none.
        sent: The size of all frames that were sent, in bytes, those of the chunk layer included (F-144).
        received: The size of all frames that were received, in bytes.
        duration_s: How many seconds the plan ran.
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
    """What the device does next in secure aggregation.

    Attributes:
        messages: The messages to send, in order.
        is_done: Whether secure aggregation has ended, so that the answer to the report comes next.
        error: Why secure aggregation failed; ``messages`` are still sent, and then the stream is closed.
        job: A long job that returns the next turn. It may run in a thread; no message is received before it returns.
    """

    messages: tuple[secagg_pb.ClientToServerWrapperMessage, ...] = ()
    is_done: bool = False
    error: tuple[Status, str] | None = None
    job: Callable[[], Turn] | None = None


class SecAgg(Protocol):
    """The client's side of the four rounds of secure aggregation, for one update."""

    def start(self) -> Turn:
        """Return the first turn, which advertises two fresh keys."""

    def receive(self, message: secagg_pb.ServerToClientWrapperMessage) -> Turn:
        """Handle a message of the server."""

    def abort(self, reason: str) -> Turn:
        """Return the turn that notifies the server that this device leaves."""


class NewSecAgg(Protocol):
    """Makes the `SecAgg` of one update."""

    def __call__(self, task: SecAggTask, vectors: Mapping[str, Any], /) -> SecAgg:
        """Make the client's side for an update.

        Raises:
            ValueError: A vector is missing, empty, or has a value that is not below its modulus (F-095).
        """
