"""The messages of GraphPipe, and their readers: of requests for servers, of responses for clients.

Names and meaning are those of the schema; an absent vector equals an empty one (D20). Whether names exist, and whether
shapes are the declared ones, is not checked here.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec

from invoker.tensors.errors import Code, GraphPipeError
from invoker.tensors.flat import STRING_COST, Table, Totals, Weigh, malformed
from invoker.tensors.skeleton import Trace
from invoker.tensors.tables import opened, read_names, read_shape, read_tables, tensor_of
from invoker.tensors.types import Tensor, spelled

LIMIT_BYTES: Final = 64 << 20
"""The default limit of the size of a buffer, in bytes (G-004)."""

_INFER: Final = 1
_METADATA: Final = 2

Buffer: TypeAlias = bytes | bytearray | memoryview


class InferRequest(msgspec.Struct, frozen=True):
    """A request for an inference.

    Attributes:
        tensors: The tensors in the order of the wire; their numbers are views on the buffer.
        input_names: One name for each tensor, or no names; an empty one stands for the default (G-053).
        output_names: The names of the wanted outputs; empty means the default outputs.
        config: Any bytes (G-031).
    """

    tensors: tuple[Tensor, ...] = ()
    input_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()
    config: bytes = b""


class MetadataRequest(msgspec.Struct, frozen=True):
    """A request for the inputs and outputs of a model."""


class RemoteError(msgspec.Struct, frozen=True):
    """An error that a server sent; each kind of server has its own codes."""

    code: int
    message: str


class InferResponse(msgspec.Struct, frozen=True):
    """The result of an inference: tensors or errors. A server may also send both or neither (G-086)."""

    tensors: tuple[Tensor, ...] = ()
    errors: tuple[RemoteError, ...] = ()


class IOMetadata(msgspec.Struct, frozen=True):
    """An input or an output.

    Attributes:
        name: The name by which requests ask for it.
        description: The description for readers.
        shape: The sizes, -1 for any size; empty for a scalar, and if the shape is unknown.
        type: The id of the type; 0 if it is unknown. A newer schema may have more types.
    """

    name: str
    description: str = ""
    shape: tuple[int, ...] = ()
    type: int = 0


class MetadataResponse(msgspec.Struct, frozen=True):
    """The inputs and outputs of a model."""

    name: str = ""
    version: str = ""
    server: str = ""
    description: str = ""
    inputs: tuple[IOMetadata, ...] = ()
    outputs: tuple[IOMetadata, ...] = ()


def read_request(
    buffer: Buffer, limit_bytes: int = LIMIT_BYTES, weigh: Weigh | None = None, *, trace: Trace | None = None
) -> InferRequest | MetadataRequest:
    """Read a client's request.

    Args:
        buffer: One Request; bytes after it are ignored (G-026). The buffer must not change while tensors are used.
        limit_bytes: Larger buffers are refused.
        weigh: Called with the bytes of memory that strings will take, before they are made; it may raise.
        trace: Records which bytes were read.

    Raises:
        GraphPipeError: The request is malformed (E1), of an unknown type (E2), has more or fewer names than tensors
            (E3), has an invalid tensor (E9 to E12), or causes too much work (E13).
    """
    root = opened(buffer, limit_bytes, trace).root()
    kind = root.uint8(0)
    if kind not in (_INFER, _METADATA):
        raise GraphPipeError(
            Code.REQUEST_TYPE, f"the request type is {kind}; expected 1 for an inference, or 2 for metadata"
        )
    table = root.table(1)
    if kind == _METADATA:  # G-029: the table has no fields, so it may be missing
        return MetadataRequest()
    if table is None:
        raise GraphPipeError(
            Code.REQUEST_TYPE, "the request type says that there is an inference, but the request has none"
        )
    totals = Totals(limit_bytes, most_text=limit_bytes, weigh=weigh)  # a function gets no more than this limit
    config = table.octets(0)
    totals.decoded(len(config))
    input_names = read_names(table, 1, totals, "the name of an input")
    output_names = read_names(table, 3, totals, "the name of an output")
    tensors = _read_tensors(table, 2, totals, "input")
    if input_names and len(input_names) != len(tensors):  # G-051
        raise GraphPipeError(Code.NAME_COUNT, f"there are {len(input_names)} input names and {len(tensors)} tensors")
    return InferRequest(tensors, input_names, output_names, bytes(config))


def read_infer_response(buffer: Buffer, limit_bytes: int = LIMIT_BYTES, *, trace: Trace | None = None) -> InferResponse:
    """Read the result of an inference, or the error of any request.

    Args:
        buffer: One InferResponse.
        limit_bytes: Larger buffers are refused.
        trace: Records which bytes were read.

    Raises:
        GraphPipeError: The response is malformed (E1), or has a tensor that `read_request` would refuse (G-096).
    """
    root = opened(buffer, limit_bytes, trace).root()
    totals = Totals(limit_bytes)
    tensors = _read_tensors(root, 0, totals, "output")
    errors = []
    for table in read_tables(root, 1, totals):
        text = table.octets(1)
        totals.decoded(len(text) + STRING_COST)
        errors.append(RemoteError(table.int64(0), totals.text(str(text, "utf-8", "replace"))))
    return InferResponse(tensors, tuple(errors))


def read_metadata_response(buffer: Buffer, limit_bytes: int = LIMIT_BYTES) -> MetadataResponse:
    """Read the inputs and outputs of a model.

    Raises:
        GraphPipeError: The response is malformed (E1) or causes too much work (E13).
    """
    root = opened(buffer, limit_bytes).root()
    totals = Totals(limit_bytes)
    name, version, server, description = (_text(root, slot, totals) for slot in range(4))
    inputs, outputs = (tuple(_io(one, totals) for one in read_tables(root, slot, totals)) for slot in (4, 5))
    return MetadataResponse(name, version, server, description, inputs, outputs)


def listing(metadata: MetadataResponse) -> dict[str, Any]:
    """Make the response to a GET as a dict, with the keys of GraphPipe's Go server (G-007, G-100)."""
    return {
        "Name": metadata.name,
        "Version": metadata.version,
        "Server": metadata.server,
        "Description": metadata.description,
        "Inputs": [_listed(one) for one in metadata.inputs],
        "Outputs": [_listed(one) for one in metadata.outputs],
    }


def _listed(one: IOMetadata) -> dict[str, Any]:
    return {
        "Name": one.name,
        "Description": one.description,
        "Shape": list(one.shape),
        "Type": int(one.type),
        "TypeName": spelled(one.type),
    }


def _read_tensors(table: Table, slot: int, totals: Totals, what: str) -> tuple[Tensor, ...]:
    tables = read_tables(table, slot, totals)
    return tuple(tensor_of(one, totals, f"{what} #{index}") for index, one in enumerate(tables))


def _text(table: Table, slot: int, totals: Totals) -> str:
    text = table.octets(slot)
    totals.decoded(len(text) + STRING_COST)
    try:
        return totals.text(str(text, "utf-8"))
    except UnicodeDecodeError as error:
        raise malformed(f"a text of the metadata is not UTF-8 from byte {error.start} on") from None


def _io(table: Table, totals: Totals) -> IOMetadata:
    name, description = _text(table, 0, totals), _text(table, 1, totals)
    return IOMetadata(name, description, read_shape(table, 2, "the metadata"), table.uint8(3))
