"""`Probe`: what a scenario uses: calls, HTTP exchanges, and the counts (marks) that functions keep."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

import grpc
import grpc.aio

from invoker_conformance.faults import Fault
from invoker_conformance.http import Answer, Transport
from invoker_conformance.rawcall import RawCall as AnyCall
from invoker_conformance.relay import relay
from invoker_conformance.riff import frames
from invoker_conformance.riff.call import Call
from invoker_conformance.riff.http2 import RawCall, raw_call
from invoker_conformance.scenario import Failure, NotProvided, breaking
from invoker_conformance.target import Address, Target
from invoker_conformance.wire import end_sending, send

C = TypeVar("C", bound=AnyCall[Any])

_POLL_S = 0.02
_UNACCEPTABLE = "application/x-invoker-conformance-probe"


class Talk(Protocol):
    """A conversation with the target, which reports can quote."""

    @property
    def sent(self) -> str:
        """The text of the messages to the target, for reports."""


@dataclass(frozen=True, slots=True)
class Said:
    """The text of a request to the target, for reports."""

    sent: str


class Probe:
    """The tools of one scenario.

    Args:
        target: The server under test.
        function: The function that is called unless a scenario names another.

    Attributes:
        noun: The protocol's word for a function.
        last_call: The conversation that a failure will quote.
    """

    noun: ClassVar[str] = "function"

    def __init__(self, target: Target, function: str) -> None:
        self.target = target
        self.function = function
        self.timeout_s = target.timeout_s
        self.last_call: Talk | None = None

    @property
    def sent(self) -> str:
        """The text of the messages of the last conversation."""
        return self.last_call.sent if self.last_call else ""

    def failure(self, met: str, expected: str) -> Failure:
        """A failure that quotes the last conversation."""
        return Failure(met, expected, self.sent)

    @asynccontextmanager
    async def opened(self, call: C) -> AsyncIterator[C]:
        """Let failures quote a call; at the end it is cancelled if it still runs."""
        self.last_call = call
        try:
            yield call
        finally:
            await call.close()

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[None]:
        """A context for calls that are not a part of the test; later failures quote the conversation before it."""
        judged = self.last_call
        yield
        self.last_call = judged

    def call(
        self, function: str = "", *, deadline_s: float | None = None, channel: grpc.aio.Channel | None = None
    ) -> AbstractAsyncContextManager[Call]:
        """Open a call; at the end it is cancelled if it still runs."""
        name = function or self.function
        metadata = self.target.metadata(name)
        channel = channel or self.target.channel(name)
        return self.opened(Call(channel, metadata=metadata, timeout_s=self.timeout_s, deadline_s=deadline_s))

    async def call_gives(self, sent: Sequence[Any], expected: Sequence[Any], **started: Any) -> None:
        """Check that a call with these JSON values and a half-close gives these values and OK."""
        async with self.call() as call:
            await call.all(*sent, **started)
            await call.gives(*expected)

    async def call_fails(
        self, fault: Fault, *mentions: str, sent: Sequence[Any] = (), after: int | None = 0, **started: Any
    ) -> None:
        """Check that a call with these JSON values fails, without a half-close; see `Call.fails`."""
        async with self.call() as call:
            await call.start(**started)
            await call.json(*sent)
            await call.fails(fault, *mentions, after=after)

    @asynccontextmanager
    async def raw(self) -> AsyncIterator[RawCall]:
        """Open a call of the function under test in raw HTTP/2 frames."""
        address = self.target.grpc_at.of(self.function)
        if address is None:
            raise NotProvided(f"a --target address for function {self.function}")
        async with raw_call(address, self.target.metadata(self.function)) as call:
            yield call

    async def provides(self, function: str) -> bool:
        """Whether the target serves a function."""
        return await self.target.provides(function, self.address_of(function), noun=self.noun, ask=self._answers)

    def address_of(self, function: str) -> Address | None:
        """The address of a function; None: it is not served."""
        return self.target.grpc_at.of(function)

    async def _answers(self, function: str) -> grpc.StatusCode:
        """Send a StartFrame that no function accepts, and return the code of the answer."""
        method: Any = self.target.channel(function).stream_stream(frames.PATH)
        call = method(metadata=self.target.metadata(function) or None, timeout=self.timeout_s)
        # It has names, since some servers fail on a StartFrame without names for every function.
        inputs, outputs = frames.streams_of(function)
        await send(call, frames.start([_UNACCEPTABLE] * len(outputs), inputs, outputs).SerializeToString())
        await end_sending(call)
        code: grpc.StatusCode = await call.code()
        return code

    async def survives(self) -> None:
        """Check that the next call of the function works: a StartFrame and a half-close end with OK."""
        inputs, outputs = frames.streams_of(self.function)
        async with self.call() as call:
            with breaking("R-013"):
                await call.start([frames.JSON] * len(outputs), inputs, outputs)
                await call.half_close()
                await call.has_code(grpc.StatusCode.OK)

    async def needs_sources(self) -> None:
        """Skip the scenario if functions without inputs are not served, which another scenario reports (R-037)."""
        async with self.call("source") as call:
            await call.start(inputs=())
            got, _ = await call.rest()
        if len(got) != 3:
            raise NotProvided("calls of functions without inputs (R-037)")

    def clock(self) -> float:
        """The time of a monotonic clock, in seconds."""
        return asyncio.get_running_loop().time()

    @asynccontextmanager
    async def severed(self, function: str) -> AsyncIterator[tuple[grpc.aio.Channel, Callable[[], None]]]:
        """Open a channel through a relay; returns it with a function that silently stops the relay's connections."""
        address = self.target.grpc_at.of(function)
        if address is None:
            raise NotProvided(f"a --target address for function {function}")
        async with relay(address.host, address.port) as (port, sever):
            channel = self.target.new_channel(f"127.0.0.1:{port}", ("grpc.enable_retries", 0))
            try:
                yield channel, sever
            finally:
                await channel.close()

    async def mark(self, key: str) -> int:
        """Read a count that the functions keep in their process, by the function, action or tool ``marks``."""
        async with self.aside():
            value = await self._mark(key)
        if not isinstance(value, int):
            raise Failure(f"{value!r} from the {self.noun} marks", "a whole number", f"marks({key!r})")
        return value

    async def _mark(self, key: str) -> Any:
        async with self.call("marks") as call:
            await call.all(key)
            return await call.value()

    async def watch(self, *keys: str) -> Watch:
        """Read these counts, so that their growth can be checked later."""
        return Watch(self, {key: await self.mark(key) for key in keys})

    @property
    def transport(self) -> Transport:
        """The HTTP transport of the function under test."""
        address = self.target.http_at.of(self.function)
        if address is None:
            raise NotProvided(f"an --http address for function {self.function}")
        return Transport(address, self.function if address.is_shared else "", timeout_s=self.timeout_s)

    async def post(self, body: bytes, *headers: tuple[str, str], path: str = "/") -> Answer:
        """POST to the function under test."""
        return await self.transport.exchange("POST", path, headers, body)


class Watch:
    """The growth of counts since the start of the watch."""

    def __init__(self, probe: Probe, before: dict[str, int]) -> None:
        self._probe = probe
        self._before = before

    async def grown(self, key: str) -> int:
        """By how much a count grew."""
        return await self._probe.mark(key) - self._before[key]

    async def stays(self, key: str, by: int = 0) -> None:
        """Check that a count has grown by exactly this number."""
        if (grown := await self.grown(key)) != by:
            raise self._probe.failure(f"mark {key!r} grew by {grown}", f"that it grew by {by}")

    async def is_cut_off(self, name: str, by: int | None = None, within_s: float = 2.0) -> None:
        """Wait until all calls of a function, or this number of them, have failed; no call may have completed."""
        await self.reaches(f"{name}.failed", f"{name}.calls" if by is None else by, within_s)
        await self.stays(f"{name}.completed")

    async def reaches(self, key: str, by: int | str, within_s: float = 2.0) -> None:
        """Wait until a count has grown by this number, or as much as the count of this name."""
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
                raise self._probe.failure(met, f"that it grew by {wanted}")
            await asyncio.sleep(_POLL_S)
