"""How the peer of `peer.py` reads a request; it can be told to trust what it should not. None of it is our own."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass

from invoker_conformance.graphpipe.tensors import FORMS, Tensor

MALFORMED, REQUEST_TYPE, NAME_COUNT = 1, 2, 3
SHAPE, LENGTH, BOTH, TYPE, TOO_LARGE = 9, 10, 11, 12, 13


class Refused(Exception):
    """A request is refused with a code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass
class Infer:
    """An InferRequest."""

    tensors: list[Tensor]
    names: list[str]
    outputs: list[str]
    config: bytes


class Reader:
    """A buffer, with checks that the peer's faults take away.

    Args:
        data: Of the request.
        has: Whether the peer has a fault.
        limit_bytes: Of a request.
    """

    def __init__(self, data: bytes, has: Callable[[str], bool], limit_bytes: int) -> None:
        self.data = data
        self.has = has
        self.room = 4 * limit_bytes
        self.names = self.strings = 1024
        self.strings = 1_000_000
        self.last = 0
        self.seen: dict[int, Tensor] = {}

    def request(self) -> Infer | None:
        """The inference; None for metadata."""
        root = Table(self, self.number("I", 0))
        kind = root.number(0, "B")
        if kind == 2 and self.has("needs a table for metadata") and root.target(1) is None:
            raise Refused(REQUEST_TYPE, "no table")
        if kind == 2 or (kind != 1 and self.has("takes any type for metadata")):
            return None
        place = root.target(1)
        if kind != 1 or place is None:
            raise Refused(REQUEST_TYPE, f"request type {kind}")
        inner = Table(self, place)
        config = inner.octets(0)
        names, outputs = self._texts(inner, 1), self._texts(inner, 3)
        places = inner.references(2)
        if len(places) > 1024:
            raise Refused(TOO_LARGE, "tensors")
        found = [self._tensor(each) for each in places]
        if names and len(names) != len(found) and not self.has("takes any number of names"):
            raise Refused(NAME_COUNT, f"{len(names)} names, {len(found)} tensors")
        end = (self.last + 7) // 8 * 8
        if self.has("refuses trailing bytes") and len(self.data) > end:
            raise Refused(MALFORMED, "bytes behind the last object")
        return Infer(found, names, outputs, config)

    def number(self, form: str, at: int) -> int:
        """A number somewhere."""
        size = struct.calcsize(form)
        if not self.has("trusts positions") and not 0 <= at <= len(self.data) - size:
            raise Refused(MALFORMED, f"{at} of {len(self.data)}")
        if self.has("needs alignment") and at % size:
            raise Refused(MALFORMED, f"{at} is not aligned")
        self.last = max(self.last, at + size)
        return int(struct.unpack_from(f"<{form}", self.data, at)[0])

    def vector(self, at: int, item: int) -> tuple[int, int]:
        """First element and count."""
        count = self.number("I", at)
        if self.has("counts wrap"):
            count = (count * item) % 2**32 // item
        if at + 4 + count * item > len(self.data) and not self.has("trusts counts"):
            raise Refused(MALFORMED, f"{count} elements at {at}")
        self.last = max(self.last, at + 4 + count * item)
        return at + 4, count

    def octets(self, at: int) -> bytes:
        """Bytes of a vector."""
        start, count = self.vector(at, 1)
        return self.data[start : start + count]

    def count(self, size: int) -> None:
        """Count what is decoded."""
        self.room -= size
        if self.room < 0:
            raise Refused(TOO_LARGE, "decoded bytes")

    def _texts(self, table: Table, slot: int) -> list[str]:
        places = table.references(slot, is_name=True)
        self.names -= len(places)
        if self.names < 0:
            raise Refused(TOO_LARGE, "names")
        try:
            errors = "replace" if self.has("decodes names leniently") else "strict"
            return [self._text(at).decode(errors=errors) for at in places]
        except UnicodeDecodeError:
            raise Refused(MALFORMED, "a name is no text") from None

    def _text(self, at: int) -> bytes:
        raw = self.octets(at)
        end = at + 4 + len(raw)
        if self.has("needs zeros") and self.data[end : end + 1] != b"\0":
            raise Refused(MALFORMED, "a string without zero")
        return raw

    def _tensor(self, at: int) -> Tensor:
        if at in self.seen and self.has("counts shared once"):
            return self.seen[at]
        table = Table(self, at)
        shape = table.longs(1)
        data, strings = table.octets(2), table.references(3)
        self.strings -= len(strings)
        if self.strings < 0 or len(shape) > 32:
            raise Refused(TOO_LARGE, "strings or dimensions")
        self.count(len(data))
        made = Tensor(table.number(0, "B"), shape, data, tuple(self._element(each) for each in strings))
        self._check(made)
        self.seen[at] = made
        return made

    def _element(self, at: int) -> bytes:
        raw = self._text(at)
        self.count(len(raw))
        return raw.rstrip(b"\0") if self.has("strips zeros") else raw

    def _check(self, tensor: Tensor) -> None:
        shape = tensor.shape or ()
        if not 1 <= tensor.type <= 12 and not self.has("takes any type"):
            raise Refused(TYPE, f"type {tensor.type}")
        if any(size < 0 for size in shape) and not self.has("takes negative sizes"):
            raise Refused(SHAPE, f"{shape}")
        is_both = bool(tensor.strings) if tensor.type != 12 else bool(tensor.data)
        if is_both and not self.has("takes data and strings"):
            raise Refused(BOTH, "data and strings")
        count = math.prod(shape)
        if self.has("products wrap"):
            count %= 2**32
        if self.has("no scalars") and not shape:
            count = 0
        have = len(tensor.strings) if tensor.type == 12 else len(tensor.data)
        wanted = count * (1 if tensor.type == 12 else struct.calcsize(f"<{FORMS[tensor.type % 13]}"))
        if have != wanted and not (self.has("takes any length") and have < wanted):
            raise Refused(LENGTH, f"{have} for {wanted}")


