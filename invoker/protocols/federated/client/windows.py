"""Computes when a device checks in again, from the server's retry windows or without one (F-056 to F-058).

After a checkin the server sends two windows: one for a device that takes part in a round, and one for a device that
does not. The client draws a random time from each at once and keeps both. The end of the conversation decides which of
them is used.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

import msgspec

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.errors import Status
from invoker.protocols.federated.wire.durations import seconds_of

TRANSIENT_S: Final = 900.0
PERMANENT_S: Final = 14_400.0
SPREAD: Final = 0.2
"""Without a window, times vary randomly by this fraction, so that devices do not all come at once."""

PERMANENT: Final = frozenset({Status.NOT_FOUND, Status.INVALID_ARGUMENT, Status.UNIMPLEMENTED})
"""After these statuses a retry would not succeed soon."""


class Retry(msgspec.Struct, frozen=True):
    """When to check in again.

    Attributes:
        at: The time on the client's clock, in seconds.
        token: The token to send with the checkin; empty: none.
    """

    at: float
    token: str = ""

    def in_s(self, now: float) -> float:
        """The seconds from ``now`` to that time, at least 0 (F-057)."""
        return max(0.0, self.at - now)


class Windows:
    """Keeps the retry windows of a conversation.

    Args:
        now: Returns the time in seconds.
        rng: The random generator for times within windows.
    """

    def __init__(self, now: Callable[[], float], rng: random.Random) -> None:
        self._now, self._rng = now, rng
        self._accepted: Retry | None = None
        self._rejected: Retry | None = None
        self._told: Retry | None = None

    def acked(self, ack: pb.CheckinRequestAck) -> None:
        """Draw a time from each of the two windows, once (F-057)."""
        self._accepted = self._drawn(ack.retry_window_if_accepted)
        self._rejected = self._drawn(ack.retry_window_if_rejected)

    def told(self, window: pb.RetryWindow) -> None:
        """Keep the window of a rejection or of the answer to a report; it is only used if there was no ack (F-059)."""
        self._told = self._drawn(window)

    def choose(self, status: Status, *, was_accepted: bool) -> Retry:
        """When to check in again after a conversation (F-058).

        Args:
            status: The status of the conversation; after a rejection it is OK, too.
            was_accepted: Whether the server accepted the device for a round, even if the round failed.
        """
        if is_permanent(status):
            return self._spread(PERMANENT_S)
        chosen = self._accepted if was_accepted else self._rejected
        if chosen is None and status is Status.OK:
            chosen = self._told
        return chosen or self._spread(TRANSIENT_S)

    def _drawn(self, window: pb.RetryWindow) -> Retry:
        least = max(0.0, seconds_of(window.delay_min))
        most = max(least, seconds_of(window.delay_max))
        return Retry(self._now() + self._rng.uniform(least, most), window.retry_token)

    def _spread(self, seconds: float) -> Retry:
        return Retry(self._now() + self._rng.uniform(seconds * (1 - SPREAD), seconds * (1 + SPREAD)))


def is_permanent(status: Status) -> bool:
    """Whether an early retry after this status would be useless."""
    return status in PERMANENT
