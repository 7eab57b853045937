"""Runs scenarios one after the other and says of each: pass, fail, or not provided."""

from __future__ import annotations

import asyncio
import enum
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import grpc

from invoker.conformance.evergreen.stage import Stage
from invoker.conformance.graphpipe.asker import Asker
from invoker.conformance.probe import Probe
from invoker.conformance.scenario import Failure, NotProvided, Scenario
from invoker.conformance.target import Target

__all__ = ["Outcome", "Verdict", "run"]

_SCENARIO_S = 180.0
_PROBES: dict[str, type[Probe]] = {"riff": Probe, "evergreen": Stage, "graphpipe": Asker}
_NOUNS = {"riff": "function", "evergreen": "action", "graphpipe": "model"}


class Verdict(enum.Enum):
    """What is said of a scenario or a requirement."""

    PASS = "pass"  # noqa: S105  # a verdict
    FAIL = "fail"
    NOT_PROVIDED = "not provided"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one scenario.

    Attributes:
        scenario: That was run.
        verdict: PASS, FAIL or NOT_PROVIDED.
        seconds: It took.
        failure: What was sent, met and expected, for FAIL.
        reason: What is not provided, for NOT_PROVIDED.
    """

    scenario: Scenario
    verdict: Verdict
    seconds: float
    failure: Failure | None = None
    reason: str = ""


async def run(
    target: Target, scenarios: Iterable[Scenario], *, each: Callable[[Outcome], None] | None = None
) -> list[Outcome]:
    """Run scenarios against a target, one at a time: they observe counts of the target's process.

    Args:
        target: Under judgement.
        scenarios: In this order.
        each: Told every outcome as soon as it is known.

    Raises:
        Unreachable: Nothing answers at an address of the target.
    """
    outcomes: list[Outcome] = []
    for scenario in scenarios:
        began = time.monotonic()
        verdict, failure, reason = await _judge(target, scenario)
        outcomes.append(Outcome(scenario, verdict, time.monotonic() - began, failure, reason))
        if each is not None:
            each(outcomes[-1])
    return outcomes


async def _judge(target: Target, scenario: Scenario) -> tuple[Verdict, Failure | None, str]:
    probe = _PROBES[scenario.protocol](target, scenario.functions[0])
    if missing := await _missing(probe, scenario):
        return Verdict.NOT_PROVIDED, None, missing
    try:
        async with asyncio.timeout(_SCENARIO_S):
            await scenario.body(probe)
    except NotProvided as absent:
        return Verdict.NOT_PROVIDED, None, str(absent)
    except TimeoutError:
        sent = probe.last_call.sent if probe.last_call else ""
        return Verdict.FAIL, Failure(f"no end within {_SCENARIO_S:g} s", scenario.expects, sent), ""
    except Failure as failure:
        return Verdict.FAIL, failure, ""
    except (ArithmeticError, LookupError, TypeError, ValueError, OSError, grpc.RpcError) as error:
        sent = probe.last_call.sent if probe.last_call else ""
        met = f"an answer that cannot be read: {type(error).__name__}: {error}"
        return Verdict.FAIL, Failure(met, scenario.expects, sent), ""
    except ExceptionGroup as group:
        return Verdict.FAIL, _first_failure(group), ""
    return Verdict.PASS, None, ""


def _first_failure(group: ExceptionGroup[Exception]) -> Failure:
    """The first failure of calls that ran side by side; anything else in the group is raised."""
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
    """Why the target cannot be judged by a scenario; empty when it can."""
    target = probe.target
    if scenario.over_http and target.http_at.of(scenario.functions[0]) is None:
        return f"no --http address for function {scenario.functions[0]}"
    for name in scenario.functions:
        if scenario.over_http and name == scenario.functions[0] and target.grpc_at.of(name) is None:
            continue  # served over HTTP alone: its answer will tell
        if not await probe.provides(name):
            return f"{_NOUNS[scenario.protocol]} {name}"
    return ""
