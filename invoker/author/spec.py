"""The types that describe a function after its signature was read: `FunctionSpec` and its parts."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from invoker.fields.constraints import UNBOUND, Constraints

HOOK_TIMEOUT_S: Final = 10.0
"""Seconds that each hook may take, unless the author or the operator sets another limit (R-020)."""

CONTEXT: Final = -1
"""The `Slot.index` of a parameter that receives the invocation's `Context`."""

WANTED: Final = -2
"""The `Slot.index` of a parameter that receives the names of the wanted outputs (G-060)."""


class Style(enum.Enum):
    """The ways in which a function takes its inputs: it is called for each item, or receives the streams."""

    REQUEST_REPLY = "request/reply"
    STREAMING = "streaming"


class Take(enum.Enum):
    """The part of a message that a parameter takes (R-040)."""

    PAYLOAD = "payload"
    MESSAGE = "message"
    HEADERS = "headers"


class ResultShape(enum.Enum):
    """The shape of the value that a streaming function returns when it is called."""

    STREAM = "one iterator"
    SEVERAL = "a tuple of iterators"
    VALUE = "one value"
    NOTHING = "no output"
    UNKNOWN = "unknown until it is called"


class Ignored:
    """The type of an input whose payload is never read, and so is never decoded."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "IGNORED"


IGNORED: Final = Ignored()
"""`StreamSpec.type` of an input whose payload must not be decoded."""


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """The description of one input or output.

    Attributes:
        name: The name of the parameter or of the NamedTuple's field, or the one that the decorator gives.
        type: The type of one item; `typing.Any` where nothing is annotated; `IGNORED` where no payload is read.
        take: The part of each message that the function receives; for `MESSAGE`: ``Message(payload: type, headers,
            media_type)``.
        single: Whether the input is one value for the whole call; a second value is refused (R-168).
        is_option: Whether the parameter keeps its default if the caller gives no value (R-164).
        media_types: The media types that the decorator lists; empty means all that the codecs offer.
        constraints: The constraints on values that the annotation contains besides the type.
    """

    name: str
    type: Any = Any
    take: Take = Take.PAYLOAD
    single: bool = False
    is_option: bool = False
    media_types: tuple[str, ...] = ()
    constraints: Constraints = UNBOUND

    @property
    def is_ignored(self) -> bool:
        """Whether this is the input of a function without parameters; each message of it only makes one call."""
        return self.type is IGNORED and self.take is Take.PAYLOAD


@dataclass(frozen=True, slots=True)
class HookSpec:
    """The hooks that run before the first and after the last invocation.

    Attributes:
        init: Called once, before the first invocation; sync or async, without arguments.
        destroy: Called once, after the last invocation, also when ``init`` failed.
        ready: Returns whether the function can take work; an exception counts as False.
        timeout_s: Seconds that each hook may take; None means the operator's default.
    """

    init: Callable[[], Any] | None = None
    destroy: Callable[[], Any] | None = None
    ready: Callable[[], Any] | None = None
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits on the invocations of a function, over every protocol; 0 and None mean no limit.

    Attributes:
        timeout_s: How many seconds one invocation may take.
        max_calls: How many invocations of all callers may run in the function at once.
        calls_per_minute: How many invocations one party may begin within any 60 seconds.
        memory_bytes: Bytes of memory that one invocation may take; enforced if the function is isolated.
    """

    timeout_s: float | None = None
    max_calls: int = 0
    calls_per_minute: int = 0
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Batching:
    """The rules for joining requests that come at the same time, in protocols whose requests are batches.

    Attributes:
        rows: The most rows of a joined batch; 1 joins none.
        wait_ms: How long the first item of a batch waits for others, in milliseconds.
    """

    rows: int = 1
    wait_ms: float = 5.0


