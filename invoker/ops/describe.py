"""Tells callers what a function takes and gives, by the unary gRPC method ``/invoker.v1.Functions/Describe``.

``invoker call`` asks it before each call, so that a person need not say names and media types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import grpc

from invoker._pb.invoker import describe_pb2 as pb
from invoker.author.spec import FunctionSpec, StreamSpec
from invoker.author.spelling import is_array, render
from invoker.codecs.custom import Adapted, registered
from invoker.codecs.typed import BYTES_LIKE, is_any, is_structured, members
from invoker.core.catalog import Catalog
from invoker.errors import ProtocolViolation

__all__ = ["SERVICE", "add_describe", "describe"]

SERVICE = "invoker.v1.Functions"

_TEXT, _JSON, _OCTETS = "text/plain", "application/json", "application/octet-stream"
_COLLECTIONS = (list, tuple, set, frozenset, Mapping)


def add_describe(catalog: Catalog, server: Any) -> None:
    """Serve the method on ``server``, which is a grpc.aio server or what stands in for one."""

    async def answer(request: pb.DescribeRequest, context: Any) -> pb.Function:
        try:
            spec = catalog.find(request.function).spec
        except ProtocolViolation as error:
            await context.abort(grpc.StatusCode.NOT_FOUND, error.detail)
            raise AssertionError("abort() raises") from None
        return describe(spec)

    method = grpc.unary_unary_rpc_method_handler(
        answer,
        request_deserializer=pb.DescribeRequest.FromString,
        response_serializer=pb.Function.SerializeToString,
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"Describe": method}),))


def describe(spec: FunctionSpec) -> pb.Function:
    """What a caller can be told of a function."""
    own = tuple(one for one in spec.inputs if not one.is_ignored or not spec.optional)
    taken = {one.name for one in own}
    options = tuple(one for one in spec.optional if one.name not in taken)
    mapped = {one.name for one in own or options[:1] if not one.single}  # the first option, if all are options
    streams = {one.stream.name for one in spec.call.parameters if one.stream is not None and one.streams}
    inputs = [
        pb.Input(
            name=one.name,
            type=render(one.type),
            media_types=_sent_as(one, spec.modules),
            is_option=one in options,
            is_stream=one.name in mapped | streams,
            is_trigger=one.is_ignored,
        )
        for one in (*own, *options)
    ]
    outputs = [pb.Output(name=one.name, type=render(one.type), media_types=_read_as(one)) for one in spec.outputs]
    return pb.Function(
        name=spec.name,
        doc=spec.doc.partition("\n\n")[0],
        inputs=inputs,
        outputs=outputs,
        open_inputs=spec.open_inputs,
        open_outputs=spec.open_outputs,
    )


def _sent_as(one: StreamSpec, modules: tuple[str, ...]) -> tuple[str, ...]:
    """The media types of an input's values; the one that suits what a person types comes first."""
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


def _is_collection(kind: Any) -> bool:
    cls = getattr(kind, "__origin__", kind)
    return is_array(kind) or (isinstance(cls, type) and (is_structured(cls) or issubclass(cls, _COLLECTIONS)))


def _read_as(one: StreamSpec) -> tuple[str, ...]:
    """Media types of an output: text first where a person would otherwise read a str in quotes."""
    if one.media_types:
        return one.media_types
    kinds = members(one.type)
    is_text = is_any(one.type) or any(isinstance(kind, type) and issubclass(kind, str) for kind in kinds)
    return (_TEXT, _JSON) if is_text else ()
