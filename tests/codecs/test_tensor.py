"""`invoker.codecs.tensor`: arrays as tensors of GraphPipe, in both forms."""

from __future__ import annotations

import struct
import tracemalloc
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from invoker.codecs import Registry, builtin
from invoker.codecs.tensor import TENSOR, array_wanted, message_of, tensor_in
from invoker.errors import DecodeError, EncodeError, UnsupportedMediaType
from invoker.message import EMPTY, Message
from invoker.tensors import ArrayType, Code, GraphPipeError, TensorType, read_tensor, write_tensor
from invoker.tensors.arrays import to_tensor
from invoker.testing import Harness
from tests.codecs.wire import JSON, MSGPACK, PATIENT, decode, encode, survives
from tests.tensors.samples import ARRAYS, NUMERIC, numbers, strings

REGISTRY = builtin(arrays=True, entry_points=False)


def wire(value: Any) -> bytes:
    """A value in the form of a table."""
    return bytes(write_tensor(to_tensor(value)))


@PATIENT
@given(ARRAYS)
def test_arrays_round_trip(array: Any) -> None:
    """Encoded as a table, and decoded as they were, little-endian."""
    media_type, payload = encode(TENSOR, array, REGISTRY)
    assert media_type == TENSOR
    found = decode(media_type, payload, np.ndarray, REGISTRY)
    assert found.tobytes() == array.astype(found.dtype).tobytes()
    assert (found.shape, found.dtype) == (array.shape, array.dtype.newbyteorder("<"))


def test_strings_are_bytes_with_their_zeros() -> None:
    """Objects, as the payload has them."""
    found = decode(TENSOR, wire(["a\0", b"\xff"]), NDArray[Any], REGISTRY)
    assert found.tolist() == [b"a\0", b"\xff"]


@pytest.mark.parametrize(
    ("type_", "scalar"),
    [(np.ndarray, None), (NDArray[np.int64], np.int64), (NDArray[np.int64] | None, np.int64), (Any, None),
     (object, None), (Annotated[NDArray[np.int64], "batch"], np.int64), (int | NDArray[np.integer], np.integer)],
)  # fmt: skip
def test_annotations_are_taken_apart(type_: Any, scalar: type | None) -> None:
    """Unions, Annotated, and none at all."""
    assert array_wanted(type_) == ArrayType(scalar)
    assert decode(TENSOR, wire([1, 2]), type_, REGISTRY).tolist() == [1, 2]


@pytest.mark.parametrize("type_", [NDArray[np.float32], NDArray[np.floating], NDArray[np.str_], int, str, list[int]])
def test_another_type_is_refused(type_: Any) -> None:
    """Also one that is no array."""
    assert array_wanted(int) is None
    with pytest.raises(DecodeError, match=r"input #0: application/vnd\.graphpipe\.tensor cannot become"):
        decode(TENSOR, wire([1, 2]), type_, REGISTRY)


def test_who_wants_bytes_gets_the_payload() -> None:
    """To read it otherwise."""
    payload = wire([1])
    assert decode(TENSOR, payload, bytes, REGISTRY) is payload
    assert type(decode(TENSOR, payload, bytearray, REGISTRY)) is bytearray
    view: Any = memoryview(payload)
    assert decode(TENSOR, view, bytes, REGISTRY) == payload


@pytest.mark.parametrize("type_", NUMERIC)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2)])
def test_the_raw_form(type_: TensorType, shape: tuple[int, ...]) -> None:
    """Type and shape stand in the media type, and the payload is the elements alone."""
    tensor = numbers(type_, shape)
    message = message_of(tensor)
    assert message.payload is tensor.data
    assert tensor_in(message) == tensor
    found = decode(message.media_type, bytes(message.payload), np.ndarray, REGISTRY)
    assert to_tensor(found) == tensor


