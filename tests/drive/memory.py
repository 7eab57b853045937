"""A channel of lists, and one call of a function through the real session, pump and driver."""

from __future__ import annotations

import asyncio
from typing import Any

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.body.prepare import prepare_function
from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.session import Session
from invoker.core.streams import Limits
from invoker.drive.driver import Driver, DriverSettings
from invoker.drive.pump import pump
from invoker.errors import InvocationError
from invoker.protocols.riff.session import RiffSession

__all__ = ["Peer", "driver_of", "drivers"]

drivers: list[Driver] = []
"""Those that the running test has made."""


def driver_of(*functions: Any, limits: Limits | None = None, **settings: Any) -> Driver:
    """A driver for functions."""
    catalog = Catalog([prepare_function(one).function for one in functions])
    drivers.append(Driver(Engine(catalog, builtin(entry_points=False), limits=limits), DriverSettings(**settings)))
    return drivers[-1]


class Peer:
    """One conversation: what the caller sends is put, what it gets is collected."""

    def __init__(self, driver: Driver, *, deadline: float | None = None, session: Session | None = None) -> None:
        self.driver = driver
        self.sent: asyncio.Queue[Any] = asyncio.Queue()
        self.got: list[pb.OutputFrame] = []
        self.arrived = asyncio.Condition()
        self.reading = asyncio.Event()
        self.reading.set()
        self.is_accepted = False
        self.reads = self.settled = 0
        self.task = asyncio.get_running_loop().create_task(
            pump(session or RiffSession(), self, driver, deadline=deadline)
        )

    async def read(self) -> bytes | None:
        frame = await self.sent.get()
        self.reads += 1
        if isinstance(frame, InvocationError):
            raise frame
        return frame

    async def settle(self) -> None:
        self.settled += 1

    async def accepted(self) -> None:
        self.is_accepted = True

    async def write(self, frame: bytes) -> None:
        await self.reading.wait()
        await asyncio.sleep(0)  # as a real wire does
        async with self.arrived:
            self.got.append(pb.OutputSignal.FromString(frame).data)
            self.arrived.notify_all()

    def start(self, *types: str, names: tuple[str, ...] = ()) -> Peer:
        frame = pb.StartFrame(expectedContentTypes=types or ("application/json",), inputNames=names)
        self.sent.put_nowait(pb.InputSignal(start=frame).SerializeToString())
        return self

    def data(self, payload: bytes, index: int = 0, media_type: str = "application/json") -> Peer:
        frame = pb.InputFrame(payload=payload, contentType=media_type, argIndex=index)
        self.sent.put_nowait(pb.InputSignal(data=frame).SerializeToString())
        return self

    def raw(self, frame: Any) -> Peer:
        self.sent.put_nowait(frame)
        return self

    def half_close(self) -> Peer:
        self.sent.put_nowait(None)
        return self

    async def outputs(self, count: int) -> list[bytes]:
        """The first ``count`` payloads, once they have arrived."""
        async with self.arrived:
            await self.arrived.wait_for(lambda: len(self.got) >= count)
        return [one.payload for one in self.got[:count]]

    async def end(self) -> InvocationError | None:
        """How the conversation ended."""
        return await self.task

    def payloads(self, index: int = 0) -> list[bytes]:
        """What one output has got so far."""
        return [one.payload for one in self.got if one.resultIndex == index]
