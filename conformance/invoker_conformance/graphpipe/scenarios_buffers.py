"""Invalid buffers: each has one fault, and must not be read beyond its end. Catalogue 2.2."""

from __future__ import annotations

import random
import struct

from invoker_conformance.graphpipe.asker import Asker
from invoker_conformance.graphpipe.build import Built, Number, References, Table, Vector, assemble
from invoker_conformance.graphpipe.read import Unreadable, read_metadata
from invoker_conformance.graphpipe.requests import (
    METADATA,
    REFERENCE,
    REFERENCE_TENSOR,
    Draft,
    Request,
    drafted,
)
from invoker_conformance.graphpipe.scenarios_door import GARBAGE
from invoker_conformance.graphpipe.tensors import floats, strings
from invoker_conformance.http import Answer
from invoker_conformance.scenario import scenario

_SEED = 20170522
_FLIPS = 600
_FAR = 0x7FFFFFF0


def draft() -> Draft:
    """Make an inference for ``mirror`` that uses every slot."""
    return drafted(floats(1, 2, 3), names=("x",), config=b"config")


async def _are_malformed(asker: Asker, broken: dict[str, Built | bytes], of: Draft | None = None) -> None:
    """Check that each of these buffers is E1, on one connection, which still works afterwards."""
    said = (of or draft()).text
    async with asker.connect() as connection:
        for how, built in broken.items():
            request = Request(bytes(built), f"{said} with {how}" if isinstance(built, Built) else how)
            await asker.send(connection, request)
            asker.has_error(await connection.answer(), 1)
        await asker.send(connection, REFERENCE)
        asker.has_tensors(await connection.answer(), REFERENCE_TENSOR)


@scenario("GT-11", "G-003", "G-021", "G-032", function="mirror")
async def no_buffer(asker: Asker) -> None:
    """An empty body, three bytes, a root position alone, 100 bytes of 0xFF, and JSON are all malformed."""
    bodies = (b"", b"\4\0\0", struct.pack("<I", 4), b'{"inputs": [1, 2]}')
    broken: dict[str, Built | bytes] = {repr(body)[1:]: body for body in bodies}
    await _are_malformed(asker, {**broken, GARBAGE.text: GARBAGE.buffer})


@scenario("GT-12", "G-021", function="mirror")
async def root_astray(asker: Asker) -> None:
    """A root whose position is the end, beyond the end, far away or 0 is malformed."""
    size = len(draft().built().data)
    places = (size, size - 2, size + 4, _FAR, 2**32 - 4, 0)
    await _are_malformed(asker, {f"the root at {each}": draft().built().patch(0, "I", each) for each in places})


@scenario("GT-13", "G-021", function="mirror")
async def vtable_astray(asker: Asker) -> None:
    """A vtable outside of the buffer, of an odd size, too small or too large is refused.

    So is a table that is too large.
    """
    broken: dict[str, Built | bytes] = {}
    for name in ("root", "infer", "tensor"):
        of = draft()
        table = {"root": of.root, "infer": of.infer, "tensor": of.tensors[0]}[name]
        built = of.built()
        place, vtable = built.places[table], built.vtables[table]
        for distance in (place + 4, 2**31 - 1, place - len(built.data), -(2**31)):
            broken[f"the vtable of {name} {distance} bytes before it"] = of.built().patch(place, "i", distance)
        for size in (5, 2, 0, 65534):
            broken[f"{size} bytes of vtable of {name}"] = of.built().patch(vtable, "H", size)
        for size in (3, 0, 65535):
            broken[f"{size} bytes of {name}"] = of.built().patch(vtable + 2, "H", size)
    await _are_malformed(asker, broken)


@scenario("GT-13", "G-021", function="mirror")
async def vtable_behind_its_table(asker: Asker) -> None:
    """A vtable may follow its table: the distance is signed."""
    late = assemble(draft().root, has_late_vtables=True)
    await asker.gives(draft().request(late, "vtables behind tables"), floats(1, 2, 3))


@scenario("GT-14", "G-021", function="mirror")
async def field_outside_its_table(asker: Asker) -> None:
    """A vtable that puts a field after its table, across its end, or before its fields is refused."""
    broken: dict[str, Built | bytes] = {}
    for name, slots in (("root", (0, 1)), ("infer", (0, 1, 2)), ("tensor", (0, 1, 2))):
        of = draft()
        table = {"root": of.root, "infer": of.infer, "tensor": of.tensors[0]}[name]
        (size,) = struct.unpack_from("<H", of.built().data, of.built().vtables[table] + 2)
        for slot in slots:
            is_byte = isinstance(table.fields[slot], Number)
            for offset in (size if is_byte else size - 2, 65535, 2):
                entry = of.built().entry(table, slot)
                broken[f"field {slot} of {name} at {offset} of {size}"] = of.built().patch(entry, "H", offset)
    await _are_malformed(asker, broken)


