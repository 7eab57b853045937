"""`Context`: what a function may know about the invocation that it serves.

A parameter annotated ``Context`` receives it. The driver fills it in once an invocation; nothing in it is shared with
another invocation (R-012).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from invoker.errors import EncodeError
from invoker.message import EMPTY, Headers

__all__ = ["RUNNING", "Context", "Inputs", "OneOutput", "Outputs"]


class Inputs(Sequence[Any]):
    """The input streams of an invocation, by index or by name (R-038).

    Names are looked up among those that the caller gave, and then among the function's own. If two inputs have the same
    name, it means the first of them (R-057).
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


class OneOutput:
    """One output of an invocation; a function may send values to it besides those that it yields (E-126)."""

    __slots__ = ("_context", "index")

    def __init__(self, context: Context, index: int) -> None:
        self._context = context
        self.index = index

    def send(self, value: Any) -> Any:
        """Send one value, and wait while the caller is slow. In an async function write ``await output.send(value)``.

        A value is dropped if nobody reads the output.

        Raises:
            EncodeError: The output has ended, or no codec that the caller accepts takes the value (E-130).
        """
        return self._context._door().send_output(self.index, value)  # noqa: SLF001 - the same file's other half

    def end(self) -> Any:
        """End the output before the function returns. An async function awaits it. A second call does nothing."""
        return self._context._door().end_output(self.index)  # noqa: SLF001 - the same file's other half


class Outputs:
    """The outputs of an invocation, by index or by name. Names are looked up in the same way as those of `Inputs`."""

    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        self._context = context

    def __getitem__(self, key: int | str) -> OneOutput:
        """Give the output with this index or name.

        Raises:
            EncodeError: No output has it.
        """
        return OneOutput(self._context, self._context._find(key))  # noqa: SLF001 - the same file's other half

    def __len__(self) -> int:
        invocation = self._context._invocation  # noqa: SLF001 - as above
        return 0 if invocation is None else len(invocation.outputs)

    def __iter__(self) -> Iterator[OneOutput]:
        return (OneOutput(self._context, index) for index in range(len(self)))


class Context:
    """What a function may know and do about its invocation; a parameter annotated ``Context`` receives it.

    Attributes:
        invocation_id: Identifies the invocation within the process; the log has the same.
        function: The name by which callers choose the function.
        input_names: The names that the caller gave to the inputs; empty if it gave none (R-059).
        output_names: The names that the caller gave to the outputs; empty if it gave none.
        accepts: For each output, the media types that the caller accepts.
        metadata: The gRPC metadata or HTTP headers of the call.
        deadline: When the invocation must have ended, on the clock of `time.monotonic`; None if there is no deadline.
        inputs: The input streams, by index or by name.
        configs: What the caller configured for this invocation, in protocols that have configs.
    """

    __slots__ = (
        "_invocation",
        "_is_cancelled",
        "_outlet",
        "_wait",
        "accepts",
        "configs",
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
        configs: tuple[Any, ...] = (),
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
        self.configs = configs
        self.inputs = _NO_INPUTS
        self._invocation: Any = None  # knows the outputs
        self._outlet: Any = None  # a driver's door for what is sent to them
        self._is_cancelled = is_cancelled
        self._wait = wait or _cannot_wait

    def remaining(self) -> float | None:
        """Seconds until the deadline, never less than 0; None when there is no deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    @property
    def outputs(self) -> Outputs:
        """The outputs by index or name: ``ctx.outputs["log"].send(value)``."""
        return Outputs(self)

    def wants(self, output: int | str) -> bool:
        """Whether anybody reads an output. If not, you need not make its values.

        Raises:
            EncodeError: No output has this index or name.
        """
        index = self._find(output)
        return bool(self._invocation.outputs[index].is_wanted)

    def config(self, kind: type[Any]) -> Any:
        """The first of `configs` of a kind, which is a protobuf message class or ``dict``; None if there is none.

        Raises:
            ValueError: A config is said to be of this kind, but cannot be parsed.
        """
        for one in self.configs:
            found = _as(one, kind)
            if found is not None:
                return found
        return None

    def _find(self, output: int | str) -> int:
        if self._invocation is None:
            raise EncodeError(f"there is no output {output!r}, because nothing is invoked")
        return int(self._invocation.find_output(output))

    def _wanted(self) -> list[tuple[str, bool]] | None:
        """The name of each output, and whether anybody reads it; None where nothing is invoked."""
        if self._invocation is None:
            return None
        return [(one.name, one.is_wanted) for one in self._invocation.outputs]

    def _door(self) -> Any:
        if self._outlet is None:
            raise EncodeError("the invocation is over and takes no more values")
        return self._outlet

    @property
    def cancelled(self) -> bool:
        """Whether the invocation is over: it was cancelled, its deadline has passed, or its caller is gone."""
        return self._is_cancelled is not None and self._is_cancelled()

    def __repr__(self) -> str:
        return f"Context(invocation_id={self.invocation_id!r}, function={self.function!r})"


_NO_INPUTS = Inputs(())


def _as(config: Any, kind: type[Any]) -> Any:
    """A config as a ``kind``; None if it is something else."""
    if isinstance(config, kind):
        return config
    if kind is dict:
        return config.to_dict() if hasattr(config, "to_dict") else None
    return config.unpack(kind) if hasattr(config, "unpack") else None


def _cannot_wait(awaitable: Awaitable[Any]) -> Any:
    close = getattr(awaitable, "close", None)
    if close is not None:
        close()  # else Python warns of a coroutine that was never awaited, far from here
    raise TypeError("a sync function returned an awaitable, and nothing here can await it; write `async def`")


RUNNING: ContextVar[Context | None] = ContextVar("invoker-running", default=None)
"""The context of the invocation whose code runs, for the log lines that this code writes."""
