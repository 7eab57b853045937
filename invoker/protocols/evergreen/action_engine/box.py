"""MessagePack in nested boxes: each structure is one ``bin`` value, which contains its fields one after another.

`Box` reads a box field by field, in every encoding that MessagePack has for a value. Values are written in the
encodings that peers write, since peers do not read all others: they read only signed integers. Text may contain bytes
that are not UTF-8; they are read and written as surrogates.

Source: docs/reference/action-engine-wire.md, "Layout".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

NIL, FALSE, TRUE = b"\xc0", b"\xc2", b"\xc3"

_LENGTHS = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDC: 2, 0xDD: 4}
_NUMBERS = {
    0xCC: (1, False), 0xCD: (2, False), 0xCE: (4, False), 0xCF: (8, False),
    0xD0: (1, True), 0xD1: (2, True), 0xD2: (4, True), 0xD3: (8, True),
}  # fmt: skip
_MOST = 2**63 - 1
_MOST_ITEMS = 20_000
"""The largest number of structures and pairs in one message; each takes some microseconds, which block the event
loop."""
_BINS = frozenset({0xC4, 0xC5, 0xC6})
_TEXTS = frozenset({0xD9, 0xDA, 0xDB})
_ARRAYS = frozenset({0xDC, 0xDD})


class WireError(ValueError):
    """The bytes do not follow the layout of a message."""


class Box:
    """Reads the fields of one box, in order.

    Args:
        data: The bytes in the box.
        left: How many more items the message may have, in a list that all boxes of the message share; None: this is the
            outermost box.
    """

    __slots__ = ("_at", "_data", "_end", "_left")

    def __init__(self, data: bytes | memoryview, left: list[int] | None = None) -> None:
        self._left = [_MOST_ITEMS] if left is None else left
        self._data = memoryview(data)
        self._at = 0
        self._end = len(data)

    @property
    def is_empty(self) -> bool:
        """Whether the whole box was read."""
        return self._at >= self._end

    def box(self) -> Box:
        """Read a structure; raises WireError if the next value is not a structure."""
        return Box(self.binary(), self._left)

    def box_or_nil(self) -> Box | None:
        """Read a structure, or None if the next value is nil."""
        return None if self._takes_nil() else self.box()

    def binary(self) -> memoryview:
        """Read bytes, as a view without a copy."""
        head = self._byte()
        if head not in _BINS:
            raise self._unlike("bin", head)
        return self._slice(self._big(_LENGTHS[head]))

    def text(self) -> str:
        """Read a text; bytes that are not UTF-8 become surrogates."""
        head = self._byte()
        if 0xA0 <= head <= 0xBF:
            size = head & 0x1F
        elif head in _TEXTS:
            size = self._big(_LENGTHS[head])
        else:
            raise self._unlike("str", head)
        return str(self._slice(size), "utf-8", "surrogateescape")

    def number(self) -> int:
        """Read an integer that fits into 64 bits with a sign."""
        head = self._byte()
        if head <= 0x7F:
            return head
        if head >= 0xE0:
            return head - 0x100
        form = _NUMBERS.get(head)
        if form is None:
            raise self._unlike("integer", head)
        size, signed = form
        value = int.from_bytes(self._slice(size), "big", signed=signed)
        if value > _MOST:
            raise WireError(f"the integer {value} was met at {self._at - size - 1}; at most {_MOST} was expected")
        return value

    def number_or_nil(self) -> int | None:
        """Read an integer, or None if the next value is nil."""
        return None if self._takes_nil() else self.number()

    def flag(self) -> bool:
        """Read a boolean."""
        head = self._byte()
        if head not in (0xC2, 0xC3):
            raise self._unlike("bool", head)
        return head == 0xC3

    def boxes(self) -> Iterable[Box]:
        """Iterate over a list of structures, and read each on demand."""
        head = self._byte()
        if 0x90 <= head <= 0x9F:
            size = head & 0x0F
        elif head in _ARRAYS:
            size = self._big(_LENGTHS[head])
        else:
            raise self._unlike("array", head)
        for _ in range(self._admitted(size)):
            yield self.box()

    def pairs(self) -> Iterable[tuple[str, str]]:
        """Read the pairs of texts of a map."""
        for _ in range(self._admitted(self.number())):
            yield self.text(), self.text()

    def _admitted(self, count: int) -> int:
        self._left[0] -= count
        if self._left[0] < 0:
            raise WireError(f"the message has more than {_MOST_ITEMS} items; send them in several messages")
        return count

    def _takes_nil(self) -> bool:
        if self._at < self._end and self._data[self._at] == 0xC0:
            self._at += 1
            return True
        return False

    def _byte(self) -> int:
        at = self._at
        if at >= self._end:
            raise WireError(f"the box ends after {self._end} bytes; another field was expected")
        self._at = at + 1
        return self._data[at]

    def _big(self, size: int) -> int:
        return int.from_bytes(self._slice(size), "big")

    def _slice(self, size: int) -> memoryview:
        at = self._at
        if size > self._end - at:
            raise WireError(f"{size} bytes were announced at {at}; the box has {self._end - at} more")
        self._at = at + size
        return self._data[at : at + size]

    def _unlike(self, wanted: str, head: int) -> WireError:
        return WireError(f"byte 0x{head:02x} was met at {self._at - 1}; {wanted} was expected")


def boxed(data: bytes) -> bytes:
    """Encode bytes or a structure as MessagePack's ``bin``."""
    size = len(data)
    if size < 0xFF:
        return b"\xc4%c%b" % (size, data)
    if size < 0xFFFF:
        return b"\xc5" + struct.pack(">H", size) + data
    return b"\xc6" + struct.pack(">I", size) + data


def text(value: str) -> bytes:
    """Encode a text as MessagePack's ``str``."""
    data = value.encode("utf-8", "surrogateescape")
    size = len(data)
    if size < 0x20:
        return b"%c%b" % (0xA0 | size, data)
    if size < 0xFF:
        return b"\xd9%c%b" % (size, data)
    if size < 0xFFFF:
        return b"\xda" + struct.pack(">H", size) + data
    return b"\xdb" + struct.pack(">I", size) + data


def number(value: int | None) -> bytes:
    """Encode an integer in its shortest signed form, or None as nil."""
    if value is None:
        return NIL
    if -0x20 <= value < 0x20:
        return struct.pack(">b", value)
    if -0x80 < value < 0x80:
        return b"\xd0" + struct.pack(">b", value)
    if -0x8000 < value < 0x8000:
        return b"\xd1" + struct.pack(">h", value)
    if -0x80000000 < value < 0x80000000:
        return b"\xd2" + struct.pack(">i", value)
    return b"\xd3" + struct.pack(">q", value)


def listed(parts: list[bytes]) -> bytes:
    """Encode a list of boxes that are already encoded."""
    size = len(parts)
    if size < 0x10:
        head = bytes((0x90 | size,))
    elif size < 0xFFFF:
        head = b"\xdc" + struct.pack(">H", size)
    else:
        head = b"\xdd" + struct.pack(">I", size)
    return head + b"".join(parts)


def mapped(pairs: dict[str, str]) -> bytes:
    """Encode a map from texts to texts."""
    return number(len(pairs)) + b"".join(text(name) + text(value) for name, value in pairs.items())
