"""A second reader of GraphPipe's buffers, as naive as can be, from docs/reference/graphpipe.md alone.

What ours reads has to be what this one reads. It also notes where everything lies, to be changed on purpose.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import Any

TABLES = {
    "Tensor": {"type": "u8", "shape": "[i64]", "data": "bytes", "string_val": "[bytes]"},
    "Request": {"req_type": "u8", "req": "union"},
    "InferRequest": {"config": "bytes", "input_names": "[name]", "input_tensors": "[Tensor]", "output_names": "[name]"},
    "MetadataRequest": {},
    "Error": {"code": "i64", "message": "bytes"},
    "InferResponse": {"output_tensors": "[Tensor]", "errors": "[Error]"},
    "IOMetadata": {"name": "text", "description": "text", "shape": "[i64]", "type": "u8"},
    "MetadataResponse": {
        "name": "text",
        "version": "text",
        "server": "text",
        "description": "text",
        "inputs": "[IOMetadata]",
        "outputs": "[IOMetadata]",
    },
}
"""Fields in the order of their slots (1.1)."""

NOTHING: dict[str, Any] = {"u8": 0, "i64": 0, "bytes": b"", "text": "", "union": None}
WIDTHS = {"u8": 1, "i64": 8}
ITEM_BYTES = (0, 1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8)
MOST = {"Tensor": 1024, "Error": 1024, "IOMetadata": 1024, "name": 1024, "strings": 1_000_000, "rank": 32}


class Bad(Exception):
    """The buffer breaks a rule."""


@dataclass(frozen=True)
class Place:
    """Something at a position of a buffer.

    Attributes:
        kind: root, vtable (a table's way to it), size (of a vtable, or table), entry, reference, count, u8 or i64.
        at: Where it lies.
        width: In bytes.
    """

    kind: str
    at: int
    width: int


@dataclass
class Buffer:
    """What is read.

    Attributes:
        raw: The bytes.
        places: Where everything lies.
        counts: How many of each kind were visited.
    """

    raw: bytes
    places: list[Place] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def number(self, kind: str, at: int, code: str) -> int:
        """The number at a position."""
        width = struct.calcsize("<" + code)
        if at < 0 or at + width > len(self.raw):
            raise Bad(f"{kind} at {at} is outside")
        self.places.append(Place(kind, at, width))
        found: int = struct.unpack_from("<" + code, self.raw, at)[0]
        return found

    def table(self, at: int, name: str) -> dict[str, Any]:
        """A table with all its fields (1.3)."""
        vtable = at - self.number("vtable", at, "i")
        vtable_size, size = self.number("size", vtable, "H"), self.number("size", vtable + 2, "H")
        if vtable_size < 4 or vtable_size % 2 or vtable + vtable_size > len(self.raw):
            raise Bad("no such vtable")
        if size < 4 or at + size > len(self.raw):
            raise Bad("no such table")
        found = {}
        for slot, (key, kind) in enumerate(TABLES[name].items()):
            found[key] = [] if kind[0] == "[" else NOTHING[kind]
            if 4 + 2 * slot + 2 > vtable_size:
                continue
            entry = self.number("entry", vtable + 4 + 2 * slot, "H")
            if entry == 0:
                continue
            if entry < 4 or entry + WIDTHS.get(kind, 4) > size:
                raise Bad(f"{key} is outside of its table")
            found[key] = self.value(at + entry, kind)
        return found

    def value(self, at: int, kind: str) -> Any:
        """A field."""
        if kind in ("u8", "i64"):
            return self.number(kind, at, "B" if kind == "u8" else "q")
        target = self.target(at)
        if kind == "union":
            return target
        if kind == "[i64]":
            count = self.number("count", target, "I")
            self.has(target + 4, 8 * count)
            if count > MOST["rank"]:
                raise Bad("too many dimensions")
            return [self.number("i64", target + 4 + 8 * index, "q") for index in range(count)]
        if kind[0] == "[":
            return self.several(target, kind[1:-1])
        return self.octets(target, is_text=kind == "text")

    def several(self, at: int, kind: str) -> list[Any]:
        """A vector of references."""
        count = self.number("count", at, "I")
        self.has(at + 4, 4 * count)
        what = {"bytes": "strings", "Error": "Tensor", "IOMetadata": "Tensor"}.get(kind, kind)
        self.counts[what] = self.counts.get(what, 0) + count
        if self.counts[what] > MOST[what]:
            raise Bad(f"too many {what}")
        found = []
        for place in range(at + 4, at + 4 + 4 * count, 4):
            if kind == "name" and self.raw[place : place + 4] == bytes(4):
                found.append("")  # never set: the default
            elif kind in TABLES:
                found.append(self.table(self.target(place), kind))  # type: ignore[arg-type]
            else:
                found.append(self.octets(self.target(place), is_text=kind == "name"))
        return found

    def octets(self, at: int, *, is_text: bool) -> Any:
        """A string, or a vector of bytes."""
        count = self.number("count", at, "I")
        self.has(at + 4, count)
        raw = self.raw[at + 4 : at + 4 + count]
        try:
            return raw.decode() if is_text else raw
        except UnicodeDecodeError:
            raise Bad("no UTF-8") from None

    def target(self, at: int) -> int:
        """Where a reference leads."""
        distance = self.number("reference", at, "I")
        if distance == 0 or at + distance + 4 > len(self.raw):
            raise Bad("a reference leads nowhere")
        return at + distance

    def has(self, at: int, size: int) -> None:
        """So many bytes are there."""
        if at + size > len(self.raw):
            raise Bad("a vector is longer than the buffer")


def read(raw: bytes, name: str) -> tuple[dict[str, Any], Buffer]:
    """A buffer whose root is a table of this name."""
    buffer = Buffer(raw)
    if len(raw) < 8:
        raise Bad("too short")
    root = buffer.number("root", 0, "I")
    if root < 4:
        raise Bad("the root lies in itself")
    return buffer.table(root, name), buffer


def read_request(raw: bytes) -> tuple[dict[str, Any] | None, Buffer]:
    """An inference; None: somebody asks for metadata."""
    found, buffer = read(raw, "Request")
    kind = found["req_type"]
    if kind not in (1, 2) or (kind == 1 and found["req"] is None):
        raise Bad("no such request")
    if kind == 2:
        if found["req"] is not None:
            buffer.table(found["req"], "MetadataRequest")
        return None, buffer
    inference = buffer.table(found["req"], "InferRequest")
    for one in inference["input_tensors"]:
        check(one)
    if inference["input_names"] and len(inference["input_names"]) != len(inference["input_tensors"]):
        raise Bad("another number of names")
    return inference, buffer


def read_response(raw: bytes) -> dict[str, Any]:
    """What came of an inference."""
    found, _ = read(raw, "InferResponse")
    for one in found["output_tensors"]:
        check(one)
    return found


def check(tensor: dict[str, Any]) -> None:
    """Whether there can be such a tensor (2.3)."""
    if not 1 <= tensor["type"] <= 12:
        raise Bad("no such type")
    if min(tensor["shape"], default=0) < 0:
        raise Bad("below zero")
    count = math.prod(tensor["shape"])
    if tensor["type"] == 12:
        if tensor["data"] or len(tensor["string_val"]) != count:
            raise Bad("another number of strings")
    elif tensor["string_val"] or len(tensor["data"]) != count * ITEM_BYTES[tensor["type"]]:
        raise Bad("another number of bytes")
