"""`Engine`: admits invocations, negotiates them, counts them, and drains.

The engine knows every running invocation and never waits for one: a driver calls `open`, runs the invocation that it
gets, and calls `close` when that is over. Observers (logs, metrics) read its counters, or are called by `close` for all
ended invocations or those of one protocol; sessions never see the observers.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from invoker.author.lift import Function
from invoker.codecs import Registry
from invoker.context import Context, Scope
from invoker.core.budget import Budget, Limits, ProcessBudget
from invoker.core.catalog import Catalog
from invoker.core.invocation import Invocation
from invoker.core.limits import Limiter, limit_of
from invoker.core.plan import Plan, Plans
from invoker.core.policy import ErrorPolicy
from invoker.core.steps import Open
from invoker.core.unary import UnaryInvocation
from invoker.errors import InvocationError, NotReady, Overloaded, ShuttingDown, Status, let_go
from invoker.errors.wording import draining
from invoker.message import Headers, Message, as_headers


@dataclass(slots=True)
class Counters:
    """Sums since the process started; plain integers, which metrics and logs read."""

    opened: int = 0
    refused: int = 0
    finished: dict[Status, int] = field(default_factory=dict)
    frames_in: int = 0
    frames_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    seconds: float = 0.0


class Engine:
    """Admits, negotiates, limits and drains the invocations of one process.

    Attributes:
        plans: The kept plans; new ones replace them when the codecs or the limits have changed.
        full_since: When the first invocation was refused for ``max_invocations`` after an invocation last ended, on the
            clock of ``time.monotonic``; 0 if none was refused since then.
        on_close: Called with each invocation that has ended.
        on_close_of: By the name of a protocol, the functions that are called with each ended invocation of this
            protocol.

    Args:
        catalog: The functions that are served.
        registry: Codecs; each function sees them plus the media types that it declares itself.
        limits: How much unread input an invocation may hold.
        max_invocations: How many invocations may run at once; 0 means no limit.
        memory_bytes: The bytes that all conversations together may hold unread.
        check_outputs: Whether values of another type than their function declares are refused.
        policy: Decides how the errors that end invocations are shown.
        new_lock: Makes the locks around admission, counting and the kept plans; ``threading.Lock`` where several
            threads open or close invocations.
    """

    def __init__(
        self,
        catalog: Catalog,
        registry: Registry,
        *,
        limits: Limits | None = None,
        max_invocations: int = 0,
        check_outputs: bool = True,
        memory_bytes: int = 512 * 1024 * 1024,
        policy: ErrorPolicy | None = None,
        new_lock: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self.memory = ProcessBudget(memory_bytes, new_lock())
        self.catalog = catalog
        self.registry = registry
        self.limits = limits or Limits()
        self.max_invocations = max_invocations
        self.check_outputs = check_outputs
        self.policy = policy or ErrorPolicy()
        self.is_draining = False
        self.is_loading = False
        self.full_since = 0.0
        self.scope: Scope | None = None
        self.lock = new_lock()
        self._new_lock = new_lock
        self.running: dict[str, Invocation] = {}
        self.counters = Counters()
        self.on_close: list[Callable[[Invocation], None]] = []
        self.on_close_of: dict[str, tuple[Callable[[Invocation], None], ...]] = {}
        self._numbers = itertools.count(1)
        self.limiter = Limiter()
        self.plans = self._new_plans()

    def limit_calls(self, per_minute: int) -> None:
        """Limit how many invocations of all functions may begin within any 60 seconds; 0 means no limit."""
        self.limiter = Limiter(per_minute)
        self.plans = self._new_plans()

    def open(
        self,
        command: Open,
        *,
        deadline: float | None = None,
        limits: Limits | None = None,
        is_counted: bool = True,
        is_early: bool = False,
        plan: Plan | None = None,
        messages: list[Message[bytes]] | None = None,
    ) -> Invocation:
        """Admit and negotiate one invocation; the caller runs it and must `close` it.

        Args:
            command: The step of the session.
            deadline: The deadline on the clock of ``time.monotonic``, or None.
            limits: How much unread input this invocation may hold; None: as much as the engine's limits allow.
            is_counted: Whether its unread input counts against `memory`; else its conversation counts it.
            is_early: Whether the request came before the drain began, so that the drain does not refuse it (G-104).
            plan: The result of `plan` for this step, if the caller has it already.
            messages: One message of each input, if they have come and the plan is unary; the invocation is a
                `UnaryInvocation` then.

        Raises:
            NotReady: The functions are not loaded yet.
            ShuttingDown: The process drains (R-025).
            Overloaded: ``max_invocations`` run already (R-132).
            LimitReached: The function takes no more calls at once, or in this minute, see `invoker.core.limits`.
            ProtocolViolation: Unknown function, a wrong number of inputs or outputs (R-052, R-055), or inputs bound by
                names that it does not have (E-076, E-077).
            NotAcceptable: An output has no codec for what is accepted (R-100).
        """
        try:
            if self.is_loading or self.is_draining or self.max_invocations:
                self._admit(is_early=is_early)
            plan, limit = plan or self.plan(command), None
            if plan.bounds is not None or command.timeout_s is not None:
                limit = limit_of(plan.bounds, command.timeout_s)
                if limit is not None:
                    deadline = limit.ends_at if deadline is None else min(deadline, limit.ends_at)
            context = Context(
                f"i{next(self._numbers)}",
                plan.function.spec.name,
                input_names=plan.input_names,
                output_names=plan.output_names,
                accepts=plan.accepts,
                metadata=command.metadata if type(command.metadata) is Headers else as_headers(command.metadata),
                deadline=deadline,
                configs=command.configs,
            )
            context.scope = command.scope or self.scope
            context.caller = command.caller
            invocation: Invocation
            if messages is not None:
                invocation = UnaryInvocation(plan, command.id, context, self.limits, self.policy, messages)
            else:
                budget = Budget(limits or self.limits, memory=self.memory if is_counted else None)
                invocation = Invocation(plan, command.id, context, budget, self.policy)
            invocation.protocol = command.protocol
            invocation.limit = limit
            if plan.function.spec.isolation:
                invocation.order = command
            with self.lock:
                if self.is_draining or self.max_invocations:
                    self._admit(is_early=is_early)
                if plan.bounds is not None:
                    invocation.has_place = self.limiter.enter(plan.function.spec.name, plan.bounds, command.party)
                self.counters.opened += 1
                self.running[invocation.id] = invocation
        except InvocationError:
            with self.lock:
                self.counters.refused += 1
            raise
        return invocation

    def close(self, invocation: Invocation) -> None:
        """Forget a finished invocation and add up what it did."""
        counters = self.counters
        status = invocation.error.status if invocation.error is not None else Status.OK
        with self.lock:
            if self.running.pop(invocation.id, None) is None:
                return
            self.full_since = 0.0
            counters.finished[status] = counters.finished.get(status, 0) + 1
            counters.frames_in += invocation.frames_in
            counters.frames_out += invocation.frames_out
            counters.bytes_in += invocation.bytes_in
            counters.bytes_out += invocation.bytes_out
            counters.seconds += invocation.took_s
        for observer in self.on_close:
            observer(invocation)
        for observer in self.on_close_of.get(invocation.protocol, ()):
            observer(invocation)
        if invocation.error is not None:
            let_go(invocation.error)

    def left(self, invocation: Invocation) -> None:
        """Free the place of an invocation whose `has_place` is set: its user code has returned, or will never run."""
        with self.lock:
            if invocation.has_place:
                invocation.has_place = False
                self.limiter.leave(invocation.function.spec.name)

    def _admit(self, *, is_early: bool) -> None:
        if self.is_loading:
            raise NotReady("the functions of this invoker are still loading; try again when it is ready")
        if self.is_draining and not is_early:
            raise ShuttingDown(draining("invocations"))
        count = len(self.running) + self.memory.unread
        if self.max_invocations and count >= self.max_invocations:
            self.full_since = self.full_since or time.monotonic()
            many = "invocation is" if count == 1 else "invocations are"
            raise Overloaded(f"{count} {many} running, and no more are allowed at once")

    def registry_for(self, function: Function) -> Registry:
        """The codecs of a function, plus raw bytes for the media types that only this function declares."""
        return self._fresh_plans().registry_for(function)

    def plan(self, command: Open) -> Plan:
        """Make or find the plan of an invocation, the result of the negotiation; raises the errors of `open`."""
        catalog, plans = self.catalog, self.plans
        function = catalog.find(command.function)
        if plans.version is not self.registry.version:
            plans = self._fresh_plans()
        # A function that is made anew for each invocation is never asked for again, and must be released.
        return plans.make(function, command) if catalog.renews else plans.of(function, command)

    def _fresh_plans(self) -> Plans:
        """The cached plans; a new cache if the codecs have changed since it was made."""
        plans = self.plans
        if plans.version is not self.registry.version:
            plans = self.plans = self._new_plans()
        return plans

    def _new_plans(self) -> Plans:
        is_bounded = self.limiter.per_minute > 0
        return Plans(self.registry, self._new_lock(), check_outputs=self.check_outputs, is_bounded=is_bounded)
