"""A driver with children, and calls on it by riff's session."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import threading
import time
from collections.abc import AsyncIterator, Iterable
from typing import Any

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.author.prepare import prepare_function
from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.errors import InvocationError
from invoker.execution.driver import Driver, DriverSettings
from invoker.execution.isolation.pool import ChildrenSettings
from invoker.execution.loop.request import converse
from invoker.execution.nested.scope import CatalogScope
from invoker.message import Headers
from invoker.protocols.riff.session import RiffSession
from tests.forkedchild import forked_children
from tests.forkserver import address


def plain(x: int) -> int:
    """A function that is not isolated."""
    return x + 1


class World:
    """Calls functions, each by a conversation of its own."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    async def call(
        self, name: str, *inputs: Iterable[Any], names: tuple[str, ...] = (), deadline: float | None = None,
        outputs: int = 1, metadata: dict[str, str] | None = None,
    ) -> tuple[list[Any], InvocationError | None]:  # fmt: skip
        """What one call gave: values, with the number of their output where there are several; and its error."""
        start = pb.StartFrame(expectedContentTypes=["application/json"] * outputs, inputNames=names)
        data = (pb.InputSignal(data=_frame(index, value)) for index, values in enumerate(inputs) for value in values)
        waiting = (one.SerializeToString() for one in itertools.chain([pb.InputSignal(start=start)], data))
        sent: list[Any] = []

        async def read() -> bytes | None:
            await asyncio.sleep(0)
            return next(waiting, None)

        def keep(frame: bytes) -> None:
            data = pb.OutputSignal.FromString(frame).data
            value = json.loads(data.payload)
            sent.append((data.resultIndex, value) if outputs > 1 else value)

        session = RiffSession(Headers(metadata or {}), function=name)
        error = await converse(session, self.driver, read, keep, deadline=deadline)
        return sent, error


def _frame(index: int, value: Any) -> pb.InputFrame:
    return pb.InputFrame(payload=json.dumps(value).encode(), contentType="application/json", argIndex=index)


@contextlib.asynccontextmanager
async def serving(*functions: Any, warm: int = 1, most: int = 4, **settings: Any) -> AsyncIterator[World]:
    """A world with these functions and `plain`, whose children have ended afterwards."""
    catalog = Catalog([prepare_function(one).function for one in (*functions, plain)])
    engine = Engine(catalog, builtin(entry_points=False), new_lock=threading.Lock)
    driver = Driver(engine, DriverSettings(children=ChildrenSettings(most, warm), **settings))
    driver.loop = asyncio.get_running_loop()
    engine.scope = CatalogScope(driver)
    with forked_children(address()):
        try:
            await driver.children.start()
            yield World(driver)
        finally:
            await driver.children.stop()
            driver.close()


async def until(condition: Any, limit_s: float = 10.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "it did not come so"
        await asyncio.sleep(0.01)
