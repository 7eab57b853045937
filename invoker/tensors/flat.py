"""Reads untrusted FlatBuffers: checks that every position is inside the buffer before reading it.

Theory. A buffer begins with the position of its root table. A *table* begins with the signed distance back to its
*vtable*, which lists, by *slot*, where in the table each field lies (0: absent). A field holds a number, or a
*reference*: the distance, always forward, from the field to a table, a string or a vector; the latter two begin with
the number of their elements. So a buffer may point anywhere, share parts, have references that loop, and claim four
thousand million elements.

Three rules protect against such buffers. All arithmetic uses Python's integers, which do not overflow, and each result
is compared with the size of the buffer before use (G-021). No number determines an allocation before it was checked.
Shared parts are legal, but count each time they are visited (`Totals`, G-025), so that even a small buffer causes only
bounded work. There is no recursion, since the schema has no type that contains itself.

Alignment is not required (G-024), nor the zero after a string (G-023); bytes to which no reference leads are ignored
(G-026). Positions are from the beginning of the buffer.

Source: docs/reference/graphpipe.md 1.3 and 2.2.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, TypeAlias

from invoker.tensors.errors import Code, GraphPipeError
from invoker.tensors.skeleton import Trace

Weigh: TypeAlias = Callable[[int], None]

MAX_TENSORS: Final = 1024
MAX_NAMES: Final = 1024
MAX_STRINGS: Final = 1_000_000

STRING_COST: Final = 48
"""Bytes of memory that a string takes in addition to its own; they count as decoded bytes."""

_STRING_BYTES: Final = 192
"""Bytes of memory that a short string takes until it is in an array: three objects, and the references to them."""

_WEIGHED_BYTES: Final = 1 << 20
"""How many bytes of strings are copied between two calls of ``weigh``."""

_DECODED_PER_LIMIT: Final = 4

_U16 = struct.Struct("<H").unpack_from
_U32 = struct.Struct("<I").unpack_from
_I32 = struct.Struct("<i").unpack_from
_I64 = struct.Struct("<q").unpack_from
_VTABLE = struct.Struct("<HH").unpack_from


def malformed(detail: str) -> GraphPipeError:
    """E1: make the error of a buffer that breaks the rules of FlatBuffers or of the schema."""
    return GraphPipeError(Code.MALFORMED, detail)


def _too_large(what: str, most: int) -> GraphPipeError:
    return GraphPipeError(Code.TOO_LARGE, f"there are more than {most} {what}")


class Totals:
    """Counts the work that one buffer causes, up to limits; shared tables count each time (G-025).

    Args:
        limit_bytes: The largest buffer that is accepted; four times as much may be decoded.
        weigh: Called before each MiB of strings, with the bytes of memory that all strings will then take; it may
            raise.
        most_text: The most bytes of all names and elements of string tensors; None: as many as may be decoded.
    """

    __slots__ = ("_copied", "_decoded", "_most", "_most_text", "_names", "_strings", "_tensors", "_weigh")

    def __init__(self, limit_bytes: int, *, most_text: int | None = None, weigh: Weigh | None = None) -> None:
        self._weigh = weigh
        self._most = _DECODED_PER_LIMIT * limit_bytes
        self._most_text = self._most if most_text is None else most_text
        self._copied = self._decoded = self._names = self._strings = self._tensors = 0

    @property
    def room(self) -> int:
        """How many more bytes of strings are allowed."""
        return min(self._most - self._decoded, self._most_text)

    def texts(self, size: int) -> None:
        """Count bytes of names and of elements of string tensors."""
        if size > self._most_text:
            raise _too_large("bytes of strings", self._most_text)
        self._most_text -= size
        self._copied += size
        self.decoded(size)

    def tensors(self, count: int) -> None:
        """Count tensors, or descriptions of some."""
        self._tensors += count
        if self._tensors > MAX_TENSORS:
            raise _too_large("tensors", MAX_TENSORS)

    def names(self, count: int) -> None:
        """Count names of inputs and outputs."""
        self._names += count
        if self._names > MAX_NAMES:
            raise _too_large("names", MAX_NAMES)

    def strings(self, count: int) -> None:
        """Count elements of string tensors."""
        self._strings += count
        if self._strings > MAX_STRINGS:
            raise _too_large("strings", MAX_STRINGS)
        self.copied(0)

    def copied(self, size: int) -> None:
        """Call ``weigh`` with the bytes of all strings so far, and of the vector that is being read."""
        if self._weigh is not None:
            self._weigh(self._strings * _STRING_BYTES + self._copied + size)

    def text(self, text: str) -> str:
        """Count the memory of a text in addition to its bytes: up to four bytes for each character."""
        if not text.isascii():
            self.decoded(3 * len(text))
        return text

    def decoded(self, size: int) -> None:
        """Count bytes that will be kept or walked through."""
        self._decoded += size
        if self._decoded > self._most:
            raise _too_large("decoded bytes", self._most)


class Flat:
    """Reads one buffer.

    Args:
        buffer: A contiguous buffer of bytes.
        trace: Records all bytes that are read, and the places of the elements, which are not read.

    Attributes:
        raw: A flat, read-only view, from which slices are taken.
        size: The size in bytes.
    """

    __slots__ = ("_source", "_trace", "raw", "size")

    def __init__(self, buffer: bytes | bytearray | memoryview, trace: Trace | None = None) -> None:
        view = memoryview(buffer)
        self.raw = (view if view.format == "B" and view.ndim == 1 and view.contiguous else view.cast("B")).toreadonly()
        self.size = len(self.raw)
        self._source: bytes | memoryview = buffer if type(buffer) is bytes else self.raw  # slices of bytes are faster
        self._trace = trace

    def root(self) -> Table:
        """The root table of the buffer."""
        if self.size < 8:
            raise malformed(f"{self.size} bytes are too few for a buffer")
        position: int = _U32(self.raw, 0)[0]
        if position < 4:
            raise malformed(f"the root is at {position}; expected at least 4")
        self._looked(0, 4)
        return self.table(position)

    def table(self, position: int) -> Table:
        """The table at a position that was not checked yet."""
        if position + 4 > self.size:
            raise malformed(f"a table lies at {position}, and the buffer has {self.size} bytes")
        vtable = position - _I32(self.raw, position)[0]
        if vtable < 0 or vtable + 4 > self.size:
            raise malformed(f"the vtable of the table at {position} is at {vtable}, outside of the buffer")
        vtable_size, size = _VTABLE(self.raw, vtable)
        if vtable_size < 4 or vtable_size & 1 or vtable + vtable_size > self.size:
            raise malformed(f"the vtable at {vtable} cannot have {vtable_size} bytes")
        if size < 4 or position + size > self.size:
            raise malformed(f"the table at {position} cannot have {size} bytes")
        self._looked(position, position + size)
        self._looked(vtable, vtable + vtable_size)
        return Table(self, position, vtable, vtable_size, size)

    def reference(self, position: int) -> int:
        """Follow the reference at a checked position; its target is checked to have at least four bytes."""
        distance: int = _U32(self.raw, position)[0]
        target = position + distance
        if distance == 0 or target + 4 > self.size:
            raise self._astray(position, distance)
        return target

    def vector(self, position: int, item_bytes: int) -> tuple[int, int]:
        """The position of the first element of a vector, and the number of elements; all are checked to be inside.

        Args:
            position: The position of the vector, as `reference` returns it.
            item_bytes: Size of one element.
        """
        count: int = _U32(self.raw, position)[0]
        start = position + 4
        if start + count * item_bytes > self.size:
            raise self._too_long(position)
        self._looked(position, start + count * item_bytes)
        return start, count

    def elements(self, position: int) -> memoryview:
        """A view on the bytes of a tensor's elements, at a position that `reference` has returned."""
        end = position + 4 + _U32(self.raw, position)[0]
        if end > self.size:
            raise self._too_long(position)
        if self._trace is not None:
            self._looked(position, position + 4)
            self._trace.elements.append((position + 4, end))
        return self.raw[position + 4 : end]

    def octets(self, position: int) -> memoryview:
        """A view on the bytes, or the string, at a position that `reference` has returned."""
        start, count = self.vector(position, 1)
        return self.raw[start : start + count]

    def text(self, position: int, what: str) -> str:
        """Decode the string at a position that `reference` has returned, from UTF-8 (G-030)."""
        try:
            return str(self.octets(position), "utf-8")
        except UnicodeDecodeError as error:
            raise malformed(f"{what} is not UTF-8 from byte {error.start} on") from None

    def references(self, position: int, count: int, *, may_lack: bool = False) -> list[int]:
        """The targets of a vector of references, each checked to have at least four bytes.

        Args:
            position: The position of the first element, as `vector` returns it.
            count: The count of its elements; the caller has counted them against `Totals`.
            may_lack: Whether a reference that was never set is found as 0 instead of refused.
        """
        size = self.size - 4
        found = []
        for distance in struct.unpack_from(f"<{count}I", self.raw, position):
            target = position + distance
            if target > size or not (distance or may_lack):
                raise self._astray(position, distance)
            found.append(target if distance else 0)
            position += 4
        return found

    def strings(self, position: int, count: int, totals: Totals) -> list[bytes]:
        """Copies of the strings of a vector, which may overlap.

        Args:
            position: The position of the first element, as `vector` returns it.
            count: The count of its elements.
            totals: Counts the strings, and their bytes.
        """
        totals.strings(count)
        totals.decoded(count * STRING_COST)
        self._looked(0, self.size)  # strings may be anywhere in the buffer
        raw, source, size, room = self.raw, self._source, self.size, totals.room
        found, decoded, until = [], 0, min(room, _WEIGHED_BYTES)
        for distance in struct.unpack_from(f"<{count}I", raw, position):
            start = position + distance + 4
            if distance == 0 or start > size:
                raise self._astray(position, distance)
            length = _U32(raw, start - 4)[0]
            end = start + length
            if end > size:
                raise malformed(
                    f"the string at {start - 4} has {length} bytes, which are more than the buffer can hold"
                )
            decoded += length
            if decoded > until:
                if decoded > room:
                    break  # `totals.texts` refuses this below
                totals.copied(decoded)
                until = min(room, decoded + _WEIGHED_BYTES)
            found.append(bytes(source[start:end]))
            position += 4
        totals.texts(decoded)
        return found

    def _looked(self, start: int, end: int) -> None:
        if self._trace is not None:
            self._trace.looked.append((start, end))

    def _too_long(self, position: int) -> GraphPipeError:
        count = _U32(self.raw, position)[0]
        return malformed(f"the vector at {position} has {count} elements, which are more than the buffer can hold")

    def _astray(self, position: int, distance: int) -> GraphPipeError:
        to = position + distance
        return malformed(f"the reference at {position} leads to {to}, and the buffer has {self.size} bytes")


