"""`invoker.codecs.schema.arrays`: arrays of numpy are lists of lists."""

from __future__ import annotations

import subprocess
import sys
from typing import Annotated, Any, Literal

import jsonschema
import numpy as np
import pytest
from numpy.typing import NDArray

from invoker.codecs.schema.arrays import array_schema, number_schema

ROWS = Annotated[NDArray[np.float32], ("batch", 3), "rows of three"]


def test_H065_declared_sizes_are_said() -> None:
    """A name means any size, and the words beside the array are for readers."""
    assert array_schema(ROWS) == {
        "type": "array",
        "items": {"type": "array", "items": {"type": "number"}, "minItems": 3, "maxItems": 3},
        "x-shape": ["batch", 3],
        "x-array": "NDArray[float32]",
        "description": "rows of three",
    }
    spelled = array_schema(np.ndarray[tuple[int, Literal[3]], np.dtype[np.int64]])
    assert spelled is not None
    assert spelled["x-shape"] == [-1, 3]


@pytest.mark.parametrize(
    ("annotation", "right", "wrong"),
    [
        (ROWS, [[1, 2, 3.5]], [[1, 2]]),
        (ROWS, [], [1]),
        (NDArray[np.uint8], [[0, 255]], "a"),
        (NDArray[np.uint8], 255, 256),
        (NDArray[np.bool_], [True], 1),
        (NDArray[np.object_], ["a"], 1),
        (NDArray[np.str_], "a", 1),
        (Annotated[NDArray[np.int8], ()], 5, [5]),
        (Annotated[NDArray[np.int8], (2,)], [1, -128], [1, 128]),
    ],
)
def test_H065_values_fit(annotation: Any, right: Any, wrong: Any) -> None:
    """What has the shape and the type fits, and nothing else does."""
    schema = array_schema(annotation)
    assert schema is not None
    jsonschema.validate(right, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema)


@pytest.mark.parametrize("annotation", [np.ndarray, NDArray[Any]])
def test_H065_arrays_of_anything_are_anything(annotation: Any) -> None:
    """There is nothing to say but that it is an array."""
    assert array_schema(annotation) == {"x-array": "ndarray"}


@pytest.mark.parametrize("annotation", [int, list[int], Annotated[int, (1, 2)], None, "x"])
def test_H065_others_are_none(annotation: Any) -> None:
    """So the caller looks further."""
    assert array_schema(annotation) is None


def test_H065_numbers_have_their_limits() -> None:
    """Those of integers; abstract ones have none, and complex ones are nothing in JSON."""
    assert number_schema(np.int8) == {"type": "integer", "minimum": -128, "maximum": 127}
    assert number_schema(np.integer) == {"type": "integer"}
    assert number_schema(np.floating) == {"type": "number"}
    assert number_schema(np.complex64) == {}
    assert number_schema(np.void) == {}


def test_H065_numpy_is_not_imported_for_it() -> None:
    """An annotation with an array would have imported it."""
    code = "import sys; from invoker.codecs.schema import schema_of; schema_of(int); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
