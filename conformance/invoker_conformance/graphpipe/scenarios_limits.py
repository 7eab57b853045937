"""Limits: requests that are small on the wire and large in memory, and requests that are just small enough.

Catalogue 2.1, 2.2.
"""

from __future__ import annotations

from invoker_conformance.graphpipe.asker import Asker
from invoker_conformance.graphpipe.build import Number, References, Table, Vector, assemble, text
from invoker_conformance.graphpipe.requests import REFERENCE, REFERENCE_TENSOR, Request, drafted, infer, tensor_table
from invoker_conformance.graphpipe.rules import told
from invoker_conformance.graphpipe.tensors import STRING, UINT8, Tensor, floats, numbers
from invoker_conformance.scenario import Failure, scenario

_TENSORS, _NAMES, _RANK, _STRINGS = 1024, 1024, 32, 1_000_000
_REFERENCES = 1000


@scenario("G-004", "G-026", function="mirror")
async def body_at_the_limit(asker: Asker) -> None:
    """A body of exactly the limit is taken, one byte more is refused."""
    body = REFERENCE.buffer.ljust(asker.facts.limit_bytes, b"\0")
    await asker.gives(Request(body, f"{REFERENCE} and zeros, {len(body)} bytes"), REFERENCE_TENSOR)
    await asker.refuses(Request(body + b"\0", f"{REFERENCE} and zeros, {len(body) + 1} bytes"), 13)
    await asker.survives()


@scenario("GT-17", "G-025", "G-080", function="mirror")
async def many_references_to_a_large_tensor(asker: Asker) -> None:
    """A large tensor that a request refers to a thousand times counts a thousand times against the limit."""
    size = asker.facts.limit_bytes // 16 * 15
    tensor = tensor_table(Tensor(UINT8, (size,), bytes(size)))
    built = assemble(drafted(*[tensor] * _REFERENCES).root)
    await asker.refuses(Request(bytes(built), f"I({_REFERENCES} times the same Uint8[{size}])"), 13)
    await asker.survives()


@scenario("GT-17", "G-025", function="mirror")
async def many_references_to_small_things(asker: Asker) -> None:
    """More tensors, names or strings than allowed are too large, even if all of them are the same one."""
    one = tensor_table(floats(1))
    tensors = drafted(*[one] * (_TENSORS + 1))
    await asker.refuses(Request(bytes(tensors.built()), f"I({_TENSORS + 1} times the same tensor)"), 13)
    names = References([text("x")] * (_NAMES + 1))
    for slot, of in ((1, "inputs"), (3, "outputs")):
        inner = Table({2: References([one]), slot: names})
        request = Request(bytes(assemble(Table({0: Number("B", 1), 1: inner}))), f"{_NAMES + 1} names of {of}")
        await asker.refuses(request, *((3, 13) if slot == 1 else (13,)))
    strings = References([text(b"s")] * (_STRINGS + 1))
    shape = Vector((_STRINGS + 1).to_bytes(8, "little"), 8)
    of_strings = drafted(Table({0: Number("B", STRING), 1: shape, 3: strings}))
    await asker.refuses(Request(bytes(of_strings.built()), f"I(String[{_STRINGS + 1}], all the same)"), 13)


@scenario("GT-17", "G-025", "G-035", function="mirror")
async def many_references_to_a_long_string(asker: Asker) -> None:
    """Strings that share their bytes count each time against the limit, since each of them is decoded."""
    size = asker.facts.limit_bytes // 8
    strings = References([text(b"s" * size)] * 64)
    tensor = Table({0: Number("B", STRING), 1: Vector((64).to_bytes(8, "little"), 8), 3: strings})
    await asker.refuses(Request(bytes(drafted(tensor).built()), f"I(String[64], all the same {size} bytes)"), 13)


@scenario("G-025", function="mirror")
async def rank(asker: Asker) -> None:
    """More than 32 dimensions are too many, also if all of them are 1."""
    await asker.refuses(infer(Tensor(UINT8, (1,) * (_RANK + 1), b"\0")), 13, 9)
    shape = Vector((1).to_bytes(8, "little") * 100_000, 8)
    tensor = Table({0: Number("B", UINT8), 1: shape, 2: Vector(b"\0")})
    await asker.refuses(Request(bytes(drafted(tensor).built()), "I(Uint8 of 100000 dimensions)"), 13, 9)


@scenario("G-025", "G-057", function="mirror")
async def many_times_the_same_output(asker: Asker) -> None:
    """A large output that is requested a thousand times is refused, or its data is shared.

    An output that is requested twice comes twice.
    """
    tensor = Tensor(UINT8, (asker.facts.limit_bytes // 4,), bytes(asker.facts.limit_bytes // 4))
    await asker.gives(infer(tensor, outputs=("output0",) * 2), tensor, tensor)
    of = drafted(tensor, outputs=["output0"] * _REFERENCES)
    answer = await asker.ask(Request(of.request().buffer, f"I({tensor} -> {_REFERENCES} times output0)"))
    found = asker.checked(answer)
    if found.errors:
        asker.has_error(answer, 13, 18)
    elif found.tensors != (tensor,) * _REFERENCES or len(answer.body) > 4 * asker.facts.limit_bytes:
        met = f"{len(found.tensors)} tensors in {len(answer.body)} bytes"
        raise Failure(met, f"{_REFERENCES} that share their data, or {told([13, 18])}", answer.sent)
    await asker.survives()


@scenario("G-030", "G-054", "G-083", function="mirror")
async def names_of_a_mebibyte(asker: Asker) -> None:
    """A name of 1 MiB is unknown, and the message about it is short."""
    name = "x" * min(asker.facts.limit_bytes // 2, 1 << 20)
    one = floats(1)
    await asker.refuses(Request(infer(one, names=(name,)).buffer, f"I({len(name)} times x: {one})"), 4)
    await asker.refuses(Request(infer(one, outputs=(name,)).buffer, f"I({one} -> {len(name)} times x)"), 5)


@scenario("GT-61", "G-025", "G-051", function="mirror")
async def a_million_empty_names(asker: Asker) -> None:
    """2^20 empty names without a tensor are refused, as too many or as more than the tensors."""
    names = References([text("")] * 2**20)
    inner = Table({1: names})
    request = Request(bytes(assemble(Table({0: Number("B", 1), 1: inner}))), "I(2^20 empty names, no tensors)")
    await asker.refuses(request, 3, 13)
    await asker.survives()


@scenario("G-033", "G-002", function="mirror")
async def large_tensor(asker: Asker) -> None:
    """A tensor of half the limit comes back bit by bit."""
    size = asker.facts.limit_bytes // 2
    tensor = Tensor(UINT8, (2, size // 2), bytes(range(256)) * (size // 256))
    await asker.gives(infer(tensor), tensor)


@scenario("G-055", "G-025", function="mirror")
async def many_tensors_for_one_input(asker: Asker) -> None:
    """More tensors than the model has inputs, but not more than allowed, are an error about an unknown input."""
    await asker.refuses(infer(*[tensor_table(numbers(UINT8, (), (1,)))] * _TENSORS), 4)
