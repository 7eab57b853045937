"""`SyncRiffClient`: the client for code without an event loop; it runs a loop in a thread of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, Iterable
from typing import Any, Self, Unpack

from invoker.connect.feeds import Inputs, Pairs, Values, check_inputs, pull
from invoker.connect.sync import SyncClient, SyncIterator, SyncPart, blocking, giving, opening, soon
from invoker.protocols.riff.client.call import Call
from invoker.protocols.riff.client.client import RiffClient
from invoker.protocols.riff.client.frames import Received
from invoker.protocols.riff.client.request import Options

READY = (list, tuple, range, set, frozenset, dict, deque)
"""Iterables whose ``next()`` never blocks; any other one is iterated in a thread of its own."""


class SyncRiffClient(SyncClient[RiffClient]):
    """A connection to one riff invoker; the arguments are those of `RiffClient`.

    Several threads may use it at once. Inputs may block: their values are sent as they become available. If an input
    still blocks when its call ends, its daemon thread stays until the input gives its next value.
    """

    @opening(RiffClient)
    def __init__(self, source: RiffClient) -> None:
        super().__init__(source)

    def invoke(self, inputs: Inputs = (), *, pairs: Pairs | None = None, **options: Unpack[Options]) -> SyncCall:
        """Call the function; like `RiffClient.invoke`, but inputs may block.

        Raises:
            TypeError: A value stands where an iterable is wanted.
            ValueError: The options contradict each other.
            RuntimeError: The client is not open.
        """
        portal = self._portal
        check_inputs(inputs)
        inputs = [_unblocked(values) for values in inputs]
        pairs = None if pairs is None else _unblocked(pairs)
        return SyncCall(portal, self._source.invoke(inputs, pairs=pairs, **options))


class SyncCall(SyncPart[Call]):
    """One call: iterate it once for its outputs. If the iteration is left before its end, the call is cancelled."""

    __iter__ = giving(Call.__aiter__, SyncIterator[Received])
    cancel = soon(Call.cancel)
    collect = blocking(Call.collect)
    value = blocking(Call.value)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancel the call unless it has ended, and wait until its inputs are closed."""
        if self._portal.is_open:
            self._portal.run(self._source.close())


def _unblocked(values: Values) -> Iterable[Any] | AsyncIterable[Any]:
    return values if isinstance(values, (AsyncIterable, *READY)) else pull(values)
