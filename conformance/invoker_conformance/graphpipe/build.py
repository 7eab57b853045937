"""Builds valid and invalid FlatBuffers, independently of the invoker.

A buffer is described by `Table`, `Vector` and `References`. `assemble` lays it out from front to back, each node once,
after all nodes that refer to it; a node with several references is shared. A `Built` has the positions of all parts, so
that a scenario can break a single one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Number:
    """A number field of a FlatBuffers table.

    Attributes:
        form: The format letter of `struct`.
        value: The number.
    """

    form: str
    value: int


@dataclass(eq=False, slots=True)
class Table:
    """A table, with its fields by slot."""

    fields: Mapping[int, Field]


@dataclass(eq=False, slots=True)
class Vector:
    """A vector of elements that are stored in place.

    Attributes:
        raw: The bytes of all elements.
        item_bytes: The size of one element, in bytes.
        count: The number of elements that the vector claims to have; None: the actual number.
        tail: Bytes after the elements, such as the zero of a string.
    """

    raw: bytes
    item_bytes: int = 1
    count: int | None = None
    tail: bytes = b""


@dataclass(eq=False, slots=True)
class References:
    """A vector of references, which may have the same target several times."""

    targets: Sequence[Node]


Node: TypeAlias = Table | Vector | References
Field: TypeAlias = Number | Node


def text(value: str | bytes) -> Vector:
    """A string, with a zero after it."""
    return Vector(value.encode() if isinstance(value, str) else value, tail=b"\0")


@dataclass(slots=True)
class Built:
    """A buffer, with the positions of its parts.

    Attributes:
        data: The bytes, which scenarios may change.
        places: The position of each table, and of the count of each vector.
        vtables: The position of the vtable of each table.
        pending: The positions of references to nodes that have no position yet.
    """

    data: bytearray = field(default_factory=lambda: bytearray(4))
    places: dict[Node, int] = field(default_factory=dict)
    vtables: dict[Table, int] = field(default_factory=dict)
    pending: dict[Node, list[range]] = field(default_factory=dict)

    def entry(self, table: Table, slot: int) -> int:
        """The position of a field's entry in the vtable."""
        return self.vtables[table] + 4 + 2 * slot

    def at(self, table: Table, slot: int) -> int:
        """The offset of a field in the buffer, in bytes."""
        (offset,) = struct.unpack_from("<H", self.data, self.entry(table, slot))
        return self.places[table] + int(offset)

    def patch(self, position: int, form: str, value: int) -> Built:
        """Overwrite a number at a position; returns this object, for further calls."""
        struct.pack_into(f"<{form}", self.data, position, value)
        return self

    def point(self, position: int, target: int) -> Built:
        """Set the target of the reference at a position; a target before it makes the offset wrap, as in C."""
        return self.patch(position, "I", (target - position) % 2**32)

    def __bytes__(self) -> bytes:
        return bytes(self.data)


def assemble(root: Table, *, is_odd: bool = False, has_late_vtables: bool = False) -> Built:
    """Lay a buffer out.

    Args:
        root: The root table.
        is_odd: Whether all parts are at odd positions, instead of aligned ones.
        has_late_vtables: Whether each vtable is written after its table, instead of before it.
    """
    built = Built()
    built.pending[root] = [range(0, 4, 4)]
    for node in _ordered(root):
        if isinstance(node, Table):
            _place_table(built, node, is_odd=is_odd, has_late_vtable=has_late_vtables)
        elif isinstance(node, References):
            _pad(built, 4, 0, is_odd=is_odd)
            _arrive(built, node)
            built.data += struct.pack("<I", len(node.targets))
            for target, several in groupby(node.targets):
                start = len(built.data)
                built.data += bytes(4 * len(list(several)))
                _refer(built, target, range(start, len(built.data), 4))
        else:
            _pad(built, max(4, node.item_bytes), 4, is_odd=is_odd)
            _arrive(built, node)
            count = len(node.raw) // node.item_bytes if node.count is None else node.count
            built.data += struct.pack("<I", count) + node.raw + node.tail
    if not is_odd:
        _pad(built, 8, 0, is_odd=False)
    return built


def _ordered(root: Table) -> Iterable[Node]:
    """All nodes, each after all nodes that refer to it."""
    done: dict[Node, None] = {}

    def visit(node: Node) -> None:
        if node in done:
            return
        for target in reversed(_targets(node)):
            visit(target)
        done[node] = None

    visit(root)
    return reversed(list(done))


def _targets(node: Node) -> list[Node]:
    if isinstance(node, References):
        return list(dict.fromkeys(node.targets))
    return [each for each in node.fields.values() if not isinstance(each, Number)] if isinstance(node, Table) else []


def _place_table(built: Built, node: Table, *, is_odd: bool, has_late_vtable: bool) -> None:
    sized = [
        (struct.calcsize(each.form) if isinstance(each, Number) else 4, slot) for slot, each in node.fields.items()
    ]
    offsets, size = {}, 4
    for width, slot in sorted(sized, reverse=True):
        offsets[slot], size = size, size + width
    entries = [offsets.get(slot, 0) for slot in range(max(offsets, default=-1) + 1)]
    vtable = struct.pack(f"<{2 + len(entries)}H", 4 + 2 * len(entries), size, *entries)
    _pad(
        built, 8 if any(width == 8 for width, _ in sized) else 4, 4 + len(vtable) * (not has_late_vtable), is_odd=is_odd
    )
    if not has_late_vtable:
        built.vtables[node] = len(built.data)
        built.data += vtable
    _arrive(built, node)
    position = len(built.data)
    built.data += bytes(size)
    for slot, each in node.fields.items():
        if isinstance(each, Number):
            struct.pack_into(f"<{each.form}", built.data, position + offsets[slot], each.value)
        else:
            at = position + offsets[slot]
            _refer(built, each, range(at, at + 4, 4))
    if has_late_vtable:
        built.data += bytes(-len(built.data) % 2)
        built.vtables[node] = len(built.data)
        built.data += vtable
    struct.pack_into("<i", built.data, position, position - built.vtables[node])


def _pad(built: Built, align: int, ahead: int, *, is_odd: bool) -> None:
    """Pad until the position ``ahead`` bytes from here is aligned, or odd."""
    if is_odd:
        built.data += bytes((len(built.data) + ahead + 1) % 2)
    else:
        built.data += bytes(-(len(built.data) + ahead) % align)


def _arrive(built: Built, node: Node) -> None:
    """Place a node at the current end of the buffer, and fill in the references to it."""
    built.places[node] = here = len(built.data)
    for positions in built.pending.pop(node, ()):
        distances = struct.pack(f"<{len(positions)}I", *(here - position for position in positions))
        built.data[positions.start : positions.stop] = distances


def _refer(built: Built, target: Node, positions: range) -> None:
    built.pending.setdefault(target, []).append(positions)
