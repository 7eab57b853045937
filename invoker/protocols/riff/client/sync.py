"""`SyncRiffClient`: the client for code without an event loop; it runs one in a thread of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, Iterable, Iterator
from typing import Any, Self, Unpack

from invoker.connect.feeds import Inputs, Pairs, Values, check_inputs, pull
from invoker.connect.portal import Portal
from invoker.connect.sync import SyncClient, opening
from invoker.protocols.riff.client.call import Call, Outputs
from invoker.protocols.riff.client.client import RiffClient
from invoker.protocols.riff.client.frames import Received
from invoker.protocols.riff.client.request import Options

__all__ = ["SyncCall", "SyncRiffClient"]

READY = (list, tuple, range, set, frozenset, dict, deque)
"""Iterables whose ``next()`` never blocks; any other one is iterated in a thread of its own."""


class SyncRiffClient(SyncClient[RiffClient]):
    """A connection to one riff invoker; the arguments are those of `RiffClient`.

    It may be used by several threads at once. Inputs may block: their values are sent as they become available. An
    input that blocks at the end of its call keeps its (daemon) thread until it gives its next value.
    """

    @opening(RiffClient)
    def __init__(self) -> None: ...

    def invoke(self, inputs: Inputs = (), *, pairs: Pairs | None = None, **options: Unpack[Options]) -> SyncCall:
        """Call the function; as `RiffClient.invoke`, but inputs may block.

        Raises:
            TypeError: A value stands where an iterable is wanted.
            ValueError: The options do not fit together.
            RuntimeError: The client is not open.
        """
        portal = self._portal
        check_inputs(inputs)
        inputs = [_unblocked(values) for values in inputs]
        pairs = None if pairs is None else _unblocked(pairs)
        return SyncCall(portal, self._source.invoke(inputs, pairs=pairs, **options))


class SyncCall:
    """One call: iterate it once for its outputs; leaving the iteration cancels what still runs."""

    def __init__(self, portal: Portal, call: Call) -> None:
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

    def __init__(self, portal: Portal, outputs: Outputs) -> None:
        self._portal = portal
        self._outputs = outputs

    def __next__(self) -> Received:
        out = self._portal.run(self._outputs.receive())
        if out is None:
            raise StopIteration
        return out


async def _begin(call: Call) -> Outputs:
    return aiter(call)


def _unblocked(values: Values) -> Iterable[Any] | AsyncIterable[Any]:
    return values if isinstance(values, (AsyncIterable, *READY)) else pull(values)
