"""Buffers that break a rule on purpose: known places of good ones changed, and bombs."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from random import Random

import numpy as np

from invoker.tensors import ITEM_BYTES, InferRequest, write_request
from invoker.tensors.arrays import to_tensor
from tests.fuzz.tensors_naive import Buffer, Place, read, read_request
from tests.tensors.samples import OWN, Raw, fixture

REQUESTS = (
    "infer_request",
    "metadata_request",
    "py_strings",
    "go_all_types",
    "go_strings_2d",
    "go_named",
    "own_request",
)
"""Fixtures of requests."""

_NUMBERS: dict[str, tuple[int, ...]] = {
    "root": (0, 1, 3, 4, 8, 2**31, 2**32 - 1),
    "vtable": (0, 1, -1, 4, 2**31 - 1, -(2**31), -4),
    "size": (0, 2, 3, 4, 5, 6, 8, 255, 65534, 65535),
    "entry": (0, 1, 3, 4, 5, 8, 12, 255, 65535),
    "reference": (0, 1, 2, 4, 2**31, 2**32 - 1, 2**32 - 4),
    "count": (0, 1, 2, 1025, 2**20, 2**28, 2**31 - 1, 2**32 - 1),
    "u8": (0, 1, 2, 3, 8, 9, 11, 12, 13, 255),
    "i64": (0, 1, 2, -1, 2**31, 2**40, 2**62, -(2**63), 2**63 - 1),
}
_CODES = {1: "B", 2: "H", 4: "I", 8: "q"}


@functools.cache
def places(seed: bytes, root: str = "Request") -> tuple[Place, ...]:
    """Where everything lies in a good buffer."""
    buffer: Buffer = read_request(seed)[1] if root == "Request" else read(seed, root)[1]
    return tuple(dict.fromkeys(buffer.places))


def changed(chance: Random, seed: bytes, root: str = "Request") -> bytes:
    """A good buffer with some of its numbers changed: what is confused, shared, in a circle, too many or outside."""
    buffer = bytearray(seed)
    known = places(seed, root)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        one = chance.choice(known)
        if chance.random() < 0.2:
            buffer[one.at + chance.randrange(one.width)] ^= 1 << chance.randrange(8)
        else:
            _put(buffer, one, _number(chance, one, known, len(seed)))
    way = chance.random()
    if way < 0.05:
        del buffer[chance.randrange(len(buffer)) :]
    elif way < 0.1:
        buffer += chance.randbytes(chance.randrange(1, 100))
    elif way < 0.13:
        buffer[0:0] = chance.randbytes(chance.randrange(1, 9))
    return bytes(buffer)


def _number(chance: Random, one: Place, known: tuple[Place, ...], size: int) -> int:
    way = chance.random()
    if way < 0.4 or one.kind not in ("reference", "count", "vtable", "root"):
        return chance.choice(_NUMBERS[one.kind])
    other = chance.choice(known).at
    if one.kind == "vtable":
        return one.at - other
    if way < 0.8 and one.kind != "count":  # to something else there is, forward or back
        return (other - one.at) % 2**32
    rest = size - one.at - 4
    return max(0, chance.choice((rest, rest + 1, rest - 3, rest // 4, rest // 8 + 1, rest - 4)))


def _put(buffer: bytearray, place: Place, number: int) -> None:
    width = place.width
    struct.pack_into("<" + _CODES[width].lower(), buffer, place.at, _signed(number, 8 * width))


def _signed(number: int, bits: int) -> int:
    number %= 2**bits
    return number - 2**bits if number >= 2 ** (bits - 1) else number


# Bombs: well-formed, or nearly, and far too much. Each takes how large it may be.


def _infer(slot: int, count: int, target: Callable[[Raw], int]) -> bytes:
    """An inference with a vector of references that all lead to the same."""
    raw = Raw()
    root = raw.table([b"\1\0\0\0", bytes(4)])
    table = raw.table([None] * slot + [bytes(4)])
    raw.link(root + 8, table)
    vector = raw.open(count)
    raw.link(table + 4, vector)
    _link_all(raw, vector, count, target(raw))
    return raw.root(root)


def _link_all(raw: Raw, vector: int, count: int, to: int) -> None:
    first = to - vector - 4
    struct.pack_into(f"<{count}I", raw.bytes, vector + 4, *(first - 4 * index for index in range(count)))


def same_numbers(count: int, size: int, type_: int = 1) -> bytes:
    """References to one tensor of zeros, of so many bytes."""

    def target(raw: Raw) -> int:
        table = raw.table([bytes([type_, 0, 0, 0]), bytes(4), bytes(4)])
        raw.link(table + 8, raw.shape(size // ITEM_BYTES[type_]))
        raw.link(table + 12, raw.octets(bytes(size)))
        return table

    return _infer(2, count, target)


def same_strings(count: int, size: int) -> bytes:
    """A tensor of strings that all are the same one."""

    def target(raw: Raw) -> int:
        table = raw.table([b"\x0c\0\0\0", bytes(4), None, bytes(4)])
        raw.link(table + 8, raw.shape(count))
        vector = raw.open(count)
        raw.link(table + 12, vector)
        _link_all(raw, vector, count, raw.octets(b"z" * size))
        return table

    return _infer(2, 1, target)


def same_names(slot: int, count: int, name: bytes) -> bytes:
    """References to one name, of inputs (1) or outputs (3)."""
    return _infer(slot, count, lambda raw: raw.octets(name))


def _asked(value: object, **more: object) -> bytes:
    return bytes(write_request(InferRequest((to_tensor(value),), **more)))  # type: ignore[arg-type]


def _many(names: list[str]) -> bytes:
    return bytes(write_request(InferRequest(tuple(to_tensor(0) for _ in names), tuple(names))))


def of_size(size: int) -> bytes:
    """A good request with so many bytes of numbers."""
    return _asked(np.zeros((size // 8 + 1, 1)))


BOMBS: dict[str, Callable[[int], bytes]] = {
    "1000 references to one tensor": lambda size: same_numbers(1000, size - 5000),
    "4 references to one tensor": lambda size: same_numbers(4, size - 5000),
    "1025 tensors": lambda _: same_numbers(1025, 0),
    "strings that are one": lambda size: same_strings(size // 8, size // 16),
    "a million empty strings": lambda size: same_strings(min(size // 5, 1_000_000), 0),
    "three long strings": lambda size: same_strings(3, size - 5000),
    "2^20 names": lambda size: same_names(1, min(2**20, size // 5), b""),
    "2^20 output names": lambda size: same_names(3, min(2**20, size // 5), b""),
    "1000 long names": lambda size: same_names(1, 1000, b"n" * (size - 6000)),
    "4 wide names": lambda size: same_names(3, 4, b"n" * (size - 6000) + "\U0001f600".encode()),
    "a long name": lambda size: _asked([1.0], input_names=("n" * (size - 1000),)),
    "a long output name": lambda size: _asked([1.0], output_names=("n" * (size - 1000) + "\U0001f600",)),
    "one output 1024 times": lambda size: _asked(
        [b"x" * (size // 8)], output_names=("output0",) * min(1024, size // 30)
    ),
    "1000 wrong names": lambda _: _many([f"input{number}x" for number in range(1000)]),
    "a long config": lambda size: _asked([1.0], config=b"{" * (size - 1000)),
    "a shape beyond all bounds": lambda _: _infer(2, 1, _shaped(2**62, 2**62)),
    "a shape of nothing": lambda _: _infer(2, 1, _shaped(2**62, 0)),
}
"""By name, made for a size in bytes that they do not pass."""


def _shaped(*sizes: int) -> Callable[[Raw], int]:
    def target(raw: Raw) -> int:
        table = raw.table([b"\x0b\0\0\0", bytes(4), bytes(4)])
        raw.link(table + 8, raw.shape(*sizes))
        raw.link(table + 12, raw.octets(b""))
        return table

    return target


def attack(chance: Random) -> bytes:
    """One buffer, small enough to be sent often."""
    way = chance.random()
    if way < 0.75:
        return changed(chance, fixture(chance.choice(REQUESTS)))
    if way < 0.85:
        return OWN[chance.choice(sorted(OWN))]  # good, though few are requests
    if way < 0.9:
        return chance.randbytes(chance.randrange(300))
    return BOMBS[chance.choice(sorted(BOMBS))](chance.choice((10_000, 10_000, 100_000, 1_000_000)))
