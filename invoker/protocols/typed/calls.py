"""`Call`: how one function is called as a method of a typed service, without the types of its values.

Theory. The shape follows from the signature::

    inputs are    outputs are    shape
    ------------  -------------  ----------------
    values        one value      unary
    values        a stream       server-streaming
    a stream      one value      client-streaming
    a stream      a stream       bidirectional

The request has a field for each parameter, whose number is the position of that parameter (from 1, without the
context). A stream of requests has one item in each message: where several parameters are streams, their fields are a
oneof. Parameters that are no streams have a value once, in any message. Optional parameters can be given in the first
message only, since it opens the invocation. The response has a field for each output, numbered likewise; in a stream
they are a oneof.

A `Call` is made without a look at the types, so a server that gets no typed calls does not pay for them.
"""

from __future__ import annotations

import enum
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from invoker.author.binding import MOST_INPUTS, Binder
from invoker.author.spec import IGNORED, FunctionSpec, Parameter, ResultShape, StreamSpec, Style, Take
from invoker.codecs.typed import members
from invoker.protocols.typed.naming import Names, camel, field_word, json_name, package_of, service_of

PROTO: Final = "application/vnd.invoker.field"
"""The private media type of a field: the payload is a message in which no other field is set."""

JSON: Final = "application/vnd.invoker.field+json"
"""The private media type of a field in protobuf's JSON: for an input the value of the field, for an output the
message."""


EACH: Final = "1"
ENTRY: Final = "entry"
"""Values of the parameter ``each`` of these media types: ``EACH`` if the payload is one element of a list, ``ENTRY`` if
it is one entry of a map."""


class Slot(msgspec.Struct, frozen=True):
    """A field of a request that is an input.

    Attributes:
        name: The name of the input.
        field: The field of the message.
        number: The number of the field.
        spec: The input's spec.
        is_stream: Whether each message may have a value for this field.
        is_option: Whether the field may be left out.
        is_variadic: Whether each element of the field is an input of its own.
        is_named: Whether the field is a map, and each entry is an input with the key as its name.
        packing: How protobuf packs the elements of ``*args``: ``varint``, ``fixed64``; empty: each has a tag of its
            own.
    """

    name: str
    field: str
    number: int
    spec: StreamSpec
    is_stream: bool = False
    is_option: bool = False
    is_variadic: bool = False
    is_named: bool = False
    packing: str = ""


class Given(msgspec.Struct, frozen=True):
    """A field of a response.

    Attributes:
        name: The name of the output.
        field: The field of the message.
        number: The number of the field.
        spec: The output's spec.
        holds: Which payloads the field can hold if a function returns a `Message`, encoded by itself: ``text`` or
            ``bytes``; empty: none.
    """

    name: str
    field: str
    number: int
    spec: StreamSpec
    holds: str = ""


class MediaTypes(msgspec.Struct, frozen=True):
    """The media types of the fields of one method, in one form.

    Attributes:
        inputs: The media type of each input, by the number of its field.
        accepts: The media type of each output.
    """

    inputs: Mapping[int, str]
    accepts: tuple[str, ...]


class Call(msgspec.Struct, frozen=True):
    """A gRPC method that calls a function.

    Attributes:
        spec: The spec of the function.
        package: The package of the file and of its messages.
        service: The full name of the service.
        method: The name of the method.
        slots: The fields of a request.
        outputs: The fields of a response.
        streams_in: Whether the requests are a stream.
        streams_out: Whether the responses are a stream.
        trigger: The name of the input of a function without parameters; empty: the function has parameters, or takes no
            input.
        is_first_only: Whether only the first output is served, because the function declares neither the number nor the
            names of its outputs.
        proto: The media types of its fields in protobuf's binary encoding.
        json: The media types of its fields in JSON.
        binder: Checks the names that are given for ``**kwargs``; None: the function has no ``**kwargs``.
    """

    spec: FunctionSpec
    package: str
    service: str
    method: str
    slots: tuple[Slot, ...] = ()
    outputs: tuple[Given, ...] = ()
    streams_in: bool = False
    streams_out: bool = False
    trigger: str = ""
    is_first_only: bool = False
    proto: MediaTypes = MediaTypes({}, ())
    json: MediaTypes = MediaTypes({}, ())
    binder: Binder | None = None

    @property
    def is_safe(self) -> bool:
        """Whether the author of the function declared that a call has no side effects."""
        return self.spec.safe

    @property
    def path(self) -> str:
        """The path of the method: ``/SERVICE/METHOD``."""
        return f"/{self.service}/{self.method}"

    @property
    def streams(self) -> tuple[Slot, ...]:
        """The fields of which each message of a stream may set one."""
        return tuple(one for one in self.slots if one.is_stream)

    @property
    def is_bare(self) -> bool:
        """Whether even an empty message of the stream is an item, because the request has only one field."""
        return self.streams_in and len(self.slots) == 1


def calls_of(specs: Iterable[FunctionSpec]) -> tuple[Call, ...]:
    """The method of each function, in the same order; functions of one module share a service."""
    methods: dict[str, Names] = {}
    found: list[Call] = []
    for spec in specs:
        package = package_of(next(iter(spec.modules), ""))
        names = methods.setdefault(package, Names(key=str.lower))
        found.append(_call(spec, package, names.give(camel(spec.name))))
    return tuple(found)


