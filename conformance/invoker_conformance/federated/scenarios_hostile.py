"""Devices that lie in secure aggregation: docs/reference/federated.md 3.8. Only these devices are dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from grpc import StatusCode

from invoker._pb.federated import secagg_messages_pb2 as pb
from invoker.protocols.federated.wire.keys import KeyPair
from invoker_conformance.federated.circle import Circle, circle
from invoker_conformance.federated.device import CHUNKS, NATIVE, Device
from invoker_conformance.federated.fleet import Fleet
from invoker_conformance.scenario import scenario

Change: TypeAlias = Callable[[pb.UnmaskingResponse], object]

_X_WITHOUT_Y = b"\x02" + bytes(31) + b"\x01"
"""An x-coordinate that no point of the curve has."""


async def _put_out(device: Device) -> None:
    """Check that a device gets an abort without success, and INVALID_ARGUMENT."""
    abort = await device.secret("abort")
    if abort.early_success or not abort.diagnostic_info:
        raise device.failure(f"{abort}", "an abort that says why")
    await device.ends(StatusCode.INVALID_ARGUMENT)


@scenario("FT-56", "FT-57", "F-113", "F-114", function="secret")
async def keys_that_are_none(fleet: Fleet) -> None:
    """A client whose key is not on the curve, or has a wrong size, is dropped, and the others continue."""
    good = KeyPair().public
    pairs = [
        (_X_WITHOUT_Y, good),
        (good, _X_WITHOUT_Y),
        (bytes(33), good),
        (b"\x04" + bytes(64), good),
        (good[:32], good),
        (b"", good),
    ]
    for at in range(0, len(pairs), 2):
        async with circle(fleet) as all_:
            liars = (1, 3)[: len(pairs[at : at + 2])]
            for index, (noise, enc) in zip(liars, pairs[at : at + 2], strict=True):
                keys = {"pair_of_public_keys": {"noise_pk": noise, "enc_pk": enc}}
                await all_.devices[index].secure(advertise_keys=keys)
                await _put_out(all_.devices[index])
                all_.without(index)
            await all_.to_the_masks()
            await all_.to_the_end()


@scenario("FT-57", "F-113", function="secret")
async def keys_of_another(fleet: Fleet) -> None:
    """The second of two clients with equal keys is dropped."""
    async with circle(fleet) as all_:
        await all_.devices[0].secure(advertise_keys=all_.secrets[0].advertise())
        await all_.devices[0].silent(0.2)
        await all_.devices[1].secure(advertise_keys=all_.secrets[0].advertise())
        await _put_out(all_.devices[1])
        all_.without(1)
        await all_.advertise(0)
        await all_.meet()
        await all_.shared()
        await all_.to_the_end()


@scenario("F-116", "F-125", function="secret")
async def shares_that_do_not_fit(fleet: Fleet) -> None:
    """A client that sends too few shares, or one for itself, is dropped, and is dead for the others."""
    async with circle(fleet) as all_:
        await all_.keyed()
        short, own = all_.secrets[0].share(), all_.secrets[2].share()
        del short.encrypted_key_shares[-1]
        own.encrypted_key_shares[all_.place(2)] = own.encrypted_key_shares[all_.place(1)]
        for index, response in ((0, short), (2, own)):
            await all_.devices[index].secure(share_keys_response=response)
            await _put_out(all_.devices[index])
            all_.without(index)
        await all_.shared()
        await all_.to_the_end()
    async with circle(fleet) as all_:
        await all_.keyed()
        lacking = all_.secrets[4].share()
        lacking.encrypted_key_shares[all_.place(0)] = b""
        await all_.devices[4].secure(share_keys_response=lacking)
        await _put_out(all_.devices[4])


@scenario("FT-58", "F-117", "F-126", function="secret")
async def share_that_cannot_be_opened(fleet: Fleet) -> None:
    """A share that cannot be opened is passed on; its receiver reports it and leaves, and the round continues."""
    async with circle(fleet) as all_:
        await all_.keyed()
        await all_.share(0)
        broken = all_.secrets[0].share()
        changed = _other(broken.encrypted_key_shares[all_.place(3)])
        broken.encrypted_key_shares[all_.place(3)] = changed
        await all_.devices[0].secure(share_keys_response=broken)
        request = await all_.devices[3].secret("masked_input_request")
        if request.encrypted_key_shares[all_.place(0)] != changed:
            raise all_.devices[3].failure("another share", "the share of device 0 for device 3, in its place (F-117)")
        await all_.devices[3].secure(abort={"diagnostic_info": "a share could not be opened"})
        await all_.devices[3].ends(StatusCode.CANCELLED)
        all_.without(3)
        await all_.open()
        await all_.to_the_end()


@scenario("FT-64", "F-118", function="secret")
async def vectors_that_do_not_fit(fleet: Fleet) -> None:
    """A client whose vectors have wrong sizes, names or numbers is dropped, and counts as missing."""
    changes: tuple[Callable[[pb.MaskedInputCollectionResponse], object], ...] = (
        lambda one: setattr(one.vectors["w"], "encoded_vector", one.vectors["w"].encoded_vector + b"\0"),
        lambda one: setattr(one.vectors["w"], "encoded_vector", b""),
        lambda one: one.vectors["x"].CopyFrom(one.vectors.pop("w")),
        lambda one: one.vectors["x"].CopyFrom(one.vectors["w"]),
        lambda one: one.vectors.pop("r"),
        lambda one: one.vectors.clear(),
    )
    for at in range(0, len(changes), 2):
        async with circle(fleet) as all_:
            await all_.to_the_masks()
            for index, change in zip((0, 4), changes[at : at + 2], strict=True):
                response = all_.secrets[index].masked()
                change(response)
                await all_.devices[index].secure(report=0, masked_input_response=response)
                await _put_out(all_.devices[index])
                all_.without(index)
            await all_.to_the_end()


@scenario("FT-61", "F-121", function="secret")
async def unmasking_replies_that_do_not_fit(fleet: Fleet) -> None:
    """A client whose unmasking reply has entries of a wrong number, kind or size is dropped alone."""
    changes: tuple[Change, ...] = (
        lambda one: one.noise_or_prf_key_shares.pop(),
        lambda one: one.noise_or_prf_key_shares.add(),
        lambda one: setattr(one.noise_or_prf_key_shares[0], "noise_sk_share", bytes(36)),
        lambda one: one.noise_or_prf_key_shares[4].Clear(),
        lambda one: setattr(one.noise_or_prf_key_shares[2], "prf_sk_share", bytes(35)),
    )
    for at in range(0, len(changes), 2):
        async with circle(fleet) as all_:
            await all_.to_the_masks()
            await all_.send()
            requests = await all_.asked()
            for index, change in zip((0, 1), changes[at : at + 2], strict=False):
                reply = all_.secrets[index].unmask(requests[index])
                change(reply)
                await all_.devices[index].secure(unmasking_response=reply)
                await _put_out(all_.devices[index])
                all_.without(index)
            await all_.summed_up(requests)


@scenario("F-125", function="secret")
async def messages_out_of_their_rounds(fleet: Fleet) -> None:
    """A client that sends a message twice, or one of a later round, is dropped, and the round continues."""
    async with circle(fleet) as all_:
        for _ in range(2):
            await all_.devices[0].secure(advertise_keys=all_.secrets[0].advertise())
        await _put_out(all_.devices[0])
        await all_.devices[1].secure(unmasking_response={})
        await _put_out(all_.devices[1])
        all_.without(0, 1)
        await all_.to_the_masks()
        await all_.to_the_end()


async def _lie(all_: Circle, liar: int, change: Change) -> None:
    """All devices but the last have sent inputs; one lies about the shares that it holds."""
    await all_.to_the_masks()
    all_.leave(4)
    await all_.send()
    requests = await all_.asked()
    reply = all_.secrets[liar].unmask(requests[liar])
    change(reply)
    await all_.devices[liar].secure(unmasking_response=reply)
    await all_.devices[liar].silent(0.1)
    await all_.unmask(requests, liar)


def _other(share: bytes) -> bytes:
    return share[:-1] + bytes([share[-1] ^ 1])


@scenario("FT-59", "F-127", "F-135", function="secret")
async def wrong_share_of_a_noise_key(fleet: Fleet) -> None:
    """A wrong share is detected, and the secret is recovered from the shares of others."""
    for wrong in (_other, lambda share: b"\xff" * len(share)):
        async with circle(fleet) as all_:

            def change(reply: pb.UnmaskingResponse, wrong: Callable[[bytes], bytes] = wrong) -> None:
                for entry in reply.noise_or_prf_key_shares:
                    if entry.HasField("noise_sk_share"):
                        entry.noise_sk_share = wrong(entry.noise_sk_share)

            await _lie(all_, 0, change)
            await all_.thanked(1, 2, 3)
            await all_.is_summed()


@scenario("FT-60", "FT-77", "F-128", "F-135", function="secret")
async def wrong_share_of_an_own_mask(fleet: Fleet) -> None:
    """A wrong share of a mask is detected: the sum is right or the round fails, and no wrong sum is seen."""
    before = await fleet.frames(count=5, **NATIVE, **CHUNKS)
    async with circle(fleet) as all_:

        def change(reply: pb.UnmaskingResponse) -> None:
            # The first limb of a secret has eight bits, so a wrong share nearly always leads to an impossible limb.
            for entry in reply.noise_or_prf_key_shares:
                if entry.HasField("prf_sk_share"):
                    entry.prf_sk_share = bytes([entry.prf_sk_share[0] ^ 0x40]) + entry.prf_sk_share[1:]

        await _lie(all_, 1, change)
        end = await all_.devices[0].finished()
        if end is StatusCode.OK:
            await all_.is_summed()
        elif end is not StatusCode.ABORTED or await fleet.frames(count=5, **NATIVE, **CHUNKS) != before:
            raise fleet.failure(f"{end}", "the right sum, or ABORTED and the old checkpoint (F-128)")
