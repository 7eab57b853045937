"""`lift`: turns any function of an author into a `Function`, which takes iterators and returns iterators.

A request/reply function is mapped over its inputs inside the iterator that `Function.open` returns, so its exceptions
are raised while producing (R-033); a streaming function is called by `open` itself, once an invocation (R-029).

The mapping is the hot path: per item it costs one call of the function and one look into a set of types known not to be
awaitable. All other decisions about the shape of the function are made once, when it is lifted or opened.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from types import AsyncGeneratorType
from typing import Any, Final

from invoker.author.binding import Binder
from invoker.author.given import given_async, given_sync
from invoker.author.hooks import Hooks
from invoker.author.mapping import PLAIN, gather_map, is_plain, map_async, map_sync
from invoker.author.named import bind, bind_options
from invoker.author.results import async_results, parted, parted_async, sync_results, wanted
from invoker.author.spec import CONTEXT, HOOK_TIMEOUT_S, WANTED, FunctionSpec, ResultShape, Slot, Style, Take
from invoker.context import Context, Inputs
from invoker.errors import DecodeError
from invoker.errors.wording import Place

_END: Final = object()

_MOST_BINDINGS: Final = 256

_MOST_NAMES: Final = 100
"""The most names of a cached binding; each takes a few hundred bytes."""

Bind = Callable[[Callable[..., Any], Context], Callable[..., Any]]


class Function:
    """A function, ready to run; made by `lift` or `binding`, shared by all invocations.

    Attributes:
        spec: The spec that was read from the signature.
        hooks: Starts and stops the function in this process.
        awaits_values: Whether the function is called only once certain values have come, since an input is a single
            value or an option.
        takes_context: Whether a parameter receives the invocation's context.
        is_unary: Whether the function maps payloads to values, so that it is called once if each input has one message;
            see `once`, or `bound` if it is async.
        ignores: Whether the function is called without the values of its inputs.
    """

    def __init__(self, hooks: Hooks, spec: FunctionSpec) -> None:
        self.spec = spec
        self.hooks = hooks
        self.takes_context = spec.takes_context
        self._names = tuple(stream.name for stream in spec.inputs)
        self.ignores = all(slot.index < 0 for slot in spec.call.slots) and not spec.call.variadic
        self._bind = _binder(spec)
        self._maps = spec.style is Style.REQUEST_REPLY
        self._drops = self._maps and spec.call.result is ResultShape.NOTHING
        # The function then returns None, which is not a value.
        is_untyped = len(spec.outputs) > 1 and not spec.call.parts and spec.outputs[0].type is Any
        self._skips_none = self._maps and is_untyped
        self.awaits_values = any(one.is_option or one.single for one in spec.inputs)
        self._has_options = any(one.is_option for one in spec.inputs)
        self._has_singles = any(one.single for one in spec.inputs)
        maps_payloads = (
            self._maps
            and not (self._drops or self._skips_none or self._has_options or spec.call.parts)
            and bool(spec.inputs or self.ignores)
            and all(one.take is Take.PAYLOAD for one in spec.inputs)
        )
        self.is_unary = maps_payloads and not any(slot.index == WANTED for slot in spec.call.slots)
        self._whole = self
        self._bindings: dict[tuple[str, ...], Function] = {}

    @functools.cached_property
    def binder(self) -> Binder:
        """The binder for callers within the process, who may give any number of arguments."""
        return Binder(self.spec)

    @property
    def in_parts(self) -> Function:
        """The same function with an output for each part of its value; itself if the value has no parts."""
        return Function(self.hooks, self.spec.in_parts) if self.spec.parts else self

    def binding(self, names: tuple[str, ...]) -> Function:
        """The same function with only these inputs, in this order; see `invoker.author.named`.

        Raises:
            ProtocolViolation: A name is unknown, given twice or missing.
        """
        if names == self._names and len(self.spec.required) == len(names):
            return self
        found = self._bindings.get(names)
        if found is None:
            found = Function(self.hooks, bind(self.binder, names))
            if len(names) > _MOST_NAMES:
                return found
            if len(self._bindings) >= _MOST_BINDINGS:  # peers choose the names, so a full cache is emptied
                self._bindings.clear()
            self._bindings[names] = found
        return found

    def with_options(self, names: tuple[str, ...]) -> Function:
        """The same function with these options among its inputs; see `invoker.author.named`.

        Args:
            names: The names of the inputs, as the caller sent them.

        Raises:
            ProtocolViolation: There are too few or too many names, or one is not the name of an option.
        """
        if _are_labels(self.spec, names):
            return self
        found = Function(self.hooks, bind_options(self.binder, names))
        found._whole = self  # the options that arrive decide which binding runs
        return found

    async def start(self) -> None:
        """Make, enter and initialise the function, before the first invocation.

        An isolated function is started in its children.

        Raises:
            HookError: A start hook failed; the stop hooks have run.
        """
        if not self.spec.isolation:
            await self.hooks.start()

    async def stop(self) -> None:
        """Run the stop hooks, after the last invocation.

        Raises:
            HookError: A hook failed; the other hooks have run.
        """
        if not self.spec.isolation:
            await self.hooks.stop()

    async def is_ready(self) -> bool:
        """Whether the function can take work."""
        return bool(self.spec.isolation) or await self.hooks.is_ready()

    def open(self, inputs: Sequence[Iterator[Any]], context: Context) -> Sequence[Iterator[Any]]:
        """Begin one run of a sync function.

        Args:
            inputs: One iterator for each input.
            context: The context of this invocation.

        Returns:
            One iterator for each output; none for a sink.

        Raises:
            DecodeError: An input that must have one value ended without a value.
            BaseException: Any exception that the author's function raises.
        """
        if self._has_options:
            names, inputs = given_sync(self.spec, inputs)
            context.inputs = Inputs(inputs, _sent(self.spec, names, context), names)
            return self._whole.binding(names).open(inputs, context)
        if self.spec.call.parts:
            return tuple(parted(self.spec, one, context) for one in self._open(inputs, context))
        return self._open(inputs, context)

    def _open(self, inputs: Sequence[Iterator[Any]], context: Context) -> Sequence[Iterator[Any]]:
        call = self._begin(inputs, context)
        if self._maps:
            inputs = inputs or (iter((None,)),)  # no input decides the number of calls, so the function is called once
            mapped = map_sync(call, inputs, context.wait, ignores=self.ignores)
            if self._skips_none:
                mapped = _but_none(mapped)
            return (_only_effects(mapped) if self._drops else mapped,)
        return sync_results(self.spec, call(*self._first_values(inputs)), context.wait)

    def once(self, values: Sequence[Any], inputs: Sequence[Iterator[Any]], context: Context) -> Any:
        """Call a sync function that `is_unary`, as its iterator would for one value of each input.

        Args:
            values: One value of each input.
            inputs: The inputs for the context; all of them have ended.
            context: The context of this invocation.

        Returns:
            The value of the only output.

        Raises:
            BaseException: Any exception that the author's function raises.
        """
        call = self._begin(inputs, context)
        try:
            result = call() if self.ignores else call(*values)
            return result if type(result) in PLAIN or is_plain(result) else context.wait(result)
        except StopIteration as error:
            # a generator would raise this error
            raise RuntimeError("generator raised StopIteration") from error

    def bound(self, inputs: Sequence[AsyncIterator[Any]], context: Context) -> Callable[..., Any]:
        """The callable of an async function that `is_unary`; it takes one value of each input, in order.

        Args:
            inputs: As for `once`.
            context: The context of this invocation.
        """
        return self._begin(inputs, context)

    async def open_async(self, inputs: Sequence[AsyncIterator[Any]], context: Context) -> Sequence[AsyncIterator[Any]]:
        """Begin one run of an async function, as `open` does for a sync one."""
        if self._has_options:
            names, inputs = await given_async(self.spec, inputs)
            context.inputs = Inputs(inputs, _sent(self.spec, names, context), names)
            return await self._whole.binding(names).open_async(inputs, context)
        opened = await self._open_async(inputs, context)
        return tuple(parted_async(self.spec, one, context) for one in opened) if self.spec.call.parts else opened

    async def _open_async(self, inputs: Sequence[AsyncIterator[Any]], context: Context) -> Sequence[AsyncIterator[Any]]:
        call = self._begin(inputs, context)
        if self._maps:
            inputs = inputs or (_once(),)
            if self.spec.concurrency > 1:
                mapped = gather_map(call, inputs, self.spec.concurrency, ignores=self.ignores)
            else:
                mapped = map_async(call, inputs, ignores=self.ignores)
            if self._skips_none:
                mapped = _async_but_none(mapped)
            return (_only_async_effects(mapped) if self._drops else mapped,)
        values: Sequence[Any] = inputs
        if self._has_singles:
            values = [await self._first_async(inputs, index) for index in range(len(inputs))]
        result = call(*values)
        if type(result) is AsyncGeneratorType and self.spec.call.result is ResultShape.STREAM:
            return (result,)  # most functions return one value; the general code below costs more than a short function
        return await async_results(self.spec, result)

    def _begin(self, inputs: Sequence[Any], context: Context) -> Callable[..., Any]:
        target: Callable[..., Any] = self.hooks.target
        if self.takes_context and not context.inputs:  # otherwise the given inputs are already set
            context.inputs = Inputs(inputs, context.input_names, self._names)
        return target if self._bind is None else self._bind(target, context)

    def _first_values(self, inputs: Sequence[Iterator[Any]]) -> list[Any]:
        """The arguments of a streaming function: streams as they are, single values read."""
        specs = self.spec.inputs
        last = len(specs) - 1
        values: list[Any] = []
        for index, stream in enumerate(inputs):
            if not specs[min(index, last)].single:
                values.append(stream)
                continue
            for value in stream:
                values.append(value)
                break
            else:
                raise self._missing(index)
        return values

    async def _first_async(self, inputs: Sequence[AsyncIterator[Any]], index: int) -> Any:
        if not self.spec.inputs[min(index, len(self.spec.inputs) - 1)].single:
            return inputs[index]
        value = await anext(aiter(inputs[index]), _END)
        if value is _END:
            raise self._missing(index)
        return value

    def _missing(self, index: int) -> DecodeError:
        name = self.spec.inputs[min(index, len(self.spec.inputs) - 1)].name
        return DecodeError(
            f" ended without a value, and '{self.spec.name}' needs one", place=Place("input", index, name)
        )


def _only_effects(mapped: Iterator[Any]) -> Iterator[Any]:
    """Call the function for its effects only. It returns nothing, so it can send values only by its context."""
    for _ in mapped:
        pass
    yield from ()


def _but_none(mapped: Iterator[Any]) -> Iterator[Any]:
    for value in mapped:
        if value is not None:
            yield value


async def _async_but_none(mapped: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for value in mapped:
        if value is not None:
            yield value


async def _only_async_effects(mapped: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for _ in mapped:
        pass
    nothing: tuple[Any, ...] = ()
    for one in nothing:
        yield one


async def _once() -> AsyncIterator[None]:
    yield None


def lift(function: Any, spec: FunctionSpec, *, hook_timeout_s: float = HOOK_TIMEOUT_S) -> Function:
    """Make a function of any shape ready to run.

    Args:
        function: The function as it was loaded.
        spec: The spec that `invoker.author.reader.read` has returned.
        hook_timeout_s: Time limit of each hook for which the author gives none.
    """
    return Function(Hooks(function, spec, timeout_s=hook_timeout_s), spec)


def _are_labels(spec: FunctionSpec, names: tuple[str, ...]) -> bool:
    """Whether the names that a caller sends are only labels for the function's own inputs."""
    if spec.open_inputs:
        options = {one.name for one in spec.spare}
        return not any(name in options for name in names[max(len(spec.inputs) - 1, 1) :])
    own = sum(not one.is_ignored for one in spec.inputs)
    if spec.spare:
        return len(names) == own > 0
    is_free = own or not spec.open_names  # otherwise a name is that of a keyword argument
    return not names or (len(names) == len(spec.inputs) and bool(is_free or names == (spec.inputs[0].name,)))


