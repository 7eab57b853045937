"""Whole populations of devices: what the coordinator decides, and what it tells devices and rounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from invoker.errors import FunctionError, InvocationError, Status, StatusError
from invoker.message import Headers
from invoker.protocols.federated.coordinator import CoordinatorLimits
from tests.golden.recorder import Scenario, Trace
from tests.protocols.federated.house import House, population, task


class _Seen:
    """A house, and what has changed in it since it was looked at last."""

    def __init__(self, trace: Trace, *setups: Any, **limits: int) -> None:
        self._trace = trace
        self.house = House(*setups, limits=CoordinatorLimits(**limits) if limits else None)
        self.clients: list[Any] = []
        self._told: dict[int, int] = {}
        self._heard: dict[int, int] = {}

    def join(self, many: int = 1, name: str = "iris", **more: Any) -> None:
        """Some devices check in."""
        for _ in range(many):
            self._try(f"device {len(self.clients)} checks in", lambda: self.clients.append(self.house.client()))
            self._try("  and", lambda: self.clients[-1].check_in(name, **more))
        self.passes(0)

    def report(self, *numbers: int, **more: Any) -> None:
        for number in numbers:
            self._try(f"device {number} reports", lambda: self.clients[number].report(b"%d" % number, **more))  # noqa: B023

    def leave(self, *numbers: int) -> None:
        for number in numbers:
            self._try(f"device {number} leaves", self.clients[number].leave)

    def passes(self, seconds: float) -> None:
        self._try(f"{seconds} s pass", lambda: self.house.passes(seconds))

    def take(self, many: int = 1000) -> None:
        self._try("reports are taken", lambda: self.house.rounds[-1].take(many))

    def finish(self, error: InvocationError | None = None) -> None:
        self._try("the function ends", lambda: self.house.rounds[-1].finish(b"model n", error))

    def stored(self, *, ok: bool = True) -> None:
        self._try(f"stored: {ok}", lambda: self.house.stored(ok=ok))

    def call(self, what: str, call: Callable[[], Any]) -> None:
        self._try(what, call)

    def _try(self, what: str, call: Callable[[], Any]) -> None:
        self._trace.write(f"> {what}")
        try:
            call()
        except InvocationError as error:
            self._trace.write(f"  ! {self._trace.shown(error)}")
        for number, client in enumerate(self.clients):
            for notice in client.notices[self._told.get(number, 0) :]:
                self._trace.write(f"  < device {number} {self._trace.shown(notice)}")
            self._told[number] = len(client.notices)
        for number, one in enumerate(self.house.rounds):
            for word in one.words[self._heard.get(number, 0) :]:
                self._trace.write(f"  < round {number} {self._trace.shown(word)}")
            self._heard[number] = len(one.words)
        for status in self.house.coordinator.status():
            self._trace.write(f"  {self._trace.shown(status)}")
        tally = self.house.coordinator.tally
        self._trace.write(f"  states {self._trace.shown(dict(tally.states))} tick {self.house.coordinator.next_tick()}")


def _commits(trace: Trace) -> None:
    seen = _Seen(trace, population("iris", task(rounds=2)))
    for first in (0, 2, 4):
        seen.join(2)
        seen.report(first + 1, first)
        seen.take()
        seen.finish()
        seen.stored()
        seen.leave(first, first + 1)


def _fails(trace: Trace) -> None:
    for error, ok in ((FunctionError("boom"), True), (None, False)):
        seen = _Seen(trace, population())
        seen.join(2)
        seen.report(0, 1)
        seen.take()
        seen.finish(error)
        if error is None:
            seen.stored(ok=ok)
        seen.join(2)


def _times(trace: Trace) -> None:
    numbers = {"min_clients": 2, "goal_clients": 3, "max_clients": 4, "over_selection": 1.3,
        "selection_timeout_s": 10.0,
               "report_timeout_s": 20.0, "aggregate_timeout_s": 5.0}  # fmt: skip
    seen = _Seen(trace, population("iris", task(**numbers)))
    seen.join(1)
    seen.passes(10)
    seen.join(4)
    seen.join(1)
    seen.report(1)
    seen.passes(19)
    seen.report(2)
    seen.passes(1)
    seen.report(3)
    seen.take()
    seen.passes(5)
    seen.join(3)
    seen.passes(10)


def _lost(trace: Trace) -> None:
    seen = _Seen(trace, population("iris", task(min_clients=2, goal_clients=2, max_clients=3, over_selection=1.5)))
    seen.join(3)
    seen.leave(0)
    seen.report(1, status=13)
    seen.report(2)
    seen.leave(2)
    seen.report(1)
    seen.join(1)


def _admission(trace: Trace) -> None:
    seen = _Seen(trace, population("iris", api_key="key"), population("open", task(), eligibility=True), sessions=4)
    seen.join(1)
    seen.join(1, "roses")
    seen.join(1, "open")
    seen.join(1, "open", weights={"train": 0.0})
    seen.join(1, "open", weights={"train": 1.0}, metadata=Headers({"x-goog-population": "iris"}))
    seen.join(2, "open", weights={"train": 1.0})
    seen.leave(0, 1, 2)
    seen.passes(60)


def _several(trace: Trace) -> None:
    seen = _Seen(trace, population("iris", task("a"), task("b", min_clients=1, goal_clients=1, max_clients=1)))
    seen.join(4)
    seen.report(0, 1, 2, 3)
    seen.take()
    seen.call("the desk drains", seen.house.coordinator.drain)
    seen.join(1)
    seen.passes(100)
    seen.call("the desk stops", seen.house.coordinator.stop)


def _closes(trace: Trace) -> None:
    seen = _Seen(trace, population("iris"), population("roses"))
    seen.join(2)
    seen.join(1, "roses")
    seen.call(
        "iris is closed", lambda: seen.house.coordinator.close("iris", StatusError(Status.UNAVAILABLE, "replaced"))
    )
    seen.join(1)
    seen.call("iris is opened", lambda: seen.house.coordinator.open(population("iris")))
    seen.join(2)
    seen.passes(1000)


_HOUSES: dict[str, Callable[[Trace], None]] = {
    "two rounds": _commits, "rounds that fail": _fails, "time passes": _times, "devices are lost": _lost,
    "admission": _admission,
    "several tasks": _several, "closed and opened": _closes,
}  # fmt: skip


def scenarios() -> dict[str, Scenario]:
    """By what happens."""
    return {f"population: {name}": play for name, play in _HOUSES.items()}
