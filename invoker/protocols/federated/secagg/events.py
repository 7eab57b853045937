"""The calls between a round of secure aggregation and its owner.

The owner makes one `SecAggServer` for a round whose devices are chosen, and numbers them from 0 to ``size - 1``::

    rounds = SecAggServer(terms, size, send=..., drop=..., ended=..., compute=...)

    the owner calls                 the rounds call
    ------------------------------  ------------------------------------------------------------------------
    start()                         nothing; devices speak first (AdvertiseKeys)
    receive(index, message)         send(index, message): a message for one device
    lost(index)                     drop(index, reason): the device is out; its AbortMessage was sent before
    elapsed()                       ended(outcome), once: `Summed` or `Failed`; nothing is called after it
    abandon()                       nothing any more; the owner has given the round up

The owner calls ``elapsed()`` when `round` has been the same for its time-out (F-133): it watches `round` after each
call, and restarts its clock when the number has changed. Devices for which neither ``drop`` nor ``lost`` was called
when the sum is complete have finished: each gets a ReportResponse, also those that were sent an AbortMessage of early
success (F-094, F-123). After `Failed` the remaining devices have been sent an AbortMessage, and their
conversations end with ABORTED (F-124).

``compute(job, then)`` runs ``job()`` in a thread (F-131), and then calls ``then(result)`` on the loop. Jobs never
raise. Several may run side by side. Without threads, ``lambda job, then: then(job())`` will do.
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
    CONNECTION_CLOSED = "connection_closed"  # the owner, which has called `lost`, counts it


class Reason(enum.Enum):
    """Why a whole round failed; the value is a label of metrics."""

    TOO_FEW = "too_few_clients"
    TOO_FEW_VISIBLE = "too_few_visible"
    CORRUPTED_SHARES = "corrupted_shares"
    INTERNAL = "internal"


class Summed(msgspec.Struct, frozen=True):
    """A round has succeeded.

    Attributes:
        sums: For each vector name the sum of the updates modulo the vector's modulus: an array (length,) of uint64.
        clients: How many updates it contains.
    """

    sums: Mapping[str, Any]
    clients: int


class Failed(msgspec.Struct, frozen=True):
    """A round has failed: there is no sum, and there will be none.

    Attributes:
        reason: A word for metrics.
        detail: One sentence, without anything that identifies a device.
    """

    reason: Reason
    detail: str


Outcome: TypeAlias = Summed | Failed
Ended: TypeAlias = Callable[[Outcome], None]
Send: TypeAlias = Callable[[int, secagg_pb.ServerToClientWrapperMessage], None]
Drops: TypeAlias = Callable[[int, Drop], None]


class Compute(Protocol):
    """Runs heavy jobs in threads."""

    def __call__(self, job: Callable[[], Any], then: Callable[[Any], None], /) -> None:
        """Run ``job()`` and call ``then`` on the loop with what it returns."""