class Table:
    """A table that is checked to be inside the buffer, with its vtable; slots are looked up in the vtable."""

    __slots__ = ("_position", "_size", "_vtable", "_vtable_size", "flat")

    def __init__(self, flat: Flat, position: int, vtable: int, vtable_size: int, size: int) -> None:
        self.flat = flat
        self._position = position
        self._vtable = vtable
        self._vtable_size = vtable_size
        self._size = size

    def field(self, slot: int, width: int) -> int:
        """The position of a field of ``width`` bytes; 0 when it is absent. Unknown slots are ignored (G-027)."""
        entry = 4 + 2 * slot
        if entry + 2 > self._vtable_size:
            return 0
        offset: int = _U16(self.flat.raw, self._vtable + entry)[0]
        if offset == 0:
            return 0
        if offset < 4 or offset + width > self._size:
            raise malformed(f"field {slot} of the table at {self._position} lies outside of it")
        return self._position + offset

    def uint8(self, slot: int) -> int:
        """A small number; 0 when it is absent."""
        position = self.field(slot, 1)
        return self.flat.raw[position] if position else 0

    def int64(self, slot: int) -> int:
        """A number; 0 when it is absent."""
        position = self.field(slot, 8)
        number: int = _I64(self.flat.raw, position)[0] if position else 0
        return number

    def target(self, slot: int) -> int:
        """The checked position to which a reference leads; 0 when the reference is absent."""
        position = self.field(slot, 4)
        return self.flat.reference(position) if position else 0

    def table(self, slot: int) -> Table | None:
        """The table to which a reference leads; None when it is absent."""
        target = self.target(slot)
        return self.flat.table(target) if target else None

    def vector(self, slot: int, item_bytes: int) -> tuple[int, int]:
        """The first element and the number of elements of a vector; an absent vector is empty (D20)."""
        target = self.target(slot)
        return self.flat.vector(target, item_bytes) if target else (0, 0)

    def octets(self, slot: int) -> memoryview:
        """A view on the bytes, or the string, of a field; an absent field is empty."""
        target = self.target(slot)
        return self.flat.octets(target) if target else self.flat.raw[:0]

    def elements(self, slot: int) -> memoryview:
        """A view on the elements of a tensor, as bytes; an absent field has none."""
        target = self.target(slot)
        return self.flat.elements(target) if target else self.flat.raw[:0]

    def text(self, slot: int, what: str) -> str:
        """The string of a field; an absent field is empty."""
        target = self.target(slot)
        return self.flat.text(target, what) if target else ""
