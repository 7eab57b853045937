"""`invoker.tensors.arrays`: numpy's arrays as tensors, and back."""

from __future__ import annotations

import struct
import tracemalloc
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from invoker.tensors import ArrayType, Code, GraphPipeError, Tensor, TensorType, read_tensor, write_tensor
from invoker.tensors import arrays as module
from invoker.tensors.arrays import (
    DTYPES,
    annotation_of,
    castable_types,
    fitted,
    from_plain,
    is_takeable,
    to_array,
    to_tensor,
    type_of,
)
from invoker.tensors.declared import Tensor as Declaration
from tests.tensors.samples import ARRAYS, LIMIT, NUMERIC, numbers, strings


def through(value: Any) -> Any:
    """A value as it is after it was written and read."""
    return to_array(read_tensor(bytes(write_tensor(to_tensor(value))), LIMIT))


@settings(deadline=None)
@given(ARRAYS)
def test_G046_GT23_arrays_round_trip(array: Any) -> None:
    """All numeric types, both orders of bytes, any shape; bit by bit."""
    found = through(array)
    assert found.shape == array.shape
    assert found.dtype == array.dtype.newbyteorder("<")
    assert found.tobytes() == array.astype(found.dtype).tobytes()


BASE = np.arange(24, dtype=">f4").reshape(2, 3, 4)


@pytest.mark.parametrize(
    "array",
    [BASE, BASE.T, np.asfortranarray(BASE), BASE[:, ::-1, ::2], BASE[..., 1], BASE.swapaxes(0, 1),
     np.broadcast_to(BASE[0, 0], (5, 4)), BASE[:, :0], np.asarray(BASE[1, 1, 1]), BASE > 7, (BASE > 7).T],
)  # fmt: skip
def test_G048_GT30_arrays_of_any_layout(array: Any) -> None:
    """Row by row, little-endian; truth values are Uint8."""
    found = through(array)
    assert found.shape == array.shape
    assert found.tolist() == array.tolist()
    assert found.dtype == (np.dtype("u1") if array.dtype == bool else np.dtype("<f4"))


@pytest.mark.parametrize(
    ("value", "type_", "shape", "content"),
    [(1, 8, (), 1), (-1.5, 11, (), -1.5), (True, 1, (), 1), ([True, False], 1, (2,), [1, 0]), ([1, 2], 8, (2,), [1, 2]),
     ([[1.0], [2]], 11, (2, 1), [[1.0], [2.0]]), ((1, 2), 8, (2,), [1, 2]), ([], 11, (0,), []),
     (np.float16(2), 9, (), 2.0), (np.uint8(3), 1, (), 3), (2**63, 7, (), 2**63), (range(2), 8, (2,), [0, 1]),
     (b"a\0", 12, (), b"a\0"), (bytearray(b"x"), 12, (), b"x"), ("é", 12, (), b"\xc3\xa9"),
     (["a\0", b"\xff"], 12, (2,), [b"a\0", b"\xff"]), ([[b""], [b"\0"]], 12, (2, 1), [[b""], [b"\0"]]),
     (np.array(["a", "éé"]), 12, (2,), [b"a", "éé".encode()]), (np.array([b"a", b"bc"]), 12, (2,), [b"a", b"bc"]),
     (np.array([[b"a\0", "é"]], object), 12, (1, 2), [[b"a\0", b"\xc3\xa9"]]),
     (np.array(["x"], np.dtypes.StringDType()), 12, (1,), [b"x"]), (np.str_("s"), 12, (), b"s"),
     (np.bytes_(b"s"), 12, (), b"s"), (np.ma.array([1, 2], mask=[0, 0]), 8, (2,), [1, 2])],
)  # fmt: skip
def test_G046_G036_values_of_python(value: Any, type_: int, shape: tuple[int, ...], content: Any) -> None:
    """Numbers, truth, text and bytes, alone and in lists; zeros at the end of text are kept."""
    tensor = to_tensor(value)
    assert (tensor.type, tensor.shape) == (type_, shape)
    assert through(value).tolist() == content


