"""`Context`: what a function may know about the invocation that it serves.

A parameter annotated ``Context`` receives it. The driver fills it in once an invocation; nothing in it is shared with
another invocation (R-012).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from invoker.message import EMPTY, Headers

__all__ = ["Context", "Inputs"]


class Inputs(Sequence[Any]):
    """The input streams of an invocation, by index or by name (R-038).

    Names are looked up among those the caller sent, then among the function's own; of equal names the first wins
    (R-057).
    """

    __slots__ = ("_names", "_own_names", "_streams")

    def __init__(self, streams: Sequence[Any], names: Sequence[str] = (), own_names: Sequence[str] = ()) -> None:
        self._streams = streams
        self._names = names
        self._own_names = own_names

    def __getitem__(self, key: Any) -> Any:
        """Give the stream with this index or name.

        Raises:
            IndexError: No input has this index.
            KeyError: No input has this name.
        """
        if not isinstance(key, str):
            return self._streams[key]
        for names in (self._names, self._own_names):
            for index, name in enumerate(names):
                if name == key and index < len(self._streams):
                    return self._streams[index]
        known = ", ".join(repr(name) for name in self._names or self._own_names)
        raise KeyError(f"no input is named {key!r}; there are {known or 'only unnamed ones'}")

    def __len__(self) -> int:
        return len(self._streams)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._streams)


class Context:
    """One invocation, as its function sees it.

    Attributes:
        invocation_id: Unique within the process; the same as in the log.
        function: Name of the function in the catalogue.
        input_names: As the caller sent them; empty when it sent none (R-059).
        output_names: As the caller sent them; empty when it sent none.
        accepts: One list of media ranges an output, as the caller sent them.
        metadata: Of the conversation: gRPC metadata or HTTP headers.
        deadline: On the clock of `time.monotonic`, or None.
        inputs: The input streams by index or name.
    """

    __slots__ = (
        "_is_cancelled",
        "_wait",
        "accepts",
        "deadline",
        "function",
        "input_names",
        "inputs",
        "invocation_id",
        "metadata",
        "output_names",
    )

    def __init__(  # noqa: PLR0913 - the one place where a driver fills everything in
        self,
        invocation_id: str = "",
        function: str = "",
        *,
        input_names: tuple[str, ...] = (),
        output_names: tuple[str, ...] = (),
        accepts: tuple[str, ...] = (),
        metadata: Headers = EMPTY,
        deadline: float | None = None,
        is_cancelled: Callable[[], bool] | None = None,
        wait: Callable[[Awaitable[Any]], Any] | None = None,
    ) -> None:
        # A driver makes it. `is_cancelled` is asked each time; `wait` blocks the calling thread until the loop has
        # awaited its argument, and gives the result.
        self.invocation_id = invocation_id
        self.function = function
        self.input_names = input_names
        self.output_names = output_names
        self.accepts = accepts
        self.metadata = metadata
        self.deadline = deadline
        self.inputs = _NO_INPUTS
        self._is_cancelled = is_cancelled
        self._wait = wait or _cannot_wait

    def remaining(self) -> float | None:
        """Seconds until the deadline, never less than 0; None when there is no deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    @property
    def cancelled(self) -> bool:
        """Whether the invocation is over: cancelled, its deadline passed, or its caller gone."""
        return self._is_cancelled is not None and self._is_cancelled()

    def __repr__(self) -> str:
        return f"Context(invocation_id={self.invocation_id!r}, function={self.function!r})"


_NO_INPUTS = Inputs(())


def _cannot_wait(awaitable: Awaitable[Any]) -> Any:
    close = getattr(awaitable, "close", None)
    if close is not None:
        close()  # else Python warns of a coroutine that was never awaited, far from here
    raise TypeError("a sync function returned an awaitable, and nothing here can await it; write `async def`")
