"""Runs scenarios one after the other; the verdict of each is pass, fail, not provided, or not judged.

If the process of a target ends, only the scenario in which it ended fails. Later scenarios that need this process are
not judged until the process is started again.
"""

from __future__ import annotations

import asyncio
import enum
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import grpc

from invoker_conformance.catalogue import ALL
from invoker_conformance.evergreen.stage import Stage
from invoker_conformance.federated.fleet import Fleet
from invoker_conformance.graphpipe.asker import Asker
from invoker_conformance.riff.probe import Probe
from invoker_conformance.scenario import Failure, NotProvided, Scenario
from invoker_conformance.target import Address, Target, Unreachable
from invoker_conformance.toolbridge.host import Host

_SCENARIO_S = 180.0
_PROBES: dict[str, type[Probe]] = {
    "riff": Probe,
    "evergreen": Stage,
    "graphpipe": Asker,
    "toolbridge": Host,
    "federated": Fleet,
}
_SURVIVAL = "R-013"


class Verdict(enum.Enum):
    """The verdict on a scenario or a requirement."""

    PASS = "pass"  # noqa: S105 - it is a verdict and no password
    FAIL = "fail"
    NOT_PROVIDED = "not provided"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one scenario.

    Attributes:
        scenario: The scenario that was run.
        verdict: Any member of `Verdict`.
        seconds: How many seconds it took.
        failure: What was sent, met and expected, for FAIL.
        reason: The missing feature, for NOT_PROVIDED; the reason, for NOT_JUDGED.
    """

    scenario: Scenario
    verdict: Verdict
    seconds: float
    failure: Failure | None = None
    reason: str = ""

    @property
    def broken(self) -> tuple[str, ...]:
        """The ids of the requirements that a failure breaks; empty without a failure."""
        if self.failure is None:
            return ()
        if self.failure.breaks:
            return self.failure.breaks
        # Requirements about the survival of other calls are only broken by scenarios that check them explicitly.
        return tuple(id_ for id_ in self.scenario.requirements if id_ != _SURVIVAL) or self.scenario.requirements

    @property
    def is_binding(self) -> bool:
        """Whether the failure breaks a requirement that every server must obey."""
        return any(ALL[id_].is_binding for id_ in self.broken)


async def run(
    target: Target, scenarios: Iterable[Scenario], *, each: Callable[[Outcome], None] | None = None
) -> list[Outcome]:
    """Run scenarios against a target, one at a time, since they observe counts in the target's process.

    Args:
        target: The server under test.
        scenarios: The scenarios, in the order of running.
        each: Called with each outcome as soon as it is known.

    Raises:
        Unreachable: An address of the target never had a listener.
    """
    outcomes: list[Outcome] = []
    ended: dict[Address, str] = {}
    for scenario in scenarios:
        began = time.monotonic()
        verdict, failure, reason = await _judge(target, scenario, ended)
        outcomes.append(Outcome(scenario, verdict, time.monotonic() - began, failure, reason))
        if each is not None:
            each(outcomes[-1])
    return outcomes


_Judged: TypeAlias = tuple[Verdict, Failure | None, str]


async def _judge(target: Target, scenario: Scenario, ended: dict[Address, str]) -> _Judged:
    """Run one scenario; ``ended`` has, by address, the scenarios in which processes ended."""
    addresses = target.addresses(scenario.functions, over_http=scenario.over_http)
    for address in addresses:
        if address in ended and not await target.listens(address):
            return Verdict.NOT_JUDGED, None, f"the process at {address} ended in {ended[address]}"
        ended.pop(address, None)
    probe = _PROBES[scenario.protocol](target, scenario.functions[0])
    try:
        judged = await _run(probe, scenario)
    except Unreachable as error:
        judged = Verdict.FAIL, Failure(str(error), scenario.expects, ""), ""
        if not all(target.has_answered(address) for address in addresses):
            raise
    if judged[1] is None:
        return judged
    gone = [address for address in addresses if not await target.listens(address)]
    ended.update(dict.fromkeys(gone, scenario.name))
    if gone:
        met = f"the process at {gone[0]} ended; before: {judged[1].met}"
        return Verdict.FAIL, Failure(met, "that the process goes on", judged[1].sent, breaks=(_SURVIVAL,)), ""
    return judged


async def _run(probe: Probe, scenario: Scenario) -> _Judged:
    try:
        if missing := await _missing(probe, scenario):
            return Verdict.NOT_PROVIDED, None, missing
        async with asyncio.timeout(_SCENARIO_S):
            await scenario.body(probe)
    except NotProvided as absent:
        return Verdict.NOT_PROVIDED, None, str(absent)
    except TimeoutError:
        return Verdict.FAIL, probe.failure(f"no end within {_SCENARIO_S:g} s", scenario.expects), ""
    except Failure as failure:
        return Verdict.FAIL, failure, ""
    except (ArithmeticError, LookupError, TypeError, ValueError, OSError, grpc.RpcError) as error:
        met = f"an answer that cannot be read: {type(error).__name__}: {error}"
        return Verdict.FAIL, probe.failure(met, scenario.expects), ""
    except ExceptionGroup as group:
        return Verdict.FAIL, _first_failure(group), ""
    return Verdict.PASS, None, ""


def _first_failure(group: ExceptionGroup[Exception]) -> Failure:
    """The first failure of concurrent calls; raises the group if it has other exceptions."""
    failures, others = group.split(Failure)
    if failures is None or others is not None:
        raise others or group
    return next(_leaves(failures))


def _leaves(group: ExceptionGroup[Failure]) -> Iterator[Failure]:
    for error in group.exceptions:
        if isinstance(error, Failure):
            yield error
        else:
            yield from _leaves(error)


async def _missing(probe: Probe, scenario: Scenario) -> str:
    """The reason why a scenario cannot be run against the target; empty if it can."""
    target = probe.target
    if scenario.over_http and target.http_at.of(scenario.functions[0]) is None:
        return f"an --http address for function {scenario.functions[0]}"
    for name in scenario.functions:
        if scenario.over_http and name == scenario.functions[0] and target.grpc_at.of(name) is None:
            continue  # a function that is only served over HTTP is assumed to exist
        if not await probe.provides(name):
            return f"{probe.noun} {name}"
    return ""
