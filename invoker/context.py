"""`Context`: gives a function access to its invocation.

A parameter annotated ``Context`` receives it. The engine fills it in once an invocation; nothing in it is shared with
another invocation (R-012). Its methods call the `Run` that the driver binds before the function is called, and releases
after the function's code has ended.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol, TypeAlias

from invoker.errors import EncodeError
from invoker.errors.wording import cannot_wait
from invoker.message import EMPTY, Headers, Message, find_output
from invoker.traces import Trace, request_id_of, trace_of

Argument: TypeAlias = "Message[bytes] | AsyncIterator[Message[bytes]]"
"""An encoded argument of a nested call: one value, or the values for a streaming parameter."""


class Scope(Protocol):
    """Gives a function access to other functions and the store; called on the loop, except `here`.

    The engine gives each invocation the scope of the catalogue, unless the session opened it with another one. Values
    are encoded (see `invoker.execution.bodies.values`), so a function in another process can use it over a pipe.

    Attributes:
        carries: The media types that arguments may have, as an ``Accept`` list.
    """

    carries: str

    def call(
        self, caller: Context, name: str, args: Sequence[Argument], kwargs: Mapping[str, Argument], *, streams: bool
    ) -> AsyncIterator[Message[bytes]]:
        """Invoke another function, and yield its result. A caller that stops before the end calls ``aclose``.

        Args:
            caller: The context of the calling invocation; its deadline and metadata are passed on, and the functions
                that it calls end with it.
            name: The name of the function.
            args: By position.
            kwargs: By keyword.
            streams: Whether each value is yielded as it comes; otherwise one message has the whole result.

        Raises:
            NestedError: The invocation was refused or has failed.
        """

    def here(
        self, caller: Context, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, streams: bool
    ) -> Iterator[Message[bytes]] | None:
        """Call the function in the calling thread, which runs the function of ``caller``.

        None if the function cannot be called in this thread. The arguments are plain values here, and iterators for
        streaming parameters.
        """

    def ask(self, caller: Context, question: Any) -> Awaitable[Any]:
        """Ask the store a question, and return its answer."""


class Callee(Protocol):
    """A nested call that has begun and not ended."""

    def abandon(self) -> None:
        """End the call because its caller is over; may be called from any thread."""


class Run(Protocol):
    """The methods of a driver that a context calls."""

    @property
    def outputs(self) -> Sequence[Any]:
        """The outputs of the invocation; each has the attributes ``index``, ``name`` and ``is_wanted``."""

    def is_over(self) -> bool:
        """Whether the invocation has ended, or its caller is gone."""

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """Block the calling thread until the loop has run ``awaitable``, and return its result (R-034)."""

    def send(self, index: int, value: Any) -> Any:
        """Emit a value on an output; waits while the peer is slow, and is awaited by an async function."""

    def end(self, index: int) -> Any:
        """End an output before the function returns; awaited by an async function."""

    def call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Invoke another function, and return its result; awaited by an async function."""

    def stream(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Invoke another function, and return an iterator of its values; an async iterator for an async function."""

    def ask(self, question: Any) -> Any:
        """Ask the store by the scope of the invocation, and return its answer; awaited by an async function."""

    @property
    def variables(self) -> Any:
        """The variables of the host session; see `invoker.execution.bodies.variables`."""


class Inputs(Sequence[Any]):
    """The input streams of an invocation, by index or by name (R-038).

    A name is looked up first among the names that the caller gave, and then among the function's own. If two inputs
    have the same name, the name means the first one (R-057).
    """

    __slots__ = ("_names", "_own_names", "_streams")

    def __init__(self, streams: Sequence[Any], names: Sequence[str] = (), own_names: Sequence[str] = ()) -> None:
        self._streams = streams
        self._names = names
        self._own_names = own_names

    def __getitem__(self, key: Any) -> Any:
        """Return the stream with this index or name.

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

        A value is dropped if the output has no reader.

        Raises:
            EncodeError: The output has ended, or no codec that the caller accepts takes the value (E-130).
        """
        return _run_of(self._context).send(self.index, value)

    def end(self) -> Any:
        """End the output before the function returns. An async function awaits it. A second call does nothing."""
        return _run_of(self._context).end(self.index)


class Outputs:
    """The outputs of an invocation, by index or by name. Names are looked up in the same way as those of `Inputs`."""

    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        self._context = context

    def __getitem__(self, key: int | str) -> OneOutput:
        """Return the output with this index or name.

        Raises:
            EncodeError: No output has this index or name.
        """
        return OneOutput(self._context, find_output(key, _outputs(self._context, key), self._context.output_names))

    def __len__(self) -> int:
        run = self._context.run
        return 0 if run is None else len(run.outputs)

    def __iter__(self) -> Iterator[OneOutput]:
        return (OneOutput(self._context, index) for index in range(len(self)))


class Context:
    """Access to an invocation for its function: a parameter annotated ``Context`` receives it.

    Attributes:
        invocation_id: The id of the invocation within the process, as in the log.
        function: The name by which callers choose the function.
        input_names: The names that the caller gave to the inputs; empty if it gave none (R-059).
        output_names: The names that the caller gave to the outputs; empty if it gave none.
        accepts: For each output, the media types that the caller accepts.
        metadata: The gRPC metadata or HTTP headers of the call.
        deadline: When the invocation must have ended, on the clock of `time.monotonic`; None if there is no deadline.
        inputs: The input streams, by index or by name.
        configs: The configs that the caller sent for this invocation, in protocols that have configs.
        caller: The context of the function that called this one by `call` or `stream`; None if a peer did.
        callees: For drivers: nested calls that end with this invocation; None as long as there was none.
        scope: For drivers: access to other functions and the store.
    """

    __slots__ = (
        *("_is_released", "accepts", "callees", "caller", "configs", "deadline", "function", "input_names"),
        *("_trace", "inputs", "invocation_id", "metadata", "output_names", "run", "scope"),
    )

    _trace: Trace  # made on first use

    def __init__(
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
    ) -> None:
        self.invocation_id = invocation_id
        self.function = function
        self.input_names = input_names
        self.output_names = output_names
        self.accepts = accepts
        self.metadata = metadata
        self.deadline = deadline
        self.configs = configs
        self.inputs = _NO_INPUTS
        self.run: Run | None = None
        self.scope: Scope | None = None
        self.caller: Context | None = None
        self.callees: set[Callee] | None = None
        self._is_released = False

    def bind(self, run: Run) -> None:
        """For drivers: set the `Run` that the methods of this context call from now on."""
        self.run = run

    def release(self) -> None:
        """For drivers: unbind the `Run`, since the context may live longer than the function's code runs."""
        self.run = None
        self.inputs = _NO_INPUTS
        self._is_released = True
        for callee in tuple(self.callees or ()):
            callee.abandon()

    def hold(self, callee: Callee) -> None:
        """For drivers: note a nested call, which is ended with this invocation."""
        if self.callees is None:
            self.callees = set()
        self.callees.add(callee)
        if self._is_released:  # Add, then check; `release` does the reverse, so one of the two notices the other.
            callee.abandon()

    def drop(self, callee: Callee) -> None:
        """For drivers: forget a nested call that is over."""
        if self.callees is not None:
            self.callees.discard(callee)

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """For drivers: block the calling thread until the loop has run ``awaitable``, and return its result (R-034).

        Raises:
            TypeError: The awaitable cannot be awaited here.
        """
        run = self.run
        if run is None:
            raise cannot_wait(awaitable, is_over=self._is_released)
        return run.wait(awaitable)

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Call another function that this process serves, and return its result. An async function awaits it.

        For a function that gives several values the result is a list. An iterator as an argument feeds a streaming
        parameter. The call gets the deadline and the metadata of this invocation, and ends with it. The call raises
        NestedError if it is refused or fails; if that error is not caught, this invocation ends with its status.
        """
        return _run_of(self).call(name, args, kwargs)

    def stream(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Call another function as `call` does, but return an iterator (or an async one) of the values as they come.

        The function waits while its values are not taken. It is closed when the iterator is.
        """
        return _run_of(self).stream(name, args, kwargs)

    def remaining(self) -> float | None:
        """Seconds until the deadline, never less than 0; None when there is no deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    @property
    def variables(self) -> Any:
        """The variables of the tool bridge's session in which the function was called: get, set, delete and list.

        ``ctx.variables.get("model", "small")``, ``ctx.variables.set("step", 3)``; an async function awaits them. They
        raise VariableError, for example if the function was not called in a session.
        """
        return _run_of(self).variables

    @property
    def trace(self) -> Trace:
        """The place of this invocation in a trace (W3C Trace Context): its ``trace_id``, ``parent_id`` and ``span_id``.

        ``ctx.trace.headers`` are headers for calls that the function makes to other servers. A new trace begins here if
        the caller sent no valid ``traceparent``.
        """
        try:
            return self._trace
        except AttributeError:
            self._trace = trace_of(self.metadata, caller=None if self.caller is None else self.caller.trace)
            return self._trace

    @property
    def request_id(self) -> str:
        """The caller's id of this request, from ``X-Request-Id``: 1 to 128 visible ASCII characters, or empty."""
        return request_id_of(self.metadata)

    @property
    def outputs(self) -> Outputs:
        """The outputs by index or name: ``ctx.outputs["log"].send(value)``."""
        return Outputs(self)

    def wants(self, output: int | str) -> bool:
        """Whether an output has a reader. If not, you need not make its values.

        Raises:
            EncodeError: No output has this index or name.
        """
        outputs = _outputs(self, output)
        return bool(outputs[find_output(output, outputs, self.output_names)].is_wanted)

    def config(self, kind: type[Any]) -> Any:
        """The first of `configs` of a class, which is a protobuf message class or ``dict``; None if there is none.

        Raises:
            ValueError: A config has the type URL of this class, but cannot be parsed.
        """
        for one in self.configs:
            found = _as(one, kind)
            if found is not None:
                return found
        return None

    @property
    def cancelled(self) -> bool:
        """Whether the invocation is over: it was cancelled, its deadline has passed, or its caller is gone."""
        run = self.run  # another thread may release it at any time
        return self._is_released if run is None else run.is_over()

    def __repr__(self) -> str:
        return f"Context(invocation_id={self.invocation_id!r}, function={self.function!r})"


_NO_INPUTS = Inputs(())


def _as(config: Any, kind: type[Any]) -> Any:
    """Convert a config to class ``kind``; None if the config has another type."""
    if isinstance(config, kind):
        return config
    if kind is dict:
        return config.to_dict() if hasattr(config, "to_dict") else None
    return config.unpack(kind) if hasattr(config, "unpack") else None


def _run_of(context: Context) -> Run:
    run = context.run
    if run is None:
        raise EncodeError("the invocation is over, so it sends nothing more and calls no other function")
    return run


def _outputs(context: Context, asked: int | str) -> Sequence[Any]:
    run = context.run
    if run is None:
        raise EncodeError(f"there is no output {asked!r}, because nothing is invoked")
    return run.outputs


RUNNING: ContextVar[Context | None] = ContextVar("invoker-running", default=None)
"""The context of the invocation whose code runs, for the log lines that this code writes."""
