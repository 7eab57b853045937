"""Reads the message Checkpoint of federated_api.proto without the protobuf library, which codecs must not import.

Theory. ``map<string, Aggregand> aggregands = 1``, and ``Aggregand {repeated uint64 values = 1 [packed]; int32 bitwidth
= 2;}``. Numbers are varints: seven bits a byte, the lowest first, and the top bit of all but the last byte is set. A
packed vector has a hundred thousand of them, so numpy reads them: the k-th byte of all numbers in one step. It reads
some hundred kilobytes at once, since that needs ten times as much memory.

A number of one byte becomes eight bytes, and a field of two bytes becomes an object. So the caller limits the bytes of
the arrays, and fields are counted: a million of them would keep a thread busy for a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from numpy.typing import NDArray

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MOST_VARINT: Final = 10
_MOST_BITS: Final = 64
_MOST_FIELDS: Final = 65_536
"""The most fields of one payload; a vector has five. Values that are not packed would be fields of their own, but no
known writer sends them."""

_PIECE: Final = 256 * 1024
_VALUE_BYTES: Final = 8


def read_aggregands(payload: bytes, most_bytes: int | None = None) -> dict[str, Any]:
    """The vectors of a serialized Checkpoint by name: flat arrays of uint64.

    Args:
        payload: The serialized message.
        most_bytes: Bytes that all arrays together may take; None: eight times the payload.

    Raises:
        ValueError: The payload is not a serialized Checkpoint, or becomes too large; a name is empty or occurs twice;
            or a value has more bits than its vector's ``bitwidth`` (F-087).
    """
    found: dict[str, Any] = {}
    left = _VALUE_BYTES * len(payload) if most_bytes is None else most_bytes
    fields = repeat(None, _MOST_FIELDS)
    for number, field in _fields(memoryview(payload), fields):
        if number == 1 and isinstance(field, memoryview):
            name, values = _entry(field, fields, left)
            if name in found:
                raise ValueError(f"it has two vectors {name!r}")
            found[name] = values
            left -= values.nbytes
    return found


def _entry(data: memoryview, fields: Iterator[None], most_bytes: int) -> tuple[str, NDArray[Any]]:
    name, aggregand = "", memoryview(b"")
    for number, field in _fields(data, fields):
        if number == 1 and isinstance(field, memoryview):
            name = str(field, "utf-8")
        elif number == 2 and isinstance(field, memoryview):
            aggregand = field
    if not name:
        raise ValueError("it has a vector without a name")
    return name, _vector(name, aggregand, fields, most_bytes)


def _vector(name: str, data: memoryview, fields: Iterator[None], most_bytes: int) -> NDArray[Any]:
    import numpy as np

    parts, bits, most = [], 0, most_bytes // _VALUE_BYTES
    for number, field in _fields(data, fields):
        if number == 1:  # packed, as this module writes it, or one by one, which parsers must also accept
            parts.append(_packed(field, most) if isinstance(field, memoryview) else np.array([field], np.uint64))
            most -= parts[-1].size
        elif number == 2 and isinstance(field, int):
            bits = field
    values = np.concatenate(parts) if len(parts) > 1 else parts[0] if parts else np.zeros(0, np.uint64)
    if not 0 <= bits <= _MOST_BITS:
        raise ValueError(f"its vector {name!r} has values of {bits} bits; at most {_MOST_BITS} are possible")
    if 0 < bits < _MOST_BITS and values.size and int(values.max()) >> bits:
        raise ValueError(f"its vector {name!r} has a value {values.max()} that needs more than its {bits} bits")
    return values


def _packed(data: memoryview, most: int) -> NDArray[Any]:
    """Read many varints at once; more than ``most`` are refused."""
    import numpy as np

    octets = np.frombuffer(data, np.uint8)
    if octets.size and octets[-1] >= 0x80:
        raise ValueError("its last number is cut off")
    size = sum(np.count_nonzero(octets[at : at + _PIECE] < 0x80) for at in range(0, octets.size, _PIECE))
    if size > most:
        raise ValueError(f"it has a vector of {size} values, which exceeds the limit of {most}")
    values = np.empty(size, np.uint64)
    at = filled = 0
    while at < octets.size:
        ends = np.flatnonzero(octets[at : at + _PIECE] < 0x80)
        if not ends.size:
            raise ValueError("it has a number of more than 64 bits")
        piece = octets[at : at + int(ends[-1]) + 1]
        values[filled : filled + ends.size] = _read(piece, ends)
        at, filled = at + piece.size, filled + ends.size
    return values


def _read(octets: NDArray[Any], ends: NDArray[Any]) -> NDArray[Any]:
    """Read the varints that end at these indexes."""
    import numpy as np

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


def _fields(data: memoryview, fields: Iterator[None]) -> Iterator[tuple[int, memoryview | int]]:
    """Numbers and contents of the fields of a message; fields of fixed size are skipped, since the message has none.

    Each field advances ``fields``, an iterator with as many items as the payload may still have fields.
    """
    at = 0
    while at < len(data):
        if next(fields, False) is False:
            raise ValueError(f"it has more than {_MOST_FIELDS} fields")
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
