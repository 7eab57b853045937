"""`Model`: a function as a model with named input tensors, named output tensors, and their metadata.

Each parameter is an input; a request may leave out those with a default. Type and shape of an input come from the
annotation; without an annotation they are neither described nor checked (G-068). An output has the name that the author
gave, or else ``output<i>``; the aliases ``input<i>`` and ``output<i>`` are always accepted (G-069).
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Mapping
from dataclasses import replace
from types import NoneType
from typing import Any

import msgspec

from invoker.author.binding import KEYWORD, MOST_INPUTS, Binder
from invoker.author.spec import FunctionSpec, Parameter, StreamSpec
from invoker.codecs.several import SEVERAL
from invoker.codecs.tensor import TENSOR, array_wanted
from invoker.codecs.typed import bytes_like, leaves, members
from invoker.core.cache import Cache
from invoker.errors.wording import known_as
from invoker.protocols.graphpipe.options import Rows
from invoker.protocols.graphpipe.plain import JSON, MSGPACK, OCTETS, TEXT
from invoker.tensors import (
    ANY_SIZE,
    Declared,
    IOMetadata,
    MetadataResponse,
    TensorType,
    described,
    numeric,
    shape_of,
    write_metadata_response,
    written,
)

_INTEGERS = frozenset(one for one in TensorType if TensorType.NULL < one < TensorType.FLOAT16)
_NUMBERS = frozenset(one for one in TensorType if TensorType.NULL < one < TensorType.STRING)

_MOST_PLANS = 64
_MOST_PLAN_BYTES = 1 << 20
_MOST_DIGITS = 4
"""The largest number of digits in ``output<i>``."""

# For a plain annotation: the type in the metadata, and the types that are accepted.
_PLAIN: dict[type, tuple[TensorType, frozenset[TensorType]]] = {
    int: (TensorType.INT64, _INTEGERS),
    float: (TensorType.FLOAT64, _NUMBERS),
    str: (TensorType.STRING, frozenset({TensorType.STRING})),
    bytes: (TensorType.STRING, frozenset({TensorType.STRING, TensorType.UINT8})),
}


class ModelPort(msgspec.Struct, frozen=True):
    """An input or an output.

    Attributes:
        name: The name in metadata.
        own: The name of the parameter, or of the function's output.
        media_type: The media types in which its tensors are passed to or from the function, the preferred one first;
            empty if it cannot be a tensor.
        type: The element type in metadata; NULL if several types are possible.
        types: The element types that are accepted; None: any.
        shape: The declared shape; None: any.
        is_single: Whether it is a single value; a tensor of one element is then accepted like a scalar.
        is_truth: Whether this value is a boolean.
        is_optional: Whether a request may leave it out.
        note: The description for users.
        castable: The types that can be cast to its type; if the function allows casts, they are also in ``types``
            (G-061).
        bound: For an element of ``*args`` or ``**kwargs``: the name for ``Open.bound``.
    """

    name: str
    own: str
    media_type: str
    type: TensorType = TensorType.NULL
    types: frozenset[TensorType] | None = None
    shape: Declared | None = None
    is_single: bool = False
    is_truth: bool = False
    is_optional: bool = False
    note: str = ""
    castable: frozenset[TensorType] = frozenset()
    bound: str = ""

    @property
    def is_undeclared(self) -> bool:
        """Whether this output is not declared; each part of a tuple is then an output."""
        return self.media_type.startswith(SEVERAL)

    @property
    def is_joined(self) -> bool:
        """Whether several values of this output are joined into one tensor, since its first size may be any (G-072)."""
        first = self.shape[0] if self.shape else 0
        return isinstance(first, str) or first == ANY_SIZE

    @property
    def metadata(self) -> IOMetadata:
        """The metadata of the tensor: name, description, shape and type."""
        note = f"{self.note} (optional)".strip() if self.is_optional else self.note
        return IOMetadata(self.name, note, numeric(self.shape), self.type)


class Model:
    """A function as a model.

    Args:
        spec: The spec of the function.
        has_arrays: Whether there is a codec for tensors; this is the case if any function takes or returns arrays.
        server: The name and version of the server, for metadata.
        is_told: Whether clients may see the model's name, inputs and outputs (H-062).

    Attributes:
        inputs: The inputs in declared order; optional ones are last.
        outputs: The outputs in declared order; if a value consists of several arrays, each array is an output.
        binder: Binds tensors to inputs by name.
        plans: The plans for earlier requests, by size of the request; see `invoker.protocols.graphpipe.plans`.
        rows: Whether batches are fed row by row; annotations then describe one row, and metadata the batch (G-073).

    Raises:
        SpecError: An annotation declares an invalid shape.
    """

    def __init__(self, spec: FunctionSpec, *, has_arrays: bool, server: str = "invoker", is_told: bool = True) -> None:
        self.is_told = is_told
        self.spec = spec = spec.in_parts
        self._server = server
        required = {one.name for one in spec.required}
        several = [one for one in spec.inputs if not one.is_ignored]
        if not spec.open_inputs:  # elements of ``*args`` have no names and cannot be optional
            several += [one for one in spec.optional if all(one.name != other.name for other in several)]
        self.by_row = _by_row(spec)
        self.inputs = tuple(
            _port(
                spec,
                one,
                one.name,
                has_arrays=has_arrays,
                is_optional=one.name not in required,
            )
            for one in several
        )
        self.outputs = tuple(
            _output(spec, index, one, has_arrays=has_arrays)
            for index, one in enumerate(spec.outputs or ((spec.any_output,) if spec.open_outputs else ()))
        )
        self.plans: Cache[int, tuple[Any, ...]] = Cache(_MOST_PLANS, _MOST_PLAN_BYTES)
        self.binder = Binder(spec, most=MOST_INPUTS, is_ordered=True, has_labels=False)
        self._has_arrays = has_arrays
        self._ports = {one.own: one for one in self.inputs}
        self._inputs = {f"input{index}": index for index in range(len(self.inputs))}
        self._inputs |= {one.name: index for index, one in enumerate(self.inputs)}
        self._outputs = {f"output{index}": index for index in range(len(self.outputs))}
        self._outputs |= {one.own: index for index, one in enumerate(self.outputs)}

    def input_index(self, name: str) -> int | None:
        """The index of the input with this name or alias."""
        return self._inputs.get(name if name.isascii() else known_as(name, self._inputs))

    def output_index(self, name: str) -> int | None:
        """The index of the output with this name or alias."""
        found = self._outputs.get(name)
        return numbered(name) if found is None and self.is_undeclared else found

    @property
    def is_undeclared(self) -> bool:
        """Whether the number of outputs is unknown before a call: there is no return annotation, and no names."""
        return len(self.outputs) == 1 and self.outputs[0].is_undeclared and self.outputs[0].own == "out"

    def input_name(self, said: str, place: int, count: int) -> str:
        """The binder's name of the input that a client's name stands for.

        Args:
            said: The name or alias in the request; empty: the input is chosen by position (G-053).
            place: The position of the tensor in the request.
            count: How many tensors the request has.
        """
        index = self.input_index(said) if said else place
        if index is None and self.spec.open_inputs and (number := numbered(said, "input")) is not None:
            index = number if number < count else None
        if index is None or (index >= len(self.inputs) and not self.spec.open_inputs):
            return said
        return f"#{index}" if index >= len(self.inputs) - self.spec.open_inputs else self.inputs[index].own

    def port(self, name: str, taker: Parameter) -> ModelPort:
        """The port of an input, by the binder's name."""
        if (found := self._ports.get(name)) is not None:
            return found
        own = name.removeprefix(KEYWORD)
        stream = taker.stream or StreamSpec(own)
        if not (taker.is_variadic and taker.by_position):
            made = _port(self.spec, replace(stream, name=own), own, has_arrays=self._has_arrays)
            return msgspec.structs.replace(made, bound=name)
        number, first = name.removeprefix("#"), self._ports.get(stream.name)
        if first is not None and number == str(len(self.inputs) - 1):
            return first  # metadata list only the first element of ``*args``
        first = first or _port(self.spec, stream, stream.name, has_arrays=self._has_arrays)
        return msgspec.structs.replace(first, name=f"input{number}", own=f"{first.own}{number}", bound=name)

    @functools.cached_property
    def hint(self) -> str:
        """A hint for the author of a function that returns a value that cannot be a tensor, such as a tuple."""
        kinds = [typing.get_origin(one) or one for stream in self.spec.outputs for one in members(stream.type)]
        is_several = any(isinstance(one, type) and issubclass(one, Mapping | tuple) for one in kinds)
        return "; if its parts are outputs, name them with @function(outputs=(...))" if is_several else ""

    @functools.cached_property
    def metadata(self) -> MetadataResponse:
        """The description of the model for clients (G-087)."""
        spec = self.spec
        return MetadataResponse(
            name=spec.name,
            version=spec.version,
            server=self._server,
            description=spec.doc.partition("\n\n")[0],
            inputs=tuple(one.metadata for one in self.inputs),
            outputs=tuple(one.metadata for one in self.outputs),
        )

    @functools.cached_property
    def metadata_buffer(self) -> bytes:
        """The description as a serialised MetadataResponse; it is made once."""
        return write_metadata_response(self.metadata)


