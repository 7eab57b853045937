"""`RiffClient` calls functions of any riff invoker.

::

    async with RiffClient("127.0.0.1:8081") as client:
        async for out in client.invoke([[1, 2, 3]], accept="application/json"):
            print(out.value)
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import aclosing
from functools import partial
from typing import Self, Unpack

import grpc.aio

from invoker.codecs import Registry, builtin
from invoker.connect.exchange import Exchange, Feed, connected
from invoker.connect.feeds import Inputs, Pairs, Values, check_inputs, in_turn, iterate
from invoker.connect.tls import Tls, open_channel
from invoker.message import EMPTY
from invoker.protocols.riff.client.call import Call, Live
from invoker.protocols.riff.client.frames import InputEncoder
from invoker.protocols.riff.client.known import NOTHING, Known, ask
from invoker.protocols.riff.client.request import Options, Request
from invoker.protocols.riff.wire import INVOKE, SERVICE

METHOD = f"/{SERVICE}/{INVOKE}"
MAX_OUTPUT_BYTES = 64 << 20


class RiffClient:
    """A connection to one riff invoker, made on first use and again after it was lost.

    Args:
        target: ``host:port``, or any name that gRPC understands (``unix:/path``, ``dns:///name:port``).
        tls: The TLS settings of the connection; None: plain text.
        metadata: Sent with every call.
        registry: Codecs for values; None: the built-in ones.
        connect_timeout_s: How long a call waits for a connection before it fails with `ConnectFailed`.
        max_output_bytes: The size in bytes of the largest value that is accepted.

    Proxies from environment variables are ignored, since invokers are on the same network. All methods must be called
    on the same event loop.
    """

    def __init__(
        self,
        target: str,
        *,
        tls: Tls | None = None,
        metadata: Mapping[str, str | bytes] = EMPTY,
        registry: Registry | None = None,
        connect_timeout_s: float = 10.0,
        max_output_bytes: int = MAX_OUTPUT_BYTES,
    ) -> None:
        self.target = target
        self._tls = tls
        self._metadata = metadata
        self._registry = builtin(max_containers=sys.maxsize) if registry is None else registry
        self._connect_timeout_s = connect_timeout_s
        self._max_output_bytes = max_output_bytes
        self._channel: grpc.aio.Channel | None = None
        self._live = Live()
        self._known: dict[str, Known] = {}

    async def __aenter__(self) -> Self:
        if self._channel is None:
            self._channel = open_channel(self.target, self._tls, self._max_output_bytes)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def invoke(self, inputs: Inputs = (), *, pairs: Pairs | None = None, **options: Unpack[Options]) -> Call:
        """Call the function; nothing is sent before the outputs are asked for.

        Args:
            inputs: For each input an iterable of its values, plain or async. The values of several inputs are
                interleaved as they become available. A plain iterable is iterated on the event loop, so its ``next()``
                must not block. The end of an iterable is the end of its input. The iterables are closed when the call
                ends.
            pairs: Instead of ``inputs``: pairs of an input's index and a value, sent in exactly this order.
            **options: See `Request`.

        Raises:
            TypeError: ``inputs`` holds a value where an iterable is expected.
            ValueError: The options do not fit together.
            RuntimeError: The client is not open.
        """
        return self.call(inputs, Request(**options), pairs=pairs)

    def call(self, inputs: Inputs, request: Request, *, pairs: Pairs | None = None) -> Call:
        """Call the function as `invoke` does, for a request that already exists."""
        if self._channel is None:
            raise RuntimeError("the client is not open; use it as `async with RiffClient(...) as client:`")
        check_inputs(inputs)
        if pairs is not None and inputs:
            raise TypeError("give either inputs or pairs")
        metadata = request.metadata_pairs(self._metadata)
        exchange = self._exchange(self._channel, request, inputs, pairs, metadata)
        return Call(exchange, request, self._registry, self._live)

    async def describe(self, request: Request) -> Known:
        """The server's description of the function that a request names; `NOTHING` if the server has none.

        Raises:
            ConnectFailed: There is no connection within the time limit.
            RuntimeError: The client is not open.
        """
        if self._channel is None:
            raise RuntimeError("the client is not open; use it as `async with RiffClient(...) as client:`")
        if not await connected(self._channel, self.target, self._connect_timeout_s):
            return NOTHING
        return await self._ask(self._channel, request)

    async def close(self) -> None:
        """Cancel the calls that still run, wait until their inputs are closed, and close the connection."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await self._live.close()
            await channel.close()

    async def _first(self, channel: grpc.aio.Channel, request: Request, inputs: int) -> bytes:
        """The StartFrame, without default names unless the function has, or may have, one input and one output."""
        is_plain = request.takes_plain_names(inputs)
        if is_plain and (known := await self._ask(channel, request)):
            is_plain = known.labels == 1 and len(known.outputs) == 1
        return request.start_signal(with_plain_names=is_plain)

    async def _ask(self, channel: grpc.aio.Channel, request: Request) -> Known:
        """The server's description of a function; the server is asked only once."""
        known = self._known.get(request.function)
        if known is None:
            known = await ask(channel, request.function, request.metadata_pairs(self._metadata))
            self._known[request.function] = known
        return known

    def _exchange(
        self,
        channel: grpc.aio.Channel,
        request: Request,
        inputs: Inputs,
        pairs: Pairs | None,
        metadata: tuple[tuple[str, str | bytes], ...],
    ) -> Exchange:
        invoke: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(METHOD)
        if pairs is None:
            feeds = [self._input(request, index, values) for index, values in enumerate(inputs)]
            feeds = in_turn(feeds, request.sent_first)
        else:
            feeds = [self._pairs(request, pairs)]
        return Exchange(
            channel,
            lambda: invoke(metadata=metadata, timeout=request.timeout_s),
            partial(self._first, channel, request, len(inputs)),
            feeds,
            target=self.target,
            connect_timeout_s=self._connect_timeout_s,
        )

    async def _input(self, request: Request, index: int, values: Values) -> Feed:
        encoder = self._encoder(request, index)
        async with aclosing(iterate(values)) as each:
            async for value in each:
                yield encoder.encode(value)

    async def _pairs(self, request: Request, pairs: Pairs) -> Feed:
        encoders: dict[int, InputEncoder] = {}
        async with aclosing(iterate(pairs)) as each:
            async for index, value in each:
                if index not in encoders:
                    encoders[index] = self._encoder(request, index)
                yield encoders[index].encode(value)

    def _encoder(self, request: Request, index: int) -> InputEncoder:
        content_type = request.content_type_of(index)
        return InputEncoder(index, content_type=content_type, headers=request.headers, registry=self._registry)
