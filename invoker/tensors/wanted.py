"""What an annotation says of an array; asked at start-up of every function, so numpy is never imported here."""

from __future__ import annotations

import sys
import typing
from typing import Any

import msgspec

__all__ = ["ArrayType", "array_type"]


class ArrayType(msgspec.Struct, frozen=True):
    """An annotation like ``NDArray[np.float32]``.

    Attributes:
        scalar: Class of its elements, which may be abstract (``np.floating``); None where any will do.
    """

    scalar: type | None = None


def array_type(annotation: Any) -> ArrayType | None:
    """What ``np.ndarray``, ``NDArray[...]`` or ``np.ndarray[shape, dtype]`` says; None for anything else."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not hasattr(numpy, "ndarray"):
        return None  # whoever wrote the annotation has imported it
    if annotation is numpy.ndarray:
        return ArrayType()
    if typing.get_origin(annotation) is not numpy.ndarray:
        return None
    scalars = [typing.get_args(one) for one in typing.get_args(annotation) if typing.get_origin(one) is numpy.dtype]
    scalar = scalars[0][0] if scalars and scalars[0] else None
    is_said = isinstance(scalar, type) and scalar not in (Any, object, numpy.generic)
    return ArrayType(scalar if is_said else None)
