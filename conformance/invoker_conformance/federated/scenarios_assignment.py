"""Scenarios of the assignment of tasks, and of retry windows: docs/reference/federated.md 3.3."""

from __future__ import annotations

import asyncio
import math

from grpc import StatusCode

from invoker_conformance.federated.device import CHUNKS
from invoker_conformance.federated.fleet import Fleet
from invoker_conformance.scenario import scenario

_BAD = StatusCode.INVALID_ARGUMENT
_DEVICES = 240


@scenario("FT-30", "F-046", "F-048", "F-050", function="weighed")
async def tasks_by_weight(fleet: Fleet) -> None:
    """Of 240 devices with the weights 1 and 3 about a quarter gets the first task; each round has one id."""
    async with fleet.devices(_DEVICES) as devices:
        for device in devices:
            await device.ask({"a": 1.0, "b": 3.0})
        infos = await asyncio.gather(*(device.accepted(2 * fleet.timeout_s) for device in devices))
    count = sum(info.task_name == "a" for info in infos)
    expected, spread = _DEVICES / 4, math.sqrt(_DEVICES * 3 / 16)
    if abs(count - expected) > 5 * spread:
        raise fleet.failure(f"{count} of {_DEVICES} devices with the task a", f"about {expected:g} (F-046)")
    if len({(info.task_name, info.execution_phase_id) for info in infos}) != 2:
        raise fleet.failure("several ids in a round", "one id for each of the two rounds (F-048)")


@scenario("F-048", function=("solo", "asked"))
async def ids_of_rounds(fleet: Fleet) -> None:
    """Each round has another id, and the eligibility task has one for all clients."""
    ids = set()
    for _ in range(3):
        async with fleet.joined() as (device,):
            ids.add(device.info.execution_phase_id)
    if len(ids) != 3:
        raise fleet.failure(f"{len(ids)} ids", "one for each of three rounds (F-048)")
    executions = set()
    for _ in range(2):
        async with fleet.device("asked") as device:
            executions.add((await device.try_in()).eligibility_eval_payload.execution_id)
    if len(executions) != 1:
        raise fleet.failure("several ids of the eligibility task", "the same id for all its clients (F-048)")


@scenario("FT-31", "F-044", function=("asked", "solo"))
async def weights_that_cannot_be(fleet: Fleet) -> None:
    """A weight of 0 or below, NaN or infinity is INVALID_ARGUMENT, with an eligibility task and without one."""
    for population in ("asked", "solo"):
        for weight in (0.0, -1.0, math.nan, math.inf):
            async with fleet.device(population) as device:
                await device.ask({"first": 1.0, "second": weight})
                await device.ends(_BAD, is_silent=True)


@scenario("FT-31", "F-044", function="asked")
async def task_with_two_weights(fleet: Fleet) -> None:
    """Two weights of one task are INVALID_ARGUMENT, even for an unknown task."""
    for name in ("first", "nobody"):
        info = {"version": 1, "task_weights": [{"task_name": name, "weight": 1.0}] * 2}
        async with fleet.device() as device:
            await device.ask(task_eligibility_info=info)
            await device.ends(_BAD, is_silent=True)


@scenario("FT-32", "F-043", "F-045", "F-041", function="asked")
async def tasks_without_a_weight(fleet: Fleet) -> None:
    """Only tasks with a weight are assigned; without a known task the client is rejected."""
    for _ in range(6):
        async with fleet.joined(weights={"second": 1.0, "nobody knows this": 5.0}) as (device,):
            if device.info.task_name != "second":
                raise device.failure(f"the task {device.info.task_name}", "second (F-043)")
    for weights in ({}, {"nobody knows this": 1.0}):
        await fleet.rejects(weights)


@scenario("FT-33", "F-041", function="asked")
async def checkin_without_eligibility(fleet: Fleet) -> None:
    """A checkin without eligibility gets a rejection and OK, with or without an eligibility task."""
    await fleet.rejects()
    async with fleet.device() as device:
        await device.try_in()
        await device.ask()
        await device.rejected()


@scenario("FT-34", "F-045", function="asked")
async def eligibility_of_another_version(fleet: Fleet) -> None:
    """A checkin with the weights of another version is rejected, also if the weights cannot be read."""
    for weights in ({"first": 1.0}, {"first": -1.0}):
        await fleet.rejects(weights, version=2)


@scenario("F-042", function="solo")
async def eligibility_that_nobody_asked_for(fleet: Fleet) -> None:
    """Eligibility info that was not requested is respected: only a task that it names is assigned."""
    async with fleet.joined(weights={"sum": 1.0}) as (device,):
        if device.info.task_name != "sum":
            raise device.failure(f"the task {device.info.task_name}", "sum (F-042)")
    await fleet.rejects({"other": 1.0})


@scenario("FT-38", "F-054", "F-055", "F-059", function=("solo", "other"))
async def retry_tokens(fleet: Fleet) -> None:
    """A device with a token before its time is rejected; a forged token, or another population's, is ignored."""
    async with fleet.device() as device:
        told = await device.ask(acked=True)
        await device.decided()
    assert told is not None
    token = told.retry_window_if_accepted.retry_token
    if not token:
        raise fleet.failure("windows without a token", "a token, since the window begins in 5 s (F-054)")
    await fleet.rejects(retry_token=token)
    for forged in (token[:-2] + ("AA" if token[-2:] != "AA" else "BB"), "x" * 300, "é", "AAAA"):
        async with fleet.joined(retry_token=forged):
            pass
    async with fleet.joined(population="other", retry_token=token):
        pass


@scenario("F-138", "FT-81", function=("solo", "other"))
async def populations_beside_each_other(fleet: Fleet) -> None:
    """Rounds of several populations run at the same time, and each counts its own reports."""
    before = [await fleet.total(name) for name in ("solo", "other")]
    for _ in range(3):
        async with fleet.joined(population="solo", **CHUNKS) as (one,), fleet.joined(population="other") as (two,):
            await two.report(b"10")
            await one.report(b"1")
            await asyncio.gather(one.thanked(), two.thanked())
    await fleet.is_total(before[0] + 3, "solo")
    await fleet.is_total(before[1] + 30, "other")
