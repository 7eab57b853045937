"""`invoker.tensors.writer`: what we write is what others read."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from invoker.tensors import (
    METADATA_REQUEST,
    Code,
    GraphPipeError,
    InferRequest,
    IOMetadata,
    MetadataResponse,
    RemoteError,
    Tensor,
    TensorType,
    read_infer_response,
    read_metadata_response,
    read_request,
    write_error_response,
    write_infer_response,
    write_metadata_response,
    write_request,
    write_tensor,
)
from invoker.tensors.arrays import to_tensor
from invoker.tensors.flat import Flat
from tests.tensors.samples import ARRAYS, LIMIT, METADATA, OWN, fixture, numbers

_NAMES = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), max_size=4).map(tuple)
_STRINGS = st.lists(st.binary(max_size=9), max_size=6).map(lambda some: Tensor(TensorType.STRING, (len(some),), some))
_TENSORS = st.lists(ARRAYS.map(to_tensor) | _STRINGS, max_size=4).map(tuple)


@pytest.mark.parametrize("name", OWN)
def test_GT47_GT55_bytes_that_the_python_client_has_read(name: str) -> None:
    """They are written as they were then: tests/data/graphpipe/README.md."""
    assert OWN[name] == fixture(f"own_{name}")


def test_the_request_for_metadata_is_that_of_others() -> None:
    """Byte by byte."""
    assert fixture("metadata_request") == fixture("py_metadata_request") == METADATA_REQUEST


@settings(deadline=None)
@given(_TENSORS, _NAMES, st.binary(max_size=20), st.booleans())
def test_requests_round_trip(tensors: tuple[Tensor, ...], names: tuple[str, ...], config: bytes, named: bool) -> None:
    """Whatever is in them."""
    inputs = tuple(f"é{index}" for index in range(len(tensors))) if named else ()
    request = InferRequest(tensors, inputs, names, config)
    assert read_request(bytes(write_request(request)), LIMIT) == request


@settings(deadline=None)
@given(_TENSORS)
def test_responses_round_trip(tensors: tuple[Tensor, ...]) -> None:
    """Pieces are the buffer."""
    written = write_infer_response(tensors)
    whole = bytes(written)
    assert len(whole) == written.size
    found = read_infer_response(whole, LIMIT)
    assert (found.tensors, found.errors) == (tensors, ())


def test_G064_tensors_or_errors() -> None:
    """The vector that is not meant is absent, also where the other is empty."""
    for whole, slot in ((bytes(write_infer_response([])), 0), (write_error_response([]), 1)):
        root = Flat(whole).root()
        assert root.target(slot)
        assert not root.target(1 - slot)


def test_G099_a_shape_is_always_written() -> None:
    """The scalar's is empty, and there."""
    root = Flat(bytes(write_tensor(to_tensor(1.5)))).root()
    assert root.target(1)
    assert root.vector(1, 8)[1] == 0
    empty = Flat(bytes(write_tensor(numbers(TensorType.INT8, (0,))))).root()
    assert empty.target(2)


def test_G084_several_errors() -> None:
    """The first is the one that counts."""
    several = [GraphPipeError(Code.SHAPE, "x"), GraphPipeError(Code.TYPE_MISMATCH, "y" * 9000)]
    found = read_infer_response(write_error_response(several)).errors
    assert found[0] == RemoteError(9, "GraphPipe: Bad Shape: x")
    assert found[1].code == 8
    assert len(found[1].message) == 4096
    assert read_infer_response(write_error_response(several[0])).errors == found[:1]


def test_an_error_is_aligned() -> None:
    """Its number has eight bytes."""
    for text in ("", "x", "xxxx"):
        whole = write_error_response([GraphPipeError(Code.SHAPE, text)] * 2)
        at = [one for one in range(len(whole)) if whole[one : one + 8] == struct.pack("<q", 9)]
        assert len(at) == 2
        assert all(one % 8 == 0 for one in at)


def test_metadata_round_trips() -> None:
    """In order, each with name, shape and type."""
    whole = write_metadata_response(METADATA)
    assert read_metadata_response(whole, LIMIT) == METADATA
    root = Flat(write_metadata_response(MetadataResponse())).root()
    assert all(root.target(slot) for slot in range(6))
    assert read_metadata_response(write_metadata_response(MetadataResponse(inputs=(IOMetadata("\ud800"),)))).inputs == (
        IOMetadata("?"),
    )
