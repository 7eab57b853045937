"""Declared shapes of arrays, checked on whatever a codec made: whichever door and media type a message came by.

A size that has a name is the same within one message only; of several inputs nobody knows here which belong together.
"""

from __future__ import annotations

from typing import Any, Final

from invoker.codecs.interface import Decode
from invoker.codecs.support import wants_arrays
from invoker.codecs.typed import leaves
from invoker.errors import DecodeError
from invoker.message import Message

__all__ = ["shaped"]

_ARRAYS: Final = ("application/vnd.graphpipe.tensor", "application/x-npy")
"""What says the shape of an array without elements, too."""


def shaped(decode: Decode, type_: Any, where: str) -> Decode:
    """A decoder that refuses arrays of other shapes than the one that is declared; of all other types, itself.

    Args:
        decode: As a codec made it.
        type_: The annotation; of unions with several arrays nothing is checked, since each may have a shape.
        where: Starts the text of its errors.

    Raises:
        SpecError: The annotation declares a shape that is none.

    Source: docs/reference/graphpipe.md 2.4 (G-062, G-068).
    """
    several = [one for one in leaves(type_) if wants_arrays([one])]
    if len(several) != 1:
        return decode
    from invoker.tensors import (
        Code,
        GraphPipeError,
        misfit,
        numeric,
        shape_of,
    )  # whoever wants arrays has imported numpy

    declared = shape_of(several[0], where)
    if declared is None:
        return decode
    from numpy import ndarray

    empty = tuple(max(size, 0) for size in numeric(declared))  # the sizes that a list without elements cannot say

    def decode_shaped(message: Message[bytes]) -> Any:
        value = decode(message)
        if isinstance(value, ndarray) and value.shape == (0,) and empty[:1] == (0,) and _is_of_lists(message):
            value = value.reshape(empty)
        if isinstance(value, ndarray) and (problem := misfit(value.shape, declared, {})):
            raise DecodeError(f"{where}: {problem}") from GraphPipeError(Code.SHAPE, problem)
        return value

    return decode_shaped


def _is_of_lists(message: Message[bytes]) -> bool:
    return message.media_type.partition(";")[0] not in _ARRAYS
