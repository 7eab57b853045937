"""`Watch`: observes the bridge of one process, for its metrics, its health and its audit log."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from invoker.execution.driver import Driver
from invoker.protocols.toolbridge.audit import Redaction, entry_of, line_of
from invoker.protocols.toolbridge.host_sessions import HostSessions
from invoker.protocols.toolbridge.prometheus import counted, tool_gauges, tool_numbers
from invoker.protocols.toolbridge.settings import BridgeSettings
from invoker.protocols.toolbridge.tally import BOUNDS_MS, UNKNOWN, Histogram, Minute, Tally
from invoker.telemetry.auditlog import AuditLog
from invoker.telemetry.board import Numbers

_RUNNING, _ZOMBIES = "invoker_tool_running_calls", "invoker_tool_zombies"
_BOUNDS = (*(f"{one / 1000:g}" for one in BOUNDS_MS), "+Inf")
_TOTALS = {
    "sessions.created": "invoker_tool_sessions_created",
    "sessions.expired": "invoker_tool_sessions_expired",
    "stream.chunks": "invoker_tool_stream_chunks",
    "batch.items": "invoker_tool_batch_items",
    "cache.hits": "invoker_tool_cache_hits",
    "rate_limited": "invoker_tool_rate_limited",
    "grpc.messages_too_large": "invoker_tool_messages_too_large",
}


class Watch:
    """Observes `HostSessions`.

    Args:
        host_sessions: The host sessions.
        driver: The driver, which counts running invocations.
        settings: The settings; an audit log is kept if they name its file.
        summed: Returns the sums over all workers; None: there is only this process.
        is_lame: Returns whether the process is about to stop.

    Attributes:
        audit: The audit log; None: there is none.
        dependencies: Whether each dependency of the bridge works, by name; None: it was not yet tried.
        groups: Functions that return further dependencies, which may change at any time.
        tally: The counts.
    """

    def __init__(
        self,
        host_sessions: HostSessions,
        driver: Driver,
        settings: BridgeSettings,
        summed: Callable[[], Numbers] | None = None,
        is_lame: Callable[[], bool] = lambda: False,
    ) -> None:
        self._host_sessions = host_sessions
        self._is_lame = is_lame
        self._summed = summed
        self._driver = driver
        self.dependencies: dict[str, Callable[[], bool | None]] = dict.fromkeys(("isolation", "llm"), _unknown)
        self.groups: list[Callable[[], Mapping[str, bool | None]]] = []
        self.tally = Tally(threading.Lock(), lambda: tuple(host_sessions.sessions), self._sampled)
        self.audit: AuditLog | None = None
        host_sessions.observers.append(self.tally)
        if settings.audit != "off":
            shown = settings.audit_args
            redaction = None if shown == ("off",) else Redaction(() if shown == ("on",) else shown)
            audit = self.audit = AuditLog(settings.audit, lambda entry: line_of(entry, redaction))
            self.dependencies["audit"] = lambda: audit.is_well
            host_sessions.keeps_arguments = True
            host_sessions.observers.append(lambda call: audit.put(entry_of(call)))
            host_sessions.repeated = lambda call: audit.put(entry_of(call, is_repeat=True))

        children = driver.children
        if children.is_well is not None:
            self.dependencies["isolation"] = lambda: children.is_well

    def serves(self) -> bool:
        """Whether this process takes calls, and will for a while (T-153)."""
        engine = self._driver.engine
        return not (engine.is_draining or engine.is_loading or self._is_lame())

    def health(self) -> dict[str, bool | None]:
        """The dependencies of the bridge, and whether each works."""
        made = {name: look() for name, look in self.dependencies.items()}
        for group in self.groups:
            made |= group()
        return made

    def total(self) -> Minute:
        """The counts of all workers; those of single sessions are of this process only."""
        own = self.tally.total()
        if self._summed is None:
            return own
        numbers, made = self._summed(), Minute()
        made.sessions = own.sessions
        for name, told in _TOTALS.items():
            made.counts[name] = int(numbers.counters.get(told, 0))
        outcomes, durations = counted(numbers)
        for key, count in outcomes.items():
            made.outcomes[key] = int(count)
        for tool, parts in durations.items():
            one = made.durations[tool] = Histogram()
            one.counts = [int(parts.get(bound, 0)) for bound in _BOUNDS]
            one.sum_ms = parts.get("sum", 0.0) * 1000
        return made

    def gauges(self) -> Mapping[str, int]:
        """The current values of the gauges, by the names of T-155; called on the loop."""
        numbers = self.numbers() if self._summed is None else self._summed()
        gauges, errors = numbers.gauges, numbers.counters.get("invoker_audit_errors", 0)
        made = {"sessions.active": int(gauges.get("invoker_tool_sessions", 0)), "audit.errors": int(errors)}
        for name in self._host_sessions.tools:
            made[f"tool.{name.id}.active"] = int(gauges.get(f"{_RUNNING} {name.id}", 0))
            made[f"tool.{name.id}.zombies"] = int(gauges.get(f"{_ZOMBIES} {name.id}", 0))
        return made

    def numbers(self) -> Numbers:
        """The counts of this process, by the names that Prometheus gets."""
        total = self.tally.total()
        durations = {
            tool: (list(zip(_BOUNDS, one.counts, strict=True)), one.sum_ms / 1000)
            for tool, one in total.durations.items()
        }
        counters = {told: float(total.counts[name]) for name, told in _TOTALS.items()}
        counters["invoker_audit_errors"] = float(self._audit_errors)
        ids = {tool.function: tool.id for tool in self._host_sessions.tools}
        running, deaf = Counter(self._running()), list(self._driver.zombies())
        gauges = {
            "invoker_tool_sessions": float(len(self._host_sessions.sessions)),
            _RUNNING: float(running.total()),
            _ZOMBIES: float(len(deaf)),
        }
        tools = (UNKNOWN, *ids.values())
        gauges |= tool_gauges(tools, _RUNNING, running)
        gauges |= tool_gauges(tools, _ZOMBIES, Counter(ids[one] for one in deaf if one in ids))
        return Numbers(counters | tool_numbers(tools, total.outcomes, durations), gauges)

    def close(self) -> None:
        """Write the waiting lines of the audit log."""
        if self.audit is not None:
            self.audit.close()

    @property
    def _audit_errors(self) -> int:
        return self.audit.errors if self.audit is not None else 0

    def _running(self) -> list[str]:
        """The tools of the running calls; a tool occurs once for each call."""
        host_sessions = self._host_sessions
        with host_sessions.lock:
            running: list[Any] = [one for session in host_sessions.sessions.values() for one in session.operations]
        tools = (getattr(one, "tool", None) for one in running)
        return [tool.id for tool in tools if tool is not None]

    def _sampled(self) -> Mapping[str, int]:
        """The counts that `HostSessions` keeps itself, by their names."""
        host_sessions = self._host_sessions
        return {
            "sessions.created": host_sessions.created,
            "sessions.expired": host_sessions.expired,
            "stream.chunks": host_sessions.chunks,
            "cache.hits": host_sessions.hits,
            "grpc.messages_too_large": host_sessions.too_large,
        }


def _unknown() -> None:
    return None
