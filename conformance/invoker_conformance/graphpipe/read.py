"""Reads responses of a server; every position, size and alignment is checked before it is used.

It is stricter than a client has to be: numbers must be aligned, names must end with a zero, shapes and the vectors of
metadata must be present even if they are empty (G-087, G-099), and the data of a tensor must have the length of its
shape.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from invoker_conformance.graphpipe.tensors import FORMS, STRING, Tensor, spelled

_RANK = 32


class Unreadable(ValueError):
    """A buffer breaks a rule of FlatBuffers, the schema, or a requirement."""


@dataclass(frozen=True, slots=True)
class Inferred:
    """An InferResponse: tensors, and errors with code and message."""

    tensors: tuple[Tensor, ...]
    errors: tuple[tuple[int, str], ...]

    def __str__(self) -> str:
        errors = [f"error {code} {message!r}" for code, message in self.errors]
        return "; ".join([*map(str, self.tensors), *errors]) or "neither tensors nor errors"


@dataclass(frozen=True, slots=True)
class Port:
    """An input or an output of a model in metadata."""

    name: str
    description: str
    shape: tuple[int, ...]
    type: int


@dataclass(frozen=True, slots=True)
class Metadata:
    """A MetadataResponse."""

    name: str
    version: str
    server: str
    description: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


def read_inferred(data: bytes) -> Inferred:
    """Read an InferResponse.

    Raises:
        Unreadable: The bytes are not a valid InferResponse.
    """
    root = _Buffer(data).root()
    tensors = tuple(_tensor(table, f"tensor {index}") for index, table in enumerate(root.tables(0, "output_tensors")))
    errors = tuple((each.long(0), each.text(1, "an error's message") or "") for each in root.tables(1, "errors"))
    return Inferred(tensors, errors)


def read_metadata(data: bytes) -> Metadata:
    """Read a MetadataResponse.

    Raises:
        Unreadable: The bytes are not a valid MetadataResponse, or a vector is missing.
    """
    root = _Buffer(data).root()
    texts = [root.text(slot, what) or "" for slot, what in enumerate(("name", "version", "server", "description"))]
    inputs, outputs = (_ports(root, slot, what) for slot, what in ((4, "inputs"), (5, "outputs")))
    return Metadata(texts[0], texts[1], texts[2], texts[3], inputs, outputs)


def _ports(root: _Table, slot: int, what: str) -> tuple[Port, ...]:
    if root.target(slot) is None:
        raise Unreadable(f"the metadata have no vector of {what} (G-087)")
    found = []
    for index, table in enumerate(root.tables(slot, what)):
        where = f"{what}[{index}]"
        name, shape = table.text(0, f"the name of {where}"), table.shape(2, where)
        if not name:
            raise Unreadable(f"{where} has no name (G-087)")
        found.append(Port(name, table.text(1, f"the description of {where}") or "", shape, table.byte(3)))
    return tuple(found)


def _tensor(table: _Table, where: str) -> Tensor:
    type_, shape = table.byte(0), table.shape(1, where)
    strings = tuple(table.strings(3, where))
    made = Tensor(type_, shape, table.octets(2, f"the data of {where}"), strings)
    if not 1 <= type_ <= STRING:
        raise Unreadable(f"{where} has the type {spelled(type_)}, which no client can read (D19)")
    if any(size < 0 for size in shape) or len(shape) > _RANK:
        raise Unreadable(f"{where} has the shape {list(shape)}")
    item_bytes = struct.calcsize(FORMS[type_])
    if len(made.data) != made.count * item_bytes:
        raise Unreadable(f"{where} is {spelled(type_)}{list(shape)} and has {len(made.data)} bytes of data (G-033)")
    if len(strings) != (made.count if type_ == STRING else 0):
        raise Unreadable(f"{where} is {spelled(type_)}{list(shape)} and has {len(strings)} strings (G-035, G-037)")
    return made


class _Buffer:
    """A buffer whose positions are checked before each read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._shared: dict[int, bytes] = {}

    def number(self, form: str, at: int) -> int:
        size = struct.calcsize(form)
        if not 0 <= at <= len(self.data) - size:
            raise Unreadable(f"a number at {at} lies outside of the {len(self.data)} bytes")
        if at % size:
            raise Unreadable(f"a number of {size} bytes at {at} is not aligned")
        return int(struct.unpack_from(f"<{form}", self.data, at)[0])

    def root(self) -> _Table:
        return _Table(self, self.follow(0, "the root"))

    def follow(self, at: int, what: str) -> int:
        """The target of the reference at a position; checks that four bytes at the target are inside the buffer."""
        distance = self.number("I", at)
        if distance < 4 or at + distance > len(self.data) - 4:
            raise Unreadable(f"the reference at {at} to {what} leads to {at + distance} of {len(self.data)}")
        return at + distance

    def vector(self, at: int, item_bytes: int, what: str) -> tuple[int, int]:
        """The position of the first element, and the count, of the vector at a position."""
        count = self.number("I", at)
        if at + 4 + count * item_bytes > len(self.data):
            raise Unreadable(f"{what} at {at} has {count} elements, and the buffer {len(self.data)} bytes")
        if (at + 4) % item_bytes:
            raise Unreadable(f"the elements of {what} at {at + 4} are not aligned to {item_bytes}")
        return at + 4, count

    def octets(self, at: int, what: str) -> bytes:
        if at not in self._shared:  # a cache, so that a shared part is not copied each time
            start, count = self.vector(at, 1, what)
            self._shared[at] = self.data[start : start + count]
        return self._shared[at]


