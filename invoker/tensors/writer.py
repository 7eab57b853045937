"""Writes the messages of GraphPipe, and single tensors.

Empty vectors are written as well, since some readers fail without a shape (G-099); but a response has either tensors or
errors (G-064, D20). The bytes of large tensors are not copied: see `invoker.tensors.layout`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from invoker.tensors.errors import GraphPipeError
from invoker.tensors.layout import Kind, Layout, Written
from invoker.tensors.messages import InferRequest, IOMetadata, MetadataResponse
from invoker.tensors.types import Tensor

METADATA_REQUEST: Final = bytes.fromhex("0c00000008000c000b000400080000000c000000000000020400040004000000")
"""The bytes of a request for metadata, which are always the same."""

T = TypeVar("T")

_NUMERIC: Final = Kind((12, 4, 8), 16)
_STRINGS: Final = Kind((12, 4, 0, 8), 16)
_REQUEST: Final = Kind((8, 4), 12)
_INFER: Final = Kind((4, 8, 12, 16), 20)
_TENSORS: Final = Kind((4,), 8)
_ERRORS: Final = Kind((0, 4), 8)
_ERROR: Final = Kind((8, 4), 16, align=8)
_METADATA: Final = Kind((4, 8, 12, 16, 20, 24), 28)
_IO: Final = Kind((4, 8, 12, 16), 20)


def write_tensor(tensor: Tensor) -> Written:
    """Write a buffer whose root is a tensor."""
    layout = Layout()
    _put_tensor(layout, 0, tensor)
    return layout.written()


def write_request(request: InferRequest) -> Written:
    """Write a request for an inference."""
    layout = Layout()
    root = layout.table(_REQUEST)
    layout.byte(root + 8, 1)
    table = layout.table(_INFER, root + 4)
    layout.string(table + 4, request.config)
    layout.strings(table + 8, request.input_names)
    _put_tensors(layout, table + 12, request.tensors)
    layout.strings(table + 16, request.output_names)
    return layout.written()


def write_infer_response(tensors: Sequence[Tensor]) -> Written:
    """Write the tensors of an inference as an InferResponse."""
    layout = Layout()
    _put_tensors(layout, layout.table(_TENSORS) + 4, tensors)
    return layout.written()


def write_error_response(errors: GraphPipeError | Sequence[GraphPipeError]) -> bytes:
    """Write the errors of a failed request, the most important one first (G-084)."""
    several = (errors,) if isinstance(errors, GraphPipeError) else errors
    layout = Layout()
    first = layout.references(layout.table(_ERRORS) + 4, len(several))
    for index, error in enumerate(several):
        table = layout.table(_ERROR, first + 4 * index)
        layout.number(table + 8, error.code)
        layout.string(table + 4, error.message.encode())
    return bytes(layout.written())


def write_metadata_response(metadata: MetadataResponse) -> bytes:
    """Write the inputs and outputs of a model as a MetadataResponse (G-087)."""
    layout = Layout()
    root = layout.table(_METADATA)
    texts = (metadata.name, metadata.version, metadata.server, metadata.description)
    for index, text in enumerate(texts):
        layout.string(root + 4 + 4 * index, text.encode("utf-8", "replace"))
    _put_ios(layout, root + 20, metadata.inputs)
    _put_ios(layout, root + 24, metadata.outputs)
    return bytes(layout.written())


def _put_ios(layout: Layout, reference: int, several: Sequence[IOMetadata]) -> None:
    for at, one in _each(layout, reference, several):
        table = layout.table(_IO, at)
        layout.string(table + 4, one.name.encode("utf-8", "replace"))
        layout.string(table + 8, one.description.encode("utf-8", "replace"))
        layout.numbers(table + 12, one.shape)
        layout.byte(table + 16, one.type)


def _put_tensors(layout: Layout, reference: int, tensors: Sequence[Tensor]) -> None:
    placed: dict[int, int] = {}
    for at, tensor in _each(layout, reference, tensors):
        if (position := placed.get(id(tensor))) is None:
            placed[id(tensor)] = _put_tensor(layout, at, tensor)
        else:  # G-057: a tensor that is wanted several times is sent only once
            layout.refer(at, position)


def _put_tensor(layout: Layout, reference: int, tensor: Tensor) -> int:
    table = layout.table(_STRINGS if isinstance(tensor.data, list) else _NUMERIC, reference)
    layout.byte(table + 12, tensor.type)
    layout.numbers(table + 4, tensor.shape)
    layout.later(table + 8, tensor.data)
    return table


def _each(layout: Layout, reference: int, several: Sequence[T]) -> Iterable[tuple[int, T]]:
    first = layout.references(reference, len(several))
    return zip(range(first, first + 4 * len(several), 4), several, strict=True)
