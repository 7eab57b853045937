"""Options of GraphPipe: what they refuse; casting is told by tests/author/test_options.py and test_binding.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import function
from invoker.author.reader import read
from invoker.errors import SpecError
from invoker.protocols import graphpipe
from tests.protocols.graphpipe.asking import Asked, ask, model_of

Point = Annotated[NDArray[np.float32], (2,)]


def rows(points: Iterator[Point]) -> Iterator[Point]: ...  # type: ignore[empty-body]  # its signature counts
def whole(points: Annotated[NDArray[np.float32], ("n", 2)]) -> NDArray[np.float32]: ...  # type: ignore[empty-body]  # as above


@pytest.mark.parametrize("fn", [rows, whole])
@pytest.mark.parametrize(
    "former",
    [{"rows": True}, {"rows": False}, {"casting": "same_kind"}, {"output_casting": "same_kind"}, {"casting": "no"}],
    ids=str,
)
@pytest.mark.parametrize("given", [np.float32([[3, 4], [6, 8]]), np.float64([[3, 4]]), np.int8([[3, 4]])], ids=str)
def test_former_keywords_do_the_same_on_the_wire(fn: Any, former: dict[str, Any], given: Any) -> None:
    """The same metadata, and the same steps for a request."""
    names = {"rows": "by_row", "casting": "inputs", "output_casting": "outputs"}
    ((word, value),) = former.items()
    option = (graphpipe.Rows if word == "rows" else graphpipe.Casting)(**{names[word]: value})
    with pytest.warns(DeprecationWarning, match=word):
        old = model_of(function(**former)(_copy(fn)))
    new = model_of(function(options=[option])(_copy(fn)))
    assert bytes(old.metadata_buffer) == bytes(new.metadata_buffer)
    asked = [Asked(model, ask(given)) for model in (old, new)]
    seen = [re.sub(r"0x[0-9a-f]+", "", repr(one.steps)) for one in asked]
    assert seen[0] == seen[1]


def test_rows_and_batches_exclude_each_other() -> None:
    """The sentence has the function's name."""
    with pytest.raises(SpecError, match="of 'rows': a function takes batches or rows; drop one of them"):
        read(function(batch_max=2, options=[graphpipe.Rows()])(_copy(rows)))
    assert read(function(batch_max=2, options=[graphpipe.Rows(by_row=False)])(_copy(rows))).batching.rows == 2


def _copy(fn: Any) -> Any:
    """Another function like it, since the decorator marks it."""
    made = type(fn)(fn.__code__, fn.__globals__, fn.__name__)
    made.__annotations__ = fn.__annotations__
    return made
