"""Functions without annotations behind GraphPipe: they get arrays, and a tuple of theirs is several outputs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest

from invoker.client import GraphPipe, GraphPipeError
from invoker.tensors import Code
from tests.serving import Served, serving


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving("tests.e2e.undeclared_functions") as one:
        yield one


def infer(served: Served, name: str, *inputs: Any, **options: Any) -> Any:
    """What a model of this server gives."""
    with GraphPipe(f"http://{served.http}/graphpipe/{name}") as model:
        return model.infer(*inputs, **options)


def test_numpy_is_loaded_when_a_tensor_comes_only() -> None:
    """A start is not slower for functions that nobody asks by GraphPipe."""
    with serving("tests.e2e.undeclared_functions:has_numpy") as alone:
        assert httpx.post(f"http://{alone.http}/", json=1).json() is False
        with GraphPipe(f"http://{alone.http}/graphpipe") as model:
            assert model.infer(np.float32(1)) == 1


@pytest.mark.parametrize("dtype", ["u1", "i4", "i8", "f2", "f4", "f8"])
def test_G068_a_function_without_annotations_gets_an_array(served: Served, dtype: str) -> None:
    """So that ``x * 2`` doubles each element, and the type stays what it was."""
    given = np.array([[1, 2], [3, 4]], dtype)
    made = infer(served, "doubled", given)
    assert made.dtype == given.dtype
    assert made.tolist() == [[2, 4], [6, 8]]


def test_G066_a_tuple_is_as_many_outputs_as_it_has_parts(served: Served) -> None:
    """Of any shapes and types, never one tensor; a tuple of one is one output."""
    first, second = infer(served, "both", np.int16([1, 2]))
    assert (first.dtype, first.tolist()) == (np.int16, [1, 2])
    assert (second.dtype, second.tolist()) == (np.int16, [2])
    assert infer(served, "lone", np.int16([1, 2])).tolist() == [1, 2]


def test_G057_parts_have_names(served: Served) -> None:
    """Any of them may be asked for, also twice, in any order; one that is not there is unknown."""
    assert infer(served, "both", np.int16([1, 2]), outputs="output1").tolist() == [2]
    made = infer(served, "both", np.int16([1, 2]), outputs=["output1", "output0"])
    assert {name: array.tolist() for name, array in made.items()} == {"output1": [2], "output0": [1, 2]}
    assert infer(served, "doubled", np.int16([1]), outputs="output0").tolist() == [2]
    for name in ("output2", "other", "output01", "output-1"):
        with pytest.raises(GraphPipeError) as caught:
            infer(served, "both", np.int16([1, 2]), outputs=name)
        assert caught.value.code == Code.UNKNOWN_OUTPUT


def test_names_that_the_author_gave_hold(served: Served) -> None:
    """Two names take a tuple of two; one name takes no tuple of two."""
    low, high = infer(served, "named_both", np.int16([1, 2]))
    assert (low.tolist(), high.tolist()) == ([1, 2], [2, 4])
    with pytest.raises(GraphPipeError, match=r"a tuple of 2 for output 'y'; name its outputs with") as caught:
        infer(served, "named", np.int16([1]))
    assert caught.value.code == Code.BAD_OUTPUT


@pytest.mark.parametrize(("name", "met"), [("none", "a tuple of 0"), ("uneven", "tuples of different lengths")])
def test_G066_what_is_no_output_is_refused(served: Served, name: str, met: str) -> None:
    """As the author's mistake."""
    with pytest.raises(GraphPipeError, match=met) as caught:
        infer(served, name, np.int16([1, 2]))
    assert caught.value.code == Code.BAD_OUTPUT


def test_G073_rows_are_stacked_part_by_part(served: Served) -> None:
    """Each row gives a tuple; each part is stacked by itself."""
    rows, sums = infer(served, "by_row", np.float32([[1, 2], [3, 4]]))
    assert rows.tolist() == [[1, 2], [3, 4]]
    assert (sums.dtype, sums.tolist()) == (np.float32, [3, 7])


def test_G076_batches_are_parted_part_by_part(served: Served) -> None:
    """Each request gets its rows of each part, and those that want other parts are not joined with it (G-077)."""
    with ThreadPoolExecutor(8) as pool:
        all_parts = [pool.submit(infer, served, "batched", np.float32([[n]])) for n in range(8)]
        second = [pool.submit(infer, served, "batched", np.float32([[n]]), outputs="output1") for n in range(8)]
        for n, one in enumerate(all_parts):
            assert [array.tolist() for array in one.result()] == [[[n]], [[-n]]]
        for n, one in enumerate(second):
            assert one.result().tolist() == [[-n]]


def test_other_protocols_get_the_tuple_whole() -> None:
    """Over HTTP it is a list, as ever."""
    with serving("tests.e2e.undeclared_functions:both") as alone:
        assert httpx.post(f"http://{alone.http}/", json=[1, 2]).json() == [[1, 2], [1, 1]]
