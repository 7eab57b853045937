"""Server reflection, so that callers such as ``buf curl`` need no proto file (R-015).

The same service is served under two names: ``grpc.reflection.v1``, which newer callers use, and ``v1alpha``, the only
one that grpcio-reflection has. Their messages are equal on the wire. The descriptors of v1 are made from those of
v1alpha and kept in a pool of our own: protobuf's own pool takes each name only once, so a program with generated code
for v1 could not add its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final, TypeAlias

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool
from grpc_health.v1 import health
from grpc_reflection.v1alpha import reflection, reflection_pb2

log = logging.getLogger(__name__)

Files: TypeAlias = Callable[[], Sequence[bytes]]
"""Returns serialised ``FileDescriptorProto`` messages that protobuf's own pool does not have, each after those it
imports."""

_ALPHA: Final = "grpc.reflection.v1alpha"
_V1: Final = "grpc.reflection.v1"
_SERVICE: Final = "ServerReflection"


def add_reflection(services: Sequence[str], server: Any, files: Files = lambda: ()) -> None:
    """Serve both versions on ``server``: a grpc.aio server, or an object with the same methods for adding servicers.

    Args:
        services: Full names of the served gRPC services.
        server: The server to which the methods are added.
        files: Returns the files; called once, when a caller first asks for a name that protobuf's own pool does not
            have.
    """
    v1 = f"{_V1}.{_SERVICE}"
    names = dict.fromkeys((*services, health.SERVICE_NAME, v1, reflection.SERVICE_NAME))
    servicer = reflection.aio.ReflectionServicer(names, _Pool(files))
    method = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    for name in (v1, reflection.SERVICE_NAME):
        handlers = grpc.method_handlers_generic_handler(name, {"ServerReflectionInfo": method})
        server.add_generic_rpc_handlers((handlers,))


class _Pool:
    """Looks in protobuf's own pool, then in a pool with the files that protobuf's own pool lacks.

    It has the methods of a ``DescriptorPool`` that the servicer uses. All raise KeyError for names that are in neither.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._default = descriptor_pool.Default()

    def FindFileByName(self, name: str) -> Any:  # noqa: N802 - as protobuf spells it
        """The descriptor of the file with this name."""
        return self._find("FindFileByName", name)

    def FindFileContainingSymbol(self, symbol: str) -> Any:  # noqa: N802 - as above
        """The descriptor of the file that has a service, a method, a message or an enum."""
        return self._find("FindFileContainingSymbol", symbol)

    def FindMessageTypeByName(self, name: str) -> Any:  # noqa: N802 - as above
        """The descriptor of the message with this full name."""
        return self._find("FindMessageTypeByName", name)

    def FindExtensionByNumber(self, message: Any, number: int) -> Any:  # noqa: N802 - as above
        """An extension; none of the files has any."""
        return self._default.FindExtensionByNumber(message, number)

    def FindAllExtensions(self, message: Any) -> Any:  # noqa: N802 - as above
        """The extensions of a message; none of the files has any."""
        return self._default.FindAllExtensions(message) if message.file.pool is self._default else ()

    def _find(self, kind: str, name: str) -> Any:
        try:
            return getattr(self._default, kind)(name)
        except KeyError:
            return getattr(self._own, kind)(name)

    @cached_property
    def _own(self) -> Any:
        pool = descriptor_pool.DescriptorPool()
        pool.AddSerializedFile(_v1_file())
        try:
            for serialised in self._files():
                pool.AddSerializedFile(serialised)
        except Exception:  # files that were added before the failure stay known
            log.exception("reflection lacks services whose messages cannot be described")
        return pool


def _v1_file() -> bytes:
    """The file of v1, which is the file of v1alpha under another name."""
    made = descriptor_pb2.FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(made)
    made.name = "grpc/reflection/v1/reflection.proto"
    made.package = _V1
    made.ClearField("options")  # names of v1alpha for Java
    for message in made.message_type:
        for field in message.field:
            if field.type_name:
                field.type_name = field.type_name.replace(_ALPHA, _V1)
    for service in made.service:
        for method in service.method:
            method.input_type = method.input_type.replace(_ALPHA, _V1)
            method.output_type = method.output_type.replace(_ALPHA, _V1)
    return made.SerializeToString()