def numbered(name: str, word: str = "output") -> int | None:
    """The number in a name such as ``output<i>``; None for other names."""
    digits = name.removeprefix(word)
    is_number = digits != name and digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS
    return int(digits) if is_number and str(int(digits)) == digits else None


def _output(spec: FunctionSpec, index: int, stream: StreamSpec, *, has_arrays: bool) -> ModelPort:
    is_unnamed = stream.name in ("out", f"out{index}")
    return _port(spec, stream, f"output{index}" if is_unnamed else stream.name, has_arrays=has_arrays, is_output=True)


def _port(
    spec: FunctionSpec,
    stream: StreamSpec,
    name: str,
    *,
    has_arrays: bool,
    is_optional: bool = False,
    is_output: bool = False,
) -> ModelPort:
    arrays = [one for one in leaves(stream.type) if array_wanted(one) is not None]
    made = ModelPort(
        name, stream.name, _media_type(stream, has_arrays=has_arrays, is_output=is_output), is_optional=is_optional
    )
    if is_output and stream.type is Any and not stream.media_types and len(spec.outputs) == 1 and not spec.call.parts:
        made = msgspec.structs.replace(made, media_type=f"{SEVERAL}, {made.media_type};q=0.9")
    kinds = [one for one in members(stream.type) if one is not NoneType]  # a tensor cannot be None
    if len(arrays) == len(kinds) == 1:
        where = f"{'output' if is_output else 'input'} '{stream.name}' of '{spec.name}'"
        return _of_array(made, arrays[0], where, is_rows=_by_row(spec))
    if len(kinds) == 1 and kinds[0] is bool:
        types = frozenset({TensorType.UINT8})
        return msgspec.structs.replace(
            made, type=TensorType.UINT8, types=types, shape=_one(spec), is_single=True, is_truth=True
        )
    if len(kinds) == 1 and isinstance(kinds[0], type) and kinds[0] in _PLAIN:
        type_, types = _PLAIN[kinds[0]]
        types_ = None if is_output else types
        return msgspec.structs.replace(made, type=type_, types=types_, shape=_one(spec), is_single=True)
    return made