def _sent(spec: FunctionSpec, kept: tuple[str, ...], context: Context) -> tuple[str, ...]:
    """The names that the caller sent for the inputs that were given."""
    return tuple(name for one, name in zip(spec.inputs, context.input_names, strict=False) if one.name in kept)


def _binder(spec: FunctionSpec) -> Bind | None:
    """Make the closure that gives a call its context and orders its arguments; None if it needs neither."""
    slots = spec.call.slots
    if any(slot.index == WANTED for slot in slots):
        return _general(spec)
    positional = [slot.index for slot in slots if not slot.keyword]
    keywords = {slot.keyword: slot.index for slot in slots if slot.keyword}
    inputs = [index for index in positional if index != CONTEXT]
    is_general = inputs != list(range(len(inputs))) or any(index != CONTEXT for index in keywords.values())
    if not is_general and positional == inputs:
        if not keywords:
            return None
        return lambda target, context: functools.partial(target, **dict.fromkeys(keywords, context))
    if not is_general and not keywords and positional == [CONTEXT, *inputs]:
        return functools.partial
    if not is_general and not keywords and not spec.call.variadic and positional == [0, CONTEXT]:
        # A value and the context are the most frequent arguments.
        return lambda target, context: lambda value: target(value, context)
    return _general(spec)


def _general(spec: FunctionSpec) -> Bind:
    """Make the general closure, for arguments by keyword or in another order than the inputs.

    This is slower than the special cases.
    """
    positional = [slot for slot in spec.call.slots if not slot.keyword]
    keywords = [slot for slot in spec.call.slots if slot.keyword]
    used = 1 + max((slot.index for slot in spec.call.slots), default=CONTEXT)
    used = max(used, 0)

    def bind(target: Callable[..., Any], context: Context) -> Callable[..., Any]:
        def given(slot: Slot, values: tuple[Any, ...]) -> Any:
            if slot.index == WANTED:
                return slot.kind(wanted(spec, context))
            return context if slot.index == CONTEXT else values[slot.index]

        def call(*values: Any) -> Any:
            arguments = [given(slot, values) for slot in positional]
            named = {slot.keyword: given(slot, values) for slot in keywords}
            return target(*arguments, *values[used:], **named)

        return call

    return bind
