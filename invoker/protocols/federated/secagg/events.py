"""The calls between a round of secure aggregation and its owner.

The owner makes one `SecAggServer` for a round with fixed devices, which are numbered from 0 to ``size - 1``::

    rounds = SecAggServer(terms, size, send=..., drop=..., ended=..., compute=...)

    the owner calls                 the rounds call
    ------------------------------  ------------------------------------------------------------------------
    start()                         nothing; the devices send first (AdvertiseKeys)
    receive(index, message)         send(index, message): a message for one device
    lost(index)                     drop(index, reason): the device is removed; its AbortMessage was sent before
    elapsed()                       ended(outcome), once, as the last call: `Summed` or `Failed`
    abandon()                       nothing; there are no more calls

The owner calls ``elapsed()`` when `round` has not changed for the time limit of a round (F-133); it checks `round`
after each call. When the sum is complete, the devices for which neither ``drop`` nor ``lost`` was called are done: each
gets a ReportResponse, including those that were sent an AbortMessage of early success (F-094, F-123). Before `Failed`,
the remaining devices are sent an AbortMessage; their conversations end with ABORTED (F-124).

``compute(job, then)`` runs ``job()`` in a thread (F-131), and then calls ``then(result)`` on the event loop. Jobs never
raise. Several jobs may run at once. Without threads, ``lambda job, then: then(job())`` is sufficient.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import msgspec

from invoker._pb.federated import secagg_messages_pb2 as secagg_pb


class Drop(enum.Enum):
    """Why a device was dropped from a round; the value is a label of metrics."""

    SILENT_KEYS = "did_not_advertise_keys"
    INVALID_PUBLIC_KEY = "invalid_public_key"
    SILENT_SHARES = "did_not_share_keys"
    INVALID_SHARE_KEYS_RESPONSE = "invalid_share_keys_response"
    SILENT_INPUT = "did_not_send_masked_input"
    INVALID_MASKED_INPUT = "invalid_masked_input"
    INVALID_UNMASKING_RESPONSE = "invalid_unmasking_response"
    UNEXPECTED = "unexpected_message"
    CLIENT_ABORT = "client_abort"
    CONNECTION_CLOSED = "connection_closed"  # not counted here: the owner, which called `lost`, counts the device


class Reason(enum.Enum):
    """Why a round failed as a whole; the value is a label of metrics."""

    TOO_FEW = "too_few_clients"
    TOO_FEW_VISIBLE = "too_few_visible"
    CORRUPTED_SHARES = "corrupted_shares"
    INTERNAL = "internal"


class Summed(msgspec.Struct, frozen=True):
    """A round has succeeded.

    Attributes:
        sums: By name of the vector, the sum of the updates modulo the vector's modulus: an array (length,) of uint64.
        clients: How many updates the sum contains.
    """

    sums: Mapping[str, Any]
    clients: int


class Failed(msgspec.Struct, frozen=True):
    """A round has failed, and has no sum.

    Attributes:
        reason: The reason, as a label of metrics.
        detail: One sentence, without anything that identifies a device.
    """

    reason: Reason
    detail: str


Outcome: TypeAlias = Summed | Failed
Ended: TypeAlias = Callable[[Outcome], None]
Send: TypeAlias = Callable[[int, secagg_pb.ServerToClientWrapperMessage], None]
Drops: TypeAlias = Callable[[int, Drop], None]


class Compute(Protocol):
    """Runs long jobs in threads."""

    def __call__(self, job: Callable[[], Any], then: Callable[[Any], None], /) -> None:
        """Run ``job()``, and call ``then`` with its result on the event loop."""
