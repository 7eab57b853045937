"""Converts numpy arrays to tensors and back. It imports numpy, so it is imported only for functions that use arrays.

Copies. A received array is a read-only view on the buffer, without a copy. Exceptions: data whose address is not a
multiple of the element's size is copied once, since many C libraries crash or are slow with such an array (G-045, D8);
so is an array that must be writable; strings are always copied. A sent array in row-major order and little-endian is
not copied either: the tensor is a view on it, whose bytes are copied when the buffer is joined. Any other array is
first copied into this form (G-046, G-048).

Source: GraphPipe specification, "Tensor"; docs/reference/graphpipe.md 2.3.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from invoker.fields.aliases import unaliased
from invoker.tensors.declared import Tensor as Declaration
from invoker.tensors.errors import Code, GraphPipeError
from invoker.tensors.types import MAX_RANK, Tensor, TensorType, spelled
from invoker.tensors.wanted import ArrayType

__all__ = [
    "DTYPES",
    "PLAIN_ARRAY",
    "Array",
    "annotation_of",
    "cast_output",
    "castable_types",
    "fitted",
    "from_plain",
    "has_type",
    "is_takeable",
    "taken_types",
    "to_array",
    "to_tensor",
    "type_of",
]

Array: TypeAlias = NDArray[Any]

PLAIN_ARRAY: Final = np.ndarray
"""numpy's array class itself; subclasses may behave differently."""

DTYPES: Final[dict[TensorType, np.dtype[Any]]] = {
    TensorType.UINT8: np.dtype("u1"),
    TensorType.INT8: np.dtype("i1"),
    TensorType.UINT16: np.dtype("<u2"),
    TensorType.INT16: np.dtype("<i2"),
    TensorType.UINT32: np.dtype("<u4"),
    TensorType.INT32: np.dtype("<i4"),
    TensorType.UINT64: np.dtype("<u8"),
    TensorType.INT64: np.dtype("<i8"),
    TensorType.FLOAT16: np.dtype("<f2"),
    TensorType.FLOAT32: np.dtype("<f4"),
    TensorType.FLOAT64: np.dtype("<f8"),
    TensorType.STRING: np.dtype("O"),
}
"""The dtype of the arrays of each tensor type; strings are objects, since numpy's own strings drop trailing zeros
(G-036)."""

_TYPES: Final = {(dtype.kind, dtype.itemsize): type_ for type_, dtype in DTYPES.items()} | {("b", 1): TensorType.UINT8}
_TEXT_KINDS: Final = "SUOT"
_MOST_TEXT_BYTES: Final = 256 << 20
_PLAIN: Final = (bool, int, float, str, bytes, bytearray, list, tuple)


def to_array(tensor: Tensor, *, is_writable: bool = False) -> Array:
    """Make an array from a tensor.

    Args:
        tensor: The tensor.
        is_writable: Whether it may be changed, which takes a copy.

    Returns:
        An aligned array with the tensor's shape, read-only unless ``is_writable``. Strings are bytes in an array of
            objects.

    Raises:
        GraphPipeError: numpy has no arrays of this shape (E9).
    """
    dtype = DTYPES[tensor.type]
    try:
        if isinstance(tensor.data, list):
            array = np.empty(len(tensor.data), dtype)
            array[:] = tensor.data
            array = array.reshape(tensor.shape)
        else:
            array = np.ndarray(tensor.shape, dtype, tensor.data)
    except (ValueError, OverflowError) as error:  # beside a size of zero, other sizes may be too large for numpy
        detail = f"no array has the shape {list(tensor.shape)} ({error})"
        raise GraphPipeError(Code.SHAPE, detail) from error
    if is_writable or not array.flags.aligned:
        array = array.copy()
    array.flags.writeable = is_writable
    return array


