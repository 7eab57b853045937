"""`Fleet`: what a scenario of a federated chapter holds in its hands: sessions of devices, one or many."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
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

__all__ = ["Fleet"]

_AGAIN_S = 0.05


class Fleet(Probe):
    """The devices of one scenario; its functions are populations."""

    @asynccontextmanager
    async def device(self, population: str = "", **metadata: str) -> AsyncIterator[Device]:
        """A session; whatever is left of it at the end is cancelled."""
        pairs = tuple((name.replace("_", "-"), value) for name, value in metadata.items())
        name = population or self.function
        device = Device(self.target.channel(self.function), name, timeout_s=self.timeout_s, metadata=pairs)
        self.last_call = device
        try:
            yield device
        finally:
            await device.close()

    @asynccontextmanager
    async def devices(self, count: int, population: str = "") -> AsyncIterator[list[Device]]:
        """Open ``count`` sessions of devices, and close them in the end."""
        async with AsyncExitStack() as stack:
            yield [await stack.enter_async_context(self.device(population)) for _ in range(count)]

    @asynccontextmanager
    async def joined(
        self, count: int = 1, population: str = "", *, weights: dict[str, float] | None = None, **fields: Any
    ) -> AsyncIterator[list[Device]]:
        """So many devices that are accepted into one round; they come again while the round before is not over."""
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

    async def model(self, population: str = "", count: int = 1, **fields: Any) -> bytes:
        """The checkpoint that the next round of so many devices begins with; that round then fails."""
        judged = self.last_call
        async with self.joined(count, population, **fields) as devices:
            checkpoint = devices[0].info.init_checkpoint
        self.last_call = judged
        return checkpoint

    async def total(self, population: str = "", count: int = 1, **fields: Any) -> int:
        """The checkpoint of a population that adds up."""
        return int(await self.model(population, count, **fields))

    async def frames(self, population: str = "", count: int = 1, **fields: Any) -> list[dict[str, Any]]:
        """The checkpoint of a population that shows what the function was given."""
        found: list[dict[str, Any]] = json.loads(await self.model(population, count, **fields))
        return found

    async def is_total(self, expected: int, population: str = "", count: int = 1) -> None:
        """The next round begins with this sum."""
        if (met := await self.total(population, count)) != expected:
            raise self.failure(f"a checkpoint of {met}", f"{expected}")

    def failure(self, met: str, expected: str) -> Failure:
        """A failure that quotes what the last device has sent."""
        return Failure(met, expected, self.last_call.sent if self.last_call else "")

    async def download(self, resource: pb.UriResource) -> Answer:
        """Download a resource that the target offers, by GET."""
        parts = urlsplit(resource.uri)
        if parts.scheme == "https":
            raise NotProvided("resources over plain HTTP")
        if parts.scheme != "http" or parts.hostname != "localhost" or not parts.port:
            raise self.failure(resource.uri, "https, or http://localhost:PORT, which real clients take (F-069)")
        transport = Transport(Address("127.0.0.1", parts.port, is_shared=False), "", timeout_s=self.timeout_s)
        return await transport.exchange("GET", parts.path)

    async def provides(self, function: str) -> bool:
        """Whether the target has a population."""
        return await self.target.provides(function, protocol="federated", ask=self._answers)

    async def _answers(self, function: str) -> grpc.StatusCode:
        """Ask for the eligibility task; nobody waits in a round for that."""
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
