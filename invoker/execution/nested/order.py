"""`Order`: the steps of a nested call, however the callee is run: its `Open`, and its arguments by input.

It also knows how the messages of the outputs become the one result of `Context.call`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from invoker.author.lift import Function
from invoker.author.spec import FunctionSpec, ResultShape, Style
from invoker.codecs.exact import ACCEPTS
from invoker.context import Context
from invoker.core.engine import Engine
from invoker.core.steps import Emitted, EndInput, Feed, Open
from invoker.errors import EncodeError, InvocationError, LimitExceeded, NestedError, ProtocolViolation, Status
from invoker.execution.bodies.values import OUTPUT, decode_value, encode_value, refused_argument
from invoker.message import METADATA, Message

KEY = "n"
"""The key of the only invocation in the conversation of a nested call."""


class Order:
    """The steps of one nested call.

    Args:
        engine: Finds functions by name.
        caller: The context of the function that calls.
        name: The name of the function that is called.
        args: By position; an object with ``__next__`` or ``__anext__`` gives its values one by one.
        kwargs: By keyword; likewise.
        most_depth: How many calls may be nested in each other.

    Attributes:
        open: The step that opens the invocation.
        spec: The spec of the callee, with its inputs bound.
        arguments: The arguments in the order of the inputs.

    Raises:
        NestedError: There is no such function, the arguments do not fit its parameters, or the call is nested too
            deeply.
    """

    def __init__(
        self,
        engine: Engine,
        caller: Context,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        most_depth: int,
    ) -> None:
        check_depth(caller, name, most_depth)
        self.arguments: tuple[Any, ...] = (*args, *kwargs.values())
        self._keywords, self._count = kwargs, len(args)
        try:
            function: Function = engine.catalog.find(name)
        except ProtocolViolation as error:
            raise NestedError(Status.NOT_FOUND, str(error)) from None
        bound, _, faults = function.binder.call(len(args), kwargs)
        if faults:
            raise NestedError(Status.INVALID_ARGUMENT, str(faults[0]))
        self.spec: FunctionSpec = function.binding(bound).spec
        count = len(self.spec.outputs) or self.spec.open_outputs
        self.open = Open(
            KEY,
            name,
            (ACCEPTS,) * count,
            bound=bound,
            metadata=caller.metadata,
            scope=caller.scope,
            caller=caller,
            protocol="nested",
        )
        self._most_bytes = engine.limits.hard_bytes

    def takes_stream(self, index: int) -> bool:
        """Whether the function takes an input as a stream, so that each item of a list is a value of its own."""
        return self.spec.style is Style.STREAMING and not self.spec.inputs[index].single

    def given(self) -> Iterator[Feed | EndInput]:
        """The values of the arguments that are not iterators, and the ends of their inputs."""
        for index, argument in enumerate(self.arguments):
            if is_iterator(argument):
                continue
            try:
                if self.takes_stream(index) and isinstance(value := _plain(argument), list | tuple):
                    for one in value:
                        yield Feed(KEY, index, encode_value(one))
                else:
                    yield Feed(KEY, index, argument if isinstance(argument, Message) else encode_value(argument))
            except EncodeError as error:
                named = index if index < self._count else list(self._keywords)[index - self._count]
                raise refused_argument(error, named) from error
            yield EndInput(KEY, index)

    @property
    def iterators(self) -> dict[int, Any]:
        """The arguments that are iterators, by the index of their input."""
        return {index: one for index, one in enumerate(self.arguments) if is_iterator(one)}

    def result(self, events: Sequence[Emitted]) -> Message[bytes]:
        """Combine all values: the single value if the only output gives one value a call; otherwise lists."""
        count = len(self.spec.outputs)
        events = [one for one in events if not one.message.headers or METADATA not in one.message.headers]
        if count <= 1 and self._is_single:
            if len(events) == 1:
                return events[0].message
            if not events:
                return encode_value(None)
        if not count and not self.spec.open_outputs:
            return encode_value(None)
        found: list[list[Any]] = [[] for _ in range(max(count, 1))]
        for one in events:
            found[one.index].append(decode_value(one.message))
        results = [(one[0] if one else None) if self._is_single and len(one) < 2 else one for one in found]
        return encode_value(results[0] if count <= 1 else results)

    @property
    def _is_single(self) -> bool:
        """Whether an output gives one value only."""
        if any(map(is_iterator, self.arguments)):
            return self.spec.style is Style.STREAMING and self.spec.call.result is ResultShape.VALUE
        return self.spec.style is Style.REQUEST_REPLY or self.spec.call.result is ResultShape.VALUE

    def check_size(self, count: int) -> None:
        """Refuse to collect more bytes than an invocation may hold.

        Raises:
            LimitExceeded: The result is too large.
        """
        if count > self._most_bytes:
            raise LimitExceeded(
                f"'{self.spec.name}' gave {count} bytes to Context.call, which keeps {self._most_bytes} at most; "
                "take the values one by one with Context.stream"
            )


def nested_error(error: InvocationError) -> NestedError:
    """The error that a caller gets for the ending of the function that it called."""
    if isinstance(error, NestedError):
        return NestedError(error.status, error.detail, kind=error.kind, details=error.details)
    return NestedError(error.status, str(error))


def labelled(spec: FunctionSpec, event: Emitted) -> Message[bytes]:
    """A value in the form of `Scope.call`: with the name of its output if there are several."""
    message = event.message
    if len(spec.outputs) < 2:
        return message
    return Message(message.payload, {**message.headers, OUTPUT: spec.outputs[event.index].name}, message.media_type)


def is_iterator(argument: Any) -> bool:
    """Whether an argument gives its values one by one."""
    return hasattr(argument, "__next__") or hasattr(argument, "__anext__")


def _plain(argument: Any) -> Any:
    return decode_value(argument) if isinstance(argument, Message) and argument.media_type else argument


def check_depth(caller: Context, name: str, most_depth: int) -> None:
    """Refuse a call that is nested in too many others.

    Raises:
        NestedError: The call is nested too deeply; the text names all callers.
    """
    chain, one = [name], caller
    while True:
        chain.append(one.function)
        if one.caller is None:
            break
        one = one.caller
    if len(chain) - 1 > most_depth:
        text = " > ".join(reversed(chain))
        raise NestedError(Status.RESOURCE_EXHAUSTED, f"nested calls exceed the limit of {most_depth} levels: {text}")