def to_tensor(value: Any) -> Tensor:
    """Make a tensor from a function's result.

    Args:
        value: An array of any layout, a number, bytes, text, a list of these, or any value that numpy can convert to an
            array. An int becomes Int64, a float Float64, a bool Uint8, text UTF-8.

    Returns:
        The tensor. Its data is a view on the array if the layout allows; the array must not change until the tensor is
            written.

    Raises:
        GraphPipeError: The value has no form as a tensor (E18).
    """
    array = _array_of(value)
    if array.ndim > MAX_RANK:
        raise _refused(value, f"it has {array.ndim} dimensions")
    if array.dtype.kind in _TEXT_KINDS:
        return Tensor(TensorType.STRING, array.shape, [_octets(one, value) for one in array.reshape(-1).tolist()])
    type_ = type_of(array.dtype)
    if type_ is TensorType.NULL:
        raise _refused(value, f"the dtype {array.dtype} has no tensor type")
    if array.dtype.kind == "b":
        array = array.view(np.uint8)
    plain = np.asarray(array, DTYPES[type_], order="C")
    return Tensor(type_, array.shape, plain.reshape(-1).view(np.uint8).data)


def type_of(dtype: Any) -> TensorType:
    """The tensor type for a dtype or a scalar class of numpy; NULL if no type, or more than one, fits."""
    try:
        one = np.dtype(dtype)
    except TypeError:
        return TensorType.NULL
    if one.kind in _TEXT_KINDS:
        return TensorType.STRING
    return _TYPES.get((one.kind, one.itemsize), TensorType.NULL)


def taken_types(scalar: type) -> frozenset[TensorType]:
    """The tensor types from which `fitted` makes arrays of this class; several if the class is abstract."""
    if issubclass(scalar, np.bool_ | bool):
        return frozenset({TensorType.UINT8})
    if issubclass(scalar, np.str_ | str | np.bytes_ | bytes):
        return frozenset({TensorType.STRING})
    if scalar in (np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact, np.floating):
        return frozenset(type_ for type_, dtype in DTYPES.items() if np.issubdtype(dtype, scalar))
    return frozenset({type_of(scalar)}) - {TensorType.NULL}


def castable_types(scalar: type) -> frozenset[TensorType]:
    """The further tensor types that can become arrays of this class by numpy's casting rule ``same_kind``.

    There are none for strings, truth values and abstract classes, which have no single type.
    """
    if type_of(scalar) in (TensorType.NULL, TensorType.STRING) or scalar is np.bool_:
        return frozenset()
    dtype = np.dtype(scalar)
    numbers = {type_ for type_, one in DTYPES.items() if one.kind != "O" and np.can_cast(one, dtype, "same_kind")}
    return frozenset(numbers) - taken_types(scalar)


def annotation_of(declared: Declaration) -> Any:
    """The annotation that an author would write for tensors of this type."""
    scalar = {"bool": np.bool_, "str": np.str_, "string": np.object_}.get(declared.dtype)
    array = np.ndarray if declared.dtype == "any" else NDArray[scalar or np.dtype(declared.dtype).type]  # type: ignore[misc]  # made at run time
    shape = () if declared.shape is None else (tuple(declared.shape),)
    array = unaliased(array)  # in the form in which annotations are read
    notes = (*shape, *((declared.description,) if declared.description else ()))
    return Annotated[(array, *notes)] if notes else array


def is_takeable(cls: type) -> bool:
    """Whether `to_tensor` may take values of this class."""
    return issubclass(cls, (np.ndarray, np.generic, *_PLAIN)) or hasattr(cls, "__array__")


def fitted(array: Array, wanted: ArrayType) -> Array:
    """Convert an array to the type that an annotation wants.

    Only these are cast: booleans and text, which have another type on the wire, and types for which the author allows
    it.

    Raises:
        GraphPipeError: The array has another type (E8), or values that the wanted type does not have.
    """
    scalar, have = wanted.scalar, array.dtype
    if scalar is None or has_type(have, scalar):
        return array
    if issubclass(scalar, np.bool_ | bool) and have == np.uint8:
        return _frozen(array != 0)
    if have.kind == "O" and issubclass(scalar, np.str_ | str | np.bytes_ | bytes):
        return _texts(array, is_text=issubclass(scalar, str))
    if wanted.casts and type_of(have) in castable_types(scalar):
        return _cast(array, np.dtype(scalar))
    name = getattr(scalar, "__name__", str(scalar))
    detail = f"it is {spelled(type_of(have)) if type_of(have) else have}, not {name}"
    if type_of(have) in castable_types(scalar):
        detail = f"{detail}; nothing is cast, unless the function has the option graphpipe.Casting(inputs='same_kind')"
    raise GraphPipeError(Code.TYPE_MISMATCH, detail)


