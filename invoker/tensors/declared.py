"""`Tensor`: describes an input or an output that has no annotation.

It does not import numpy, so a module that only declares tensors does not need numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from invoker.errors import SpecError
from invoker.errors.wording import suggestion

Size: TypeAlias = int | str

ANY_SIZE: Final = -1
"""The value in metadata for a size that is not declared."""

_NAMES: Final = (
    *("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64"),
    *("string", "str", "bool", "any"),
)
_OTHERWISE: Final = {
    "half": "float16",
    "single": "float32",
    "float": "float64",
    "double": "float64",
    "int": "int64",
    "object": "string",
    "object_": "string",
    "bytes": "string",
    "bytes_": "string",
    "str_": "str",
    "bool_": "bool",
    "none": "any",
    "ndarray": "any",
}


@dataclass(frozen=True)
class Tensor:
    """Declares the tensors of an input or output: ``Tensor("float32", [-1, 3], "one row a flower")``.

    Args:
        dtype: The name of a type (``"float32"``), or the class or dtype of numpy that has this name. ``"string"`` means
            bytes of any content, ``"str"`` text, ``"bool"`` booleans, which are sent as Uint8, ``"any"`` every type.
        shape: The sizes. -1 and None mean any size; a name means any size, but the same wherever the name is used.
            None instead of a shape means any shape.
        description: A description for readers of the metadata.

    Attributes:
        dtype: One of the names above.
        shape: The sizes, with -1 for any size.

    Raises:
        SpecError: The type is unknown, or the shape is invalid.
    """

    dtype: Any = "any"
    shape: Sequence[Size | None] | None = None
    description: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", _named(self.dtype))
        if not isinstance(self.description, str):
            raise SpecError(f"Tensor(description={self.description!r}) must be text")
        if self.shape is None:
            return
        if isinstance(self.shape, str | int) or not hasattr(self.shape, "__iter__"):
            raise SpecError(f"Tensor(shape={self.shape!r}) must be a list of sizes, such as [-1, 3]")
        sizes = tuple(declared_size(one, f"Tensor(shape={list(self.shape)!r})") for one in self.shape)
        object.__setattr__(self, "shape", sizes)


def declared_size(size: Any, where: str) -> Size:
    """Convert one size of a shape from the form in which an author may write it.

    Raises:
        SpecError: The value is not a size.
    """
    if size is None:
        return ANY_SIZE
    if isinstance(size, str) and size:
        return size
    if isinstance(size, int) and not isinstance(size, bool) and size >= ANY_SIZE:
        return int(size)
    raise SpecError(f"{where} declares a size {size!r}; a size is a whole number, a name, or None for any")


def _named(dtype: Any) -> str:
    said = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", None) or getattr(dtype, "name", None)
    name = "any" if dtype is None else said.lower() if isinstance(said, str) else ""
    name = _OTHERWISE.get(name, name)
    if name in _NAMES:
        return name
    raise SpecError(f"Tensor({dtype!r}): there is no such type; {suggestion(name, _NAMES)}")