class _Table:
    """A table whose vtable was checked."""

    def __init__(self, buffer: _Buffer, at: int) -> None:
        self._buffer = buffer
        self._at = at
        self._vtable = at - buffer.number("i", at)
        self._vtable_bytes = buffer.number("H", self._vtable)
        self._bytes = buffer.number("H", self._vtable + 2)
        if self._vtable_bytes < 4 or self._vtable_bytes % 2 or self._vtable + self._vtable_bytes > len(buffer.data):
            raise Unreadable(f"the vtable at {self._vtable} has {self._vtable_bytes} bytes")
        if self._bytes < 4 or at + self._bytes > len(buffer.data):
            raise Unreadable(f"the table at {at} has {self._bytes} bytes")

    def _field(self, slot: int, size: int) -> int | None:
        if 4 + 2 * slot >= self._vtable_bytes:
            return None
        offset = self._buffer.number("H", self._vtable + 4 + 2 * slot)
        if offset == 0:
            return None
        if offset < 4 or offset + size > self._bytes:
            raise Unreadable(f"field {slot} of the table at {self._at} lies at {offset} of {self._bytes}")
        return self._at + offset

    def byte(self, slot: int) -> int:
        at = self._field(slot, 1)
        return 0 if at is None else self._buffer.number("B", at)

    def long(self, slot: int) -> int:
        at = self._field(slot, 8)
        return 0 if at is None else self._buffer.number("q", at)

    def target(self, slot: int) -> int | None:
        at = self._field(slot, 4)
        return None if at is None else self._buffer.follow(at, f"field {slot}")

    def octets(self, slot: int, what: str) -> bytes:
        at = self.target(slot)
        return b"" if at is None else self._buffer.octets(at, what)

    def text(self, slot: int, what: str) -> str | None:
        at = self.target(slot)
        if at is None:
            return None
        raw = self._buffer.octets(at, what)
        if self._buffer.data[at + 4 + len(raw) : at + 5 + len(raw)] != b"\0":
            raise Unreadable(f"{what} does not end with a zero")
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise Unreadable(f"{what} is not UTF-8 (G-083)") from None

    def shape(self, slot: int, where: str) -> tuple[int, ...]:
        at = self.target(slot)
        if at is None:
            raise Unreadable(f"{where} has no vector for its shape (G-087, G-099)")
        start, count = self._buffer.vector(at, 8, f"the shape of {where}")
        return struct.unpack_from(f"<{count}q", self._buffer.data, start)

    def strings(self, slot: int, where: str) -> list[bytes]:
        return [self._buffer.octets(at, f"a string of {where}") for at in self._targets(slot, where)]

    def tables(self, slot: int, what: str) -> list[_Table]:
        return [_Table(self._buffer, at) for at in self._targets(slot, what)]

    def _targets(self, slot: int, what: str) -> list[int]:
        at = self.target(slot)
        if at is None:
            return []
        start, count = self._buffer.vector(at, 4, what)
        return [self._buffer.follow(start + 4 * index, what) for index in range(count)]
