"""Reads the tables of the schema: tensors, and descriptions of inputs and outputs.

Every error within a single tensor is refused here, so that users of a `Tensor` need not check again:
docs/reference/graphpipe.md 2.3.
"""

from __future__ import annotations

import struct

from invoker.tensors.errors import Code, GraphPipeError, too_large
from invoker.tensors.flat import STRING_COST, Flat, Table, Totals
from invoker.tensors.skeleton import Trace
from invoker.tensors.types import ITEM_BYTES, MAX_RANK, Tensor, TensorType, count_of, spelled

_TYPES = tuple(TensorType)


def read_tensor(buffer: bytes | bytearray | memoryview, limit_bytes: int, trace: Trace | None = None) -> Tensor:
    """Read a buffer whose root is a Tensor.

    Args:
        buffer: The buffer; the tensor's numbers become a view on it.
        limit_bytes: Larger buffers are refused.
        trace: Records which bytes were read.

    Raises:
        GraphPipeError: The buffer is malformed or too large, or the tensor is invalid.
    """
    totals = Totals(limit_bytes)
    flat = opened(buffer, limit_bytes, trace)
    totals.tensors(1)
    return tensor_of(flat.root(), totals, "the tensor")


def opened(buffer: bytes | bytearray | memoryview, limit_bytes: int, trace: Trace | None = None) -> Flat:
    """Open a buffer, unless it is larger than the limit (G-004)."""
    flat = Flat(buffer, trace)
    if flat.size > limit_bytes:
        raise too_large("the buffer has", flat.size, limit_bytes)
    return flat


def tensor_of(table: Table, totals: Totals, where: str) -> Tensor:
    """Read one tensor; the caller has counted it."""
    type_ = table.uint8(0)
    if not 0 < type_ < len(_TYPES):
        raise GraphPipeError(Code.UNSUPPORTED_TYPE, f"{where} is {spelled(type_)}")  # G-043
    shape = read_shape(table, 1, where)
    data = table.elements(2)
    start, strings = table.vector(3, 4)
    if strings and (len(data) or type_ != TensorType.STRING):  # G-034, G-037
        raise GraphPipeError(Code.DATA_AND_STRINGS, f"{where} is {spelled(type_)} and has {len(data)} bytes "
                             f"of data and {strings} strings")  # fmt: skip
    for size in shape:
        if size < 0:
            raise GraphPipeError(Code.SHAPE, f"{where} has the shape {list(shape)}; a size cannot be negative")  # G-041
    count = count_of(shape)
    if type_ == TensorType.STRING:
        if len(data) or strings != count:  # G-035
            met = f"{len(data)} bytes of data" if len(data) else f"{strings} strings"
            raise wrong_length(where, type_, shape, met, f"{count} strings")
        return Tensor(TensorType.STRING, shape, table.flat.strings(start, strings, totals))
    if len(data) != count * ITEM_BYTES[type_]:  # G-033
        raise wrong_length(where, type_, shape, f"{len(data)} bytes", f"{count * ITEM_BYTES[type_]}")
    totals.decoded(len(data))
    return Tensor(_TYPES[type_], shape, data)


def read_shape(table: Table, slot: int, where: str) -> tuple[int, ...]:
    """Read a vector of sizes, which may be negative; an absent one is empty (G-038)."""
    start, rank = table.vector(slot, 8)
    if rank > MAX_RANK:
        raise GraphPipeError(Code.TOO_LARGE, f"{where} has {rank} dimensions, which exceeds the limit of {MAX_RANK}")
    return struct.unpack_from(f"<{rank}q", table.flat.raw, start)


def read_tables(table: Table, slot: int, totals: Totals) -> list[Table]:
    """Read a vector of tables, each of which counts as a tensor."""
    start, count = table.vector(slot, 4)
    totals.tensors(count)
    flat = table.flat
    return [flat.table(target) for target in flat.references(start, count)]


def read_names(table: Table, slot: int, totals: Totals, what: str) -> tuple[str, ...]:
    """Read a vector of names (G-030).

    A name whose reference was never set is read as empty, which means the default (G-053): a JavaScript client writes
    the names of its inputs in this way, and other servers accept that.
    """
    start, count = table.vector(slot, 4)
    totals.names(count)
    found = []
    for target in table.flat.references(start, count, may_lack=True):
        totals.decoded(STRING_COST)
        totals.texts(table.flat.vector(target, 1)[1] if target else 0)
        found.append(totals.text(table.flat.text(target, what)) if target else "")
    return tuple(found)


def wrong_length(where: str, type_: int, shape: tuple[int, ...], met: str, wanted: str) -> GraphPipeError:
    """E10: make the error of a tensor whose elements do not have the length that its type and shape require."""
    detail = f"{where} has {met}, and {spelled(type_)} of the shape {list(shape)} takes {wanted}"
    return GraphPipeError(Code.DATA_LENGTH, detail)
