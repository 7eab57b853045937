"""pandas' DataFrames as parquet, if pandas and pyarrow are installed (T-108).

The libraries are imported only when a frame is read or written.
"""

from __future__ import annotations

import io
from typing import Any

from invoker.codecs.anyvalue.errors import MissingLibrary, TooComplex, Unserializable
from invoker.codecs.anyvalue.names import MOST_ELEMENTS

PARQUET = b"PAR1"
"""The first bytes of a parquet file."""

_MISSING = "needs pandas and pyarrow, which are not installed; pip install pandas pyarrow"


def to_parquet(frame: Any) -> bytes:
    """The frame as a parquet file.

    Raises:
        Unserializable: pyarrow is missing, the frame is too large, or it has values that parquet cannot store.
    """
    if frame.size > MOST_ELEMENTS:
        raise Unserializable(f"is a DataFrame of {frame.size} cells, which exceeds the limit of {MOST_ELEMENTS}")
    made = io.BytesIO()
    try:
        frame.to_parquet(made, engine="pyarrow")
    except ImportError:
        raise Unserializable(f"is a DataFrame, which {_MISSING}", code="missing_dependency") from None
    except Exception as error:  # pyarrow raises errors of its own, and the frame may hold any object
        raise Unserializable(
            f"is a DataFrame that cannot be written as parquet: {type(error).__name__}: {error}"
        ) from error
    return made.getvalue()


def from_parquet(content: bytes) -> Any:
    """The frame of a parquet file.

    Raises:
        MissingLibrary: pandas or pyarrow is not installed.
        TooComplex: The frame has too many cells.
        ValueError: The bytes are not a parquet file.
    """
    try:
        import pandas as pd  # the import takes a second, so it is done only when a frame comes
        import pyarrow.parquet
    except ImportError:
        raise MissingLibrary(_MISSING) from None
    try:
        about = pyarrow.parquet.ParquetFile(io.BytesIO(content)).metadata
        cells = about.num_rows * about.num_columns
        if cells <= MOST_ELEMENTS:
            return pd.read_parquet(io.BytesIO(content), engine="pyarrow")
    except Exception as error:  # as above
        raise ValueError(f"it is not a parquet file ({type(error).__name__}: {error})") from error
    raise TooComplex(f"is a DataFrame of {cells} cells, which exceeds the limit of {MOST_ELEMENTS}")