@dataclass(frozen=True, slots=True)
class Slot:
    """One argument of the call: input ``index`` (or `CONTEXT`, or `WANTED`), by ``keyword`` unless that is empty."""

    index: int
    keyword: str = ""
    kind: type = tuple  # only for `WANTED`: the names are passed as a tuple or as a list


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter, for code that binds inputs to parameters by name.

    Attributes:
        name: The parameter's own name; its input has the name ``stream.name``.
        stream: The input that it takes, or the pattern of its inputs if it is variadic; None: it takes no input.
        slot: Set if it receives the context or the names of the wanted outputs instead of an input.
        is_optional: Whether it has a default, so that a call may leave it out.
        by_position: Whether it can be passed by position.
        by_keyword: Whether it can be passed by keyword.
        is_variadic: Whether it is ``*args``, if by position, or ``**kwargs``, if by keyword.
        streams: Whether the parameter is annotated as an iterator.
        default: The default, if it is optional and not variadic.
    """

    name: str
    stream: StreamSpec | None = None
    slot: Slot | None = None
    is_optional: bool = False
    by_position: bool = True
    by_keyword: bool = True
    is_variadic: bool = False
    streams: bool = False
    default: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class CallPlan:
    """The instructions by which `invoker.author.lift` calls the function.

    Attributes:
        slots: The arguments in the order of the parameters, without the variadic ones.
        variadic: Whether the inputs beyond those of the slots go to ``*args``.
        result: The shape of the value that a streaming function returns.
        make: Whether the function is a class, which is instantiated at start.
        parts: The names of the parts of each value, one part for each output; empty: a value is for one output.
        parameters: All parameters in the order of the signature, for `invoker.author.binding`.
    """

    slots: tuple[Slot, ...] = ()
    variadic: bool = False
    result: ResultShape = ResultShape.VALUE
    make: bool = False
    parts: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """The description of a function, which was read from its signature and its decorator.

    Attributes:
        name: The name in the catalogue; the function's own name unless something else was asked for.
        entrypoint: The entrypoint from which it was loaded, ``module:attribute``; may be empty.
        modules: The module of its entrypoint and the module that defines it, with the packages around them; their
            codecs are used.
        doc: Its docstring, cleaned; may be empty.
        style: Request/reply or streaming.
        is_async: Whether the function runs on the event loop; its inputs and outputs are async iterators then.
        inputs: The inputs in the order of their index. With ``open_inputs`` the last one is the pattern of all further
            inputs.
        outputs: The outputs in the order of their index; empty with ``open_outputs``.
        open_inputs: Whether the caller decides how many inputs there are.
        open_outputs: Whether the caller decides how many outputs there are.
        any_output: With ``open_outputs``, the spec of each output.
        parts: The parts of the values of its only output, if they hold arrays. Callers who ask for as many outputs as
            there are parts get each part as an output of its own; others get the whole value.
        concurrency: How many calls of an async request/reply function may overlap within one invocation.
        version: The version that the author or the module gives; may be empty.
        batching: The rules for joining requests.
        examples: The examples of calls, besides those of the docstring.
        safe: Whether a call changes nothing, so that GET may call the function.
        options: The options that only one protocol understands, by the class of the option.
        hooks: Start, stop and ready hooks.
        bounds: The limits on its invocations.
        isolation: ``"process"`` if each of its invocations runs in a child process; else empty.
        optional: Parameters with a default that may be inputs if a caller names them; some may be among ``inputs``.
        open_names: Whether any name may be an input; those that are not names of parameters go to ``**kwargs``.
        call: The way to call it; only `invoker.author.lift` uses that.
    """

    name: str
    entrypoint: str = ""
    modules: tuple[str, ...] = ()
    doc: str = ""
    style: Style = Style.REQUEST_REPLY
    is_async: bool = False
    inputs: tuple[StreamSpec, ...] = ()
    outputs: tuple[StreamSpec, ...] = ()
    open_inputs: bool = False
    open_outputs: bool = False
    any_output: StreamSpec = StreamSpec("out", object)
    parts: tuple[StreamSpec, ...] = ()
    concurrency: int = 1
    version: str = ""
    batching: Batching = Batching()
    examples: tuple[str, ...] = ()
    safe: bool = False
    options: Mapping[type, Any] = field(default_factory=dict, hash=False)
    hooks: HookSpec = HookSpec()
    bounds: Bounds = Bounds()
    isolation: str = ""
    optional: tuple[StreamSpec, ...] = ()
    open_names: bool = False
    call: CallPlan = field(default=CallPlan(), repr=False)

    @property
    def takes_context(self) -> bool:
        """Whether a parameter receives the invocation's `Context`."""
        return any(slot.index == CONTEXT for slot in self.call.slots)

    @property
    def in_parts(self) -> FunctionSpec:
        """The same function with an output for each part of its value, if the value has parts."""
        if not self.parts:
            return self
        call = replace(self.call, parts=tuple(one.name for one in self.parts))
        return replace(self, outputs=self.parts, parts=(), call=call)

    @property
    def required(self) -> tuple[StreamSpec, ...]:
        """The inputs that a caller who names its inputs must name."""
        fixed = self.inputs[:-1] if self.open_inputs else self.inputs
        spare = {one.name for one in self.optional}
        return tuple(one for one in fixed if one.name not in spare and not one.is_ignored)

    @property
    def spare(self) -> tuple[StreamSpec, ...]:
        """The parameters with a default that are inputs only if a caller gives them a value (R-164)."""
        own = {one.name for one in self.inputs}
        return tuple(one for one in self.optional if one.name not in own)

    @property
    def types(self) -> tuple[Any, ...]:
        """The annotations of all inputs, including optional ones, and of all outputs."""
        return tuple(one.type for one in (*self.inputs, *self.optional, *self.outputs, *self.parts))