class Broken:
    """An array that cannot be had."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "text"),
    [(1j, "complex128 has no tensor"), (np.zeros(2, "M8[s]"), "datetime64"), (np.zeros(2, "m8[s]"), "timedelta64"),
     (np.zeros(2, "f4,i4"), "no tensor type"), ([[1], [1, 2]], "inhomogeneous"), (np.array([1, "a"], object), "int"),
     ([1, "a"], "int"), (None, "NoneType"), ({"a": 1}, "dict"), (object(), "object"), ([None], "NoneType"),
     (np.longdouble(1), "no tensor type"), (2**70, "int"), ("\ud800", "valid Unicode"), (["\ud800"], "valid Unicode"),
     (np.ma.array([1, 2], mask=[0, 1]), "mask"), (Broken(), "no"), (np.zeros((1,) * 33), "33 dimensions"),
     ({1, 2}, "set"), ((one for one in "a"), "generator")],
)  # fmt: skip
def test_G047_GT31_what_has_no_type(value: Any, text: str) -> None:
    """Nothing is lost in silence."""
    with pytest.raises(GraphPipeError, match=text) as caught:
        to_tensor(value)
    assert caught.value.code is Code.BAD_OUTPUT
    assert type(value).__name__ in str(caught.value)


@pytest.mark.parametrize("type_", NUMERIC)
@pytest.mark.parametrize("shift", range(8))
def test_G045_GT32_arrays_are_aligned_and_cannot_be_changed(type_: TensorType, shift: int) -> None:
    """A view where the address allows, else a copy."""
    tensor = numbers(type_)
    memory = bytearray(8 + shift) + bytes(tensor.data)
    found = to_array(Tensor(type_, tensor.shape, memoryview(memory)[8 + shift :]))
    assert found.flags.aligned
    assert not found.flags.writeable
    assert found.tolist() == to_array(tensor).tolist()
    address = np.frombuffer(memory, "u1").ctypes.data + 8 + shift
    is_view = np.shares_memory(found, np.frombuffer(memory, "u1"))
    assert is_view == (address % found.dtype.alignment == 0)


def test_G045_a_writable_array_is_a_copy() -> None:
    """The buffer stays as it is."""
    tensor = numbers(TensorType.FLOAT64)
    found = to_array(tensor, is_writable=True)
    found[:] = 7
    assert to_array(tensor).max() == 5
    words = to_array(strings(b"a", b"b"), is_writable=True)
    words[0] = b"c"
    assert not to_array(strings(b"a")).flags.writeable


@pytest.mark.parametrize("type_", [TensorType.FLOAT16, TensorType.FLOAT32, TensorType.FLOAT64])
def test_G049_G044_payloads_of_nan_survive(type_: TensorType) -> None:
    """In either order of bytes, and negative zero."""
    size = DTYPES[type_].itemsize
    bits = {2: [0x7C01, 0xFE01, 0x8000], 4: [0x7F800001, 0xFFC00123, 0x80000000]}.get(
        size, [0x7FF0000000000001, 0xFFF8000000000123, 1 << 63]
    )
    for order in "<>":
        raw = b"".join(one.to_bytes(size, "little" if order == "<" else "big") for one in bits)
        found = through(np.frombuffer(raw, DTYPES[type_].newbyteorder(order)))
        assert found.tobytes() == b"".join(one.to_bytes(size, "little") for one in bits)


def test_G036_GT20_strings_are_objects() -> None:
    """With what numpy would strip."""
    found = to_array(strings(b"a\0", b"", b"\xff"))
    assert found.dtype == object
    assert found.tolist() == [b"a\0", b"", b"\xff"]


def test_G040_sizes_that_numpy_cannot_have() -> None:
    """Beside a size of zero there may be any; an array of it there is not."""
    with pytest.raises(GraphPipeError, match="no array has the shape") as caught:
        to_array(Tensor(TensorType.INT64, (0, 2**62, 2**62), memoryview(b"")))
    assert caught.value.code is Code.SHAPE
    with pytest.raises(GraphPipeError):
        to_array(Tensor(TensorType.STRING, (0, 2**62, 2**62), []))
    assert to_array(Tensor(TensorType.INT64, (0, 2**20), memoryview(b""))).shape == (0, 2**20)


def test_G050_one_copy_out_and_none_in() -> None:
    """Of an array in row-major order: by the join alone."""
    array = np.zeros((1024, 1024), "<f4")
    tracemalloc.start()
    try:
        tensor = to_tensor(array)
        assert np.shares_memory(np.frombuffer(tensor.data, "u1"), array)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
        whole = bytes(write_tensor(tensor))
        assert tracemalloc.get_traced_memory()[1] < array.nbytes + (1 << 20)
        found = to_array(read_tensor(whole, 8 << 20))
        assert np.shares_memory(found, np.frombuffer(whole, "u1"))
        assert tracemalloc.get_traced_memory()[1] < array.nbytes + (1 << 20)
    finally:
        tracemalloc.stop()


def test_dtypes_have_types() -> None:
    """As metadata will show them; what is abstract has none."""
    assert {type_of(dtype) for dtype in DTYPES.values()} == set(TensorType) - {TensorType.NULL}
    assert type_of(np.bool_) is TensorType.UINT8
    assert type_of(np.float32) is type_of(">f4") is TensorType.FLOAT32
    assert type_of(np.str_) is type_of(np.object_) is TensorType.STRING
    for none in (np.complex64, np.floating, "M8[s]", "nonsense", np.longdouble, np.dtype("f4,i4")):
        assert type_of(none) is TensorType.NULL


def test_what_may_be_taken() -> None:
    """By its class alone."""
    for cls in (np.ndarray, np.float32, int, str, bytes, list, bool, Broken):
        assert is_takeable(cls)
    for cls in (dict, set, type(None), object):
        assert not is_takeable(cls)


@pytest.mark.parametrize(
    ("have", "wanted"),
    [("f4", np.float32), ("f4", np.floating), ("f4", np.number), ("f8", float), ("i8", np.longlong), ("i8", int),
     ("u1", None), ("O", np.object_), (">f4", np.float32)],
)  # fmt: skip
def test_an_array_as_wanted_is_not_touched(have: str, wanted: type | None) -> None:
    """Classes of elements may be abstract."""
    array = np.zeros(2, have)
    assert fitted(array, ArrayType(wanted)) is array


@pytest.mark.parametrize(
    ("have", "wanted", "text"),
    [("f8", np.float32, "it is Float64, not float32"), ("i4", np.int64, "it is Int32, not int64"),
     ("u1", np.floating, "it is Uint8, not floating"), ("O", np.float32, "it is String, not float32"),
     ("f4", np.str_, "it is Float32, not str"), ("i1", np.bool_, "it is Int8, not bool"), ("c8", np.int8, "complex64")],
)  # fmt: skip
def test_nothing_is_cast(have: str, wanted: type, text: str) -> None:
    """Metadata says what is wanted."""
    with pytest.raises(GraphPipeError, match=text) as caught:
        fitted(np.zeros(2, have), ArrayType(wanted))
    assert caught.value.code is Code.TYPE_MISMATCH


def test_truth_and_text_come_back() -> None:
    """They travel as Uint8 and as String."""
    truth = fitted(through([True, False]), ArrayType(np.bool_))
    assert (truth.dtype, truth.tolist(), truth.flags.writeable) == (np.dtype(bool), [True, False], False)
    text = fitted(through([["a", "é"]]), ArrayType(np.str_))
    assert (text.dtype.kind, text.tolist()) == ("U", [["a", "é"]])
    raw = fitted(through([b"a", b"\xff"]), ArrayType(np.bytes_))
    assert (raw.dtype.kind, raw.tolist()) == ("S", [b"a", b"\xff"])
    assert fitted(through(np.zeros((0, 2), "U1")), ArrayType(np.str_)).shape == (0, 2)
    for value, scalar, why in ((b"\xff", np.str_, "not UTF-8"), (b"a\0", np.str_, "zero"), (b"a\0", np.bytes_, "zero")):
        with pytest.raises(GraphPipeError, match=why):
            fitted(through([value]), ArrayType(scalar))


@pytest.mark.parametrize(
    ("value", "scalar", "expected"),
    [([[1, 2]], np.float32, "float32"), ([1.5], np.float16, "float16"), ([1, 2], np.uint8, "uint8"),
     (3, np.int8, "int8"), ([], np.int32, "int32"), ([True], np.bool_, "bool"), ([1, 2], None, "int64"),
     (["a"], None, "object"),
     (["a"], np.object_, "object"), (["a"], np.str_, "<U1"), ([1.5], np.floating, "float64")],
)  # fmt: skip
def test_lists_become_arrays(value: Any, scalar: type | None, expected: str) -> None:
    """As JSON and MessagePack have them."""
    found = from_plain(value, ArrayType(scalar))
    assert found.dtype == np.dtype(expected)
    assert found.tolist() == ([b"a"] if expected == "object" else value)
    assert not found.flags.writeable


EDGES = [
    *((np.dtype(one), edge, edge + step) for one in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8")
      for edge, step in [(int(np.iinfo(one).max), 1), (int(np.iinfo(one).min), -1)]),
    *((np.dtype(one), 2.0, 2.0**64) for one in ("u1", "i4", "i8", "u8")),
    (np.dtype("f2"), 65504.0, 1e5), (np.dtype("f2"), 65504, 65520), (np.dtype("f2"), -65504, -70000),
    (np.dtype("f4"), float(np.finfo("f4").max), 1e39), (np.dtype("f4"), 2**63, 10**39),
    (np.dtype("f8"), 1e308, 10**400),
]  # fmt: skip
"""Each type of numbers, what it just has, and what it has no more."""


@pytest.mark.parametrize(("dtype", "edge", "beyond"), EDGES)
@pytest.mark.parametrize("wrap", [lambda one: one, lambda one: [one], lambda one: [[0, one], [one, 1]]])
def test_numbers_beyond_a_type_are_refused(dtype: Any, edge: Any, beyond: Any, wrap: Any) -> None:
    """None becomes infinite, wraps or is cut."""
    found = from_plain(wrap(edge), ArrayType(dtype.type))
    assert found.dtype == dtype
    assert found.tolist() == np.array(wrap(edge), object).tolist()
    with pytest.raises((ValueError, OverflowError, GraphPipeError)):
        from_plain(wrap(beyond), ArrayType(dtype.type))
    if dtype.kind == "f":
        assert np.isinf(from_plain(wrap(float("inf")), ArrayType(dtype.type))).any(), (
            "what was sent as infinite stays so"
        )


@pytest.mark.parametrize(
    ("value", "scalar"),
    [([300], np.uint8), ([-1], np.uint8), ([1.5], np.int32), ([1], np.bool_), (["a"], np.float32), ([1, "a"], None),
     ([[1], [1, 2]], np.int8), (None, None), ({"a": 1}, np.int8), ([2**70], np.int64), ([None], np.float32),
     ([[[]], 1], None)],
)  # fmt: skip
def test_lists_that_would_lose_something(value: Any, scalar: type | None) -> None:
    """Out of range, ragged, of another kind."""
    with pytest.raises((ValueError, OverflowError, GraphPipeError)):
        from_plain(value, ArrayType(scalar))


def test_each_public_name_is_used() -> None:
    """The module is not gathered by its package, so its list is checked here."""
    assert [one for one in module.__all__ if not hasattr(module, one)] == []
    assert struct.calcsize("<d") == DTYPES[TensorType.FLOAT64].itemsize


@pytest.mark.parametrize(
    ("scalar", "types"),
    [
        (np.float32, {"UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32", "UINT64", "INT64", "FLOAT16", "FLOAT64"}),
        (np.int16, {"UINT8", "INT8", "UINT16", "UINT32", "INT32", "UINT64", "INT64"}),
        (np.uint8, {"UINT16", "UINT32", "UINT64"}),
        (np.bool_, set()), (bool, set()), (np.str_, set()), (np.object_, set()), (np.floating, set()),
    ],
)  # fmt: skip
def test_G061_what_numpy_casts_within_its_kind(scalar: type, types: set[str]) -> None:
    """Never text, truth, or to one of several."""
    assert {one.name for one in castable_types(scalar)} == types


@pytest.mark.parametrize(
    ("have", "wanted", "found"),
    [
        (np.float64([1.5, np.nan, -np.inf]), np.float32, [1.5, np.nan, -np.inf]),
        (np.float64([0.1]), np.float16, [np.float16(0.1)]),
        (np.int64([-128, 127]), np.int8, [-128, 127]),
        (np.uint8([0, 127]), np.int8, [0, 127]),
        (np.int64([2**53 + 1]), np.float64, [2.0**53]),
        (np.zeros((0, 2)), np.float16, []),
        (np.zeros((0, 2), "u4"), np.uint8, []),
    ],
)
def test_G061_values_of_the_same_kind_are_cast(have: Any, wanted: type, found: list[Any]) -> None:
    """They are rounded, never changed otherwise."""
    cast = fitted(have, ArrayType(wanted, casts=True))
    assert (cast.dtype, cast.shape, cast.flags.writeable) == (np.dtype(wanted), have.shape, False)
    assert np.array_equal(cast.reshape(-1), np.array(found, wanted), equal_nan=cast.dtype.kind == "f")


@pytest.mark.parametrize(
    ("have", "wanted", "text"),
    [
        (np.int64([1, 128]), np.int8, "128 cannot be int8, whose values are -128 to 127"),
        (np.uint8([200]), np.int8, "200 cannot be int8"),
        (np.uint64([2**64 - 1]), np.int64, "cannot be int64"),
        (np.float64([0, -1e39]), np.float32, r"-1e\+39 is out of range for float32"),
        (np.int32([70_000]), np.float16, "70000 is out of range for float16"),
        (np.float32([1]), np.int8, "it is Float32, not int8$"),
        (np.int8([1]), np.uint8, "it is Int8, not uint8$"),
        (np.array([b"1"], object), np.float32, "it is String, not float32$"),
    ],
)
def test_G061_what_does_not_fit_is_E8(have: Any, wanted: type, text: str) -> None:
    """Nothing wraps, and nothing becomes infinite."""
    with pytest.raises(GraphPipeError, match=text) as caught:
        fitted(have, ArrayType(wanted, casts=True))
    assert caught.value.code is Code.TYPE_MISMATCH


def test_G061_the_refusal_says_how_to_opt_in() -> None:
    """Where it would help."""
    with pytest.raises(
        GraphPipeError,
        match=r"not float32; nothing is cast, unless .* graphpipe.Casting\(inputs='same_kind'\)$",
    ):
        fitted(np.zeros(1), ArrayType(np.float32))


def test_G068_declarations_as_annotations() -> None:
    """With what is said beside the type."""
    assert annotation_of(Declaration()) is np.ndarray
    assert annotation_of(Declaration("int8")) == NDArray[np.int8]
    assert annotation_of(Declaration("int8", [])) == Annotated[NDArray[np.int8], ()]
    assert annotation_of(Declaration("any", ["n"], "words")) == Annotated[np.ndarray, ("n",), "words"]


def test_G066_several_arrays_in_one_value_are_hinted_at() -> None:
    """They may have been meant as outputs."""
    for value in ((np.zeros(2), np.zeros(3)), [np.zeros(2), np.zeros((2, 2))]):
        with pytest.raises(GraphPipeError, match=r"if these are several outputs, name them with @function\(outputs="):
            to_tensor(value)
    with pytest.raises(GraphPipeError) as caught:
        to_tensor([[1], [1, 2]])
    assert "outputs" not in str(caught.value)
