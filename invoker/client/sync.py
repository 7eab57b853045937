"""`SyncRiffClient`: the client for code without an event loop; it runs one in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterable, Coroutine, Iterable, Iterator, Mapping
from typing import Any, Self, TypeVar, Unpack

from invoker.client.call import Call, Outputs
from invoker.client.feeds import Inputs, Pairs, Values, check_inputs, pull
from invoker.client.frames import Received
from invoker.client.quiet import quieten
from invoker.client.request import Options
from invoker.client.riff import MAX_OUTPUT_BYTES, RiffClient
from invoker.client.tls import Tls
from invoker.codecs import Registry
from invoker.message import EMPTY

__all__ = ["SyncCall", "SyncRiffClient"]

T = TypeVar("T")

READY = (list, tuple, range, set, frozenset, dict, deque)
"""Iterables whose ``next()`` never blocks; any other one is iterated in a thread of its own."""


class SyncRiffClient:
    """A connection to one riff invoker; the arguments are those of `RiffClient`.

    It may be used by several threads at once. Inputs may block: their values are sent as they become available. An
    input that blocks at the end of its call keeps its (daemon) thread until it gives its next value.
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
        self._client = RiffClient(
            target,
            tls=tls,
            metadata=metadata,
            registry=registry,
            connect_timeout_s=connect_timeout_s,
            max_output_bytes=max_output_bytes,
        )
        self._portal: _Portal | None = None

    def __enter__(self) -> Self:
        if self._portal is None:
            self._portal = _Portal()
            try:
                self._portal.run(self._client.__aenter__())
            except BaseException:
                self.close()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def invoke(self, inputs: Inputs = (), *, pairs: Pairs | None = None, **options: Unpack[Options]) -> SyncCall:
        """Call the function; as `RiffClient.invoke`, but inputs may block.

        Raises:
            TypeError: A value stands where an iterable is wanted.
            ValueError: The options do not fit together.
            RuntimeError: The client is not open.
        """
        if self._portal is None:
            raise RuntimeError("the client is not open; use it as `with SyncRiffClient(...) as client:`")
        check_inputs(inputs)
        inputs = [_unblocked(values) for values in inputs]
        pairs = None if pairs is None else _unblocked(pairs)
        return SyncCall(self._portal, self._client.invoke(inputs, pairs=pairs, **options))

    def close(self) -> None:
        """Cancel the calls that still run, close the connection and end the thread. Idempotent."""
        portal, self._portal = self._portal, None
        if portal is not None:
            try:
                portal.run(self._client.close())
            finally:
                portal.close()


class SyncCall:
    """One call: iterate it once for its outputs; leaving the iteration cancels what still runs."""

    def __init__(self, portal: _Portal, call: Call) -> None:
        self._portal = portal
        self._call = call

    def __iter__(self) -> Iterator[Received]:
        return _SyncOutputs(self._portal, self._portal.run(_begin(self._call)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def cancel(self) -> None:
        """Cancel the call, from any thread; who iterates gets `CallFailed` with CANCELLED. Idempotent."""
        self._portal.soon(self._call.cancel)

    def close(self) -> None:
        """Cancel the call unless it has ended, and wait until its inputs are closed."""
        if self._portal.is_open:
            self._portal.run(self._call.close())

    def collect(self) -> list[Received]:
        """All values of all outputs, in the order of their arrival.

        Raises:
            CallFailed: The call ended with another status than OK.
        """
        return list(self)

    def value(self) -> Any:
        """The decoded value of a call that has exactly one.

        Raises:
            CallFailed: The call ended with another status than OK.
            ValueError: There was no value, or more than one.
        """
        return self._portal.run(self._call.value())


class _SyncOutputs(Iterator[Received]):
    """Dropping it drops the async iterator, which cancels the call."""

    def __init__(self, portal: _Portal, outputs: Outputs) -> None:
        self._portal = portal
        self._outputs = outputs

    def __next__(self) -> Received:
        out = self._portal.run(self._outputs.receive())
        if out is None:
            raise StopIteration
        return out


class _Portal:
    """An event loop in a daemon thread, and the only door to it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        quieten(self._loop)
        self._thread = threading.Thread(target=self._serve, name="invoker-client", daemon=True)
        self._thread.start()

    @property
    def is_open(self) -> bool:
        """Whether the loop still runs."""
        return not self._loop.is_closed()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for its result; an interrupt cancels it."""
        if not self.is_open:
            work.close()
            raise RuntimeError("the client is closed")
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("a sync client cannot be used by the async inputs of its own calls")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def soon(self, function: Any) -> None:
        """Run a function on the loop, without waiting for it."""
        if self.is_open:
            self._loop.call_soon_threadsafe(function)

    def close(self) -> None:
        """Cancel what is left, end the loop and the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            asyncio.set_event_loop(None)
            self._loop.close()


async def _begin(call: Call) -> Outputs:
    return aiter(call)


def _unblocked(values: Values) -> Iterable[Any] | AsyncIterable[Any]:
    return values if isinstance(values, (AsyncIterable, *READY)) else pull(values)
