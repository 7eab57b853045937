"""`Tally`: the counts of the tool calls of one process, by minute.

Theory. Each call is counted once, in the current minute. The minutes of the last hour are kept in a ring; older ones
are added up, so memory is bounded. A total is the sum of all. The counts of a single session are dropped with the
session, but stay in the totals.

The names are those of T-155: ``tool.<id>.calls``, ``tool.<id>.errors.<Type>``, ``tool.<id>.duration_ms``; and, for
sessions that enable telemetry, ``session.<id>.calls`` and ``session.<id>.errors`` (T-158). A tool that does not exist
is counted as ``unknown``, since callers can make up any number of names.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from invoker.protocols.toolbridge.errors import BridgeError

MINUTES: Final = 60

BOUNDS_MS: Final = (1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000)
"""The upper bounds of a histogram's buckets, in milliseconds; one more bucket has no bound (T-156)."""

TOTALS: Final = (
    "sessions.created", "sessions.expired", "stream.chunks", "batch.items", "cache.hits", "rate_limited",
    "grpc.messages_too_large",
)  # fmt: skip
"""Counters that belong to no tool; they are reported even while they are 0."""

UNKNOWN: Final = "unknown"
"""The name under which calls of tools that do not exist are counted."""

_MINUTE_S: Final = 60
_RATES: Final = frozenset({"rate_limit", "global_rate_limit"})


def outcome_of(call: Any) -> str:
    """``ok``, or the type of the error with which a tool call ended."""
    error = call.error
    if error is None:
        return "ok"
    return error.kind.value if isinstance(error, BridgeError) else type(error).__name__


class Histogram:
    """The durations of calls: how many fall into each bucket of `BOUNDS_MS`, and the total time in milliseconds."""

    __slots__ = ("counts", "sum_ms")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_MS) + 1)
        self.sum_ms = 0.0

    def add(self, took_ms: float) -> None:
        """Count a call that took ``took_ms`` milliseconds."""
        self.counts[bisect_left(BOUNDS_MS, took_ms)] += 1
        self.sum_ms += took_ms

    def merge(self, other: Histogram) -> None:
        """Add the counts of another histogram."""
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.sum_ms += other.sum_ms

    @property
    def cumulative(self) -> list[int]:
        """For each bound, the number of calls that took no longer; the last entry is the number of all calls."""
        total = 0
        return [total := total + one for one in self.counts]


class Minute:
    """The counts of a span of time.

    Attributes:
        counts: The counters that belong to no tool, by name.
        outcomes: Calls by tool and outcome.
        durations: The durations of calls, by tool.
        sessions: Calls by session, and whether they failed.
    """

    __slots__ = ("counts", "durations", "outcomes", "sessions")

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.durations: dict[str, Histogram] = {}
        self.sessions: Counter[tuple[str, bool]] = Counter()

    def add(self, other: Minute) -> None:
        """Add the counts of another span of time."""
        self.counts.update(other.counts)
        self.outcomes.update(other.outcomes)
        self.sessions.update(other.sessions)
        for tool, one in other.durations.items():
            self.durations.setdefault(tool, Histogram()).merge(one)

    def keep_sessions(self, known: Iterable[str]) -> None:
        """Drop the counts of sessions that are not among these."""
        kept = set(known)
        self.sessions = Counter({key: count for key, count in self.sessions.items() if key[0] in kept})


class Tally:
    """Observes `HostSessions`; call it with each tool call that has ended.

    Args:
        lock: Held while counts are changed or read.
        known: Returns the ids of the known sessions.
        sampled: Returns sums that other code counts, by name; their increase is added to the minute in which it is
            read.
        clock: Returns the time in seconds since the epoch.
    """

    def __init__(
        self,
        lock: AbstractContextManager[Any],
        known: Callable[[], Iterable[str]] = tuple,
        sampled: Callable[[], Mapping[str, int]] = dict,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._lock = lock
        self._known = known
        self._sampled = sampled
        self._seen: Mapping[str, int] = {}
        self._clock = clock
        self._older = Minute()
        self._ring: deque[tuple[int, Minute]] = deque()
        self._current = self._older
        self._ends_s = 0.0

    def __call__(self, call: Any) -> None:
        """Count one call, which has ended; may be called from any thread."""
        outcome = "ok" if call.error is None else outcome_of(call)
        tool = call.tool.id if call.tool is not None else UNKNOWN
        session = call.session
        with self._lock:
            minute = self._current if self._clock() < self._ends_s else self._minute()
            minute.outcomes[tool, outcome] += 1
            durations = minute.durations.get(tool)
            if durations is None:
                durations = minute.durations[tool] = Histogram()
            durations.add(call.took_s * 1000)
            if session is not None and session.is_tagged:
                minute.sessions[session.id, outcome != "ok"] += 1
            if call.via == "batch":
                minute.counts["batch.items"] += 1
            if (
                call.error is not None
                and isinstance(call.error, BridgeError)
                and call.error.details.get("code") in _RATES
            ):
                minute.counts["rate_limited"] += 1

    def total(self) -> Minute:
        """The sum of all minutes since the process started."""
        made = Minute()
        with self._lock:
            self._sample(self._minute())
            made.add(self._older)
            for _, minute in self._ring:
                made.add(minute)
        return made

    def between(self, first: int | None, last: int | None) -> Minute:
        """The sum of the minutes from ``first`` to ``last``, which are numbered from the epoch and kept for an hour."""
        made = Minute()
        with self._lock:
            self._sample(self._minute())
            for number, minute in self._ring:
                if (first is None or number >= first) and (last is None or number <= last):
                    made.add(minute)
        return made

    @property
    def now(self) -> int:
        """The number of the current minute."""
        return int(self._clock()) // _MINUTE_S

    def _minute(self) -> Minute:
        """The current minute; minutes that leave the ring are added to the older counts. The caller holds the lock."""
        if self._clock() < self._ends_s:  # if the clock was set back, the latest minute is still used
            return self._current
        now, ring = self.now, self._ring
        self._current, self._ends_s = Minute(), (now + 1.0) * _MINUTE_S
        ring.append((now, self._current))
        while ring[0][0] <= now - MINUTES:
            self._older.add(ring.popleft()[1])
        known = self._known()
        for part in (self._older, *(minute for _, minute in ring)):
            part.keep_sessions(known)
        return self._current

    def _sample(self, minute: Minute) -> None:
        """Add the increase of the counts of other code to this minute."""
        before, self._seen = self._seen, dict(self._sampled())
        for name, number in self._seen.items():
            if number != before.get(name, 0):
                minute.counts[name] += number - before.get(name, 0)
