"""`Stream`: the response of a streaming rpc as an async iterator; `ToolStream`: the stream of a tool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Generic, Self, TypeVar

import grpc
import grpc.aio

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.errors import Status
from invoker.protocols.toolbridge.client.answers import Metrics, metrics_in
from invoker.protocols.toolbridge.client.failure import ToolCommunicationError, failed, from_status
from invoker.protocols.toolbridge.client.values import read

M = TypeVar("M")
T = TypeVar("T")


class Stream(AsyncIterator[T], Generic[M, T]):
    """Iterates over the values of a streaming call; the request is sent when the first value is asked for.

    End it by ``async with`` or `close`, which cancel an rpc that still runs; dropping the stream cancels the rpc, too.
    The bridge continues only as fast as the stream is read.
    """

    def __init__(self, start: Callable[[], grpc.aio.UnaryStreamCall[Any, M]], tool: str, target: str) -> None:
        self._start = start
        self._tool = tool
        self._target = target
        self._rpc: grpc.aio.UnaryStreamCall[Any, M] | None = None
        self._frames: AsyncIterator[M] | None = None
        self._is_over = False
        self._is_cancelled = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __del__(self) -> None:
        self.cancel()

    async def __anext__(self) -> T:
        while not self._is_over:
            try:
                frame = await self._next()
            except asyncio.CancelledError:
                if self._is_cancelled:  # the cancel came from another task, so the reader gets an error
                    raise ToolCommunicationError.by_caller() from None
                self.cancel()
                raise
            except grpc.RpcError as error:
                self._is_over = True
                raise from_status(self._tool, error, self._target) from None
            except StopAsyncIteration:
                self._is_over = True
                self._ended()
                break
            try:
                if (got := self._read(frame)) is not None:
                    return got[0]
            except BaseException:
                self.cancel()
                raise
        raise StopAsyncIteration

    def cancel(self) -> None:
        """Cancel the rpc if it still runs; its reader gets `ToolCommunicationError` with CANCELLED. Idempotent."""
        self._is_over = self._is_cancelled = True
        if self._rpc is not None:
            self._rpc.cancel()

    async def close(self) -> None:
        """Cancel the rpc if it still runs. Idempotent."""
        self.cancel()

    def _read(self, frame: M) -> tuple[T] | None:
        """The value for the reader in a frame; None if the frame has none."""
        raise NotImplementedError

    def _ended(self) -> None:
        """Raise if the stream must not end here."""

    async def _next(self) -> M:
        if self._frames is None:
            self._rpc = self._start()
            self._frames = aiter(self._rpc)
        return await anext(self._frames)


class ToolStream(Stream[pb.ToolStreamChunk, Any]):
    """Iterates over the values that a tool yields.

    Attributes:
        id: The id of the stream; known after the first chunk.
        index: The index of the output to which the last value belongs (T-086).
        metadata: The tool's metadata that came before the last value, by key.
        total_chunks: The number of chunks of data; known at the end.
        metrics: The time and memory of the call; known at the end.

    Bytes that the bridge split into several chunks are joined again (T-080).
    """

    def __init__(
        self,
        start: Callable[[], grpc.aio.UnaryStreamCall[Any, pb.ToolStreamChunk]],
        tool: str,
        target: str,
    ) -> None:
        super().__init__(start, tool, target)
        self.id = ""
        self.index = 0
        self.metadata: dict[str, Any] = {}
        self.total_chunks: int | None = None
        self.metrics = Metrics()
        self._missing_bytes = 0
        self._parts: list[bytes] = []

    def _read(self, frame: pb.ToolStreamChunk) -> tuple[Any] | None:
        self.id = frame.stream_id
        match frame.WhichOneof("content"):
            case "data":
                return self._value(read(frame.data))
            case "metadata":
                self._note(frame.metadata.key, read(frame.metadata.value))
            case "complete":
                self.total_chunks = frame.complete.total_chunks
                self.metrics = metrics_in(frame.complete.metrics)
            case "error":
                raise failed(self._tool, frame.error)
        return None

    def _ended(self) -> None:
        if self.total_chunks is None:
            raise ToolCommunicationError(Status.INTERNAL, "the stream ended without saying that it is complete")

    def _note(self, key: str, value: Any) -> None:
        if key == "bytes_total" and isinstance(value, int):
            self._missing_bytes = value
        elif key == "resultIndex" and isinstance(value, int):
            self.index = value
        else:
            self.metadata[key] = value

    def _value(self, value: Any) -> tuple[Any] | None:
        if not self._missing_bytes:
            return (value,)
        if not isinstance(value, bytes):
            raise ToolCommunicationError(
                Status.INTERNAL,
                f"{self._missing_bytes} bytes of a value are missing, and a {type(value).__name__} came",
            )
        self._parts.append(value)
        self._missing_bytes -= len(value)
        if self._missing_bytes > 0:
            return None
        whole = b"".join(self._parts)
        self._parts.clear()
        self._missing_bytes = 0
        return (whole,)
