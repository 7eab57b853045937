"""Tools that take and give DataFrames; they need pandas and pyarrow, as `python -m tools agents` has them."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from invoker import function


@function
def doubled(frame: pd.DataFrame) -> pd.DataFrame:
    """Each number twice as large."""
    return frame * 2


@function
def rows(frame, count=1) -> int:
    """How many rows there are."""
    return len(frame) * count


@function
def parts(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Row by row."""
    for number in range(len(frame)):
        yield frame.iloc[[number]]


@function
async def kept(frame: pd.DataFrame | None = None) -> str:
    """The type of what came."""
    return type(frame).__name__