class Table:
    """A table of a buffer."""

    def __init__(self, reader: Reader, at: int) -> None:
        self.reader = reader
        self.at = at
        distance = reader.number("I" if reader.has("distances are unsigned") else "i", at)
        self.vtable = at - distance
        self.vtable_bytes = reader.number("H", self.vtable)
        self.bytes = reader.number("H", self.vtable + 2)
        is_right = self.vtable_bytes >= 4 and self.vtable_bytes % 2 == 0 and self.bytes >= 4
        is_inside = max(self.vtable + self.vtable_bytes, at + self.bytes) <= len(reader.data)
        if not (is_right and is_inside) and not reader.has("trusts tables"):
            raise Refused(MALFORMED, f"a table at {at}")
        if self.vtable_bytes > 12 and reader.has("refuses unknown slots"):
            raise Refused(MALFORMED, "an unknown slot")

    def field(self, slot: int, size: int) -> int | None:
        """Where a field lies; None: it is absent."""
        if 4 + 2 * slot >= self.vtable_bytes:
            return None
        offset = self.reader.number("H", self.vtable + 4 + 2 * slot)
        if offset and (offset < 4 or offset + size > self.bytes) and not self.reader.has("trusts fields"):
            raise Refused(MALFORMED, f"field {slot} at {offset}")
        return self.at + offset if offset else None

    def number(self, slot: int, form: str) -> int:
        """A number; 0 where it is absent."""
        at = self.field(slot, struct.calcsize(form))
        return 0 if at is None else self.reader.number(form, at)

    def target(self, slot: int) -> int | None:
        """Where a reference leads."""
        at = self.field(slot, 4)
        return None if at is None else self._follow(at)

    def octets(self, slot: int) -> bytes:
        """Bytes; none where they are absent."""
        at = self.target(slot)
        return b"" if at is None else self.reader.octets(at)

    def longs(self, slot: int) -> tuple[int, ...]:
        """Numbers of eight bytes."""
        at = self.target(slot)
        if at is None:
            return ()
        start, count = self.reader.vector(at, 8)
        return tuple(struct.unpack_from(f"<{count}q", self.reader.data, start))

    def references(self, slot: int, *, is_name: bool = False) -> list[int]:
        """Where each of a vector leads; one to a name may be 0, which then is an empty string."""
        at = self.target(slot)
        if at is None:
            return []
        start, count = self.reader.vector(at, 4)
        return [self._follow(start + 4 * index, is_name=is_name) for index in range(count)]

    def _follow(self, at: int, *, is_name: bool = False) -> int:
        distance = self.reader.number("I", at)
        if distance == 0 and not is_name:
            raise Refused(MALFORMED, f"a reference at {at} to itself")
        return at + distance
