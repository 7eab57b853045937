"""Reads the shapes that annotations declare, and checks whether a tensor has a declared shape.

An author writes sizes after the array, as in ``Annotated[NDArray[np.float32], ("batch", 784)]``: a number means this
size, None or -1 any size, and a name any size, but the same wherever the name is used. numpy's own notation,
``np.ndarray[tuple[int, Literal[3]], ...]``, is also read; it has no names.
"""

from __future__ import annotations

import enum
import typing
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from invoker.errors import SpecError
from invoker.fields.aliases import bare, notes
from invoker.tensors.declared import ANY_SIZE, Size, declared_size

__all__ = ["ANY_SIZE", "Declared", "Size", "described", "misfit", "numeric", "shape_of", "written"]

Declared: TypeAlias = tuple[Size, ...]

_SCALARS: Final = (bool, int, float, complex, str, bytes)


def shape_of(annotation: Any, where: str) -> Declared | None:
    """The shape that an annotation declares; None when it declares none.

    Args:
        annotation: The annotation of one array.
        where: The parameter, for the error.

    Raises:
        SpecError: The annotation declares a value that is not a shape.
    """
    beside, args = tuple(notes(annotation)), typing.get_args(bare(annotation))
    _refuse_lost(beside, args, where)
    for one in beside:
        if isinstance(one, tuple | list):
            return tuple(declared_size(size, where) for size in one)
    if not args or typing.get_origin(args[0]) is not tuple:
        return None
    sizes = typing.get_args(args[0])
    return None if ... in sizes else tuple(map(_of_numpy, sizes))


def described(annotation: Any) -> str:
    """The author's description: the first text in the metadata of the array."""
    return next((one for one in notes(annotation) if isinstance(one, str)), "")


def numeric(declared: Declared | None) -> tuple[int, ...]:
    """The shape in its form in metadata: a name becomes "any size"; empty if no shape is declared (G-068, G-091)."""
    return tuple(size if isinstance(size, int) else ANY_SIZE for size in declared or ())


def written(declared: Declared) -> str:
    """The shape as text for people: ``[batch, 784]``."""
    return f"[{', '.join('any' if size == ANY_SIZE else str(size) for size in declared)}]"


def misfit(shape: Sequence[int], declared: Declared, known: dict[str, int]) -> str:
    """The reason why a shape does not fit the declared one; empty if it fits.

    Args:
        shape: The shape of a tensor.
        declared: The declared shape.
        known: The sizes by name so far; the sizes of this shape are added if it fits.
    """
    if len(shape) != len(declared):
        return f"it has the shape {list(shape)}, and {written(declared)} is declared"
    found: dict[str, int] | None = None
    for size, one in zip(shape, declared, strict=True):
        if isinstance(one, str):
            found = dict(known) if found is None else found
            if found.setdefault(one, size) != size:
                wanted = f"{written(declared)} is declared, and '{one}' is {found[one]} already"
                return f"it has the shape {list(shape)}; {wanted}"
        elif one not in (ANY_SIZE, size):
            return f"it has the shape {list(shape)}, and {written(declared)} is declared"
    if found is not None:
        known.update(found)
    return ""


def _refuse_lost(beside: Sequence[Any], args: Sequence[Any], where: str) -> None:
    """Refuse metadata of an array that has no effect.

    That is: sizes that are not in a tuple, and element types that are not in a dtype.
    """
    loose = [one for one in beside if isinstance(one, int) and not isinstance(one, bool | enum.Enum)]
    if loose:
        meant = tuple(one for one in beside if isinstance(one, int | str))
        raise SpecError(f"{where} declares the size {loose[0]} outside of a tuple; write its shape as one, {meant}")
    scalar = next((one.__name__ for one in args if _is_scalar(one)), "")
    if scalar:
        raise SpecError(f"{where} is ndarray[{scalar}], which gives numpy no type; write NDArray[{scalar}]")


def _is_scalar(arg: Any) -> bool:
    """Whether this is a class of elements, which has to be inside ``np.dtype[...]``."""
    mro = arg.__mro__ if isinstance(arg, type) and not typing.get_args(arg) else ()
    return arg in _SCALARS or any(one.__module__ == "numpy" and one.__name__ == "generic" for one in mro)


def _of_numpy(size: Any) -> int:
    values = typing.get_args(size) if typing.get_origin(size) is typing.Literal else ()
    return values[0] if len(values) == 1 and type(values[0]) is int and values[0] >= 0 else ANY_SIZE
