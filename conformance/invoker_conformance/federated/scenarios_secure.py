"""Secure aggregation without faults: docs/reference/federated.md 3.6 and 3.8."""

from __future__ import annotations

from grpc import StatusCode

from invoker_conformance.federated.circle import LENGTHS, circle
from invoker_conformance.federated.device import CHUNKS, NATIVE
from invoker_conformance.federated.fleet import Fleet
from invoker_conformance.scenario import scenario

_MODULI = {"w": 1 << 20, "odd": 1000003, "b": 2, "five": 5, "r": 129, "huge": 1 << 62}


@scenario("FT-53", "FT-52", "F-096", "F-098", "F-115", "F-117", "F-094", "F-130", "F-120", function="secret")
async def sum_of_all(fleet: Fleet) -> None:
    """With five devices, none of which is lost, the sums of all moduli are exact."""
    async with circle(fleet) as all_:
        await all_.keyed()
        if [keys for keys, _ in all_.secrets[0].pairs].count(b""):
            raise fleet.failure("empty pairs", "the keys of all devices, since none is dead (F-115)")
        await all_.shared()
        await all_.send()
        requests = await all_.asked()
        if any(request.dead_3_client_ids for request in requests.values()):
            raise fleet.failure(f"{requests[0]}", "no device as missing (F-120)")
        await all_.summed_up(requests)


@scenario("F-089", "F-091", "F-092", "F-047", "FT-70", function="secret")
async def terms_of_an_acceptance(fleet: Fleet) -> None:
    """An acceptance has the variant, every modulus, the largest number of clients, and a majority as threshold."""
    for count in (5, 4):
        async with fleet.devices(count) as devices:
            for device in devices:
                await device.ask(**NATIVE, **CHUNKS)
            for device in devices:
                message = await device.kind("checkin_response")
                response = message.checkin_response
                if response.protocol_options_response.side_channels.secure_aggregation.client_variant != 2:
                    raise device.failure(f"{response.protocol_options_response}", "the variant NATIVE_V1 (F-089)")
                info = response.acceptance_info
                met = {name: one.secure_aggregand.modulus for name, one in info.side_channels.items()}
                if met != _MODULI:
                    raise device.failure(f"{met}", f"{_MODULI} (F-089)")
                terms = info.side_channel_protocol_execution_info.secure_aggregation
                least = terms.minimum_surviving_clients_for_reconstruction
                if terms.expected_number_of_clients != 5 or terms.minimum_clients_in_server_visible_aggregate != 3:
                    raise device.failure(f"{terms}", "5 expected, 3 in a visible sum (F-089, F-091)")
                if not (least >= 2 and 2 * least > count and least == 3):
                    raise device.failure(f"{terms}", "the threshold 3 (F-092)")


@scenario("FT-69", "F-088", function="secret")
async def clients_without_secure_aggregation(fleet: Fleet) -> None:
    """A client without the native variant is rejected."""
    for variants in ([], [0], [1], [0, 1, 99]):
        await fleet.rejects(side_channels={"secure_aggregation": {"client_variant": variants}})
    await fleet.rejects()


@scenario("FT-68", "F-123", "F-094", "F-015", function="secret")
async def early_success(fleet: Fleet) -> None:
    """After three replies the other two devices get early success, and then the answer to their reports."""
    async with circle(fleet) as all_:
        await all_.to_the_masks()
        await all_.send()
        requests = await all_.asked()
        await all_.unmask(requests, 1, 3)
        for index in (1, 3):
            abort = await all_.devices[index].secret("abort")
            if not abort.early_success:
                raise all_.devices[index].failure(f"{abort}", "early_success (F-123)")
        await all_.thanked(*all_.left)
        await all_.is_summed()


@scenario("F-093", "FT-66", function="secret")
async def masked_input_and_report_apart(fleet: Fleet) -> None:
    """A masked input or a report alone is INVALID_ARGUMENT, as is a report with another message.

    The others continue.
    """
    async with circle(fleet) as all_:
        await all_.to_the_masks()
        await all_.devices[1].secure(masked_input_response=all_.secrets[1].masked())
        await all_.devices[1].ends(StatusCode.INVALID_ARGUMENT)
        await all_.devices[4].report()
        await all_.devices[4].ends(StatusCode.INVALID_ARGUMENT)
        all_.without(1, 4)
        await all_.to_the_end()
    async with circle(fleet) as all_:
        await all_.devices[0].secure(report=0, advertise_keys=all_.secrets[0].advertise())
        await all_.devices[0].ends(StatusCode.INVALID_ARGUMENT)


@scenario("FT-65", "F-118", function="secret")
async def values_above_the_modulus(fleet: Fleet) -> None:
    """Packed numbers that are not below the modulus are reduced, so the sum is right."""
    async with circle(fleet) as all_:
        await all_.to_the_masks()
        response = all_.secrets[0].masked()
        # With modulus 5 a number has three bits; the first number of this vector is replaced by one that is 5 larger,
        # if possible.
        packed = bytearray(response.vectors["five"].encoded_vector)
        if (packed[0] & 7) + 5 < 8:
            packed[0] += 5
        response.vectors["five"].encoded_vector = bytes(packed)
        await all_.devices[0].secure(report=0, masked_input_response=response)
        all_.summed.add(0)
        await all_.send(0)
        await all_.summed_up(await all_.asked())


@scenario("F-048", "F-138", function="secret")
async def keys_of_another_round(fleet: Fleet) -> None:
    """Two rounds, one after the other, have other sessions, though their devices have the same keys."""
    async with circle(fleet) as first:
        await first.to_the_masks()
        one = first.secrets[0].session
    async with circle(fleet) as second:
        await second.to_the_masks()
        if len(LENGTHS) != len(second.moduli) or second.secrets[0].session == one:
            raise fleet.failure("the same session", "a session of its own for each round")
