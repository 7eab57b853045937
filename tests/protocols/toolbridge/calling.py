"""One call of a tool through the whole machinery but the wire: bound, fed, run, and its results unpacked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

from invoker.author.prepare import prepare_function
from invoker.codecs import builtin, wants_arrays
from invoker.codecs.anyvalue import pack, unpack
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.steps import Close, Emitted, EndInput, Event, Feed, Finished, Open, Send, Step
from invoker.execution.driver import Driver
from invoker.execution.loop.request import converse
from invoker.execution.nested.scope import CatalogScope
from invoker.protocols.toolbridge.tools import Tool


class OneCall:
    """A session that opens one invocation of a tool, and sends what it gives."""

    def __init__(self, tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.tool = tool
        self.bound = tool.bind([pack(one) for one in args], {name: pack(one) for name, one in kwargs.items()})

    def receive(self, _: Any) -> Iterator[Step]:
        names = self.bound.names
        yield Open("it", self.tool.function, accepts=self.tool.accepts, bound=names, input_names=names)
        for index, message in self.bound.feeds:
            yield Feed("it", index, message)
        yield EndInput("it")

    def half_close(self) -> Iterator[Step]:
        return iter(())

    def deliver(self, event: Event) -> Iterator[Step]:
        if isinstance(event, Emitted):
            yield Send((event.index, unpack(event.message.payload)))
        elif isinstance(event, Finished):
            yield Close(event.error)


def called(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a call: a list of all items if the tool is a stream, else its value."""
    return asyncio.run(_called(function, args, kwargs))


async def _called(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    made = prepare_function(function).function
    tool = Tool(made.spec)
    registry = builtin(arrays=wants_arrays(made.spec.types)).belonging(made.spec.modules)
    engine = Engine(Catalog([made]), registry, new_lock=threading.Lock)
    driver = Driver(engine)
    driver.loop = asyncio.get_running_loop()
    engine.scope = CatalogScope(driver)
    frames = iter([b""])
    given: list[tuple[int, Any]] = []

    async def read() -> bytes | None:
        return next(frames, None)

    await made.start()
    try:
        error = await converse(OneCall(tool, args, kwargs), driver, read, given.append)
        await driver.left(driver.settings.grace_s)
    finally:
        driver.threads.close()
        await made.stop()
    if error is not None:
        raise error
    values = [value for _, value in given]
    if tool.is_stream:
        return values
    assert len(values) == 1
    return values[0]
