"""`described`: describes a function to its callers, for every protocol and command that shows functions.

The description is used by `invoker call` over gRPC, by programs and pages over HTTP, and by `invoker inspect`. Schemas
are made when they are first read, since most users of a description need none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from invoker.author.docstrings import Docs, read_docstring, read_prose
from invoker.author.spec import IGNORED, FunctionSpec, ResultShape, StreamSpec, Style, Take
from invoker.author.spelling import render
from invoker.codecs.annotations import is_array
from invoker.codecs.custom import Adapted, registered
from invoker.codecs.schema import DEFINITIONS, NOTHING, Schema, Schemas, fits, plain_value, schema_of
from invoker.codecs.typed import BYTES_LIKE, is_any, is_structured, members

_TEXT, _JSON, _OCTETS = "text/plain", "application/json", "application/octet-stream"
_COLLECTIONS: Final = (list, tuple, set, frozenset, Mapping)


@dataclass(frozen=True)
class DescribedInput:
    """One input, or an option.

    Attributes:
        stream: The spec of the stream.
        media_types: The media types of its values; the first one is for a value that a person types.
        is_required: Whether callers that name inputs have to name this one.
        is_option: Whether the parameter is an input only if a caller gives a value.
        is_stream: Whether the function receives it as a stream.
        takes_many: Whether it may be given any number of values: it is a stream, or the function is called for each
            value.
        said: The default as a Python value; `NOTHING` if the parameter has none.
        doc: Words for readers; may be empty.
    """

    stream: StreamSpec
    media_types: tuple[str, ...]
    is_required: bool
    is_option: bool
    is_stream: bool
    takes_many: bool
    said: Any = NOTHING
    doc: str = ""

    @property
    def name(self) -> str:
        """The name by which callers give the input."""
        return self.stream.name

    @property
    def type(self) -> str:
        """The annotation as its author wrote it."""
        return render(self.stream.type)

    @property
    def is_trigger(self) -> bool:
        """Whether the function has no parameter, so that each value of this input only makes one more call."""
        return self.stream.is_ignored

    @cached_property
    def schema(self) -> Schema:
        """The JSON Schema of one value, with its own definitions."""
        return schema_of(self._annotation, self.stream.constraints)

    @cached_property
    def default(self) -> Any:
        """The default as JSON; `NOTHING` if there is none, JSON cannot hold it, or no caller could send it."""
        if self.said is NOTHING:
            return NOTHING
        made, schema = plain_value(self.said), self.schema
        known = schema.get("$defs", {})
        is_fit = fits(schema, made, lambda ref: known.get(ref.removeprefix(DEFINITIONS), {}))
        return made if is_fit else NOTHING

    def shared_schema(self, schemas: Schemas) -> Schema:
        """The schema with its definitions moved to the shared ones, with the default and the description."""
        return self._completed(schemas.of(self._annotation, self.stream.constraints))

    @property
    def _annotation(self) -> Any:
        return Any if self.stream.type is IGNORED else self.stream.type

    def _completed(self, schema: Schema) -> Schema:
        more = {"description": self.doc} if self.doc else {}
        if self.default is not NOTHING:
            more["default"] = self.default
        return schema | more


@dataclass(frozen=True)
class DescribedOutput:
    """The description of one output.

    Attributes:
        stream: The spec of the stream.
        media_types: The media types that its values may have; the first one is for callers that accept any.
        is_stream: Whether the output may give any number of values.
        doc: Words for readers; may be empty.
    """

    stream: StreamSpec
    media_types: tuple[str, ...]
    is_stream: bool
    doc: str = ""

    @property
    def name(self) -> str:
        """The name of the output; empty if it has none."""
        return self.stream.name

    @property
    def type(self) -> str:
        """The annotation as its author wrote it."""
        return render(self.stream.type)

    @property
    def read_as(self) -> tuple[str, ...]:
        """The media types to ask for when a person reads the output: text first for a str; empty: any."""
        if self.stream.media_types:
            return self.stream.media_types
        kinds = members(self.stream.type)
        is_text = is_any(self.stream.type) or any(isinstance(kind, type) and issubclass(kind, str) for kind in kinds)
        return (_TEXT, _JSON) if is_text else ()

    @cached_property
    def schema(self) -> Schema:
        """The JSON Schema of one value, with its own definitions."""
        return schema_of(self._annotation, self.stream.constraints, gives=True)

    def shared_schema(self, schemas: Schemas) -> Schema:
        """The schema with its definitions moved to the shared ones, and with the description."""
        return self._completed(schemas.of(self._annotation, self.stream.constraints, gives=True))

    @property
    def _annotation(self) -> Any:
        return Any if self.stream.type is IGNORED else self.stream.type

    def _completed(self, schema: Schema) -> Schema:
        return {**schema, "description": self.doc} if self.doc else schema


@dataclass(frozen=True)
class Described:
    """The description of a function for its callers.

    Attributes:
        spec: The spec of the function.
        docs: The parsed docstring.
        inputs: The inputs in the order of their index; options come last.
        outputs: The outputs in the order of their index.
        examples: Calls of the function, as Python source.
    """

    spec: FunctionSpec
    docs: Docs
    inputs: tuple[DescribedInput, ...]
    outputs: tuple[DescribedOutput, ...]
    examples: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        """The name of the function in the catalogue."""
        return self.spec.name

    @property
    def is_safe(self) -> bool:
        """Whether the function's author says that a call changes nothing."""
        return self.spec.safe

    @property
    def gives_many(self) -> bool:
        """Whether one call may give several values."""
        return self.spec.open_outputs or len(self.outputs) > 1 or any(one.is_stream for one in self.outputs)


