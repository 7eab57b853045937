"""`invoker.codecs.npy`: arrays as files of numpy."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from invoker.codecs import builtin
from invoker.errors import DecodeError, EncodeError
from tests.codecs.wire import PATIENT, decode, encode, survives
from tests.tensors.samples import ARRAYS

NPY = "application/x-npy"
REGISTRY = builtin(arrays=True, entry_points=False)


def saved(array: Any, version: tuple[int, int] | None = None) -> bytes:
    """A file as numpy itself writes it."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), version=version)
    return file.getvalue()


def headed(header: str, data: bytes = b"", version: bytes = b"\1\0") -> bytes:
    """A file with a header of one's own."""
    return b"\x93NUMPY" + version + len(header).to_bytes(2, "little") + header.encode() + data


@PATIENT
@given(ARRAYS)
def test_arrays_round_trip(array: Any) -> None:
    """numpy reads what we write, and we read what numpy writes."""
    media_type, payload = encode(NPY, array, REGISTRY)
    assert media_type == NPY
    theirs = np.load(io.BytesIO(payload))
    ours = decode(NPY, saved(array), np.ndarray, REGISTRY)
    for found in (theirs, ours):
        assert found.shape == array.shape
        assert found.tobytes() == array.astype(found.dtype).tobytes()
    assert ours.dtype.isnative


@pytest.mark.parametrize(
    "array",
    [np.array([1j]), np.array(["2020-01-01"], "M8[D]"), np.array(["é", "ab"]), np.array([b"x"]), np.array([True]),
     np.asfortranarray(np.arange(6).reshape(2, 3)), np.arange(6)[::-2], np.array(5), np.zeros((0, 3)),
     np.array([1], np.longdouble)],
)  # fmt: skip
def test_other_dtypes_and_layouts_travel(array: Any) -> None:
    """Numbers, text and times, also those that tensors have no type for."""
    for payload in (encode(NPY, array, REGISTRY)[1], saved(array), saved(array, (2, 0))):
        found = decode(NPY, payload, np.ndarray, REGISTRY)
        assert found.dtype == array.dtype
        assert found.tolist() == array.tolist()
        assert found.flags.aligned
        assert not found.flags.writeable


def test_it_is_a_view_on_the_payload() -> None:
    """numpy's files are aligned within themselves."""
    payload = encode(NPY, np.arange(1000.0), REGISTRY)[1]
    found = decode(NPY, payload, NDArray[np.float64], REGISTRY)
    assert np.shares_memory(found, np.frombuffer(payload, "u1"))
    assert decode(NPY, payload, bytes, REGISTRY) is payload


def test_lists_and_numbers_are_encoded_too() -> None:
    """When the peer asks for files of numpy."""
    assert decode(*encode(NPY, [[1, 2]], REGISTRY), np.ndarray, REGISTRY).tolist() == [[1, 2]]
    assert decode(*encode(NPY, 1.5, REGISTRY), np.ndarray, REGISTRY).tolist() == 1.5


@pytest.mark.parametrize(
    ("payload", "type_", "text"),
    [(b"", np.ndarray, "EOF"), (b"nonsense!!", np.ndarray, "magic"), (saved([1])[:-1], np.ndarray, "its header says 8"),
     (saved([1]) + b"x", np.ndarray, "its header says 8"),
     (saved([1.5]), NDArray[np.int64], "it is Float64, not int64"), (saved([1]), int, "does not decode values"),
     (headed("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", bytes(8)), np.ndarray, "dtype object"),
     (headed("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", bytes(4)), np.ndarray, "refused"),
     (headed("{'descr': '|S0', 'fortran_order': False, 'shape': (9999999999,)}"), np.ndarray, "refused"),
     (headed("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", b""), np.ndarray, "negative"),
     (headed("{'descr': '<f4', 'fortran_order': False, 'shape': (2**40,)}", b""), np.ndarray, "input #0"),
     (headed("{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 1099511627776)}"), np.ndarray, "says"),
     (headed("{'descr': evil, 'fortran_order': False, 'shape': (1,)}"), np.ndarray, "<ast.Name>"),
     (headed("[" * 9000), np.ndarray, "input #0"), (headed("{" + " " * 20000), np.ndarray, "large"),
     (headed("{}", version=b"\3\0"), np.ndarray, "format 3.0 is neither")],
)  # fmt: skip
def test_files_that_cannot_be(payload: bytes, type_: Any, text: str) -> None:
    """Nothing is run and nothing is allocated for what they claim."""
    with pytest.raises(DecodeError, match="input #0: application/x-npy cannot") as caught:
        decode(NPY, payload, type_, REGISTRY)
    assert text in str(caught.value)
    assert " at 0x" not in str(caught.value)


