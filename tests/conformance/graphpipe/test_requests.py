"""Requests as the suite builds them, against the reference bytes of the catalogue and our own reader."""

from __future__ import annotations

import pytest

from invoker.tensors import InferRequest, MetadataRequest, read_request
from invoker_conformance.graphpipe.build import assemble
from invoker_conformance.graphpipe.requests import METADATA, REFERENCE, REFERENCE_TENSOR, drafted, infer, tensor_table
from invoker_conformance.graphpipe.tensors import NUMERIC, STRING, Tensor, floats, strings


def read(buffer: bytes) -> InferRequest:
    """A request, by a reader that is not the suite's."""
    found = read_request(buffer)
    assert isinstance(found, InferRequest)
    return found


def test_the_reference_requests() -> None:
    """Two that are known byte by byte: what they say."""
    assert len(METADATA.buffer) == 32
    assert isinstance(read_request(METADATA.buffer), MetadataRequest)
    (tensor,) = read(REFERENCE.buffer).tensors
    assert (tensor.type, tensor.shape, bytes(tensor.data)) == (10, (1, 2), REFERENCE_TENSOR.data)


def test_a_request_says_what_it_is_told() -> None:
    """Tensors, names, outputs and config."""
    request = infer(floats(1), strings(b"a\0"), names=("x", "é"), outputs=("out",), config=b"\0c")
    found = read(request.buffer)
    assert (found.input_names, found.output_names, found.config) == (("x", "é"), ("out",), b"\0c")
    assert (found.tensors[0].shape, found.tensors[1].data) == ((1,), [b"a\0"])
    assert str(request) == "I(['x', 'é']: Float32[1] (1), String[1] 'a\\x00' -> ['out']; config '\\x00c')"


@pytest.mark.parametrize("type_", [*NUMERIC, STRING])
def test_every_type(type_: int) -> None:
    """A tensor without elements of each type is one."""
    (tensor,) = read(infer(Tensor(type_, (0, 2))).buffer).tensors
    assert (tensor.type, tensor.shape) == (type_, (0, 2))


def test_wherever_parts_lie() -> None:
    """Odd positions and late vtables say the same."""
    of = drafted(floats(1, 2), names=("x",))
    for built in (of.built(), assemble(of.root, is_odd=True), assemble(of.root, has_late_vtables=True)):
        (tensor,) = read(bytes(built)).tensors
        assert bytes(tensor.data) == floats(1, 2).data


def test_strings_as_go_writes_them() -> None:
    """Without zeros, and aligned to four bytes."""
    of = drafted(tensor_table(strings(b"one", b"four"), has_zeros=False))
    assert read(bytes(of.built())).tensors[0].data == [b"one", b"four"]
    assert b"one\0" + b"\4\0\0\0four" in bytes(of.built())  # padding, then the next count
    assert b"four\0" not in bytes(of.built()).rstrip(b"\0")


def test_parts_are_at_hand() -> None:
    """What a scenario breaks."""
    of = drafted(floats(1), config=b"c")
    built = of.built()
    assert built.places[of.of_tensor(2)] > built.places[of.tensors[0]]
    assert of.request(built, "with a fault").text == "I(Float32[1] (1); config 'c'), with a fault"
    with pytest.raises(TypeError, match="not a vector"):
        of.of_tensor(0)