def has_type(dtype: np.dtype[Any], scalar: type | None) -> bool:
    """Whether arrays of this dtype need no cast."""
    if scalar is None or (issubclass(scalar, np.generic) and np.issubdtype(dtype, scalar)):
        return True
    return type_of(scalar) is not TensorType.NULL and np.dtype(scalar) == dtype


def cast_output(value: Any, wanted: ArrayType) -> Any:
    """Cast a function's value to the declared type by numpy's rule ``same_kind``, or return it unchanged.

    Raises:
        GraphPipeError: A value is out of the range of the declared type (E18).
    """
    array = np.asarray(value)
    scalar = wanted.scalar
    if scalar is None or type_of(array.dtype) not in castable_types(scalar):
        return value
    try:
        return _cast(array, np.dtype(scalar))
    except GraphPipeError as error:
        raise GraphPipeError(Code.BAD_OUTPUT, error.detail) from None


def _cast(array: Array, dtype: np.dtype[Any]) -> Array:
    """Cast numbers to a type of the same kind; values may only change by rounding (G-061)."""
    is_narrower = not np.can_cast(array.dtype, dtype, "safe") and array.size > 0
    if is_narrower and dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        for one in (int(array.min()), int(array.max())):
            if not bounds.min <= one <= bounds.max:
                detail = f"{one} cannot be {dtype}, whose values are {bounds.min} to {bounds.max}"
                raise GraphPipeError(Code.TYPE_MISMATCH, detail)
    try:
        return _frozen(_rounded(array, dtype))
    except ValueError as error:
        raise GraphPipeError(Code.TYPE_MISMATCH, str(error)) from None


def _rounded(array: Array, dtype: np.dtype[Any]) -> Array:
    """Cast numbers, with rounding, to a type whose range contains all of them.

    Raises:
        ValueError: A number would become infinite.
    """
    with np.errstate(over="ignore"):
        made: Array = array.astype(dtype, casting="same_kind", copy=False)
    if dtype.kind == "f" and made.dtype != array.dtype and (beyond := np.isinf(made) & ~np.isinf(array)).any():
        raise ValueError(f"{array[beyond].flat[0]} is out of range for {dtype}")
    return made


def from_plain(value: Any, wanted: ArrayType) -> Array:
    """Make an array from the lists and numbers of other formats such as JSON.

    Raises:
        ValueError: The value is ragged, or would lose precision.
    """
    array = _plain_array(value)
    scalar = wanted.scalar
    if scalar is None or type_of(scalar) in (TensorType.NULL, TensorType.STRING):
        return _frozen(fitted(array, wanted))
    dtype = np.dtype(scalar)
    if array.size == 0 or (array.dtype.kind in "iu" and dtype.kind in "iu"):
        array = np.array(value, dtype)  # raises OverflowError for a number that does not fit; a cast would wrap it
    elif array.dtype.kind == "f" and dtype.kind in "iu":  # 2.0 is an integer, as in JSON Schema
        exact = np.array(value, object).reshape(-1).tolist()  # numpy may turn integers into floats
        return _frozen(np.array([_whole(one, dtype) for one in exact], dtype).reshape(array.shape))
    elif not np.can_cast(array.dtype, dtype, "same_kind"):
        raise ValueError(f"{array.dtype} cannot become {dtype} without loss")
    return _frozen(_rounded(array, dtype))


