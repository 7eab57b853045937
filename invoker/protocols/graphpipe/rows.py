"""Feeds batches row by row, for functions with the option `Rows`: each row of a tensor is one value (G-073).

Rows are cut only when the driver asks for them, so that a slow function is not fed ahead; its outputs are stacked
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from invoker.protocols.graphpipe.binding import GivenInput
from invoker.protocols.graphpipe.model import ModelPort
from invoker.tensors import ITEM_BYTES, Code, GraphPipeError, Tensor, TensorType, count_of, spelled

_MOST_EMPTY: Final = 65_536
"""How many rows without elements there may be; other rows are limited by the size of a request."""


def count_rows(given: Sequence[GivenInput]) -> int:
    """The number of rows, which must be the same for all inputs.

    Raises:
        GraphPipeError: An input is a scalar, the numbers differ, or there are no inputs (E9); or there are too many
            empty rows, each of which would be a value (E13).
    """
    counts = set()
    for one in given:
        if not one.tensor.shape:
            raise GraphPipeError(Code.SHAPE, f"input '{one.port.name}' is a scalar, and rows are expected")
        counts.add(one.tensor.shape[0])
    if len(counts) != 1:
        met = ", ".join(f"'{one.port.name}' {one.tensor.shape[0]}" for one in given) or "none"
        raise GraphPipeError(Code.SHAPE, f"inputs have different numbers of rows: {met}")
    rows = int(counts.pop())
    if rows > _MOST_EMPTY and not any(one.tensor.size for one in given):
        raise GraphPipeError(
            Code.TOO_LARGE, f"there are {rows} rows without elements, which exceeds the limit of {_MOST_EMPTY}"
        )
    return rows


def row(tensor: Tensor, index: int) -> Tensor:
    """One row of a tensor; numbers are a view."""
    shape = tensor.shape[1:]
    size = count_of(shape) * (1 if isinstance(tensor.data, list) else ITEM_BYTES[tensor.type])
    return Tensor(tensor.type, shape, tensor.data[size * index : size * (index + 1)])


def span(tensor: Tensor, start: int, end: int) -> Tensor:
    """Some rows of a tensor; numbers are a view."""
    size = count_of(tensor.shape[1:]) * (1 if isinstance(tensor.data, list) else ITEM_BYTES[tensor.type])
    return Tensor(tensor.type, (end - start, *tensor.shape[1:]), tensor.data[size * start : size * end])


def no_rows(port: ModelPort) -> Tensor:
    """An output without rows, with the declared type and shape if these are declared."""
    type_ = port.type or TensorType.FLOAT64
    rest = (size if isinstance(size, int) and size > 0 else 0 for size in (port.shape or ())[1:])
    return Tensor(type_, (0, *rest), [] if type_ is TensorType.STRING else memoryview(b""))


def stacked(tensors: Sequence[Tensor], where: str) -> Tensor:
    """Stack rows into one tensor.

    Args:
        tensors: The rows, at least one.
        where: The name of the output, for error texts.

    Raises:
        GraphPipeError: The tensors differ in type or shape (E18).
    """
    first = tensors[0]
    for index, one in enumerate(tensors):
        if (one.type, one.shape) != (first.type, first.shape):
            met = f"{spelled(one.type)} of the shape {list(one.shape)}"
            detail = (
                f"{where}: row {index} is {met}, the first is {spelled(first.type)} of the shape {list(first.shape)}"
            )
            raise GraphPipeError(Code.BAD_OUTPUT, detail)
    shape = (len(tensors), *first.shape)
    if first.type is TensorType.STRING:
        return Tensor(first.type, shape, [element for one in tensors for element in one.data])  # type: ignore[misc]  # strings are bytes
    return Tensor(first.type, shape, memoryview(b"".join(one.data for one in tensors)))  # type: ignore[misc]  # numbers are views


def joined(tensors: Sequence[Tensor], where: str) -> Tensor:
    """Concatenate tensors along the first dimension (G-072).

    Raises:
        GraphPipeError: The tensors differ in type or in a size other than the first, or a tensor is a scalar (E18).
    """
    first = tensors[0]
    for one in tensors:
        if one.type != first.type or one.shape[1:] != first.shape[1:] or not one.shape:
            met = f"{spelled(one.type)} of the shape {list(one.shape)}"
            detail = f"{where}: {met} cannot follow {spelled(first.type)} of the shape {list(first.shape)}"
            raise GraphPipeError(Code.BAD_OUTPUT, detail)
    shape = (sum(one.shape[0] for one in tensors), *first.shape[1:])
    if first.type is TensorType.STRING:
        return Tensor(first.type, shape, [element for one in tensors for element in one.data])  # type: ignore[misc]  # strings are bytes
    return Tensor(first.type, shape, memoryview(b"".join(one.data for one in tensors)))  # type: ignore[misc]  # numbers are views
