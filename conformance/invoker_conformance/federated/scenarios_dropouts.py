"""Devices that leave secure aggregation: docs/reference/federated.md 3.8."""

from __future__ import annotations

from grpc import StatusCode

from invoker_conformance.federated.circle import Circle, circle
from invoker_conformance.federated.device import CHUNKS, NATIVE
from invoker_conformance.federated.fleet import Fleet
from invoker_conformance.scenario import scenario

_LOST = StatusCode.ABORTED


@scenario("FT-54", "F-115", "F-120", "F-122", "F-013", function="secret")
async def one_device_lost_in_each_round(fleet: Fleet) -> None:
    """A device is lost before its keys, its shares or its input, or after it: the sum is that of the others."""
    async with circle(fleet) as all_:
        all_.leave(2)
        await all_.keyed()
        empty = [sum(not any(pair) for pair in all_.secrets[index].pairs) for index in all_.left]
        if empty != [1] * 4 or len(all_.secrets[0].pairs) != 5:
            raise fleet.failure(f"{empty} empty pairs", "one of five, in the place of the lost device (F-115)")
        await all_.shared()
        await all_.to_the_end()
    async with circle(fleet) as all_:
        await all_.keyed()
        all_.leave(0)
        await all_.shared()
        await all_.to_the_end()
    async with circle(fleet) as all_:
        await all_.to_the_masks()
        all_.leave(4)
        await _is_missing(all_, 4)
    async with circle(fleet) as all_:
        await all_.to_the_masks()
        await all_.send()
        requests = await all_.asked()
        all_.leave(1)
        await all_.summed_up(requests)


async def _is_missing(all_: Circle, *indices: int) -> None:
    numbers = sorted(all_.place(index) + 1 for index in indices)
    await all_.send()
    requests = await all_.asked()
    for index, request in requests.items():
        if list(request.dead_3_client_ids) != list(numbers):
            raise all_.devices[index].failure(f"{request}", f"the devices {numbers} as missing, from 1 (F-120)")
    await all_.summed_up(requests)


@scenario("FT-54", "F-115", "F-120", "F-122", "F-123", function="secret")
async def devices_lost_in_several_rounds(fleet: Fleet) -> None:
    """When devices are lost before their shares or inputs, or after their inputs, the sum is that of the rest."""
    async with circle(fleet) as all_:
        await all_.keyed()
        all_.leave(1)
        await all_.shared()
        all_.leave(3)
        await _is_missing(all_, 3)
    async with circle(fleet) as all_:
        await all_.to_the_masks()
        await all_.send()
        requests = await all_.asked()
        all_.leave(0, 4)
        await all_.summed_up(requests)


@scenario("FT-55", "F-124", "F-082", function="secret")
async def too_few_in_each_round(fleet: Fleet) -> None:
    """When only two of five remain, they get a message that too many aborted, and ABORTED; the checkpoint stays."""
    before = await fleet.frames(count=5, **NATIVE, **CHUNKS)
    for stage in range(4):
        async with circle(fleet) as all_:
            if stage > 0:
                await all_.keyed()
            if stage > 1:
                await all_.shared()
            if stage > 2:
                await all_.send()
                await all_.asked()
            all_.leave(0, 1, 2)
            await _all_hear(all_, "Too many clients aborted.")
    if await fleet.frames(count=5, **NATIVE, **CHUNKS) != before:
        raise fleet.failure("another checkpoint", "the old one (F-124)")


async def _all_hear(all_: Circle, text: str) -> None:
    for index in all_.left:
        device = all_.devices[index]
        abort = await device.secret("abort")
        if abort.early_success or text not in abort.diagnostic_info:
            raise device.failure(f"{abort}", text)
        await device.ends(_LOST)


@scenario("F-115", "F-133", "F-125", function="secret")
async def silent_devices(fleet: Fleet) -> None:
    """A device that is silent in a round is dropped at the time limit, with the reason, and the others continue."""
    async with circle(fleet) as all_:
        await all_.advertise(3)
        all_.without(3)
        await all_.meet(4.0)
        abort = await all_.devices[3].secret("abort")
        if "did not send AdvertiseKeys" not in abort.diagnostic_info:
            raise all_.devices[3].failure(f"{abort}", "did not send AdvertiseKeys (F-115)")
        await all_.devices[3].ends(_LOST)
        await all_.share(0)
        all_.without(0)
        await all_.open(4.0)
        abort = await all_.devices[0].secret("abort")
        if abort.early_success:
            raise all_.devices[0].failure(f"{abort}", "no success (F-133)")
        await all_.devices[0].ends(_LOST)
        await all_.to_the_end()


@scenario("F-126", function="secret")
async def devices_that_abort(fleet: Fleet) -> None:
    """A device that aborts gets only the end of its session, and the others continue."""
    async with circle(fleet) as all_:
        await all_.keyed()
        await all_.devices[2].secure(abort={"diagnostic_info": "I leave"})
        if told := await _to_the_end(all_, 2):
            raise all_.devices[2].failure(f"{told}", "the end, and nothing before it (F-126)")
        all_.without(2)
        await all_.shared()
        await all_.devices[0].secure(abort={"diagnostic_info": "so do I"})
        await _to_the_end(all_, 0)
        all_.without(0)
        await _is_missing(all_, 0)


async def _to_the_end(all_: Circle, index: int) -> list[object]:
    return list(await all_.devices[index].ends(StatusCode.CANCELLED))


@scenario("FT-73", "F-129", function="visible")
async def sum_of_too_few(fleet: Fleet) -> None:
    """Three of five have sent inputs and four must be in a sum: no device is asked for a share, and the round fails."""
    before = await fleet.frames(count=5, **NATIVE, **CHUNKS)
    async with circle(fleet) as all_:
        await all_.to_the_masks()
        all_.leave(0, 1)
        await all_.send()
        for index in all_.left:
            await all_.devices[index].secret("abort")  # no request comes before it
            await all_.devices[index].ends(_LOST)
    if await fleet.frames(count=5, **NATIVE, **CHUNKS) != before:
        raise fleet.failure("another checkpoint", "the old one (F-129)")


@scenario("F-060", "F-063", function="secret")
async def plan_that_failed_under_secure_aggregation(fleet: Fleet) -> None:
    """A device that just disconnects, and one that reports an error with its input, are not in the sum."""
    async with circle(fleet) as all_:
        await all_.devices[3].half_close()
        await all_.devices[3].ends(StatusCode.OK, is_silent=True)
        all_.without(3)
        await all_.to_the_masks()
        await all_.devices[1].secure(report=13, masked_input_response=all_.secrets[1].masked())
        await all_.devices[1].thanked()
        all_.without(1)
        await _is_missing(all_, 1)
