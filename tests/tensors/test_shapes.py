"""`invoker.tensors.shapes`: declared shapes, and tensors that have them or not."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker.errors import SpecError
from invoker.tensors import Casting, described, misfit, numeric, shape_of, written

F32 = NDArray[np.float32]


@pytest.mark.parametrize(
    ("annotation", "shape"),
    [
        (F32, None),
        (np.ndarray, None),
        (Annotated[F32, "words only"], None),
        (Annotated[F32, ("batch", 3)], ("batch", 3)),
        (Annotated[F32, "pixels", [None, -1, 0]], (-1, -1, 0)),
        (Annotated[F32, ()], ()),
        (Annotated[F32, Casting.SAME_KIND, True, ("n",)], ("n",)),
        (np.ndarray[Any, np.dtype[np.float32]], None),
        (np.ndarray[tuple[int, ...], Any], None),
        (np.ndarray[tuple[int, Literal[3]], np.dtype[np.float32]], (-1, 3)),
        (np.ndarray[tuple[Any, ...], np.dtype[np.float32]], None),
        (Annotated[np.ndarray[tuple[int], np.dtype[np.int8]], "a note"], (-1,)),
    ],
)
def test_G068_shapes_are_read_from_annotations(annotation: Any, shape: Any) -> None:
    """Sizes beside the array, or as numpy spells them."""
    assert shape_of(annotation, "input 'x'") == shape


@pytest.mark.parametrize("size", [-2, 1.5, "", True, b"n"])
def test_a_size_that_is_none_is_refused(size: Any) -> None:
    """With the place."""
    with pytest.raises(SpecError, match="input 'x' declares a size"):
        shape_of(Annotated[F32, (size,)], "input 'x'")


@pytest.mark.parametrize(
    ("annotation", "fix"),
    [
        (Annotated[F32, "batch", 3], "size 3 outside of a tuple; write its shape as one, ('batch', 3)"),
        (Annotated[F32, 3], "size 3 outside of a tuple; write its shape as one, (3,)"),
        (Annotated[F32, ("batch",), 0], "size 0 outside of a tuple"),
        (np.ndarray[np.float32], "ndarray[float32], which gives numpy no type; write NDArray[float32]"),
        (Annotated[np.ndarray[Any, np.int8], (3,)], "write NDArray[int8]"),
        (np.ndarray[float], "write NDArray[float]"),
    ],
)
def test_G068_what_would_be_dropped_without_a_word_is_refused(annotation: Any, fix: str) -> None:
    """Sizes without their tuple, and types without their dtype; the text has what to write."""
    with pytest.raises(SpecError) as caught:
        shape_of(annotation, "input 'x'")
    assert caught.value.detail.startswith("input 'x' ")
    assert fix in caught.value.detail


def test_G091_names_and_any_are_minus_one_in_metadata() -> None:
    """And readers see the names."""
    assert numeric(("batch", -1, 3)) == (-1, -1, 3)
    assert numeric(None) == ()
    assert written(("batch", -1, 3)) == "[batch, any, 3]"
    assert described(Annotated[F32, (1,), "pixels"]) == "pixels"
    assert described(F32) == ""


@pytest.mark.parametrize(
    ("shape", "declared", "fits"),
    [
        ((0, 3), (-1, 3), True),
        ((5, 3), ("n", 3), True),
        ((5, 4), (-1, 3), False),
        ((3,), (-1, 3), False),
        ((), (), True),
        ((1,), (), False),
        ((2, 2), ("n", "n"), True),
        ((2, 3), ("n", "n"), False),
    ],
)
def test_G062_GT37_a_shape_fits_or_does_not(shape: tuple[int, ...], declared: Any, fits: bool) -> None:
    """-1 and names take any size, also 0; everything else is exact."""
    assert (misfit(shape, declared, {}) == "") is fits


def test_G063_equal_names_are_equal_sizes() -> None:
    """Across all that is checked together; the text says which size it was."""
    known: dict[str, int] = {}
    assert misfit((2, 3), ("batch", 3), known) == ""
    assert "'batch' is 2 already" in misfit((4,), ("batch",), known)