def _of_array(port: ModelPort, annotation: Any, where: str, *, is_rows: bool) -> ModelPort:
    from invoker.tensors import arrays

    wanted = array_wanted(annotation)
    scalar = None if wanted is None else wanted.scalar
    types = None if scalar is None else arrays.taken_types(scalar)
    castable = frozenset[TensorType]() if scalar is None else arrays.castable_types(scalar)
    shape = shape_of(annotation, where)
    if is_rows and shape is not None:
        shape = (ANY_SIZE, *shape)
    note = described(annotation)
    if shape is not None and any(isinstance(size, str) for size in shape):
        note = f"{note} {written(shape)}".strip()
    type_ = next(iter(types)) if types is not None and len(types) == 1 else TensorType.NULL
    if types is not None and wanted is not None and wanted.casts:
        types |= castable
    return msgspec.structs.replace(port, type=type_, types=types, castable=castable, shape=shape, note=note)


def _media_type(stream: StreamSpec, *, has_arrays: bool, is_output: bool) -> str:
    """The media type in which tensors are passed to or from the function (G-074)."""
    if stream.media_types:
        known = (TENSOR, MSGPACK, JSON, TEXT, OCTETS)
        found = next((one for one in known if one in stream.media_types), "")
        return found or (stream.media_types[0] if is_output else "")
    if has_arrays and (is_output or array_wanted(stream.type) is not None):
        return TENSOR
    if not is_output and len(members(stream.type)) == 1:
        if members(stream.type)[0] is str:
            return TEXT
        if bytes_like(stream.type) is not None:
            return OCTETS
    return MSGPACK


def _one(spec: FunctionSpec) -> Declared | None:
    """The shape of a plain value: one value for each row if the function is fed by rows, otherwise a scalar."""
    return (ANY_SIZE,) if _by_row(spec) else None


def _by_row(spec: FunctionSpec) -> bool:
    rows = spec.options.get(Rows)
    return rows is not None and rows.by_row
