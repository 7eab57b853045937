"""Reads the annotation of an array; done at the start of every function, so numpy is never imported here."""

from __future__ import annotations

import enum
import sys
import typing
from typing import Any

import msgspec

from invoker.fields.aliases import bare, notes


class Casting(enum.Enum):
    """Says which arrays of other types are accepted; it is written after the array in ``Annotated``."""

    SAME_KIND = "same_kind"


class ArrayType(msgspec.Struct, frozen=True):
    """The parsed form of an annotation such as ``NDArray[np.float32]``.

    Attributes:
        scalar: The class of its elements, which may be abstract (``np.floating``); None if any class is accepted.
        casts: Whether arrays of other types are cast to this one, if numpy's rule ``same_kind`` allows it (G-061).
    """

    scalar: type | None = None
    casts: bool = False


def array_type(annotation: Any) -> ArrayType | None:
    """The array type of ``np.ndarray``, ``NDArray[...]`` or ``np.ndarray[shape, dtype]``.

    None for any other annotation.
    """
    numpy = sys.modules.get("numpy")
    if numpy is None or not hasattr(numpy, "ndarray"):
        return None  # an annotation with an array would have imported numpy
    array = bare(annotation)
    if array is numpy.ndarray:
        return ArrayType()
    if typing.get_origin(array) is not numpy.ndarray:
        return None
    scalars = [typing.get_args(one) for one in typing.get_args(array) if typing.get_origin(one) is numpy.dtype]
    scalar = scalars[0][0] if scalars and scalars[0] else None
    is_said = isinstance(scalar, type) and scalar not in (Any, object, numpy.generic)
    return ArrayType(scalar if is_said else None, any(one is Casting.SAME_KIND for one in notes(annotation)))


def array_spelled(annotation: Any) -> str:
    """The annotation without its shape, such as ``NDArray[float32]``; empty if it is not an array."""
    wanted = array_type(annotation)
    if wanted is None:
        return ""
    return "ndarray" if wanted.scalar is None else f"NDArray[{wanted.scalar.__name__}]"