def media_type(function: str, number: int, *, is_output: bool = False, is_json: bool = False) -> str:
    """The media type of a field.

    Args:
        function: The name of the function in the catalogue.
        number: The number of the field.
        is_output: Whether it is a field of the response; otherwise of the request.
        is_json: Whether it is in JSON.
    """
    side = "out" if is_output else "in"
    return f"{JSON if is_json else PROTO};of={quote(function, safe='')};{side}={number}"


def _types(name: str, slots: tuple[Slot, ...], outputs: tuple[Given, ...], *, is_json: bool) -> MediaTypes:
    inputs = {one.number: media_type(name, one.number, is_json=is_json) for one in slots}
    inputs |= {one.number: f"{inputs[one.number]};each={EACH}" for one in slots if one.is_variadic}
    inputs |= {one.number: f"{inputs[one.number]};each={ENTRY}" for one in slots if one.is_named}
    accepts = [media_type(name, one.number, is_output=True, is_json=is_json) for one in outputs]
    # A field of text or bytes can also hold a payload that the function has encoded itself.
    chosen = [f"{text}, */*;q=0.1" if one.holds else text for text, one in zip(accepts, outputs, strict=True)]
    return MediaTypes(inputs, tuple(chosen))


def _call(spec: FunctionSpec, package: str, method: str) -> Call:
    slots = _slots(spec)
    outputs, streams_out, is_first_only = _outputs(spec)
    return Call(
        spec,
        package,
        f"{package}.{service_of(package)}",
        method,
        slots,
        outputs,
        any(one.is_stream for one in slots),
        streams_out,
        "" if spec.open_names else next((one.name for one in spec.inputs if one.is_ignored), ""),
        is_first_only,
        _types(spec.name, slots, outputs, is_json=False),
        _types(spec.name, slots, outputs, is_json=True),
        Binder(spec, most=MOST_INPUTS) if any(one.is_named for one in slots) else None,
    )


def _slots(spec: FunctionSpec) -> tuple[Slot, ...]:
    options = {one.name for one in spec.optional}
    names = Names(key=json_name)
    found: list[Slot] = []
    for position, one in enumerate(_parameters(spec), 1):
        is_named = one.is_variadic and one.by_keyword
        stream = (one.stream or StreamSpec(one.name)) if is_named else one.stream
        is_left_out = (
            one.is_variadic and one.is_optional and not (spec.open_inputs or is_named)
        )  # such as `*args` after a default
        if stream is None or is_left_out or (is_named and (spec.open_inputs or one.streams)):
            # its number is not reused: the numbers of the others must not depend on which parameters can be inputs
            continue
        if is_named:
            field = names.give(field_word(one.name))
            found.append(Slot(one.name, field, position, stream, is_option=True, is_named=True))
            continue
        is_variadic = one.is_variadic and spec.open_inputs
        streams = spec.style is Style.STREAMING and not stream.single
        found.append(
            Slot(
                stream.name,
                names.give(field_word(stream.name)),
                position,
                stream,
                is_stream=streams or one.streams,
                is_option=stream.name in options or is_variadic,
                is_variadic=is_variadic and not streams,
                packing=_packing(stream.type) if is_variadic else "",
            )
        )
    return tuple(found)


def _packing(type_: Any) -> str:
    """How protobuf packs a repeated field of this type; empty: not at all, or the type is unknown."""
    kinds = [one for one in members(type_) if one is not type(None)]
    if len(kinds) != 1:
        return ""
    (kind,) = kinds
    if typing.get_origin(kind) is typing.Literal:
        found = {type(one) for one in typing.get_args(kind)}
        kind = found.pop() if len(found) == 1 else object
    if kind is float:
        return "fixed64"
    is_varint = kind in (int, bool) or (isinstance(kind, type) and issubclass(kind, enum.Enum))
    return "varint" if is_varint else ""


def _parameters(spec: FunctionSpec) -> list[Parameter]:
    return [one for one in spec.call.parameters if one.slot is None]


def _holds(spec: StreamSpec) -> str:
    if spec.take is not Take.MESSAGE or members(spec.type) not in ((str,), (bytes,)):
        return ""
    return "text" if members(spec.type) == (str,) else "bytes"


def _outputs(spec: FunctionSpec) -> tuple[tuple[Given, ...], bool, bool]:
    """The fields of a response, whether it streams, and whether only the first output is served."""
    streams = spec.style is Style.STREAMING and spec.call.result is not ResultShape.VALUE
    if spec.call.result is ResultShape.NOTHING and not spec.outputs:
        streams = False
    specs = spec.outputs or ((spec.any_output,) if spec.open_outputs else ())
    names = Names(key=json_name)
    given = (
        Given(one.name, names.give(field_word(one.name)), position, one, _holds(one))
        for position, one in enumerate(specs, 1)
        if one.type is not IGNORED
    )
    return tuple(given), streams, spec.open_outputs
