"""The reader of answers: it takes what is right, and says what is wrong with everything else."""

from __future__ import annotations

import struct

import pytest

from invoker_conformance.graphpipe.build import Field, Number, References, Table, Vector, assemble, text
from invoker_conformance.graphpipe.read import Port, Unreadable, read_inferred, read_metadata
from invoker_conformance.graphpipe.requests import REFERENCE_TENSOR, tensor_table
from invoker_conformance.graphpipe.tensors import Tensor, floats, strings

# docs/reference/graphpipe.md 1.3
TENSOR = bytes.fromhex(
    "0c00000000000600080004000600000004000000010000001000000000000a0010000f00080004000a0000000c000000140000000000000a"
    "080000000000803f000000400200000001000000000000000200000000000000"
)
ERROR = bytes.fromhex(
    "100000000000000008000800000004000800000004000000010000000c000000080014000800040008000000100000000300000000000000"
    "00000000050000006e616d6573000000"
)


def inferred(*tensors: Table) -> bytes:
    """An InferResponse."""
    return bytes(assemble(Table({0: References(tensors)})))


def test_the_reference_answers() -> None:
    """What the stock builder writes."""
    assert read_inferred(TENSOR).tensors == (REFERENCE_TENSOR,)
    assert read_inferred(ERROR).errors == ((3, "names"),)


def test_tensors_as_they_are_built() -> None:
    """Numbers, strings with and without zeros behind them, scalars, and those without elements."""
    several = floats(1, 2), strings(b"a\0", b""), floats(3, shape=()), floats(shape=(0, 3))
    assert read_inferred(inferred(*map(tensor_table, several))).tensors == several
    assert read_inferred(inferred(tensor_table(several[1], has_zeros=False))).tensors == (several[1],)


def test_every_prefix_is_refused() -> None:
    """And none leads to another error than ours."""
    for size in range(len(TENSOR)):
        with pytest.raises(Unreadable):
            read_inferred(TENSOR[:size])


def test_every_changed_byte_is_read_or_refused() -> None:
    """Whatever it says, nothing else is raised."""
    for whole in (TENSOR, ERROR):
        for at in range(len(whole)):
            for value in (0, 1, 0x7F, 0x80, 0xFF):
                changed = bytearray(whole)
                changed[at] = value
                try:
                    read_inferred(bytes(changed))
                except Unreadable:
                    continue


@pytest.mark.parametrize(
    ("tensor", "problem"),
    [
        (Tensor(0, (1,), b"\0"), "the type Null"),
        (Tensor(13, (1,), b"\0"), "type 13"),
        (Tensor(10, (2,), bytes(4)), "4 bytes of data"),
        (Tensor(10, (-1,), b""), r"the shape \[-1\]"),
        (Tensor(10, None, bytes(4)), "no vector for its shape"),
        (Tensor(10, (1,), bytes(4), (b"a",)), "1 strings"),
        (Tensor(12, (2,), strings=(b"a",)), "1 strings"),
        (Tensor(1, (1,) * 33, b"\0"), "the shape"),
    ],
)
def test_what_no_tensor_can_be(tensor: Tensor, problem: str) -> None:
    """A server must not send it."""
    with pytest.raises(Unreadable, match=problem):
        read_inferred(inferred(tensor_table(tensor)))


def test_misaligned_answers_are_refused() -> None:
    """Clients in other languages read numbers where they stand."""
    root = Table({0: References([tensor_table(floats(1, 2))])})
    with pytest.raises(Unreadable, match="not aligned"):
        read_inferred(bytes(assemble(root, is_odd=True)))


def test_messages_end_with_zero_and_are_text() -> None:
    """As strings of FlatBuffers do."""
    for message, problem in ((Vector(b"abcd", tail=b"x"), "end with a zero"), (text(b"\xff"), "not UTF-8")):
        with pytest.raises(Unreadable, match=problem):
            read_inferred(bytes(assemble(Table({1: References([Table({1: message})])}))))


def port(fields: dict[int, Field]) -> bytes:
    """Metadata with one input."""
    root = Table({0: text("m"), 4: References([Table(fields)]), 5: References([])})
    return bytes(assemble(root))


def test_metadata_are_read() -> None:
    """Every field of them."""
    shape = Vector(struct.pack("<2q", -1, 3), 8)
    found = read_metadata(port({0: text("x"), 1: text("about"), 2: shape, 3: Number("B", 10)}))
    assert (found.name, found.version, found.outputs) == ("m", "", ())
    assert found.inputs == (Port("x", "about", (-1, 3), 10),)


def test_metadata_lack_nothing() -> None:
    """Vectors, names and shapes are there, even where they are empty."""
    shape = Vector(b"", 8)
    with pytest.raises(Unreadable, match="no name"):
        read_metadata(port({2: shape}))
    with pytest.raises(Unreadable, match="no vector for its shape"):
        read_metadata(port({0: text("x")}))
    with pytest.raises(Unreadable, match="no vector of outputs"):
        read_metadata(bytes(assemble(Table({0: text("m"), 4: References([])}))))
