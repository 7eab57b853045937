"""Tensors: types, shapes, strings, and invalid tensors. Catalogue 2.3."""

from __future__ import annotations

import math
import struct
from itertools import cycle, islice

from invoker_conformance.graphpipe.asker import Asker
from invoker_conformance.graphpipe.build import assemble
from invoker_conformance.graphpipe.requests import drafted, infer
from invoker_conformance.graphpipe.tensors import (
    FLOAT16,
    FLOAT32,
    FLOAT64,
    FORMS,
    INT64,
    NUMERIC,
    STRING,
    UINT8,
    Tensor,
    floats,
    numbers,
    strings,
)
from invoker_conformance.http import Connection
from invoker_conformance.scenario import scenario

SHAPES = ((), (5,), (1,), (2, 3, 4), (0,), (0, 3), (2, 0, 3), (1,) * 32)
SIX = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)


def any_of(type_: int, shape: tuple[int, ...]) -> Tensor:
    """Make a tensor of a type and a shape with various bit patterns, including the extreme values of the type."""
    size = struct.calcsize(FORMS[type_])
    ends = b"\0" * size, b"\xff" * size, b"\0" * (size - 1) + b"\x80", b"\xff" * (size - 1) + b"\x7f"
    middle = bytes(range(1, size + 1)), bytes(range(255, 255 - size, -1))
    return Tensor(type_, shape, b"".join(islice(cycle((*ends, *middle)), math.prod(shape))))


@scenario("GT-23", "G-033", "G-038", "G-040", "G-049", "G-099", function="mirror")
async def every_type_and_shape(asker: Asker) -> None:
    """Tensors of each numeric type and any shape, from a scalar to 32 dimensions, come back bit by bit."""
    async with asker.connect() as connection:
        for type_ in NUMERIC:
            for shape in SHAPES:
                await _mirrors(asker, connection, any_of(type_, shape))


async def _mirrors(asker: Asker, connection: Connection, tensor: Tensor) -> None:
    await asker.send(connection, infer(tensor))
    asker.has_tensors(await connection.answer(), tensor)


@scenario("GT-24", "G-044", "G-049", function="mirror")
async def every_float16(asker: Asker) -> None:
    """All 65536 patterns of Float16 come back as they are, NaN among them."""
    every = Tensor(FLOAT16, (256, 256), struct.pack("<65536H", *range(65536)))
    await asker.gives(infer(every), every)


@scenario("G-049", function="mirror")
async def bits_of_floats(asker: Asker) -> None:
    """Signalling and negative NaN with payloads, -0.0, subnormals and infinities keep their bits."""
    singles = struct.pack("<6I", 0x7FC00001, 0x7F800001, 0xFFC12345, 0x80000000, 0x00000001, 0xFF800000)
    doubles = struct.pack("<4Q", 0x7FF8000000000001, 0x7FF0000000000001, 0x8000000000000000, 1)
    await asker.gives(infer(Tensor(FLOAT32, (6,), singles)), Tensor(FLOAT32, (6,), singles))
    await asker.gives(infer(Tensor(FLOAT64, (4,), doubles)), Tensor(FLOAT64, (4,), doubles))


@scenario("GT-23", "G-038", "G-099", function="mirror")
async def scalars(asker: Asker) -> None:
    """An absent or empty shape means a scalar; a scalar has exactly one element."""
    absent = Tensor(FLOAT32, None, struct.pack("<f", 7))
    await asker.gives(infer(absent), floats(7, shape=()))
    await asker.gives(infer(Tensor(STRING, None, strings=(b"word",))), strings(b"word", shape=()))
    for shape in (None, ()):
        await asker.refuses(infer(Tensor(FLOAT32, shape)), 10)
        await asker.refuses(infer(Tensor(FLOAT32, shape, bytes(8))), 10)
        await asker.refuses(infer(Tensor(STRING, shape)), 10)


@scenario("GT-25", "G-033", function="mirror")
async def data_length(asker: Asker) -> None:
    """Data that is too short, too long or absent is refused, and so is data of a tensor without elements."""
    for type_ in NUMERIC:
        right = any_of(type_, (2, 3)).data
        item = len(right) // 6
        for data in (right[:-1], right + b"\0", right[:-item], right + right[:item], b""):
            await asker.refuses(infer(Tensor(type_, (2, 3), data)), 10)
    await asker.refuses(infer(Tensor(FLOAT32, (0, 3), bytes(4))), 10)


@scenario("GT-26", "G-042", function="mirror")
async def sizes_that_overflow(asker: Asker) -> None:
    """Shapes whose product overflows 32 or 64 bits are computed exactly, and refused."""
    for shape in ((2**40, 2**40), (2**32, 2**32), (2**31, 2, 2**32), (2**62, 4), (2**63 - 1, 2), (2**62, 4, 1)):
        await asker.refuses(infer(Tensor(FLOAT32, shape, b"")), 10, 13)
    for size in (2**32 + 2, 2**62 + 2, 2**30 + 2):
        await asker.refuses(infer(Tensor(FLOAT32, (size,), bytes(8))), 10, 13)
    await asker.gives(infer(Tensor(FLOAT32, (2**31 - 1, 0))), Tensor(FLOAT32, (2**31 - 1, 0)))


