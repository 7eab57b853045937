"""What the victims of `tests.attack.values` serve: functions whose arguments may cost more than their bytes."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

import numpy as np
import pydantic
from numpy.typing import NDArray

from invoker import Field, function
from tests.attack.functions import akind, kind, kinds

__all__ = [
    "aboom", "afloats", "akind", "boom", "cubed", "decimals", "deep", "floats", "ids", "isolated_boom", "kind", "kinds",
    "many", "modelled", "named", "squared", "twice",
]  # fmt: skip


class Model(pydantic.BaseModel):
    """A class of pydantic's with numbers."""

    xs: list[float]


@function
def many(*values: Any) -> int:
    """How many came."""
    return len(values)


@function
def floats(xs: list[float]) -> int:
    """How many there are."""
    return len(xs)


@function
async def afloats(xs: list[float]) -> int:
    """The same on the event loop."""
    return len(xs)


@function
def modelled(model: Model) -> int:
    """How many numbers a model has."""
    return len(model.xs)


@function
def twice(x: NDArray[np.float64]) -> int:
    """How many elements there are."""
    return int(x.size)


@function
def decimals(xs: set[Decimal]) -> int:
    """How many different ones there are."""
    return len(xs)


@function
def ids(xs: set[UUID]) -> int:
    """How many different ones there are."""
    return len(xs)


@function
def named(xs: dict[UUID, int]) -> int:
    """How many different names there are."""
    return len(xs)


@function
def boom(text: str) -> str:
    """Raises what the caller says."""
    raise ValueError(text)


@function
async def aboom(text: str) -> str:
    """The same on the event loop."""
    raise ValueError(text)


@function(isolation="process")
def isolated_boom(text: str) -> str:
    """The same in a child."""
    raise ValueError(text)


@function
def squared(text: Annotated[str, Field(pattern=r"\s+$")]) -> int:
    """Its pattern takes the square of the text, unless RE2 runs it."""
    return len(text)


@function
async def cubed(text: Annotated[str, Field(pattern=r"(?!z)(a|b)*c.*d.*e$")]) -> int:
    """The cube, on the event loop; RE2 does not look around."""
    return len(text)


@function
def deep(texts: list[Annotated[str, Field(pattern=r"\s+$")]]) -> int:
    """Msgspec matches these, never RE2."""
    return len(texts)
