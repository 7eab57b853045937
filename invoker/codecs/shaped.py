"""Declared shapes of arrays, checked on whatever a codec made: whichever door and media type a message came by.

A size that has a name is the same within one message only; of several inputs nobody knows here which belong together.
"""

from __future__ import annotations

from typing import Any

from invoker.codecs.interface import Decode
from invoker.codecs.support import wants_arrays
from invoker.codecs.typed import leaves
from invoker.errors import DecodeError
from invoker.message import Message

__all__ = ["shaped"]


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
    from invoker.tensors import Code, GraphPipeError, misfit, shape_of  # whoever wants arrays has imported numpy

    declared = shape_of(several[0], where)
    if declared is None:
        return decode
    from numpy import ndarray

    def decode_shaped(message: Message[bytes]) -> Any:
        value = decode(message)
        if isinstance(value, ndarray) and (problem := misfit(value.shape, declared, {})):
            raise DecodeError(f"{where}: {problem}") from GraphPipeError(Code.SHAPE, problem)
        return value

    return decode_shaped
