"""`Schema`: the .proto file of one package, made from the signatures of functions: messages, enums and one service."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from invoker.author.docstrings import read_docstring
from invoker.author.spec import IGNORED, FunctionSpec, Take
from invoker.protocols.typed.calls import Call, Given, Slot, calls_of
from invoker.protocols.typed.kinds import (
    EnumDef,
    EnumKind,
    FieldDef,
    Kind,
    ListKind,
    MapKind,
    MessageDef,
    ScalarKind,
    TextKind,
    VoidKind,
)
from invoker.protocols.typed.naming import Names
from invoker.protocols.typed.types import Types


@dataclass(frozen=True, slots=True)
class Rpc:
    """A gRPC method, with the definitions of its messages.

    Attributes:
        call: How the method calls its function.
        request: The request message.
        response: The response message.
    """

    call: Call
    request: MessageDef
    response: MessageDef


@dataclass(slots=True)
class Schema:
    """The content of one .proto file.

    Attributes:
        package: The name of the package.
        service: The name of the service, without the package.
        rpcs: The methods of the service, in the order of the functions.
        messages: All messages; requests and responses come first.
        enums: All enums.
    """

    package: str
    service: str
    rpcs: list[Rpc] = field(default_factory=list)
    messages: list[MessageDef] = field(default_factory=list)
    enums: list[EnumDef] = field(default_factory=list)

    @property
    def file(self) -> str:
        """The path of the file: directories named like the parts of the package, and the file's name."""
        folder = self.package.replace(".", "/")
        return f"{folder}/{self.package.rpartition('.')[2]}.proto"


def schemas_of(specs: Iterable[FunctionSpec]) -> tuple[Schema, ...]:
    """The schemas of functions, one for each module."""
    packages: dict[str, list[Call]] = {}
    for call in calls_of(specs):
        packages.setdefault(call.package, []).append(call)
    return tuple(_schema(calls) for calls in packages.values())


def _schema(calls: list[Call]) -> Schema:
    service = calls[0].service.rpartition(".")[2]
    names = Names(service)
    titles = [(names.give(one.method, "Request"), names.give(one.method, "Response")) for one in calls]
    types = Types(service, *(title for pair in titles for title in pair))
    made = Schema(calls[0].package, service)
    for call, (request, response) in zip(calls, titles, strict=True):
        asked, answered = types.message(request), types.message(response)
        _fill_request(asked, call, types)
        _fill_response(answered, call, types)
        made.rpcs.append(Rpc(call, asked, answered))
    made.messages, made.enums = types.messages, types.enums
    return made


def _fill_request(message: MessageDef, call: Call, types: Types) -> None:
    docs = read_docstring(call.spec.doc).arguments
    several = len(call.streams) > 1
    oneof = Names(*(one.field for one in call.slots)).give("input") if several else ""
    for slot in call.slots:
        kind = _kind(types, slot.spec.type, slot.spec.take)
        in_oneof = several and slot.is_stream
        # A value that may be left out, or that is not in each message of a stream, needs presence, which shows whether
        # it is set.
        may_miss = slot.is_option or (call.streams_in and not call.is_bare)
        if slot.is_variadic:
            kind = ListKind(types.singular(kind), tuple)
        elif slot.is_named:
            kind = MapKind(ScalarKind("string", str), types.singular(kind))
        elif in_oneof or (slot.is_stream and may_miss):
            kind = types.singular(kind)
        comment = " ".join((docs.get(slot.name, ""), _hint(slot, call))).strip()
        message.fields.append(
            FieldDef(
                slot.field,
                slot.number,
                kind,
                source=slot.name,
                has_default=slot.is_option,
                has_presence=may_miss and _tells_nothing(kind),
                oneof=oneof if in_oneof else "",
                is_split=slot.is_variadic or slot.is_named,
                comment=comment,
            )
        )
    _together(message.fields)


def _together(fields: list[FieldDef]) -> None:
    """Put the fields of the oneof before all others, as in the text of the file."""
    fields.sort(key=lambda one: (not one.oneof, one.number))


def _fill_response(message: MessageDef, call: Call, types: Types) -> None:
    result = read_docstring(call.spec.doc).result
    in_oneof = call.streams_out and len(call.outputs) > 1
    oneof = Names(*(one.field for one in call.outputs)).give("output") if in_oneof else ""
    for one in call.outputs:
        kind = _kind(types, one.spec.type, one.spec.take)
        if isinstance(kind, VoidKind):
            continue
        if in_oneof:
            kind = types.singular(kind)
        comment = result if len(call.outputs) == 1 else ""
        message.fields.append(_output(one, kind, oneof, comment))


def _output(one: Given, kind: Kind, oneof: str, comment: str) -> FieldDef:
    return FieldDef(one.field, one.number, kind, source=one.name, oneof=oneof, comment=comment)


def _kind(types: Types, type_: Any, take: Take) -> Kind:
    if type_ is IGNORED and take is Take.PAYLOAD:
        return VoidKind()
    return types.kind(type_)


def _tells_nothing(kind: Kind) -> bool:
    """Whether a message does not show that a field of this kind is set, unless the field is marked as optional."""
    return isinstance(kind, (ScalarKind, TextKind, EnumKind))


def _hint(slot: Slot, call: Call) -> str:
    if not call.streams_in or slot.is_stream:
        return ""
    return "In the first message, if at all." if slot.is_option else "Once, in any of the messages."
