"""The message Checkpoint of federated_api.proto, read without the protobuf library, which codecs may not know.

Theory. ``map<string, Aggregand> aggregands = 1``, and ``Aggregand {repeated uint64 values = 1 [packed]; int32 bitwidth
= 2;}``. Numbers are varints: seven bits a byte, the lowest first, and the top bit of all but the last byte is set. A
packed vector has a hundred thousand of them, so numpy reads them: the k-th byte of every number in one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["read_aggregands"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MOST_VARINT: Final = 10
_MOST_BITS: Final = 64


def read_aggregands(payload: bytes) -> dict[str, Any]:
    """The vectors of a serialized Checkpoint by name: flat arrays of uint64.

    Raises:
        ValueError: It is no such message; a name is empty, or there twice; or a value has more bits than its vector
            says (F-087).
    """
    found: dict[str, Any] = {}
    for number, field in _fields(memoryview(payload)):
        if number == 1 and isinstance(field, memoryview):
            name, values = _entry(field)
            if name in found:
                raise ValueError(f"it has two vectors {name!r}")
            found[name] = values
    return found


def _entry(data: memoryview) -> tuple[str, NDArray[Any]]:
    name, aggregand = "", memoryview(b"")
    for number, field in _fields(data):
        if number == 1 and isinstance(field, memoryview):
            name = str(field, "utf-8")
        elif number == 2 and isinstance(field, memoryview):
            aggregand = field
    if not name:
        raise ValueError("it has a vector without a name")
    return name, _vector(name, aggregand)


def _vector(name: str, data: memoryview) -> NDArray[Any]:
    import numpy as np

    parts, bits = [], 0
    for number, field in _fields(data):
        if number == 1:  # packed, as it is written, or one by one, as parsers must take it, too
            parts.append(_packed(field) if isinstance(field, memoryview) else np.array([field], np.uint64))
        elif number == 2 and isinstance(field, int):
            bits = field
    values = np.concatenate(parts) if len(parts) > 1 else parts[0] if parts else np.zeros(0, np.uint64)
    if not 0 <= bits <= _MOST_BITS:
        raise ValueError(f"its vector {name!r} has values of {bits} bits, and at most {_MOST_BITS} are possible")
    if 0 < bits < _MOST_BITS and values.size and int(values.max()) >> bits:
        raise ValueError(f"its vector {name!r} has a value {values.max()} that takes more than the {bits} bits it says")
    return values


def _packed(data: memoryview) -> NDArray[Any]:
    """Many varints at once."""
    import numpy as np

    octets = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(octets < 0x80)
    if not octets.size:
        return np.zeros(0, np.uint64)
    if not ends.size or ends[-1] != octets.size - 1:
        raise ValueError("its last number is cut off")
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    longest = int(lengths.max())
    if longest > _MOST_VARINT or (octets[starts[lengths == _MOST_VARINT] + _MOST_VARINT - 1] > 1).any():
        raise ValueError("it has a number of more than 64 bits")
    values = (octets[starts] & np.uint8(0x7F)).astype(np.uint64)
    for place in range(1, longest):
        have = np.flatnonzero(lengths > place)
        values[have] |= (octets[starts[have] + place] & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * place)
    return values


def _fields(data: memoryview) -> Iterator[tuple[int, memoryview | int]]:
    """Numbers and contents of the fields of a message; those of fixed size, which it does not have, are skipped."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind, size = tag & 7, 0
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            size, at = _varint(data, at)
        elif kind in (_FIXED32, _FIXED64):
            size = 4 if kind == _FIXED32 else 8
        else:
            raise ValueError("it is neither a zip nor a message Checkpoint")
        if size > len(data) - at:
            raise ValueError("it is cut off, or neither a zip nor a message Checkpoint")
        if kind == _BYTES:
            yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_MOST_VARINT):
        if at + place >= len(data):
            break
        octet = data[at + place]
        value |= (octet & 0x7F) << 7 * place
        if octet < 0x80:
            if value >> _MOST_BITS:
                break
            return value, at + place + 1
    raise ValueError("it has a number that is cut off or has more than 64 bits")
