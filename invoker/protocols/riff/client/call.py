"""`Call`: one call of a function. `Outputs`: the iterator over its values. `Live`: the calls that are running."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Self

from google.protobuf.message import DecodeError as WireError

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.codecs import Registry
from invoker.connect.exchange import CLOSE_GRACE_S, Exchange
from invoker.connect.portal import on_loop
from invoker.protocols.riff.client.frames import Received
from invoker.protocols.riff.client.request import Request


class Live:
    """The running calls of a client, so that the client can end them when it closes."""

    def __init__(self) -> None:
        self._exchanges: set[Exchange] = set()
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._exchanges) + len(self._closing)

    def add(self, exchange: Exchange) -> None:
        """Remember a call that is about to open."""
        self._exchanges.add(exchange)

    def discard(self, exchange: Exchange) -> None:
        """Forget a call that has ended."""
        self._exchanges.discard(exchange)

    def drop(self, exchange: Exchange) -> None:
        """Cancel a call whose outputs nobody reads any longer, and close its inputs."""
        if exchange in self._exchanges:
            self._exchanges.discard(exchange)
            exchange.cancel()
            task = asyncio.get_running_loop().create_task(exchange.close(), name="invoker-client-drop")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Cancel every call and wait, for a bounded time, until their inputs are closed."""
        for exchange in tuple(self._exchanges):
            self.drop(exchange)
        if self._closing:
            await asyncio.wait(tuple(self._closing), timeout=2 * CLOSE_GRACE_S)


class Call:
    """One call: iterate it once for its outputs, as they arrive.

    The call ends when the iteration ends: after the last output, by ``break``, or by an error. A caller that keeps the
    iterator writes ``async with client.invoke(...) as call``, which ends the call at the end of the block.
    """

    def __init__(self, exchange: Exchange, request: Request, registry: Registry, live: Live) -> None:
        self._exchange = exchange
        self._request = request
        self._registry = registry
        self._live = live
        self._iterated = False

    def __aiter__(self) -> Outputs:
        if self._iterated:
            raise RuntimeError("a call gives its outputs once; invoke again for another call")
        self._iterated = True
        return Outputs(self._exchange, self._request, self._registry, self._live)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def cancel(self) -> None:
        """Cancel the call; its reader gets `CallFailed` with CANCELLED. Idempotent, and harmless after the end."""
        self._exchange.cancel()

    async def close(self) -> None:
        """Cancel the call unless it has ended, and wait until its inputs are closed."""
        await self._exchange.close()
        self._live.discard(self._exchange)

    async def collect(self) -> list[Received]:
        """All values of all outputs, in the order of their arrival.

        Raises:
            CallFailed: The call ended with another status than OK.
        """
        return [out async for out in self]

    async def value(self) -> Any:
        """The decoded value of a call that has exactly one.

        Raises:
            CallFailed: The call ended with another status than OK.
            ValueError: There was no value, or more than one.
        """
        outs = await self.collect()
        if len(outs) != 1:
            raise ValueError(f"the call gave {len(outs)} values, but one was expected; iterate it instead")
        return outs[0].value


class Outputs(AsyncIterator[Received]):
    """The iterator over the outputs of a call; when it is dropped, also by ``break``, the call is cancelled."""

    def __init__(self, exchange: Exchange, request: Request, registry: Registry, live: Live) -> None:
        self._exchange = exchange
        self._request = request
        self._registry = registry
        self._live = live
        self._loop = asyncio.get_running_loop()
        self._opened = False

    async def receive(self) -> Received | None:
        """The next value, or None at the end of the call.

        Raises:
            CallFailed: The call ended with another status than OK.
        """
        try:
            if not self._opened:
                self._opened = True
                self._live.add(self._exchange)
                await self._exchange.open()
            while (raw := await self._exchange.read()) is not None:
                try:
                    signal = pb.OutputSignal.FromString(raw)
                except WireError:
                    raise await self._exchange.refuse("bytes that are not a valid OutputSignal") from None
                # A signal without data comes from a peer of a newer version; it is ignored.
                if signal.WhichOneof("frame") == "data":
                    frame = signal.data
                    return Received(frame, name=self._request.output_name(frame.resultIndex), registry=self._registry)
        except BaseException:
            self._live.discard(self._exchange)
            raise
        self._live.discard(self._exchange)
        return None

    async def __anext__(self) -> Received:
        out = await self.receive()
        if out is None:
            raise StopAsyncIteration
        return out

    def __del__(self) -> None:
        if hasattr(self, "_loop") and not self._exchange.over:
            on_loop(self._loop, partial(self._live.drop, self._exchange))
