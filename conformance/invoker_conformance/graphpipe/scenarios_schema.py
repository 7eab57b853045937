"""Unusual but valid buffers: positions, newer schemas, sharing; and types of requests. Catalogue 2.2."""

from __future__ import annotations

import struct

from invoker_conformance.graphpipe.asker import Asker
from invoker_conformance.graphpipe.build import Field, Number, References, Table, Vector, assemble, text
from invoker_conformance.graphpipe.requests import REFERENCE, REFERENCE_TENSOR, Request, drafted, infer, tensor_table
from invoker_conformance.graphpipe.scenarios_buffers import draft
from invoker_conformance.graphpipe.tensors import floats, strings
from invoker_conformance.scenario import Failure, scenario


@scenario("GT-32", "G-024", function="mirror")
async def odd_positions(asker: Asker) -> None:
    """A buffer whose parts are all at odd positions is accepted like an aligned one."""
    of = drafted(floats(1, 2, 3), names=("x",), config=b"config")
    await asker.gives(of.request(assemble(of.root, is_odd=True), "all at odd positions"), floats(1, 2, 3))
    for shift in range(1, 8):
        data = b"\0" * shift
        shifted = assemble(Table({**of.root.fields, 9: Vector(data)}), is_odd=bool(shift % 2))
        await asker.gives(Request(bytes(shifted), f"{of.text}, moved by {shift}"), floats(1, 2, 3))


@scenario("GT-21", "G-027", function="mirror")
async def unknown_slots(asker: Asker) -> None:
    """Slots of a newer schema are ignored, in the request, the inference and the tensors."""
    of = draft()
    extra: dict[int, Field] = {7: Number("q", -1), 8: text("new"), 11: Number("B", 255)}
    tensor = Table({**of.tensors[0].fields, **extra})
    inner = Table({**of.infer.fields, 2: References([tensor]), **extra})
    built = assemble(Table({**of.root.fields, 1: inner, **extra}))
    await asker.gives(of.request(built, "and unknown slots"), floats(1, 2, 3))


@scenario("G-026", function="mirror")
async def trailing_bytes(asker: Asker) -> None:
    """Bytes after the last object are ignored."""
    for tail in (b"\0", b"\xff" * 100, REFERENCE.buffer):
        await asker.gives(Request(REFERENCE.buffer + tail, f"{REFERENCE} and {len(tail)} bytes"), REFERENCE_TENSOR)


@scenario("GT-22", "G-028", "G-027", "G-080", function="mirror")
async def request_types(asker: Asker) -> None:
    """An unknown type, or an absent inference, is a bad request type."""
    of = draft()
    for kind in (0, 3, 255):
        built = of.built()
        await asker.refuses(of.request(built.patch(built.at(of.root, 0), "B", kind), f"of type {kind}"), 2)
    absent = Request(bytes(assemble(Table({0: Number("B", 1)}))), "type 1 without an InferRequest")
    untyped = Request(bytes(assemble(Table({1: of.infer}))), "an InferRequest without type")
    empty = Request(bytes(assemble(Table({}))), "a Request without fields")
    for request in (absent, untyped, empty):
        await asker.refuses(request, 2)


@scenario("GT-01", "G-029", function="mirror")
async def metadata_without_table(asker: Asker) -> None:
    """A request of type 2 without a MetadataRequest asks for metadata."""
    bare = Request(bytes(assemble(Table({0: Number("B", 2)}))), "type 2 without a MetadataRequest")
    if (found := await asker.metadata(bare)) != (wanted := await asker.metadata()):
        raise Failure(str(found), str(wanted), bare.text)


@scenario("G-030", function="mirror")
async def names_that_are_no_text(asker: Asker) -> None:
    """A name of an input or an output that is not UTF-8 is malformed."""
    for raw in (b"\xff", b"x\x80", b"\xed\xa0\x80", b"\xc3"):
        await asker.refuses(infer(floats(1), names=(raw,)), 1)
        await asker.refuses(infer(floats(1), outputs=(raw,)), 1)


@scenario("GT-19", "G-023", function="mirror")
async def strings_without_zero(asker: Asker) -> None:
    """Strings as Go writes them, vectors of bytes without the zero, are as good as others."""
    tensor = strings(b"one", b"", b"seven77", b"four")
    of = drafted(tensor_table(tensor, has_zeros=False))
    await asker.gives(Request(bytes(of.built()), f"I({tensor}), as Go writes it"), tensor)
    named = drafted(floats(1), names=("x",))
    part = named.part(1)
    assert isinstance(part, References)
    built = assemble(Table({**named.root.fields, 1: Table({**named.infer.fields, 1: References([Vector(b"x")])})}))
    await asker.gives(named.request(built, "the name without its zero"), floats(1))


@scenario("GT-63", "G-025", function="arithmetic")
async def one_tensor_twice(asker: Asker) -> None:
    """Two inputs that share one tensor get equal arrays."""
    shared = drafted(floats(1, 2, 3)).tensors[0]
    request = infer(shared, shared, names=("left", "right"))
    await asker.gives(request, floats(2, 4, 6), floats(0, 0, 0), floats(1, 4, 9))


@scenario("GT-62", "G-025", "G-035", function="mirror")
async def strings_that_overlap(asker: Asker) -> None:
    """Strings that share bytes are legal: one that begins within another, or one that occurs twice."""
    inner = struct.pack("<I", 3) + b"abc"
    of = drafted(strings(b"1234" + inner, b"second", b"third"))
    vector = of.of_tensor(3)
    assert isinstance(vector, References)
    built = of.built()
    outer = built.places[vector.targets[0]]
    built.point(built.places[vector] + 8, outer + 8).point(built.places[vector] + 12, outer)
    await asker.gives(of.request(built, "strings that overlap"), strings(b"1234" + inner, b"abc", b"1234" + inner))
