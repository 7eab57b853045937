"""`invoker.tensors.wanted`: annotations of arrays."""

from __future__ import annotations

import subprocess
import sys
from typing import Annotated, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker.tensors import ArrayType, Casting, array_spelled, array_type


@pytest.mark.parametrize(
    ("annotation", "scalar"),
    [(np.ndarray, None), (NDArray, None), (NDArray[Any], None), (NDArray[np.generic], None),
     (NDArray[np.float32], np.float32), (NDArray[np.floating], np.floating), (NDArray[np.bool_], np.bool_),
     (np.ndarray[tuple[int, int], np.dtype[np.int8]], np.int8), (np.ndarray[Any, Any], None),
     (NDArray[np.float32 | np.float64], None)],
)  # fmt: skip
def test_arrays_are_recognised(annotation: Any, scalar: type | None) -> None:
    """Bare, with the class of their elements, and with a shape, which says nothing here."""
    assert array_type(annotation) == ArrayType(scalar)


@pytest.mark.parametrize(
    "annotation", [Any, object, int, list[int], np.float32, np.dtype, NDArray[np.int8] | None, "x"]
)
def test_other_annotations_are_none(annotation: Any) -> None:
    """A union is taken apart by whoever asks."""
    assert array_type(annotation) is None


def test_numpy_is_not_imported() -> None:
    """Neither by asking nor by anything but `arrays`: other functions need not pay for it."""
    code = (
        "import sys; from invoker.tensors import array_type; import invoker.codecs.tensor, invoker.codecs.npy\n"
        "from invoker.codecs import builtin, decodable, wants_arrays\n"
        "assert array_type(list) is None and not wants_arrays([int]) and decodable(int) is None\n"
        "builtin(); builtin(arrays=True).offers('application/vnd.graphpipe.tensor')\n"
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.strip() == "False"


def test_G061_casting_stands_beside_the_array() -> None:
    """And is seen wherever it stands."""
    said = Annotated[NDArray[np.int8], (1,), Casting.SAME_KIND]
    assert array_type(said) == ArrayType(np.int8, casts=True)
    assert array_type(Annotated[said, "words"]) == ArrayType(np.int8, casts=True)
    assert array_type(Annotated[NDArray[np.int8], (1,)]) == ArrayType(np.int8)


def test_arrays_are_spelled_in_short() -> None:
    """Others are not."""
    assert array_spelled(Annotated[NDArray[np.int8], (1,)]) == "NDArray[int8]"
    assert array_spelled(np.ndarray) == "ndarray"
    assert array_spelled(list[NDArray[np.int8]]) == ""
