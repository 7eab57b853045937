"""`retried`: accepts ``2.0`` for an int, as JSON Schema does.

msgspec does not accept floats for ints. So a refused value is converted again with integers in place of floats without
a fraction. Beyond 53 bits a float may stand for several integers, so it stays a float.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

REFUSED: Final = object()

_EXACT: Final = 2**53


def retried(convert: Callable[[Any], Any], value: Any, *, is_exact: bool = False) -> Any:
    """Convert a plain value that was refused; returns `REFUSED` if it is refused again.

    Callers then raise the first error again by a bare ``raise``, so that the error and its frames form no reference
    cycle.

    Args:
        convert: Makes the wanted type; it raises ``msgspec.ValidationError``.
        value: A value of lists, dicts, texts and numbers.
        is_exact: Whether the type keeps all digits, as Decimal does; the floats of the value may have lost some.
    """
    try:
        return convert(_whole(value, is_exact=is_exact))
    except (msgspec.ValidationError, _Inexact):
        return REFUSED


class _Inexact(Exception):
    """Raised if a float may have lost digits of an integer."""


def _whole(value: Any, *, is_exact: bool) -> Any:
    kind = type(value)
    if kind is float:
        if value.is_integer() and -_EXACT <= value <= _EXACT:
            return int(value)
        if is_exact:
            raise _Inexact
    elif kind is list:
        return [_whole(one, is_exact=is_exact) for one in value]
    elif kind is dict:
        return {key: _whole(one, is_exact=is_exact) for key, one in value.items()}
    return value
