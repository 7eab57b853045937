"""Builds a FlatBuffer from front to back; large parts are listed instead of being copied.

Theory. References lead forward, so a table is placed before its targets: the reference is left open, and set when its
target is placed. All small parts go into one head. The elements of tensors, which may be large, come last and are only
listed (`Layout.later`): a buffer is a list of *pieces*, which are joined or written one after the other. So the bytes
of a tensor are copied at most once, by code that needs them in one piece.

Numbers are aligned to their size, from the beginning of the buffer; the elements of each tensor to eight bytes.

Source: docs/reference/graphpipe.md 1.3.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from invoker.tensors.errors import Code, GraphPipeError

MAX_BYTES: Final = 2**31 - 1
"""The largest size of a FlatBuffer, in bytes."""

_SMALL: Final = 4096
"""Up to this many bytes are copied into the previous piece, which is cheaper than a piece of their own."""

_U32 = struct.Struct("<I").pack
_I32 = struct.Struct("<i").pack
_U32_INTO = struct.Struct("<I").pack_into
_ZEROS: Final = tuple(bytes(count) for count in range(9))
_ENDS: Final = tuple(bytes(4 - size) for size in range(4))
"""The bytes after a string, by its size modulo 4: its zero, and padding to the next multiple of 4."""


class Kind:
    """The layout of a table that always has the same fields.

    Args:
        entries: The position of each slot's field in the table; 0: the field is never written.
        size: The size of the table, in bytes.
        align: The alignment of its widest field.
    """

    __slots__ = ("align", "rest", "vtable")

    def __init__(self, entries: Sequence[int], size: int, *, align: int = 4) -> None:
        raw = struct.pack(f"<{2 + len(entries)}H", 4 + 2 * len(entries), size, *entries)
        self.vtable = raw + _ZEROS[-len(raw) % 4]
        self.rest = bytes(size - 4)
        self.align = align


class Written:
    """A buffer that is ready to be sent.

    Attributes:
        pieces: Its bytes, in order; large ones are views on the caller's arrays, which must not change meanwhile.
        size: The size of all pieces, in bytes.
    """

    __slots__ = ("pieces", "size")

    def __init__(self, pieces: list[bytearray | memoryview], size: int) -> None:
        self.pieces = pieces
        self.size = size

    def __bytes__(self) -> bytes:
        return b"".join(self.pieces)


class Layout:
    """A buffer in the making; the first table is its root."""

    __slots__ = ("_head", "_late", "_vtables")

    def __init__(self) -> None:
        self._head = bytearray(4)
        self._late: list[tuple[int, memoryview | list[bytes]]] = []
        self._vtables: dict[bytes, int] = {}

    def table(self, kind: Kind, reference: int = 0) -> int:
        """Place a table with all fields zero, to which the reference at a position leads; returns its position."""
        head = self._head
        vtable = self._vtables.get(kind.vtable)
        if vtable is None:
            vtable = self._vtables[kind.vtable] = len(head)
            head += kind.vtable
        if kind.align == 8:
            head += _ZEROS[-len(head) % 8]
        position = len(head)
        _U32_INTO(head, reference, position - reference)
        head += _I32(position - vtable)
        head += kind.rest
        head += _ZEROS[-len(head) % 4]
        return position

    def refer(self, reference: int, position: int) -> None:
        """Let a reference lead to a target that was placed after it."""
        _U32_INTO(self._head, reference, position - reference)

    def references(self, reference: int, count: int) -> int:
        """Place a vector of open references; returns the position of the first."""
        self._to_here(reference)
        self._head += _U32(count)
        first = len(self._head)
        self._head += bytes(4 * count)
        return first

    def string(self, reference: int, raw: bytes) -> None:
        """Place a string, or a vector of bytes."""
        self._to_here(reference)
        self._head += _string(raw)

    def strings(self, reference: int, texts: Sequence[str]) -> None:
        """Place a vector of strings."""
        first = self.references(reference, len(texts))
        for index, text in enumerate(texts):
            self.string(first + 4 * index, text.encode())

    def numbers(self, reference: int, values: Sequence[int]) -> None:
        """Place a vector of 64-bit numbers."""
        self._head += _ZEROS[(4 - len(self._head)) % 8]
        self._to_here(reference)
        self._head += struct.pack(f"<I{len(values)}q", len(values), *values)

    def byte(self, position: int, value: int) -> None:
        """Set a field of one byte."""
        self._head[position] = value

    def number(self, position: int, value: int) -> None:
        """Set a field of eight bytes."""
        struct.pack_into("<q", self._head, position, value)

    def later(self, reference: int, elements: memoryview | list[bytes]) -> None:
        """Place the elements of a tensor, which are bytes or strings, after all small parts."""
        self._late.append((reference, elements))

    def written(self) -> Written:
        """The whole buffer; the layout cannot be used after this.

        Raises:
            GraphPipeError: The buffer is larger than a FlatBuffer can be (E13).
        """
        head = tail = self._head
        pieces: list[bytearray | memoryview] = [head]
        at = len(head)  # the end of the tail in the whole buffer
        for reference, elements in self._late:
            before = len(tail)
            tail += _ZEROS[(4 - at) % 8]
            target = at + len(tail) - before
            large = None
            if isinstance(elements, list):
                _add_strings(tail, elements)
            else:
                tail += _U32(len(elements)) if len(elements) <= MAX_BYTES else _ZEROS[4]
                if len(elements) <= _SMALL:
                    tail += elements
                else:
                    large = elements
            at += len(tail) - before
            if large is not None:
                pieces.append(large)
                at += len(large)
                tail = bytearray()
                pieces.append(tail)
            if at > MAX_BYTES:
                raise GraphPipeError(Code.TOO_LARGE, f"{at} bytes are more than a buffer can have")
            _U32_INTO(head, reference, target - reference)
        return Written([piece for piece in pieces if len(piece)], at)

    def _to_here(self, reference: int) -> None:
        _U32_INTO(self._head, reference, len(self._head) - reference)


def _string(raw: bytes) -> bytes:
    return _U32(len(raw)) + raw + _ENDS[len(raw) % 4]


def _add_strings(tail: bytearray, elements: list[bytes]) -> None:
    """A vector of strings, followed by its strings."""
    distances, strings = [], []
    away = 4 * len(elements)
    for raw in elements:
        distances.append(away)
        string = _string(raw)
        strings.append(string)
        away += len(string) - 4
    if away > MAX_BYTES:
        raise GraphPipeError(Code.TOO_LARGE, f"{len(elements)} strings are more than a buffer can have")
    tail += struct.pack(f"<{1 + len(elements)}I", len(elements), *distances)
    tail += b"".join(strings)
