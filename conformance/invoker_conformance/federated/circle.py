"""`Circle`: devices that do secure aggregation together, round by round; some of them leave or lie."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from invoker._pb.federated import federated_api_pb2 as pb
from invoker_conformance.federated.device import CHUNKS, NATIVE, Device
from invoker_conformance.federated.fleet import Fleet
from invoker_conformance.federated.masking import Secret
from invoker_conformance.scenario import NotProvided

LENGTHS = {"w": 5, "odd": 3, "b": 9, "five": 7, "r": 8, "huge": 3}
"""The length of the vectors of the populations with secure aggregation."""


class Circle:
    """Devices of one round.

    Args:
        fleet: The fleet to which the devices belong.
        devices: The devices that were accepted into one round.

    Attributes:
        left: The indices of the devices that still take part.
        summed: The indices of the devices whose input is in the sum.
        secrets: The secrets of each device.
    """

    def __init__(self, fleet: Fleet, devices: list[Device]) -> None:
        self.fleet, self.devices = fleet, devices
        dice = Random(7)
        moduli = {name: one.secure_aggregand.modulus for name, one in devices[0].info.side_channels.items()}
        self.moduli = moduli
        self.inputs = [
            {name: [dice.randrange(moduli[name]) for _ in range(length)] for name, length in LENGTHS.items()}
            for _ in devices
        ]
        self.secrets = [Secret(device.info, inputs) for device, inputs in zip(devices, self.inputs, strict=True)]
        self.left = set(range(len(devices)))
        self.summed: set[int] = set()

    def place(self, index: int) -> int:
        """The position of a device in the lists of its round, which the target chooses; known after `meet`."""
        return self.secrets[index].index

    def leave(self, *indices: int) -> None:
        """Close the connections of these devices without a message."""
        for index in indices:
            self.devices[index].cancel()
            self.left.discard(index)

    def without(self, *indices: int) -> None:
        """Exclude these devices from all further steps."""
        self.left -= set(indices)

    async def advertise(self, *but: int) -> None:
        """Round 0: all devices except ``but`` advertise keys."""
        for index in self._all(but):
            await self.devices[index].secure(advertise_keys=self.secrets[index].advertise())

    async def meet(self, timeout_s: float | None = None) -> None:
        """Wait until each remaining device has the keys of the others."""
        for index in sorted(self.left):
            device = self.devices[index]
            if wrong := self.secrets[index].meet(await device.secret("share_keys_request", timeout_s)):
                raise device.failure(wrong, "a ShareKeysRequest of this round")

    async def share(self, *but: int) -> None:
        """Round 1: all devices except ``but`` share keys."""
        for index in self._all(but):
            await self.devices[index].secure(share_keys_response=self.secrets[index].share())

    async def open(self, timeout_s: float | None = None) -> None:
        """Wait until all remaining devices have the shares of the others."""
        for index in sorted(self.left):
            device = self.devices[index]
            if wrong := self.secrets[index].open(await device.secret("masked_input_request", timeout_s)):
                raise device.failure(wrong, "a MaskedInputCollectionRequest of this round")

    async def send(self, *but: int) -> None:
        """Round 2: all devices except ``but`` send masked inputs and reports."""
        for index in self._all(but):
            await self.devices[index].secure(report=0, masked_input_response=self.secrets[index].masked())
            self.summed.add(index)

    async def asked(self, timeout_s: float | None = None) -> dict[int, Any]:
        """Wait until all remaining devices are asked to unmask; returns the requests by device."""
        return {index: await self.devices[index].secret("unmasking_request", timeout_s) for index in sorted(self.left)}

    async def unmask(self, requests: dict[int, Any], *but: int) -> None:
        """Round 3: all devices except ``but`` answer their requests."""
        for index in self._all(but):
            response = self.secrets[index].unmask(requests[index])
            await self.devices[index].secure(unmasking_response=response)

    async def keyed(self) -> None:
        """Do round 0 with all remaining devices, up to the requests of round 1."""
        await self.advertise()
        await self.meet()

    async def shared(self) -> None:
        """Do round 1 with all remaining devices, up to the requests of round 2."""
        await self.share()
        await self.open()

    async def to_the_masks(self) -> None:
        """Do rounds 0 and 1 with all remaining devices."""
        await self.keyed()
        await self.shared()

    async def to_the_end(self) -> None:
        """Do rounds 2 and 3 with all remaining devices, up to the answers, and check the sum."""
        await self.send()
        await self.summed_up(await self.asked())

    async def summed_up(self, requests: dict[int, Any], *but: int) -> None:
        """Do round 3 with all devices except ``but``, up to the answers of all, and check the sum."""
        await self.unmask(requests, *but)
        await self.thanked(*self.left)
        await self.is_summed()

    async def thanked(self, *indices: int) -> None:
        """Check that these devices get the answer to their reports, perhaps after early success (F-094, F-123)."""

        async def one(device: Device) -> None:
            message = await device.message(2 * self.fleet.timeout_s)
            if message.secure_aggregation_server_message.abort.early_success:
                message = await device.message()
            if message.WhichOneof("kind") != "report_response":
                raise device.failure(f"{message}", "the answer to the report")
            await device.leaves()

        await asyncio.gather(*(one(self.devices[index]) for index in indices))

    async def is_summed(self) -> None:
        """Check that the function got one frame, the sum of the devices in `summed` (F-130)."""
        fleet = self.fleet
        frames = await fleet.frames(count=5, **NATIVE, **CHUNKS)
        if len(frames) != 1:
            raise fleet.failure(f"{len(frames)} frames", "one frame with the sum (F-130)")
        told = pb.Checkpoint.FromString(b64decode(frames[0]["payload"]))
        met = {name: list(one.values) for name, one in told.aggregands.items()}
        wanted = {
            name: [sum(column) % modulus for column in zip(*(self.inputs[at][name] for at in self.summed), strict=True)]
            for name, modulus in self.moduli.items()
        }
        if met != wanted:
            raise fleet.failure(f"the sum {met}", f"{wanted}, of {len(self.summed)} devices")
        clients = frames[0]["headers"].get("num_clients")
        if clients != str(len(self.summed)):
            raise fleet.failure(f"num_clients={clients}", f"{len(self.summed)} (F-130)")

    def _all(self, but: Iterable[int]) -> list[int]:
        return sorted(self.left - set(but))


@asynccontextmanager
async def circle(fleet: Fleet, count: int = 5) -> AsyncIterator[Circle]:
    """Make devices that are accepted into one round with secure aggregation."""
    try:
        import cryptography  # noqa: F401 - the primitives need it
        import numpy as np  # noqa: F401 - and this
    except ImportError:
        raise NotProvided("cryptography and numpy, which the suite itself needs here") from None
    async with fleet.joined(count, **NATIVE, **CHUNKS) as devices:
        yield Circle(fleet, devices)
