"""Describes a function's inputs and outputs, by the unary gRPC method ``/invoker.v1.Functions/Describe``.

``invoker call`` calls this method before each call, so that users need not give names and media types.
"""

from __future__ import annotations

from typing import Any

import grpc

from invoker._pb.invoker import describe_pb2 as pb
from invoker.author.described import described
from invoker.author.spec import FunctionSpec
from invoker.core.catalog import Catalog
from invoker.errors import FunctionError, ProtocolViolation
from invoker.protocols.riff.wire import DESCRIBE, FUNCTIONS


def add_describe(catalog: Catalog, server: Any) -> None:
    """Serve the method on ``server``, which is a grpc.aio server or its replacement."""

    async def answer(request: pb.DescribeRequest, context: Any) -> pb.Function:
        try:
            spec = catalog.find(request.function).spec
        except ProtocolViolation as error:
            await context.abort(grpc.StatusCode.NOT_FOUND, error.detail)
            raise AssertionError("abort() raises") from None
        except FunctionError as error:  # the function's module failed to load again
            await context.abort(grpc.StatusCode.UNKNOWN, str(error))
            raise AssertionError("abort() raises") from None
        return describe(spec)

    method = grpc.unary_unary_rpc_method_handler(
        answer,
        request_deserializer=pb.DescribeRequest.FromString,
        response_serializer=pb.Function.SerializeToString,
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(FUNCTIONS, {DESCRIBE: method}),))


def describe(spec: FunctionSpec) -> pb.Function:
    """The inputs and outputs of a function, as a message for callers."""
    told = described(spec)
    named = {one.stream.name for one in spec.call.parameters if one.stream is not None and one.by_keyword}
    inputs = [
        pb.Input(
            name=one.name,
            type=one.type,
            media_types=one.media_types,
            is_option=one.is_option,
            is_stream=one.takes_many,
            is_trigger=one.is_trigger,
            is_positional=one.name not in named,
        )
        for one in told.inputs
    ]
    outputs = [pb.Output(name=one.name, type=one.type, media_types=one.read_as) for one in told.outputs]
    return pb.Function(
        name=spec.name,
        doc=spec.doc.partition("\n\n")[0],
        inputs=inputs,
        outputs=outputs,
        open_inputs=spec.open_inputs,
        open_outputs=spec.open_outputs,
        open_names=spec.open_names and not spec.open_inputs,  # beside ``*args`` riff has no optional inputs
    )
