"""`Context`: what a function may know about the invocation that it serves.

A parameter annotated ``Context`` receives it. The driver fills it in once an invocation; nothing in it is shared with
another invocation (R-012).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from invoker.errors import EncodeError
from invoker.message import EMPTY, Headers

__all__ = ["Context", "Inputs", "OneOutput", "Outputs"]


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


class OneOutput:
    """One output of an invocation, to be given values besides those that the function yields (E-126)."""

    __slots__ = ("_context", "index")

    def __init__(self, context: Context, index: int) -> None:
        self._context = context
        self.index = index

    def send(self, value: Any) -> Any:
        """Give one value; waits while the caller is slow. An async function awaits it: ``await output.send(value)``.

        A value for an output that nobody reads is dropped.

        Raises:
            EncodeError: The output has ended, or no codec that the caller accepts takes the value (E-130).
        """
        return self._context._door().send_output(self.index, value)  # noqa: SLF001 - the same file's other half

    def end(self) -> Any:
        """End it before the function returns; to be awaited in an async function. Idempotent."""
        return self._context._door().end_output(self.index)  # noqa: SLF001 - the same file's other half


class Outputs:
    """The outputs of an invocation, by index or by name; names are looked up as those of `Inputs` are."""

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
        configs: What the caller configured for this invocation, where its protocol has such.
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
        """Whether anybody reads an output; if not, its values need not be made.

        Raises:
            EncodeError: No output has this index or name.
        """
        index = self._find(output)
        return bool(self._invocation.outputs[index].is_wanted)

    def config(self, kind: type[Any]) -> Any:
        """The first of `configs` that is a ``kind``: a message class, or ``dict``; None when there is none.

        Raises:
            ValueError: It says that it is one, but cannot be parsed.
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
        """Whether the invocation is over: cancelled, its deadline passed, or its caller gone."""
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
