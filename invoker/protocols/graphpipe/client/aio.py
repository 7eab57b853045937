"""`AsyncGraphPipe`: the client for code on an event loop; each request blocks a thread of the client."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from invoker.errors import Status
from invoker.message import EMPTY
from invoker.protocols.graphpipe.client.answers import metadata_in
from invoker.protocols.graphpipe.client.failure import GraphPipeError
from invoker.protocols.graphpipe.client.links import Link, Reply
from invoker.protocols.graphpipe.client.requests import METADATA, Names, Server, Settings, result_of, written
from invoker.tensors import LIMIT_BYTES, MetadataResponse, Written

if TYPE_CHECKING:
    from invoker.tensors.arrays import Array

T = TypeVar("T")


class AsyncGraphPipe:
    """A client of a GraphPipe server; the arguments are those of `GraphPipe`, and ``max_requests``.

    Args:
        max_requests: How many requests run at once; further ones wait, in order.

    A request is encoded and sent, and its response received and decoded, in a thread. The connection of a cancelled
    request is closed at once, so that the server notices. All methods must be called on the same event loop.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = 60.0,
        limit_bytes: int = LIMIT_BYTES,
        headers: Mapping[str, str] = EMPTY,
        tls: ssl.SSLContext | None = None,
        scalar_as_vector: bool = False,
        max_requests: int = 32,
    ) -> None:
        self.url = url
        self._settings = Settings(
            timeout_s=timeout_s,
            limit_bytes=limit_bytes,
            headers=headers,
            tls=tls,
            scalar_as_vector=scalar_as_vector,
        )
        self._server = Server(url, self._settings)
        self._threads = ThreadPoolExecutor(max_requests, "invoker-graphpipe")
        self._errands: set[_Errand[Any]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @overload
    async def infer(self, *inputs: Any, outputs: None = None, config: str | bytes = b"") -> Any: ...
    @overload
    async def infer(self, *inputs: Any, outputs: str, config: str | bytes = b"") -> Array: ...
    @overload
    async def infer(self, *inputs: Any, outputs: Sequence[str], config: str | bytes = b"") -> dict[str, Array]: ...
    async def infer(self, *inputs: Any, outputs: Names = None, config: str | bytes = b"") -> Any:
        """See `GraphPipe.infer`; the inputs must not be changed before it returns."""
        settings = self._settings
        return await self._run(
            lambda: written(inputs, outputs, config, scalar_as_vector=settings.scalar_as_vector),
            lambda reply: result_of(reply, settings.limit_bytes, outputs),
        )

    async def metadata(self) -> MetadataResponse:
        """See `GraphPipe.metadata`."""
        return await self._run(lambda: METADATA, lambda reply: metadata_in(reply, self._settings.limit_bytes))

    async def close(self) -> None:
        """Abort the running requests, wait for the threads, and close the connections. Idempotent."""
        for errand in self._errands:
            errand.abort()
        await asyncio.to_thread(self._threads.shutdown)
        self._server.close()

    async def _run(self, write: Callable[[], Written], read: Callable[[Reply], T]) -> T:
        errand = _Errand(self._server, write, read)
        self._errands.add(errand)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, errand.run)
        except asyncio.CancelledError:
            errand.abort()
            raise
        finally:
            self._errands.discard(errand)


class _Errand(Generic[T]):
    """A request that runs in a thread, and that the event loop can abort."""

    def __init__(self, server: Server, write: Callable[[], Written], read: Callable[[Reply], T]) -> None:
        self._server = server
        self._write = write
        self._read = read
        self._lock = threading.Lock()
        self._link: Link | None = None
        self._is_aborted = False

    def run(self) -> T:
        """Encode and send the request, and receive and decode the response; called in a thread."""
        request = self._write()
        with self._taken() as link:
            reply = link.ask(request)
        return self._read(reply)

    def abort(self) -> None:
        """Abort the request, or prevent it from being sent."""
        with self._lock:
            self._is_aborted = True
            if self._link is not None:
                self._link.abort()

    @contextlib.contextmanager
    def _taken(self) -> Iterator[Link]:
        links = self._server.links
        link = links.take()
        try:
            with self._lock:
                if self._is_aborted:
                    raise GraphPipeError(None, "the request was given up", status=Status.CANCELLED)
                self._link = link
            yield link
        finally:
            with self._lock:
                self._link = None
            links.give(link)
