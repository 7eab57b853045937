"""`invoker.tensors.messages`: requests and responses, of this and of other programs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from invoker.tensors import (
    Code,
    GraphPipeError,
    InferRequest,
    InferResponse,
    MetadataRequest,
    RemoteError,
    Tensor,
    TensorType,
    listing,
    read_infer_response,
    read_metadata_response,
    read_request,
)
from invoker.tensors.arrays import to_array, to_tensor
from tests.tensors.samples import LIMIT, METADATA, NUMERIC, Raw, code_of, fixture, numbers, request

PAIR = to_tensor(np.array([[1, 2]], "<f4"))
SINGLE = to_tensor(np.array([1, 2], "<f4"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("metadata_request", MetadataRequest()),
        ("py_metadata_request", MetadataRequest()),
        ("infer_request", InferRequest((PAIR,))),
        ("py_float32", InferRequest((PAIR,))),
        ("py_scalar", InferRequest((to_tensor(7),))),
        ("py_strings", InferRequest(
            (to_tensor([b"one", b"t\0x", "é"]),), ("words",), ("a", "b"), b'{"k": 1}')),
        ("go_float32", InferRequest((PAIR,))),
        ("go_named", InferRequest((SINGLE, to_tensor([-3])), ("x", "n"), ("y",))),
        ("go_strings", InferRequest((to_tensor(["a", "", "four"]),), ("words",))),
        ("go_empty", InferRequest((to_tensor(np.zeros((0, 3), "f4")),))),
    ],
)  # fmt: skip
def test_requests_of_others(name: str, expected: object) -> None:
    """Bytes of the Python and of the Go client: tests/data/graphpipe."""
    assert read_request(fixture(name), LIMIT) == expected


def test_each_type_that_go_sends() -> None:
    """Ten of them."""
    found = read_request(fixture("go_all_types"), LIMIT)
    assert isinstance(found, InferRequest)
    types = [one for one in NUMERIC if one is not TensorType.FLOAT16]
    assert [one.type for one in found.tensors] == types
    assert found.input_names == tuple(f"in{one}" for one in types)
    assert all(to_array(one).tolist() == [0, 1, 100] for one in found.tensors)


def test_G044_GT24_float16_with_its_nan() -> None:
    """Bit by bit."""
    found = read_request(fixture("py_float16"), LIMIT)
    assert isinstance(found, InferRequest)
    assert bytes(found.tensors[0].data) == np.array([1.5, np.nan], "<f2").tobytes()


@pytest.mark.parametrize("kind", [0, 3, 255])
def test_G028_GT22_a_request_of_no_type(kind: int) -> None:
    """NONE, and what is unknown."""
    changed = bytearray(fixture("infer_request"))
    changed[16 + 9] = kind
    assert code_of(bytes(changed)) is Code.REQUEST_TYPE
    raw = Raw()
    assert code_of(raw.root(raw.table([]))) is Code.REQUEST_TYPE


def test_G028_GT22_an_inference_that_is_absent() -> None:
    """The type alone is not enough."""
    raw = Raw()
    assert code_of(raw.root(raw.table([b"\1\0\0\0"]))) is Code.REQUEST_TYPE


def test_G029_a_request_for_metadata_needs_no_table() -> None:
    """It would have no fields; if there is one it must be a table."""
    raw = Raw()
    assert read_request(raw.root(raw.table([b"\2\0\0\0"])), LIMIT) == MetadataRequest()
    raw = Raw()
    root = raw.table([b"\2\0\0\0", b"\xff" * 4])
    assert code_of(raw.root(root)) is Code.MALFORMED


@pytest.mark.parametrize("slot", [1, 3])
def test_G030_names_are_utf8(slot: int) -> None:
    """What is not is refused."""
    raw = Raw()
    root = raw.table([b"\1\0\0\0", bytes(4)])
    fields: list[bytes | None] = [None] * 4
    fields[slot] = bytes(4)
    infer = raw.table(fields)
    raw.link(root + 8, infer)
    names = raw.open(1)
    raw.link(infer + 4, names)
    raw.link(names + 4, raw.octets(b"na\xffme"))
    with pytest.raises(GraphPipeError, match=r"name of an (in|out)put is not UTF-8 from byte 2 on") as caught:
        read_request(raw.root(root), LIMIT)
    assert caught.value.code is Code.MALFORMED
    assert read_request(request(input_names=(), output_names=("é\0",)), LIMIT).output_names == ("é\0",)


@pytest.mark.parametrize("config", [b"", b"{}", b"\0\xff\0", b"x" * 5000])
def test_config_is_any_bytes(config: bytes) -> None:
    """It comes as it was sent."""
    found = read_request(request(config=config), LIMIT)
    assert isinstance(found, InferRequest)
    assert found.config == config
    assert type(found.config) is bytes


def test_G051_as_many_names_as_tensors() -> None:
    """Or none at all; an empty name is one."""
    tensor = numbers(TensorType.INT8)
    assert code_of(request(tensor, tensor, input_names=("a",))) is Code.NAME_COUNT
    assert code_of(request(tensor, input_names=("a", "b"))) is Code.NAME_COUNT
    assert code_of(request(input_names=("a",))) is Code.NAME_COUNT
    assert code_of(request(tensor, tensor, input_names=("", "b"))) is None
    assert code_of(request(tensor, tensor)) is None


def test_a_buffer_beyond_the_limit() -> None:
    """Its size alone decides."""
    buffer = request(numbers(TensorType.INT8, (100,)))
    assert code_of(buffer, len(buffer)) is None
    assert code_of(buffer, len(buffer) - 1) is Code.TOO_LARGE


def test_GT55_responses_of_others() -> None:
    """Tensors, or errors."""
    assert read_infer_response(fixture("infer_response"), LIMIT) == InferResponse((PAIR,))
    assert read_infer_response(fixture("error_response"), LIMIT) == InferResponse((), (RemoteError(3, "names"),))
    words = read_infer_response(fixture("go_response_strings"), LIMIT)
    assert words == InferResponse((Tensor(TensorType.STRING, (3,), [b"a", b"", b"four"]),))


def test_a_response_of_nothing() -> None:
    """Neither tensors nor errors: whoever asked has to say what that means."""
    raw = Raw()
    assert read_infer_response(raw.root(raw.table([])), LIMIT) == InferResponse()


def test_an_error_need_not_be_unicode() -> None:
    """Its author has other worries."""
    raw = Raw()
    root = raw.table([None, bytes(4)])
    errors = raw.open(1)
    raw.link(root + 4, errors)
    error = raw.table([(-(2**63)).to_bytes(8, "little", signed=True), bytes(4)])
    raw.link(errors + 4, error)
    raw.link(error + 12, raw.octets(b"a\xff"))
    assert read_infer_response(raw.root(root), LIMIT).errors == (RemoteError(-(2**63), "a�"),)


def test_metadata_of_others() -> None:
    """In the order in which they stand."""
    found = read_metadata_response(fixture("go_metadata_response"), LIMIT)
    assert (found.name, found.version, found.server) == ("echo", "1.0.0", "graphpipe-echo")
    assert [(one.name, one.shape, one.type) for one in found.inputs] == [
        ("images", (-1, 28, 28), 10),
        ("labels", (-1,), 12),
    ]
    assert [(one.name, one.description) for one in found.outputs] == [("scores", "")]


@pytest.mark.parametrize("read", [read_infer_response, read_metadata_response])
@pytest.mark.parametrize("buffer", [b"", b"Bad gateway", b"\xff" * 100, b"<html></html>"])
def test_responses_are_checked_too(read: Any, buffer: bytes) -> None:
    """A server may be broken, or no server of this protocol."""
    with pytest.raises(GraphPipeError) as caught:
        read(buffer, LIMIT)
    assert caught.value.code is Code.MALFORMED
    with pytest.raises(GraphPipeError) as caught:
        read(fixture("own_shapes"), 100)
    assert caught.value.code is Code.TOO_LARGE


def test_metadata_cannot_be_a_bomb() -> None:
    """Descriptions count as tensors, their texts as bytes."""
    raw = Raw()
    root = raw.table([None] * 4 + [bytes(4)])
    inputs = raw.open(1000)
    raw.link(root + 4, inputs)
    one = raw.table([None, bytes(4)])
    for index in range(1000):
        raw.link(inputs + 4 + 4 * index, one)
    raw.link(one + 4, raw.octets(b"x" * 5000))
    with pytest.raises(GraphPipeError) as caught:
        read_metadata_response(raw.root(root), LIMIT)
    assert caught.value.code is Code.TOO_LARGE


def test_the_listing_has_what_the_buffer_has() -> None:
    """One object, two forms; keys as Go spells them, -1 as it is, and the names of types."""
    from invoker.tensors import write_metadata_response

    found = listing(read_metadata_response(write_metadata_response(METADATA), LIMIT))
    assert found == listing(METADATA)
    assert json.loads(json.dumps(found)) == {
        "Name": "echo", "Version": "1.0", "Server": "invoker/0", "Description": "Says it again",
        "Inputs": [
            {"Name": "x", "Description": "in", "Shape": [-1, 3], "Type": 10, "TypeName": "Float32"},
            {"Name": "é", "Description": "", "Shape": [], "Type": 0, "TypeName": "Null"},
        ],
        "Outputs": [{"Name": "y", "Description": "", "Shape": [], "Type": 12, "TypeName": "String"}],
    }  # fmt: skip