def _whole(number: float, dtype: np.dtype[Any]) -> int:
    if (whole := int(number)) != number:
        raise ValueError(f"{number} cannot become {dtype} without loss")
    return whole


def _plain_array(value: Any) -> Array:
    array: Array = np.asarray(value)
    if array.dtype.kind in _TEXT_KINDS:
        array = np.array(value, object)
        for one in array.reshape(-1).tolist():
            if not isinstance(one, str | bytes):
                problem = f"its elements must be numbers or text, and one is {type(one).__name__}"
                raise ValueError(problem)  # noqa: TRY004 - the value is wrong, and decoders expect ValueError
        array.reshape(-1)[:] = [_octets(one, value) for one in array.reshape(-1).tolist()]
    return array


def _array_of(value: Any) -> Array:
    """Convert a value to an array of any layout; text in lists keeps its length and its zeros."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise _refused(value, "its mask would be lost, and the hidden elements would be sent")
    if isinstance(value, bytes | bytearray | str):
        return _of_one(value)
    try:
        array = _loosely(value)
        if array.dtype.kind in "SU" and not isinstance(value, np.ndarray | np.generic):
            array = np.array(value, object)
    except Exception as error:
        why = str(error).partition("\n")[0]
        if isinstance(value, tuple | list) and any(isinstance(one, np.ndarray) for one in value):
            why = f"{why}; if these are several outputs, name them with @function(outputs=(...))"
        raise _refused(value, why) from error
    return array


def _loosely(value: Any) -> Array:
    if _begins_with_text(value):  # in numpy's own text arrays each element takes as much memory as the longest
        return np.array(value, object)
    try:
        return np.asarray(value)
    except UnicodeDecodeError:  # numpy tried to make text from bytes that are next to text
        return np.array(value, object)


def _begins_with_text(value: Any) -> bool:
    for _ in range(MAX_RANK):
        if not (isinstance(value, list | tuple) and value):
            break
        value = value[0]
    return isinstance(value, str | bytes)


def _of_one(value: bytes | bytearray | str) -> Array:
    array = np.empty((), object)
    array[()] = bytes(value) if isinstance(value, bytearray) else value
    return array


def _octets(one: Any, value: Any) -> bytes:
    if isinstance(one, bytes):
        return one if type(one) is bytes else bytes(one)
    if not isinstance(one, str):
        raise _refused(value, f"an element is {type(one).__name__}, neither bytes nor str")
    try:
        return str.encode(one)
    except UnicodeEncodeError as error:
        raise _refused(value, f"an element is not valid Unicode ({error.reason})") from error


def _texts(array: Array, *, is_text: bool) -> Array:
    """Convert strings to numpy's own text arrays, in which a string cannot end with a zero."""
    elements = array.reshape(-1).tolist()
    if any(one.endswith(b"\0") for one in elements):
        detail = "a string ends with a zero byte, which only NDArray[np.object_] keeps"
        raise GraphPipeError(Code.TYPE_MISMATCH, detail)
    longest = max(map(len, elements), default=0)
    if len(elements) * longest * (4 if is_text else 1) > _MOST_TEXT_BYTES:  # each takes as much memory as the longest
        detail = (
            f"{len(elements)} strings of up to {longest} bytes are too large for numpy's own strings; "
            "annotate NDArray[np.object_]"
        )
        raise GraphPipeError(Code.TOO_LARGE, detail)
    if not is_text:
        return _frozen(np.array(elements, np.bytes_).reshape(array.shape))
    try:
        texts = [str(one, "utf-8") for one in elements]
    except UnicodeDecodeError as error:
        detail = f"a string is not UTF-8 ({error.reason}), and the annotation is NDArray[np.str_]"
        raise GraphPipeError(Code.TYPE_MISMATCH, detail) from None
    return _frozen(np.array(texts, np.str_).reshape(array.shape))


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _refused(value: Any, why: str) -> GraphPipeError:
    return GraphPipeError(Code.BAD_OUTPUT, f"{type(value).__name__} cannot be a tensor: {why}")