@scenario("GT-27", "G-041", function="mirror")
async def negative_sizes(asker: Asker) -> None:
    """A shape with a negative size is refused, also -1, and also if two of them make the right product."""
    for shape in ((-1, 3), (-1,), (-(2**63),), (-2, -3), (0, -1)):
        await asker.refuses(infer(Tensor(FLOAT32, shape, bytes(24 * (shape == (-2, -3))))), 9)
    await asker.refuses(infer(Tensor(STRING, (-1,))), 9)


@scenario("GT-28", "G-034", "G-037", function="mirror")
async def data_and_strings(asker: Asker) -> None:
    """Data and strings in one tensor are refused, and so are strings of another type, and data of String."""
    for tensor in (
        Tensor(STRING, (1,), b"\0", (b"one",)),
        Tensor(FLOAT32, (1,), bytes(4), (b"one",)),
        Tensor(FLOAT32, (1,), b"", (b"one",)),
        Tensor(UINT8, (0,), b"", (b"one",)),
    ):
        await asker.refuses(infer(tensor), 11)
    await asker.refuses(infer(Tensor(STRING, (3,), b"one")), 10, 11)


@scenario("GT-29", "G-043", function="mirror")
async def types_that_are_none(asker: Asker) -> None:
    """A tensor of the type Null, of an id above 12, or without a type is refused, whatever it holds."""
    for type_ in (0, 13, 128, 255):
        for data in (b"", bytes(4)):
            await asker.refuses(infer(Tensor(type_, (1,), data)), 12)
    of = drafted(floats(1))
    built = of.built().patch(of.built().entry(of.tensors[0], 0), "H", 0)
    await asker.refuses(of.request(built, "without its type"), 12)


@scenario("GT-20", "G-035", "G-036", function="mirror")
async def strings_of_any_bytes(asker: Asker) -> None:
    """Strings come back unchanged, also with zeros, without bytes, or with invalid UTF-8."""
    every = (b"a\0", b"\0", b"", b"a\0b", b"\xff\xfe\xfd", "日本".encode(), b"\0" * 9, bytes(range(256)))
    await asker.gives(infer(strings(*every)), strings(*every))
    await asker.gives(infer(strings(*every, shape=(2, 2, 2))), strings(*every, shape=(2, 2, 2)))
    await asker.gives(infer(strings(b"x" * 100_000)), strings(b"x" * 100_000))
    await asker.gives(infer(strings(shape=(0, 3))), strings(shape=(0, 3)))


@scenario("G-035", function="mirror")
async def number_of_strings(asker: Asker) -> None:
    """A String tensor with fewer or more strings than its shape says is refused."""
    for shape, count in (((2, 2), 3), ((2, 2), 5), ((3,), 0), ((0,), 1)):
        await asker.refuses(infer(strings(*[b"s"] * count, shape=shape)), 10)


@scenario("GT-32", "G-045", function="flags")
async def arrays_are_aligned(asker: Asker) -> None:
    """A function gets aligned arrays that cannot be written, wherever the data lies in the buffer."""
    of = drafted(Tensor(FLOAT64, (3,), struct.pack("<3d", 1, 2, 3)))
    for is_odd in (False, True):
        request = of.request(assemble(of.root, is_odd=is_odd), f"at {'odd' if is_odd else 'aligned'} positions")
        await asker.gives(request, numbers(UINT8, (2,), (1, 1)))


@scenario("GT-30", "G-046", "G-048", function="layout")
async def layouts_of_outputs(asker: Asker) -> None:
    """Outputs come in row-major order, little-endian, whatever their memory; bool is Uint8, text String in UTF-8."""
    for kind in ("fortran", "transposed", "negative", "strided", "big-endian"):
        await asker.gives(infer(strings(kind.encode(), shape=())), floats(*SIX, shape=(2, 3)))
    await asker.gives(infer(strings(b"bool", shape=())), numbers(UINT8, (2, 3), (0, 1, 0, 1, 0, 1)))
    await asker.gives(infer(strings(b"text", shape=())), strings(b"a", "é".encode(), shape=(1, 2)))


@scenario("G-046", function="value")
async def outputs_that_are_no_arrays(asker: Asker) -> None:
    """An integer is Int64, a float Float64, a truth value Uint8, text and bytes String, lists of these a tensor."""
    expected = {
        "int": numbers(INT64, (), (-7,)),
        "float": numbers(FLOAT64, (), (0.5,)),
        "bool": numbers(UINT8, (), (1,)),
        "text": strings("é".encode(), shape=()),
        "bytes": strings(b"\xff\0", shape=()),
        "list": numbers(INT64, (2, 3), (1, 2, 3, 4, 5, 6)),
    }
    for kind, tensor in expected.items():
        await asker.gives(infer(strings(kind.encode(), shape=())), tensor)


@scenario("GT-31", "G-047", "G-065", function="odd")
async def outputs_that_are_no_tensors(asker: Asker) -> None:
    """Complex numbers, dates, records, objects, ragged, mixed and nested lists are bad outputs."""
    for kind in ("complex", "datetime", "structured", "objects", "ragged", "mixed", "nested"):
        await asker.refuses(infer(strings(kind.encode(), shape=())), 18)
