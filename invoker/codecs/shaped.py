"""Checks the declared shapes of arrays, in decoded arguments and in results, on every transport.

A named size is compared only within one message, because it is not known here which messages of several inputs belong
together.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from invoker.codecs.interface import Decode, Encode
from invoker.codecs.support import wants_arrays
from invoker.codecs.typed import leaves
from invoker.errors import DecodeError, EncodeError
from invoker.errors.wording import Place
from invoker.message import Message

if TYPE_CHECKING:
    from invoker.tensors import ArrayType, Declared

_ARRAYS: Final = ("application/vnd.graphpipe.tensor", "application/x-npy")
"""Media types that carry the shape of an array even if it has no elements."""


def shaped(decode: Decode, type_: Any, where: Place) -> Decode:
    """Wrap a decoder so that it refuses arrays of another shape than the declared one; other decoders stay as they are.

    Args:
        decode: The decoder that a codec made.
        type_: The annotation; of unions with several arrays nothing is checked, since each may have a shape.
        where: The place that begins the text of its errors.

    Raises:
        SpecError: The annotation declares an invalid shape.

    Source: docs/reference/graphpipe.md 2.4 (G-062, G-068).
    """
    _, declared = _array(type_, where)
    if declared is None:
        return decode
    from numpy import ndarray

    from invoker.tensors import Code, GraphPipeError, misfit, numeric

    empty = tuple(max(size, 0) for size in numeric(declared))  # a nested list that is empty cannot show these sizes

    def decode_shaped(message: Message[bytes]) -> Any:
        value = decode(message)
        if isinstance(value, ndarray) and value.shape == (0,) and empty[:1] == (0,) and _is_of_lists(message):
            value = value.reshape(empty)
        if isinstance(value, ndarray) and (problem := misfit(value.shape, declared, {})):
            raise DecodeError(f": {problem}", place=where) from GraphPipeError(Code.SHAPE, problem)
        return value

    return decode_shaped


def fitted_output(encode: Encode, type_: Any, where: Place, *, is_checked: bool = True) -> Encode:
    """An encoder that casts arrays if the author allows that, and refuses other shapes than the declared one.

    Args:
        encode: The encoder that a codec made; it is returned if there is nothing to do.
        type_: The annotation; of unions with several arrays nothing is cast or checked.
        where: The place that begins the text of its errors.
        is_checked: Whether shapes are checked.

    Source: docs/reference/graphpipe.md 2.4 (G-061, G-066).
    """
    wanted, declared = _array(type_, where)
    declared = declared if is_checked else None
    casts = wanted is not None and wanted.casts
    if declared is None and not casts:
        return encode
    from numpy import ndarray, shape

    from invoker.tensors import GraphPipeError, misfit
    from invoker.tensors.arrays import cast_output

    has_others = any(one is not type(None) and not wants_arrays([one]) for one in leaves(type_))

    def encode_fitted(value: Any) -> Message[bytes]:
        if value is None or (has_others and not isinstance(value, ndarray)):
            return encode(value)
        try:
            value = cast_output(value, wanted) if wanted is not None and casts else value
            met = shape(value)
        except GraphPipeError as error:
            raise EncodeError(f": {error.detail}", place=where) from error
        except ValueError:  # a ragged list is not an array; the codec decides how to treat it
            return encode(value)
        if declared is not None and (problem := misfit(met, declared, {})):
            raise EncodeError(f": {problem}", place=where)
        return encode(value)

    return encode_fitted


def _array(type_: Any, where: Place) -> tuple[ArrayType | None, Declared | None]:
    """The only array of an annotation, and its shape; both None if it has several arrays or none."""
    try:
        return _known(type_, where)
    except TypeError:  # the annotation cannot be hashed
        return _known.__wrapped__(type_, where)


@functools.lru_cache(maxsize=1000)
def _known(type_: Any, where: Place) -> tuple[ArrayType | None, Declared | None]:
    several = [one for one in leaves(type_) if wants_arrays([one])]
    if len(several) != 1:
        return None, None
    from invoker.tensors import array_type, shape_of  # a module that annotates arrays has imported numpy

    return array_type(several[0]), shape_of(several[0], str(where))


def _is_of_lists(message: Message[bytes]) -> bool:
    return message.media_type.partition(";")[0] not in _ARRAYS
