"""`Probe`: what a scenario holds in its hands: calls, marks of the function's process, HTTP exchanges."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

import grpc
import grpc.aio

from invoker_conformance.http import Answer, Transport
from invoker_conformance.relay import relay
from invoker_conformance.riff import frames
from invoker_conformance.riff.call import Call
from invoker_conformance.riff.http2 import RawCall, raw_call
from invoker_conformance.scenario import Failure, NotProvided, breaking
from invoker_conformance.target import Target
from invoker_conformance.wire import end_sending, send

__all__ = ["Probe", "Talk", "Watch"]

_POLL_S = 0.02
_UNACCEPTABLE = "application/x-invoker-conformance-probe"


class Talk(Protocol):
    """A conversation with the target."""

    @property
    def sent(self) -> str:
        """What was sent to the target, as a report quotes it."""


class Probe:
    """The tools of one scenario.

    Args:
        target: Under judgement.
        function: Called when a scenario names no other.
    """

    def __init__(self, target: Target, function: str) -> None:
        self.target = target
        self.function = function
        self.timeout_s = target.timeout_s
        self.last_call: Talk | None = None

    @asynccontextmanager
    async def call(
        self,
        function: str = "",
        *,
        deadline_s: float | None = None,
        channel: grpc.aio.Channel | None = None,
    ) -> AsyncIterator[Call]:
        """Open a call; whatever is left of it at the end is cancelled."""
        name = function or self.function
        call = Call(
            channel or self.target.channel(name),
            metadata=self.target.metadata(name),
            timeout_s=self.timeout_s,
            deadline_s=deadline_s,
        )
        self.last_call = call
        try:
            yield call
        finally:
            await call.close()

    @asynccontextmanager
    async def raw(self) -> AsyncIterator[RawCall]:
        """A call of the function under test in HTTP/2 frames of our own."""
        address = self.target.grpc_at.of(self.function)
        if address is None:
            raise NotProvided(f"no --target serves {self.function}")
        async with raw_call(address, self.target.metadata(self.function)) as call:
            yield call

    async def provides(self, function: str) -> bool:
        """Whether the target serves a function."""
        return await self.target.provides(function, protocol="riff", ask=self._answers)

    async def _answers(self, function: str) -> grpc.StatusCode:
        """Send a StartFrame that no function accepts; the code of the answer."""
        method: Any = self.target.channel(function).stream_stream(frames.PATH)
        call = method(metadata=self.target.metadata(function) or None, timeout=self.timeout_s)
        # With names, since some invokers fail on a StartFrame that has none, whatever the function.
        inputs, outputs = frames.streams_of(function)
        await send(call, frames.start([_UNACCEPTABLE] * len(outputs), inputs, outputs).SerializeToString())
        await end_sending(call)
        code: grpc.StatusCode = await call.code()
        return code

    async def survives(self) -> None:
        """The next call of the same function works: a StartFrame and a half-close end with OK."""
        inputs, outputs = frames.streams_of(self.function)
        async with self.call() as call:
            with breaking("R-013"):
                await call.start([frames.JSON] * len(outputs), inputs, outputs)
                await call.half_close()
                await call.has_code(grpc.StatusCode.OK)

    async def needs_sources(self) -> None:
        """Judge no further where functions without inputs are not served: that is a fault of its own (R-037)."""
        async with self.call("source") as call:
            await call.start(inputs=())
            got, _ = await call.ends()
        if len(got) != 3:
            raise NotProvided("calls of functions without inputs (R-037)")

    def clock(self) -> float:
        """Seconds of a clock that never goes back."""
        return asyncio.get_running_loop().time()

    @asynccontextmanager
    async def severed(self, function: str) -> AsyncIterator[tuple[grpc.aio.Channel, Callable[[], None]]]:
        """A channel of its own through a relay, and what cuts the relay's connections without a word."""
        address = self.target.grpc_at.of(function)
        if address is None:
            raise NotProvided(f"no --target serves {function}")
        async with relay(address.host, address.port) as (port, sever):
            channel = self.target.new_channel(f"127.0.0.1:{port}", ("grpc.enable_retries", 0))
            try:
                yield channel, sever
            finally:
                await channel.close()

    async def mark(self, key: str) -> int:
        """A count that the functions keep in their process, read through the function ``marks``."""
        judged = self.last_call  # a failure has to quote what was sent in that call
        async with self.call("marks") as call:
            await call.start()
            await call.json(key)
            await call.half_close()
            value = await call.value()
        self.last_call = judged
        if not isinstance(value, int):
            raise Failure(f"{value!r} from the function marks", "a whole number", f"marks({key!r})")
        return value

    async def watch(self, *keys: str) -> Watch:
        """Remember these counts, to ask later how far they grew."""
        return Watch(self, {key: await self.mark(key) for key in keys})

    @property
    def transport(self) -> Transport:
        """The HTTP transport of the function under test."""
        address = self.target.http_at.of(self.function)
        if address is None:
            raise NotProvided("no --http address serves it")
        return Transport(address, self.function if address.is_shared else "", timeout_s=self.timeout_s)

    async def post(self, body: bytes, *headers: tuple[str, str], path: str = "/") -> Answer:
        """POST to the function under test."""
        return await self.transport.exchange("POST", path, headers, body)


class Watch:
    """How far counts grew since the watch began."""

    def __init__(self, probe: Probe, before: dict[str, int]) -> None:
        self._probe = probe
        self._before = before

    async def grown(self, key: str) -> int:
        """By how much a count grew."""
        return await self._probe.mark(key) - self._before[key]

    async def stays(self, key: str, by: int = 0) -> None:
        """A count has grown by exactly so much now."""
        if (grown := await self.grown(key)) != by:
            raise self._failure(f"mark {key!r} grew by {grown}", f"that it grew by {by}")

    async def reaches(self, key: str, by: int | str, within_s: float = 2.0) -> None:
        """A count grows by at least so much, or as far as another count, within a time."""
        clock = asyncio.get_running_loop().time
        until = clock() + within_s
        while True:
            goal = await self.grown(by) if isinstance(by, str) else by
            grown = await self.grown(key)
            if grown >= goal:
                return
            if clock() > until:
                wanted = f"{goal} like mark {by!r}" if isinstance(by, str) else str(goal)
                met = f"mark {key!r} grew by {grown} within {within_s:g} s"
                raise self._failure(met, f"that it grew by {wanted}")
            await asyncio.sleep(_POLL_S)

    def _failure(self, met: str, expected: str) -> Failure:
        call = self._probe.last_call
        return Failure(met, expected, call.sent if call else "")