@pytest.mark.parametrize("value", [np.array([object()]), np.zeros(1, "f4,i4"), [None], [[1], [1, 2]]])
def test_what_would_be_a_pickle_is_an_encode_error(value: Any) -> None:
    """Objects and records do not travel."""
    with pytest.raises(EncodeError, match="output #0"):
        encode(NPY, value, REGISTRY)


@PATIENT
@given(st.binary(max_size=60), st.binary(max_size=30), st.sampled_from([Any, np.ndarray, NDArray[np.int8], bytes, int]))
def test_any_bytes_decode_or_raise_decode_error(header: bytes, data: bytes, type_: Any) -> None:
    """Whatever is wanted."""
    payload = b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + data
    survives(lambda: decode(NPY, payload, type_, REGISTRY))
    survives(lambda: decode(NPY, data, type_, REGISTRY))


def test_headers_of_numbers_are_read_without_a_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """What numpy's parser would find is found, in any shape and order; threads may then read at once."""
    arrays = [np.zeros(()), np.zeros(3, "<c16"), np.ones((0, 3)), np.asfortranarray(np.arange(6.0).reshape(2, 3))]
    arrays += [np.zeros((1, 2, 3, 4), "?"), np.zeros((2, 1), "u1")]
    files = [saved(one) for one in arrays]

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("numpy parses it")

    monkeypatch.setattr(np.lib.format, "read_array_header_1_0", refuse)
    for array, payload in zip(arrays, files, strict=True):
        found = decode(NPY, payload, np.ndarray, REGISTRY)
        assert (found.shape, found.dtype) == (array.shape, array.dtype)
        assert found.tolist() == array.tolist()
    for odd in (saved(np.array(["text"])), headed("{'descr': '<f8', 'fortran_order': False, 'shape': (), }x\n")):
        with pytest.raises(DecodeError, match="numpy parses it"):
            decode(NPY, odd, np.ndarray, REGISTRY)


@pytest.mark.parametrize("failures", [1, 99])
def test_a_parser_that_fails_by_chance_is_asked_again(monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
    """Python's own raises SystemError where two threads use it; if it always does, that is the answer."""
    payload, real, count = saved(np.array(["text"])), np.lib.format.read_array_header_1_0, 0

    def fail(file: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        if count <= failures:
            file.read(5)
            raise SystemError("AST constructor recursion depth mismatch")
        return real(file, **options)

    monkeypatch.setattr(np.lib.format, "read_array_header_1_0", fail)
    if failures == 1:
        assert decode(NPY, payload, np.ndarray, REGISTRY).tolist() == ["text"]
    else:
        with pytest.raises(DecodeError, match="recursion depth mismatch"):
            decode(NPY, payload, np.ndarray, REGISTRY)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("sizes", ["1" * 400 + "x", "1," * 400 + "x", "1, " * 400 + "x", "1 " * 400 + "x"])
def test_a_header_takes_no_longer_than_its_bytes(sizes: str) -> None:
    """Digits can be split into numbers in so many ways that trying them all would never end."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({sizes}), }} \n"
    with pytest.raises(DecodeError):
        decode(NPY, headed(header), np.ndarray, REGISTRY)


@pytest.mark.parametrize("sizes", ["3", "1 3", "1,,3", ", 3"])
def test_shapes_are_taken_as_numpy_writes_them_only(sizes: str) -> None:
    """What is no tuple of sizes is refused, though its digits could be read as one."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({sizes}), }} \n"
    with pytest.raises(DecodeError):
        decode(NPY, headed(header, bytes(24)), np.ndarray, REGISTRY)
