"""Several functions on one driver, called as riff callers call them: on the loop, or whole in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from typing import Any

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.author.prepare import prepare_function
from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.invocation import Invocation
from invoker.errors import InvocationError
from invoker.execution.driver import Driver, DriverSettings
from invoker.execution.loop.request import converse
from invoker.execution.nested.scope import CatalogScope
from invoker.message import EMPTY
from invoker.protocols.riff.session import RiffSession
from tests.execution.wholes import WholeCall


def _frames(values: tuple[Any, ...]) -> list[bytes]:
    start = pb.StartFrame(expectedContentTypes=["application/json"])
    frames = [pb.InputSignal(start=start)]
    for one in values:
        data = pb.InputFrame(payload=json.dumps(one).encode(), contentType="application/json")
        frames.append(pb.InputSignal(data=data))
    return [one.SerializeToString() for one in frames]


class World:
    """A driver with functions; to be made on a loop.

    Attributes:
        ended: Every invocation that has ended, in that order.
    """

    def __init__(self, *functions: Any, max_invocations: int = 0, **settings: Any) -> None:
        made = [prepare_function(one).function for one in functions]
        self.engine = Engine(
            Catalog(made), builtin(entry_points=False), max_invocations=max_invocations, new_lock=threading.Lock
        )
        self.driver = Driver(self.engine, DriverSettings(**settings))
        self.driver.loop = asyncio.get_running_loop()
        self.engine.scope = CatalogScope(self.driver)
        self.ended: list[Invocation] = []
        self.engine.on_close.append(self.ended.append)

    async def run(
        self, name: str, *values: Any, deadline: float | None = None, metadata: Mapping[str, str] = EMPTY
    ) -> list[Any]:
        """Call a function on the loop; raises what a caller would be told."""
        frames, sent = iter(_frames(values)), list[Any]()

        async def read() -> bytes | None:
            return next(frames, None)

        def keep(frame: bytes) -> None:
            sent.append(json.loads(pb.OutputSignal.FromString(frame).data.payload))

        session = RiffSession(metadata, function=name)
        error = await converse(session, self.driver, read, keep, deadline=deadline)
        if error is not None:
            raise error
        return sent

    def whole(self, name: str, *values: Any, **more: Any) -> WholeCall:
        """Begin a call whose frames are all here, in a thread of its own; to be ended by ``end()``."""
        call = WholeCall(self.driver, session=RiffSession(function=name), **more)
        for frame in _frames(values):
            call.raw(frame)
        return call.run()

    async def result(self, call: WholeCall) -> list[Any]:
        """The values of such a call; raises what its caller would be told."""
        error: InvocationError | None = await asyncio.to_thread(call.end)
        if error is not None:
            raise error
        frames = [*call.outlet.left, *call.whole.sent]
        return [json.loads(pb.OutputSignal.FromString(one).data.payload) for one in frames]

    async def close(self) -> None:
        """Wait until all code was left."""
        assert await self.driver.left(5)
        self.driver.close()
        assert not self.engine.running
