"""Selection, reporting and closing of rounds: docs/reference/federated.md 3.3."""

from __future__ import annotations

import asyncio

from grpc import StatusCode

from invoker_conformance.federated.fleet import Fleet
from invoker_conformance.scenario import scenario

_LATE = StatusCode.ABORTED


@scenario("FT-35", "F-050", function="cohort")
async def selection_of_too_few(fleet: Fleet) -> None:
    """One device, where a round needs two, is rejected when the selection ends."""
    async with fleet.device() as device:
        await device.ask()
        await device.silent(0.5)
        await device.rejected()


@scenario("FT-35", "F-050", "F-048", function="cohort")
async def selection_of_just_enough(fleet: Fleet) -> None:
    """Two devices are accepted into one round when the selection ends, and not before."""
    async with fleet.devices(2) as (first, second):
        await first.ask()
        await second.ask()
        await first.silent(0.5)
        await asyncio.gather(first.accepted(), second.accepted())
        if first.info.execution_phase_id != second.info.execution_phase_id:
            raise fleet.failure("two ids", "one id for all of a round (F-048)")


@scenario("FT-35", "F-050", "F-052", function="cohort")
async def selection_of_too_many(fleet: Fleet) -> None:
    """Four devices are accepted at once; a fifth is rejected at once."""
    async with fleet.joined(4), fleet.device() as late:
        await late.ask()
        await late.rejected(0.5)


@scenario("FT-37", "F-051", "F-053", "F-016", "F-079", function="cohort")
async def goal_reached(fleet: Fleet) -> None:
    """After the third report the round closes: a client that has not reported gets ABORTED, and is not counted."""
    before = await fleet.total(count=4)
    async with fleet.joined(4) as (*prompt, late):
        for value, device in enumerate(prompt, 1):
            await device.report(b"%d" % value)
        await asyncio.gather(*(device.thanked() for device in prompt))
        await late.ends(_LATE)
    await fleet.is_total(before + 6, count=4)


@scenario("FT-11", "F-016", "F-053", function="cohort")
async def reports_that_race(fleet: Fleet) -> None:
    """Of four reports at the same time each is answered and counted, or gets ABORTED and does not count."""
    before = await fleet.total(count=4)
    async with fleet.joined(4) as devices:
        for value, device in enumerate(devices):
            await device.report(b"%d" % 10**value)
        ends = await asyncio.gather(*(device.answer() for device in devices))
    counted = sum(10**value for value, end in enumerate(ends) if end is None)
    if sum(end is None for end in ends) < 3 or any(end not in (None, _LATE) for end in ends):
        raise fleet.failure(f"{ends}", "at least three answers, and ABORTED (F-016)")
    await fleet.is_total(before + counted, count=4)


@scenario("FT-36", "F-051", "F-014", function="cohort")
async def report_timeout(fleet: Fleet) -> None:
    """With one report of two the round fails at its time limit, and its report does not count.

    With two it is committed.
    """
    before = await fleet.total(count=4)
    for reports in (1, 2):
        async with fleet.joined(4) as devices:
            for device in devices[:reports]:
                await device.report(b"100")
                await device.thanked()
            for device in devices[reports:]:
                await device.ends(_LATE, timeout_s=4.0)
    await fleet.is_total(before + 200, count=4)


@scenario("F-013", "F-051", function="cohort")
async def cohort_that_leaves(fleet: Fleet) -> None:
    """When no device is left the round is over at once, and the next one begins from the same checkpoint."""
    before = await fleet.total(count=4)
    began = fleet.clock()
    for _ in range(3):
        async with fleet.joined(4) as devices:
            for device in devices:
                device.cancel()
    await fleet.is_total(before, count=4)
    if (took := fleet.clock() - began) > 4.0:
        raise fleet.failure(f"{took:.1f} s for four rounds", "that places are free within a second (F-013)")
