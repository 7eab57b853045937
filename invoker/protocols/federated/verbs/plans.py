"""`PlanRunner`: runs the plans of devices as invocations of functions, as a server does (F-075).

The function of a plan gets the checkpoint as its first input and the device's examples, one by one, as its second;
parameters of the plan are bound by name. The first output is one update; a second output, if there is one, is the
metrics. Limits, checks and cancellation are those of any invocation.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, Self

from invoker.author.lift import Function
from invoker.author.prepare import prepare
from invoker.author.spec import Style
from invoker.codecs import builtin, wants_arrays
from invoker.codecs.checkpoint import CHECKPOINT
from invoker.codecs.exact import ACCEPTS
from invoker.connect.failure import CallFailed
from invoker.core.budget import Limits
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.stepping import StepSession
from invoker.core.steps import Emitted, EndInput, Feed, Open, Terms
from invoker.errors import Status
from invoker.execution.bodies.values import decode_value, encode_value
from invoker.execution.driver import Driver
from invoker.execution.nested.inside import Inside
from invoker.execution.nested.scope import CatalogScope
from invoker.message import Message
from invoker.protocols.federated.client.plans import Plan
from invoker.protocols.federated.client.running import Ran

AHEAD: Final = 2
"""How many messages a plan is fed ahead (F-076)."""

_KEY: Final = "plan"
_ACCEPTS: Final = f"{CHECKPOINT}, {ACCEPTS}"
_LARGEST: Final = 1 << 40


class Plans:
    """The functions of this program, prepared for plans; ``async with`` starts and stops them.

    Args:
        entrypoints: The functions, by the names in plans.

    Attributes:
        hints: Hints about possible mistakes in the functions.

    Raises:
        StartupError: A function cannot be loaded, or its signature cannot be used.
    """

    def __init__(self, entrypoints: Sequence[str]) -> None:
        self._functions: dict[str, Function] = {}
        self.hints: list[str] = []
        for entrypoint in entrypoints:
            (made,) = prepare(entrypoint)
            own = made.spec.inputs
            if made.spec.style is Style.REQUEST_REPLY and len(own) > 1:
                self.hints.append(
                    f"{entrypoint} is called once for each example; to be called once with all of them, it must say "
                    f"that they are an iterator, for example {own[1].name}: Iterator[float]"
                )
            self._functions[entrypoint] = Function(made.function.hooks, replace(made.spec, name=entrypoint))
        arrays = any(wants_arrays(one.spec.types) for one in self._functions.values())
        limits = Limits(high_frames=AHEAD, hard_bytes=_LARGEST)
        catalog = Catalog(list(self._functions.values()))
        engine = Engine(catalog, builtin(arrays=arrays), limits=limits, memory_bytes=_LARGEST, new_lock=threading.Lock)
        self.driver = Driver(engine)

    async def __aenter__(self) -> Self:
        self.driver.loop = asyncio.get_running_loop()
        self.driver.engine.scope = CatalogScope(self.driver)
        for one in self._functions.values():
            await one.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.driver.left(self.driver.settings.grace_s)
        await self.driver.children.stop()
        self.driver.threads.close()
        for one in self._functions.values():
            await one.stop()

    def find(self, fn: str) -> Function:
        """The function that a plan names.

        Raises:
            CallFailed: UNIMPLEMENTED: there is no such function; a name from a server is never imported.
        """
        found = self._functions.get(fn)
        if found is None:
            had = ", ".join(self._functions)
            raise CallFailed(Status.UNIMPLEMENTED, f"this device has no function {fn[:80]!r}; it was given {had}")
        return found


class PlanRunner:
    """Runs plans for one device.

    Args:
        plans: The functions.
        examples: Makes an iterator of the device's examples.
        timeout_s: How many seconds one plan may take.
    """

    def __init__(self, plans: Plans, examples: Callable[[], Iterable[Any]], timeout_s: float) -> None:
        self._plans, self._examples, self._timeout_s = plans, examples, timeout_s

    async def __call__(self, plan: Plan, checkpoint: bytes) -> Ran:
        """Run a plan; raises CallFailed if it cannot be run."""
        spec = self._plans.find(plan.fn).spec
        if plan.function is not None:
            raise CallFailed(Status.UNIMPLEMENTED, "the plan contains code, and this device does not allow code")
        own = [one.name for one in spec.inputs][:2]
        bound = (*own, *plan.params)
        accepts = (_ACCEPTS,) * (2 if spec.open_outputs else max(len(spec.outputs), 1))
        inside = Inside(StepSession(), self._plans.driver, deadline=time.monotonic() + self._timeout_s)
        found: list[Emitted] = []
        try:
            inside.give((Open(_KEY, plan.fn, accepts, bound=bound, terms=Terms.LOOSE),))
            values = [Message(checkpoint, media_type=CHECKPOINT), *map(encode_value, plan.params.values())]
            indexes = (0, *range(len(own), len(bound)))
            for index, value in zip(indexes, values, strict=True):
                inside.give((Feed(_KEY, index, value), EndInput(_KEY, index)))
            if len(own) > 1:
                inside.read(_KEY, 1, self._encoded())
            async for event in inside:
                found.append(event)
                if sum(one.index == 0 for one in found) > 1:
                    raise ValueError("the plan gave a second update; a plan gives one")
        finally:
            inside.leave()
        return _ran(found)

    async def _encoded(self) -> AsyncIterator[Message[bytes]]:
        """Iterate over the encoded examples; each is read in a thread, since that may take long."""
        examples, end = iter(self._examples()), object()
        while (one := await asyncio.to_thread(next, examples, end)) is not end:
            yield encode_value(one)


def _ran(found: Sequence[Emitted]) -> Ran:
    values = [_decoded(one.message) for one in found if one.index == 0]
    metrics = [_decoded(one.message) for one in found if one.index == 1]
    if not values:
        raise ValueError("the plan gave no update; it must return an Update or bytes")
    return Ran(values[0], metrics[-1] if metrics else None)


def _decoded(message: Message[bytes]) -> Any:
    """Decode a value of an output; an update is left as bytes, which are reported."""
    return message.payload if message.media_type == CHECKPOINT else decode_value(message)