def test_the_raw_form_is_written_as_it_is_documented() -> None:
    """Spaces, case and quotes do not matter; scalars have no shape."""
    assert message_of(numbers(TensorType.FLOAT32)).media_type == f"{TENSOR};type=float32;shape=2x3"
    assert message_of(numbers(TensorType.INT8, ())).media_type == f"{TENSOR};type=int8"
    assert decode(f'{TENSOR} ; SHAPE="2x1"; Type=UINT8', b"ab", np.ndarray, REGISTRY).tolist() == [[97], [98]]
    words = message_of(strings(b"a"))
    assert (words.media_type, tensor_in(words)) == (TENSOR, strings(b"a"))


@pytest.mark.parametrize(
    ("parameters", "text"),
    [("type=string;shape=1", "no raw form of type 'string'"), ("type=null", "no raw form"),
     ("type=float", "no raw form"), ("shape=2", "has a shape but no type"), ("type=uint8;shape=2x", "is not a shape"),
     ("type=uint8;shape=-1", "is not a shape"),
     ("type=uint8;shape=\"2,1\"", "is not a shape"), ("type=uint8;shape=" + "9" * 20, "is not a shape"),
     ("type=uint8;shape=" + "x".join("1" * 33), "is not a shape"), ('type=uint8;shape="٣"', "is not a shape"),
     ("type=uint8", "has 2 bytes, and Uint8 of the shape [] takes 1"),
     ("type=uint16;shape=2", "has 2 bytes"), ("type=uint8;shape=4294967296x4294967296", "has 2 bytes")],
)  # fmt: skip
def test_G033_raw_forms_that_cannot_be(parameters: str, text: str) -> None:
    """Each is refused in one sentence."""
    with pytest.raises(DecodeError) as caught:
        decode(f"{TENSOR};{parameters}", b"ab", np.ndarray, REGISTRY)
    assert text in str(caught.value)


def test_errors_keep_their_code() -> None:
    """As the cause, for those who have codes."""
    with pytest.raises(DecodeError) as caught:
        decode(TENSOR, b"nonsense", np.ndarray, REGISTRY)
    assert isinstance(caught.value.__cause__, GraphPipeError)
    assert caught.value.__cause__.code is Code.MALFORMED
    with pytest.raises(GraphPipeError):
        tensor_in(Message(b"nonsense", EMPTY, TENSOR))


@pytest.mark.parametrize(
    ("value", "found"),
    [(1, 1), (1.5, 1.5), (True, 1), ("é", b"\xc3\xa9"), (b"a\0", b"a\0"), ([[1], [2]], [[1], [2]]), ((1, 2), [1, 2]),
     (np.float32(2), 2.0)],
)  # fmt: skip
def test_G046_values_of_python_are_encoded(value: Any, found: Any) -> None:
    """When the peer asks for tensors; one that does not, gets what it got before."""
    media_type, payload = encode(TENSOR, value, REGISTRY)
    assert decode(media_type, payload, np.ndarray, REGISTRY).tolist() == found
    assert encode("*/*", value, REGISTRY) == encode("*/*", value, Registry())


def test_an_array_is_json_unless_asked_otherwise() -> None:
    """The server's order stays as it was (R-097)."""
    array = np.array([[1, 2]])
    assert encode("*/*", array, REGISTRY) == (JSON, b"[[1,2]]")
    assert encode(f"{TENSOR}, {JSON};q=0.5", array, REGISTRY)[0] == TENSOR


@pytest.mark.parametrize("value", [[1, "a"], 1j, np.zeros(1, "M8[s]"), [[1], [1, 2]], "\ud800"])
def test_G047_what_is_no_tensor(value: Any) -> None:
    """Is an encode error, or goes to the next acceptable type."""
    with pytest.raises(EncodeError, match="output #0"):
        encode(TENSOR, value, REGISTRY)
    with pytest.raises(EncodeError, match="no acceptable media type takes dict"):
        encode(f"{TENSOR}, text/plain", {}, REGISTRY)
    assert encode(f"{TENSOR}, {JSON}", None, REGISTRY) == (JSON, b"null")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None cannot be a tensor"),
        (1j, "complex cannot be a tensor"),
        ({}, "dict cannot be a tensor"),
        (np.array([1j]), "ndarray cannot be a tensor: the dtype complex128 has no tensor type"),
    ],
)
def test_G084_what_is_no_tensor_is_said_once(value: Any, text: str) -> None:
    """Of what class it is, and why, where nothing but a tensor is wanted."""
    with pytest.raises(EncodeError) as caught:
        encode(TENSOR, value, REGISTRY)
    assert caught.value.detail == f"output #0: {text}"


