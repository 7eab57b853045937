"""Converts tensors to plain values for functions without arrays, and their results back to tensors.

A function with parameters such as ints, texts, lists or dataclasses gets a tensor as nested lists in MessagePack or
JSON, and a single string as text or bytes (G-074). Its results are converted back: an int becomes Int64, a float
Float64, a bool Uint8, text and bytes String; nested lists become a tensor with the same number of dimensions (G-046).
numpy is not needed.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from invoker.codecs.exponents import json_value
from invoker.message import EMPTY, Message
from invoker.tensors import ITEM_BYTES, MAX_RANK, Code, GraphPipeError, Tensor, TensorType, count_of, spelled

MSGPACK: Final = "application/msgpack"
JSON: Final = "application/json"
TEXT: Final = "text/plain"
OCTETS: Final = "application/octet-stream"

_FORMATS: Final = ("", "B", "b", "H", "h", "I", "i", "Q", "q", "e", "f", "d", "")
_WRITERS: Final[dict[str, Callable[[Any], bytes]]] = {MSGPACK: msgspec.msgpack.encode, JSON: msgspec.json.encode}
_READERS: Final[dict[str, Callable[[bytes], Any]]] = {MSGPACK: msgspec.msgpack.decode, JSON: json_value}


def message_as(
    tensor: Tensor, media_type: str, where: str, *, is_single: bool = False, is_truth: bool = False
) -> Message[bytes]:
    """Convert a tensor to a message of another media type.

    Args:
        tensor: The tensor that was received.
        media_type: One of the media types of this module.
        where: The name of the tensor, for error texts.
        is_single: Whether a single value is needed, as which a tensor of one element counts.
        is_truth: Whether numbers become booleans.

    Raises:
        GraphPipeError: The tensor cannot be converted (E8).
    """
    if media_type in _WRITERS:
        elements = _elements(tensor, is_text=media_type == JSON)
        value = _nested([one != 0 for one in elements] if is_truth else elements, tensor.shape, is_single=is_single)
        if media_type == JSON and any(isinstance(one, float) and not math.isfinite(one) for one in elements):
            raise GraphPipeError(Code.TYPE_MISMATCH, f"{where} has NaN or infinity, which JSON cannot represent")
        return Message(_WRITERS[media_type](value), EMPTY, media_type)
    if isinstance(tensor.data, list) and len(tensor.data) == 1:
        (payload,) = tensor.data
        return Message(payload, EMPTY, f"{TEXT}; charset=utf-8" if media_type == TEXT else media_type)
    if media_type == OCTETS and tensor.type is TensorType.UINT8:
        return Message(bytes(tensor.data), EMPTY, media_type)  # type: ignore[arg-type]  # only strings are a list
    detail = f"{where} is {spelled(tensor.type)} of the shape {list(tensor.shape)}, and one String is expected"
    raise GraphPipeError(Code.TYPE_MISMATCH, detail)


def listed_bytes(tensor: Tensor) -> int:
    """The memory of a tensor's numbers as lists, in bytes: for each up to two references, and usually an object."""
    width = ITEM_BYTES[tensor.type]
    return len(tensor.data) // width * (16 if width == 1 else 32) if width else 0


def tensor_of(message: Message[bytes], where: str) -> Tensor:
    """Convert a value to a tensor; a value that is not a number, text or list stays bytes.

    Raises:
        GraphPipeError: The value is ragged, mixed or of another type (E18).
    """
    essence = message.media_type.partition(";")[0]
    if essence not in _READERS:
        return Tensor(TensorType.STRING, (), [bytes(message.payload)])
    value = _READERS[essence](message.payload)
    if value is None:
        raise GraphPipeError(Code.BAD_OUTPUT, f"{where}: None cannot be a tensor")
    shape = _shape(value, where)
    elements = list(_flat(value, shape, where))
    kinds = {type(one) for one in elements}
    if not kinds:
        return Tensor(TensorType.FLOAT64, shape, memoryview(b""))
    if kinds <= {str, bytes}:
        return Tensor(TensorType.STRING, shape, [one if type(one) is bytes else one.encode() for one in elements])
    if kinds == {bool}:
        return _packed(TensorType.UINT8, shape, elements, where)
    if kinds == {int}:
        return _packed(TensorType.INT64, shape, elements, where)
    if kinds <= {int, float}:
        return _packed(TensorType.FLOAT64, shape, elements, where)
    names = ", ".join(sorted(one.__name__ for one in kinds))
    raise GraphPipeError(Code.BAD_OUTPUT, f"{where} holds {names}, of which no tensor can be made")


def _elements(tensor: Tensor, *, is_text: bool) -> list[Any]:
    if isinstance(tensor.data, list):
        return [_text(one, is_text=is_text) for one in tensor.data]
    return list(struct.unpack(f"<{count_of(tensor.shape)}{_FORMATS[tensor.type]}", tensor.data))


def _nested(elements: list[Any], shape: tuple[int, ...], *, is_single: bool) -> Any:
    if not shape or (is_single and len(elements) == 1):
        return elements[0]
    if 0 in shape:
        return _hollow(shape)
    for size in reversed(shape[1:]):
        elements = [elements[at : at + size] for at in range(0, len(elements), size)]
    return elements


def _hollow(shape: tuple[int, ...]) -> list[Any]:
    """Nested lists for a shape with a zero, down to this zero, since empty lists have no inner sizes."""
    before = shape[: shape.index(0)]
    if count_of(before) > 1_000_000:
        raise GraphPipeError(Code.SHAPE, f"there are no lists of the shape {list(shape)}")
    made: list[Any] = []
    for size in reversed(before):
        made = [made] * size
    return made


def _text(raw: bytes, *, is_text: bool) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        if is_text:
            raise GraphPipeError(Code.TYPE_MISMATCH, "a string is not UTF-8, so it cannot be JSON") from None
        return raw


def _shape(value: Any, where: str) -> tuple[int, ...]:
    shape: list[int] = []
    while isinstance(value, list):
        shape.append(len(value))
        if len(shape) > MAX_RANK:
            raise GraphPipeError(Code.BAD_OUTPUT, f"{where} has more than {MAX_RANK} dimensions")
        if not value:
            break
        value = value[0]
    return tuple(shape)


def _flat(value: Any, shape: tuple[int, ...], where: str) -> Iterator[Any]:
    """The elements in row-major order; raises if nested lists do not match the shape."""
    level = [value]
    for size in shape:
        inner = []
        for one in level:
            if not isinstance(one, list) or len(one) != size:
                raise GraphPipeError(Code.BAD_OUTPUT, f"{where} is ragged: lists beside each other differ in length")
            inner.extend(one)
        level = inner
    for one in level:
        if isinstance(one, list):
            raise GraphPipeError(Code.BAD_OUTPUT, f"{where} is ragged: there are lists beside values")
        yield one


def _packed(type_: TensorType, shape: tuple[int, ...], elements: list[Any], where: str) -> Tensor:
    try:
        data = struct.pack(f"<{len(elements)}{_FORMATS[type_]}", *elements)
    except (struct.error, OverflowError):  # the class of the error depends on the release of Python
        numbers = [one for one in elements if type(one) is int]  # not for floats, which always fit
        lowest, highest = min(numbers), max(numbers)
        number = highest if highest >= -lowest else lowest
        detail = f"{where} cannot be {spelled(type_)}: {str(number)[:40]} is out of range"
        raise GraphPipeError(Code.BAD_OUTPUT, detail) from None
    return Tensor(type_, shape, memoryview(data))
