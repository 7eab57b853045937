"""`Fleet`: makes the sessions of one or many devices for the scenarios of the federated chapters."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import grpc

from invoker._pb.federated import federated_api_pb2 as pb
from invoker_conformance.federated.device import Device
from invoker_conformance.http import Answer, Transport
from invoker_conformance.riff.probe import Probe
from invoker_conformance.scenario import Failure, NotProvided
from invoker_conformance.target import Address
from invoker_conformance.wire import end_sending, send

_AGAIN_S = 0.05


class Fleet(Probe):
    """The devices of one scenario; populations take the place of functions."""

    noun = "population"

    def device(self, population: str = "", **metadata: str) -> AbstractAsyncContextManager[Device]:
        """Open a session of a device; at the end it is cancelled if it still runs."""
        pairs = tuple((name.replace("_", "-"), value) for name, value in metadata.items())
        name = population or self.function
        channel = self.target.channel(self.function)
        return self.opened(Device(channel, name, timeout_s=self.timeout_s, metadata=pairs))

    @asynccontextmanager
    async def devices(self, count: int, population: str = "") -> AsyncIterator[list[Device]]:
        """Open ``count`` sessions of devices, which are closed at the end."""
        async with AsyncExitStack() as stack:
            yield [await stack.enter_async_context(self.device(population)) for _ in range(count)]

    @asynccontextmanager
    async def joined(
        self, count: int = 1, population: str = "", *, weights: dict[str, float] | None = None, **fields: Any
    ) -> AsyncIterator[list[Device]]:
        """Make ``count`` devices that are accepted into one round; they retry until the previous round has ended."""
        until = self.clock() + 2 * self.timeout_s
        while True:
            async with self.devices(count, population) as devices:
                for device in devices:
                    await device.ask(weights, **fields)
                decisions = await asyncio.gather(*(device.decided() for device in devices))
                phases = {device.info.execution_phase_id for device in devices}
                if all(decisions) and len(phases) == 1:
                    yield devices
                    return
            if self.clock() > until:
                accepted = f"{sum(decisions)} of {count} devices are accepted, into {len(phases)} rounds"
                raise devices[0].failure(accepted, f"a round with {count} devices")
            await asyncio.sleep(_AGAIN_S)

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[Device]:
        """Make a device that got an ack and waits for a round; it retries until the previous round has ended."""
        until = self.clock() + 2 * self.timeout_s
        while True:
            async with self.device() as device:
                await device.ask(acked=True)
                try:
                    await device.silent(0.5)
                except Failure:
                    if self.clock() > until:
                        raise
                else:
                    yield device
                    return
            await asyncio.sleep(_AGAIN_S)

    async def rejects(self, *args: Any, **fields: Any) -> None:
        """Check that a device is rejected; the arguments are those of `Device.ask`."""
        async with self.device() as device:
            await device.ask(*args, **fields)
            await device.rejected()

    async def takes(self, *args: Any, **fields: Any) -> None:
        """Check that a round of one device answers its report; the arguments are those of `Device.report`."""
        async with self.joined() as (device,):
            await device.report(*args, **fields)
            await device.thanked()

    async def model(self, population: str = "", count: int = 1, **fields: Any) -> bytes:
        """The checkpoint with which the next round of ``count`` devices begins; that round then fails."""
        async with self.aside(), self.joined(count, population, **fields) as devices:
            return devices[0].info.init_checkpoint

    async def total(self, population: str = "", count: int = 1, **fields: Any) -> int:
        """The checkpoint of a population that adds up."""
        return int(await self.model(population, count, **fields))

    async def frames(self, population: str = "", count: int = 1, **fields: Any) -> list[dict[str, Any]]:
        """The frames that the function got, from the checkpoint of a population whose checkpoint lists them."""
        found: list[dict[str, Any]] = json.loads(await self.model(population, count, **fields))
        return found

    async def is_total(self, expected: int, population: str = "", count: int = 1) -> None:
        """Check that the next round begins with this sum."""
        if (met := await self.total(population, count)) != expected:
            raise self.failure(f"a checkpoint of {met}", f"{expected}")

    async def download(self, resource: pb.UriResource) -> Answer:
        """Download a resource that the target offers, by GET."""
        parts = urlsplit(resource.uri)
        if parts.scheme == "https":
            raise NotProvided("resources over plain HTTP")
        if parts.scheme != "http" or parts.hostname != "localhost" or not parts.port:
            raise self.failure(resource.uri, "https, or http://localhost:PORT, which real clients take (F-069)")
        transport = Transport(Address("127.0.0.1", parts.port, is_shared=False), "", timeout_s=self.timeout_s)
        return await transport.exchange("GET", parts.path)

    async def _answers(self, function: str) -> grpc.StatusCode:
        """Ask for the eligibility task, which needs no round, and return the code of the answer."""
        method: Any = self.target.channel(function).stream_stream(Device.path)
        call = method(timeout=self.timeout_s)
        request = pb.EligibilityEvalCheckinRequest(population_name=function)
        message = pb.ClientStreamMessage(eligibility_eval_checkin_request=request)
        await send(call, message.SerializeToString())
        with suppress(grpc.RpcError):
            await call.read()
        await end_sending(call)
        code: grpc.StatusCode = await call.code()
        return code