def test_it_is_there_only_where_arrays_are_wanted() -> None:
    """Elsewhere the media type is unknown, as ever."""
    with pytest.raises(UnsupportedMediaType):
        decode(TENSOR, b"", Any, builtin(arrays=False, entry_points=False))

    def count(text: str) -> int:
        return len(text)

    def double(x: NDArray[np.float32]) -> list[float]:
        return (2 * x).tolist()

    def ones(size: int) -> NDArray[np.float32]:
        return np.ones(size, np.float32)

    message = Message(wire("a"), EMPTY, TENSOR)
    assert "Unsupported Media Type" in str(Harness(count).invoke([message]).error)
    assert Harness(double).run([Message(wire(np.float32([1, 2])), EMPTY, TENSOR)]) == [[2.0, 4.0]]
    (found,) = Harness(ones).run([2], accept=TENSOR)
    assert (found.dtype, found.tolist()) == (np.float32, [1.0, 1.0])


@pytest.mark.parametrize("media_type", [JSON, MSGPACK])
def test_lists_are_arrays_in_other_formats(media_type: str) -> None:
    """So that anyone can call a function of arrays."""
    payload = encode(media_type, [[1, 2]])[1]
    found = decode(media_type, payload, NDArray[np.float32])
    assert (found.dtype, found.tolist()) == (np.float32, [[1, 2]])
    for value, type_ in (([[1], [2, 3]], np.ndarray), ([300], NDArray[np.uint8]), (["a"], NDArray[np.int8])):
        with pytest.raises(DecodeError, match="input #0"):
            decode(media_type, encode(media_type, value)[1], type_)


def test_no_copy_on_the_way_in_and_one_out() -> None:
    """Of the elements; a view on the payload, and the payload itself."""
    array = np.zeros((1 << 20,), np.float32)
    encoder = REGISTRY.encoder(REGISTRY.offers(TENSOR), array)
    decoder = REGISTRY.decoder(TENSOR, NDArray[np.float32])
    tracemalloc.start()
    try:
        message = encoder(array)
        found = decoder(message)
        assert tracemalloc.get_traced_memory()[1] < array.nbytes + (1 << 20)
    finally:
        tracemalloc.stop()
    assert np.shares_memory(found, np.frombuffer(message.payload, "u1"))
    assert read_tensor(message.payload, 8 << 20).data.obj is message.payload


def test_G025_a_small_payload_does_not_become_large() -> None:
    """A string that is shared counts each time; short strings of a good tensor are no bomb."""
    shared = bytearray(wire(["x" * 10_000, *["y"] * 99]))
    first = shared.index(struct.pack("<2I", 100, 400)) + 4  # a hundred references follow their number
    for index in range(1, 100):
        at = first + 4 * index
        target = first + int.from_bytes(shared[first : first + 4], "little")
        shared[at : at + 4] = (target - at).to_bytes(4, "little")
    with pytest.raises(DecodeError, match="more than"):
        decode(TENSOR, bytes(shared), np.ndarray, REGISTRY)
    for count in (1, 2, 1000):
        assert decode(TENSOR, wire([""] * count), np.ndarray, REGISTRY).tolist() == [b""] * count


@PATIENT
@given(
    st.binary(max_size=80),
    st.sampled_from(["", ";type=uint8;shape=3", ";type=float64", ";shape=3"]),
    st.sampled_from([Any, np.ndarray, NDArray[np.uint8], NDArray[np.str_], bytes, int]),
)
def test_any_bytes_decode_or_raise_decode_error(payload: bytes, parameters: str, type_: Any) -> None:
    """Whatever is wanted."""
    survives(lambda: decode(f"{TENSOR}{parameters}", payload, type_, REGISTRY))
