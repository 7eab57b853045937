"""`Tools`: the functions of a catalogue as tools; `Tool`: one of them (T-021 to T-035)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.author.docstrings import read_docstring
from invoker.author.spec import FunctionSpec, ResultShape, StreamSpec, Style
from invoker.codecs.anyvalue import ANY, Unserializable, pack, unpack
from invoker.errors import SpecError
from invoker.errors.wording import nearest
from invoker.fields.constraints import Constraints
from invoker.protocols.toolbridge.arguments import Argument, Arguments, Binding
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.options import ToolInfo
from invoker.protocols.toolbridge.typenames import allowed_values, elixir_type, python_type

_DEFAULT: Final = ToolInfo()
_LONGEST: Final = 64
_MOST_COMPARED: Final = 50
TOOL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}").fullmatch
TOOL_NAMES: Final = "1 to 64 of A-Z a-z 0-9 _ . - and begin with a letter or a digit"
_GIVES_MANY: Final = (ResultShape.STREAM, ResultShape.SEVERAL, ResultShape.UNKNOWN)


class Tool:
    """A function as a tool.

    Args:
        spec: The spec of the function.

    Attributes:
        id: ``module:qualname``, or the name if the function was not loaded from a module.
        name: The name in the catalogue.
        function: The name, for ``Open.function``.
        outputs: How many outputs it has.
        accepts: The value for ``Open.accepts``.
        is_stream: Whether the function may yield any number of values.
        check: Raises if a result breaks a rule of the annotation (T-049); None: there are no rules.

    Raises:
        SpecError: The name is not valid for a tool, or an annotation has an unknown rule.
    """

    __slots__ = (
        "_arguments",
        "_told",
        "accepts",
        "bind",
        "check",
        "function",
        "id",
        "is_stream",
        "name",
        "outputs",
        "source",
    )

    def __init__(self, spec: FunctionSpec) -> None:
        if TOOL_NAME(spec.name) is None:
            raise SpecError(
                f"'{spec.name}' cannot be the name of a tool: it must be {TOOL_NAMES}; name the function with "
                "@function(name=...)"
            )
        self.source = spec
        self.id = spec.entrypoint or spec.name
        self.name = self.function = spec.name
        self.outputs = len(spec.outputs) or int(spec.open_outputs)
        self.accepts = (ANY,) * self.outputs
        self.is_stream = spec.style is Style.STREAMING and spec.call.result in _GIVES_MANY
        self._arguments = Arguments(spec)
        self.bind: Callable[[Sequence[bytes], Mapping[str, bytes]], Binding] = self._arguments.bind
        self.check = _result_check(spec)
        self._told: pb.ToolSpec | None = None

    def spec(self) -> pb.ToolSpec:
        """The description that callers get; it is made once."""
        if self._told is None:
            self._told = self._tell()
        return self._told

    def _tell(self) -> pb.ToolSpec:
        spec = self.source
        docs = read_docstring(spec.doc)
        output = _output(spec)
        told: ToolInfo = spec.options.get(ToolInfo, _DEFAULT)
        made = pb.ToolSpec(tool_id=self.id, name=self.name, description=docs.summary, type=self._type(told))
        made.arguments.extend(_told(one, docs.arguments.get(one.name, "")) for one in self._arguments.each)
        made.return_type.CopyFrom(_told_type("return", output.type))
        made.return_type.description = output.constraints.description or docs.result
        made.examples[:] = dict.fromkeys((*docs.examples, *spec.examples))
        if told.tools:
            made.metadata["tools"] = ",".join(told.tools)
        if told.cacheable:
            made.metadata["cacheable"] = "true"
        if output.constraints:
            made.validation.CopyFrom(_validation(output.constraints))
        bounds = spec.bounds
        made.limits.timeout_ms = math.ceil(1000 * (bounds.timeout_s or 0))
        made.limits.max_memory_bytes = bounds.memory_bytes
        made.limits.max_concurrent_calls = bounds.max_calls
        made.limits.rate_limit_per_minute = bounds.calls_per_minute
        return made

    def _type(self, told: ToolInfo) -> pb.ToolType:
        """The type of a tool; streaming takes precedence, since it determines how the tool is called (T-029)."""
        if self.is_stream:
            return pb.STREAMING
        return pb.BATCH if told.batch else pb.COMPOSITE if told.tools else pb.STANDARD


class Tools:
    """All tools of a catalogue.

    Args:
        functions: The specs of the functions.
        is_strict: Whether a function that cannot be a tool is an error; otherwise it is left out (T-022).
        tells: Whether callers may see the names of the tools (H-062).

    Attributes:
        tells: Whether callers may see the names of the tools.
        left_out: The errors of functions that cannot be tools, by name.
        specs: The descriptions that callers get, sorted by name (T-033).

    Raises:
        SpecError: Two functions have the same name or id, or one cannot be a tool.
    """

    def __init__(self, functions: Iterable[FunctionSpec], *, is_strict: bool = True, tells: bool = True) -> None:
        self.tells = tells
        self._by_name: dict[str, Tool] = {}
        self._by_id: dict[str, Tool] = {}
        self.left_out: dict[str, str] = {}
        for spec in functions:
            try:
                self._add(Tool(spec))
            except SpecError as error:
                if is_strict:
                    raise
                self.left_out[spec.name] = error.detail
        self._found = self._by_name | self._by_id

    def _add(self, tool: Tool) -> None:
        for known, key, how in ((self._by_name, tool.name, "are named"), (self._by_id, tool.id, "have the id")):
            if key in known:
                raise SpecError(f"two tools {how} {key!r}; name one with @function(name=...)")
        self._by_name[tool.name] = self._by_id[tool.id] = tool

    @property
    def specs(self) -> list[pb.ToolSpec]:
        """The descriptions that callers get, sorted by name (T-033)."""
        return [self._by_name[name].spec() for name in sorted(self._by_name)]

    def find(self, key: str) -> Tool | None:
        """The tool with this id, or with this name (T-021)."""
        return self._found.get(key)

    def near(self, key: str) -> str:
        """The name that a caller may have meant by an unknown name; empty if no name is similar.

        If there are many tools, none is suggested, since comparing three hundred names blocks the event loop for seven
        milliseconds.
        """
        names = self._by_name if self.tells and len(self._by_name) <= _MOST_COMPARED else ()
        return nearest(key[:_LONGEST], names)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)


def _output(spec: FunctionSpec) -> StreamSpec:
    if len(spec.outputs) == 1:
        return spec.outputs[0]
    return StreamSpec("return", Any if spec.outputs or spec.open_outputs else type(None))


def _told(argument: Argument, words: str) -> pb.ArgumentSpec:
    type_ = list[argument.type] if argument.is_stream else argument.type  # type: ignore[name-defined]  # made at run time
    made = _told_type(argument.name, type_)
    made.required = argument.is_required
    made.description = argument.constraints.description or words
    made.allowed_values[:] = argument.allowed
    if argument.constraints:
        made.validation.CopyFrom(_validation(argument.constraints))
    if not argument.is_required:
        try:
            made.default_value.MergeFromString(pack(argument.default))
        except Unserializable:
            made.ClearField("default_value")  # a default that cannot be encoded
    return made


def _told_type(name: str, type_: Any) -> pb.ArgumentSpec:
    return pb.ArgumentSpec(
        name=name,
        python_type=python_type(type_),
        elixir_type=elixir_type(type_),
        allowed_values=allowed_values(type_),
    )


def _validation(rules: Constraints) -> pb.ValidationRules:
    return pb.ValidationRules(
        pattern=rules.pattern,
        min_value=rules.min_value,
        max_value=rules.max_value,
        min_length=rules.min_length,
        max_length=rules.max_length,
        custom_rules=rules.rules,
    )


def _result_check(spec: FunctionSpec) -> Callable[[bytes], None] | None:
    """Return a function that raises if a result breaks a rule of the annotation (T-049)."""
    check = _output(spec).constraints.checker()
    if check is None:
        return None

    def refuse(payload: bytes) -> None:
        for problem in check(unpack(payload)):
            text = f"the result of '{spec.name}' {problem.text}"
            raise BridgeError(
                Kind.INTERNAL, text, **{**problem.details, "code": "result_invalid", "rule": problem.code}
            )

    return refuse