@scenario("GT-15", "G-021", "G-042", function="mirror")
async def counts_beyond_the_end(asker: Asker) -> None:
    """Vectors and strings that claim more elements than there are bytes are malformed, also if the size wraps."""
    of = drafted(floats(1, 2, 3), names=("x",), outputs=("output0",), config=b"config")
    vectors = {
        "config": of.infer.fields[0],
        "the input names": of.part(1),
        "the tensors": of.part(2),
        "the output names": of.part(3),
        "the shape": of.of_tensor(1),
        "the data": of.of_tensor(2),
    }
    broken: dict[str, Built | bytes] = {}
    for name, vector in vectors.items():
        built = of.built()
        assert isinstance(vector, Vector | References)
        for count in (0x7FFFFFFF, 0xFFFFFFFF, 0x20000001, 0x40000001, len(built.data)):
            broken[f"{count} elements of {name}"] = of.built().patch(built.places[vector], "I", count)
    first = of.part(1)
    assert isinstance(first, References)
    broken["a name of 2^31-1 bytes"] = of.built().patch(of.built().places[first.targets[0]], "I", 0x7FFFFFFF)
    await _are_malformed(asker, broken, of)


@scenario("GT-15", "G-021", "G-035", function="mirror")
async def strings_beyond_the_end(asker: Asker) -> None:
    """A String tensor whose elements, or their number, reach beyond the end is refused."""
    of = drafted(strings(b"one", b"two"))
    vector = of.of_tensor(3)
    assert isinstance(vector, References)
    built = of.built()
    last = built.places[vector.targets[1]]
    broken: dict[str, Built | bytes] = {
        "a string of 2^31-1 bytes": of.built().patch(last, "I", 0x7FFFFFFF),
        "a string one byte too long": of.built().patch(last, "I", len(built.data) - last - 3),
        "2^32-1 strings": of.built().patch(built.places[vector], "I", 0xFFFFFFFF),
        "a string far away": of.built().patch(built.places[vector] + 8, "I", _FAR),
        "a string across the end": of.built().point(built.places[vector] + 8, len(built.data) - 2),
    }
    await _are_malformed(asker, broken, of)


@scenario("GT-16", "G-021", function="mirror")
async def references_astray(asker: Asker) -> None:
    """References to themselves, to the end, across it, far away or backwards are malformed."""
    broken: dict[str, Built | bytes] = {}
    of = draft()
    built = of.built()
    size = len(built.data)
    places = {
        "the union": built.at(of.root, 1),
        "the names": built.at(of.infer, 1),
        "the tensors": built.at(of.infer, 2),
        "the config": built.at(of.infer, 0),
        "the first tensor": built.places[of.part(2)] + 4,
        "the first name": built.places[of.part(1)] + 4,
        "the shape": built.at(of.tensors[0], 1),
        "the data": built.at(of.tensors[0], 2),
    }
    for name, place in places.items():
        aims = [("the end", size), ("across the end", size - 2), ("far", place + _FAR)]
        if name != "the first name":  # G-053: a reference to itself is a name that was never set
            aims.append(("itself", place))
        for how, target in aims:
            broken[f"the reference to {name} to {how}"] = of.built().point(place, target)
        broken[f"the reference to {name} backwards"] = of.built().point(place, 0)
    await _are_malformed(asker, broken)


@scenario("G-021", "G-032", function="mirror")
async def every_prefix(asker: Asker) -> None:
    """A buffer that is cut off, at whatever byte, is malformed; only its last bytes may be padding."""
    whole = draft().built()
    sizes = range(len(whole.data) - 16)
    await _are_malformed(asker, {f"the first {size} bytes of {draft().text}": bytes(whole)[:size] for size in sizes})


@scenario("GT-60", "G-021", function="mirror")
async def union_points_at_its_request(asker: Asker) -> None:
    """A Request that is read as its own InferRequest is refused, whatever it contains."""
    of = draft()
    built = of.built()
    built.point(built.at(of.root, 1), built.places[of.root])
    await asker.refuses(of.request(built, "whose union is the Request itself"), *range(1, 14))
    inner = Table({0: Number("B", 1)})
    loop = assemble(Table({0: Number("B", 1), 1: inner}))
    loop.patch(loop.vtables[inner] + 2, "H", 4)
    await asker.refuses(Request(bytes(loop), "I() whose field lies behind its table"), *range(1, 14))
    await asker.survives()


@scenario("GT-18", "G-032", "G-021", function="mirror")
async def random_changes(asker: Asker) -> None:
    """Each of hundreds of requests with some bytes changed is answered with tensors, metadata or an error."""
    chosen = random.Random(_SEED)  # the same numbers in each run
    several = [bytes(drafted(floats(1, 2), strings(b"a", b"b"), names=("x", "y")).built()), bytes(draft().built())]
    several += [REFERENCE.buffer, METADATA.buffer]
    async with asker.connect() as connection:
        for number in range(_FLIPS):
            body = bytearray(several[number % len(several)])
            for _ in range(chosen.choice((1, 1, 1, 2, 4))):
                body[chosen.randrange(len(body))] = chosen.choice((0, 1, 4, 0x7F, 0x80, 0xFF, chosen.randrange(256)))
            request = Request(bytes(body), f"{number}: {bytes(body).hex()}")
            await asker.send(connection, request)
            answer = await connection.answer()
            if answer.header("x-graphpipe-error") is not None:
                asker.has_error(answer, *range(1, 14))
            elif not _is_metadata(answer):
                asker.checked(answer)
    await asker.gives(REFERENCE, REFERENCE_TENSOR)


def _is_metadata(answer: Answer) -> bool:
    try:
        read_metadata(answer.body)
    except Unreadable:
        return False
    return answer.status == 200
