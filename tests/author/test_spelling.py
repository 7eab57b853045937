"""How annotations are written out, and which are arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple, Optional

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker.author.spec import IGNORED
from invoker.author.spelling import render
from invoker.codecs.annotations import is_array
from invoker.message import Message


class Pair(NamedTuple):
    a: int
    b: int


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (int, "int"),
        (None, "None"),
        (Any, "Any"),
        (IGNORED, "ignored"),
        (Iterator[int], "Iterator[int]"),
        (dict[str, list[int]], "dict[str, list[int]]"),
        (Optional[int], "int | None"),  # noqa: UP045 - the other spelling
        (int | str, "int | str"),
        (tuple[int, ...], "tuple[int, ...]"),
        (Literal["a"], "Literal['a']"),
        (Message[int], "Message[int]"),
        (Pair, "Pair"),
    ],
)
def test_annotations_are_written_as_an_author_would(annotation: Any, text: str) -> None:
    """Without the names of their modules."""
    assert render(annotation) == text


def test_arrays_are_written_in_short() -> None:
    """Their shapes are the model's to say."""
    shaped = Annotated[NDArray[np.float32], ("n", 3)]
    assert [render(one) for one in (shaped, NDArray[np.str_], np.ndarray, shaped | None, list[NDArray[np.int8]])] == [
        "NDArray[float32]",
        "NDArray[str_]",
        "ndarray",
        "NDArray[float32] | None",
        "list[NDArray[int8]]",
    ]


@pytest.mark.parametrize(
    ("annotation", "is_one"),
    [(np.ndarray, True), (NDArray[np.int8], True), (Annotated[NDArray[np.int8], (1,)], True),
     (NDArray[np.int8] | None, True), (int, False), (list[NDArray[np.int8]], False), (Any, False)],
)  # fmt: skip
def test_arrays_are_known_from_others(annotation: Any, is_one: bool) -> None:
    """Alone, with a shape, and in a union."""
    assert is_array(annotation) is is_one