def described(spec: FunctionSpec) -> Described:
    """Describe a function to its callers: its texts, inputs and outputs."""
    docs = read_docstring(spec.doc)
    own = tuple(one for one in spec.inputs if not one.is_ignored or not spec.optional)
    taken = {one.name for one in own}
    options = tuple(one for one in spec.optional if one.name not in taken)
    # the first option is mapped, if all inputs are options
    mapped = {one.name for one in own or options[:1] if not one.single}
    known = {one.stream.name: one for one in spec.call.parameters if one.stream is not None}
    many = mapped | {name for name, one in known.items() if one.streams}
    spare = {one.name for one in spec.optional}
    inputs = []
    for one in (*own, *options):
        parameter = known.get(one.name)
        has_default = one.name in spare and parameter is not None and not parameter.is_variadic
        words = docs.arguments.get(parameter.name if parameter is not None else one.name, "")
        inputs.append(
            DescribedInput(
                one,
                _sent_as(one, spec.modules),
                is_required=one.name not in spare and not one.is_ignored,
                is_option=one in options,
                is_stream=spec.style is Style.STREAMING and one.name in many,
                takes_many=one.name in many,
                said=parameter.default if has_default and parameter is not None else NOTHING,
                doc=one.constraints.description or words,
            )
        )
    streams = spec.style is Style.STREAMING and spec.call.result is not ResultShape.VALUE
    words = docs.result if len(spec.outputs) == 1 else ""
    outputs = tuple(
        DescribedOutput(one, given_as(one), streams, one.constraints.description or words) for one in spec.outputs
    )
    examples = tuple(dict.fromkeys((*spec.examples, *docs.examples)))
    return Described(spec, docs, tuple(inputs), outputs, examples)


def listed(function: Described) -> dict[str, Any]:
    """Describe a function as a JSON object, with the names that `/functions` uses."""
    spec = function.spec
    return {
        "name": function.name,
        "doc": read_prose(spec.doc),
        "isSafe": function.is_safe,
        "style": spec.style.value,
        **({"isolation": spec.isolation} if spec.isolation else {}),
        "inputs": [_input(one) for one in function.inputs if not one.is_trigger],
        "outputs": [
            {
                "name": one.name,
                "type": one.type,
                "schema": one.schema,
                "mediaTypes": list(one.media_types),
                "isStream": one.is_stream,
                "doc": one.doc,
            }
            for one in function.outputs
        ],
        "openInputs": spec.open_inputs,
        "openNames": spec.open_names,
        "openOutputs": spec.open_outputs,
        "examples": list(function.examples),
    }


def _input(one: DescribedInput) -> dict[str, Any]:
    made = {
        "name": one.name,
        "type": one.type,
        "schema": one.schema,
        "mediaTypes": list(one.media_types),
        "isStream": one.is_stream,
        "isRequired": one.is_required,
        "doc": one.doc,
    }
    return made if one.default is NOTHING else {**made, "default": one.default}


def _sent_as(one: StreamSpec, modules: tuple[str, ...]) -> tuple[str, ...]:
    """The media types of an input's values, first the one for values that a person types."""
    if one.media_types:
        return one.media_types
    for codec in registered(modules):
        if isinstance(codec, Adapted) and not is_any(one.type) and codec.claims(one.type):
            return tuple(name for name in codec.media_types if "*" not in name)
    kinds = members(one.type)
    if is_any(one.type) or str in kinds:
        return (_TEXT, _JSON)
    if any(kind in BYTES_LIKE for kind in kinds):
        return (_OCTETS, _TEXT)
    return (_JSON,) if any(_is_collection(kind) for kind in kinds) else (_TEXT, _JSON)


def given_as(one: StreamSpec) -> tuple[str, ...]:
    """The media types of an output's values, in the order in which the server prefers them."""
    if one.media_types:
        return one.media_types
    kinds = [kind for kind in members(one.type) if kind is not type(None)]
    if is_any(one.type) or one.take is Take.HEADERS:
        return (_JSON, _TEXT, _OCTETS)
    found = [_OCTETS if kind in BYTES_LIKE else _JSON for kind in kinds]
    found += [_TEXT for kind in kinds if kind not in BYTES_LIKE and not _is_collection(kind)]
    return tuple(dict.fromkeys(found)) or (_JSON, _TEXT)


def _is_collection(kind: Any) -> bool:
    cls = getattr(kind, "__origin__", kind)
    return is_array(kind) or (isinstance(cls, type) and (is_structured(cls) or issubclass(cls, _COLLECTIONS)))
