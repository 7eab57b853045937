"""`invoker.protocols.graphpipe.rows`: batches fed row by row, and stacked again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import function
from invoker.core.budget import Limits
from invoker.core.steps import Cancel, EndInput, Feed, Open
from invoker.errors import SpecError
from invoker.protocols import graphpipe
from invoker.protocols.graphpipe.binding import GivenInput
from invoker.protocols.graphpipe.rows import count_rows, joined, no_rows, row, span, stacked
from invoker.protocols.graphpipe.session import GraphPipeSession, Row
from invoker.tensors import Code, GraphPipeError, IOMetadata, TensorType
from invoker.tensors.arrays import to_array, to_tensor
from tests.protocols.graphpipe.asking import Asked, ask, code_of, model_of, values
from tests.transports.models import inferring

Point = Annotated[NDArray[np.float32], (2,)]


@function(options=[graphpipe.Rows()])
def norms(points: Iterator[Point], scale: Iterator[int]) -> Iterator[float]:
    for point, one in zip(points, scale, strict=True):
        yield float(np.hypot(*point)) * one


@function(options=[graphpipe.Rows()])
def dropping(points: Iterator[Point]) -> Iterator[Point]:
    for number, point in enumerate(points):
        if number != 1:
            yield point


def test_G073_metadata_is_that_of_the_batch() -> None:
    """Annotations are of one row."""
    model = model_of(norms)
    assert model.metadata.inputs == (
        IOMetadata("points", "", (-1, 2), TensorType.FLOAT32),
        IOMetadata("scale", "", (-1,), TensorType.INT64),
    )
    assert model.metadata.outputs == (IOMetadata("output0", "", (-1,), TensorType.FLOAT64),)


def test_G073_rows_are_fed_one_by_one() -> None:
    """When the driver asks; the end comes behind them."""
    asked = Asked(model_of(norms), ask(np.float32([[3, 4], [6, 8]]), [1, 2]))
    assert [type(one) for one in asked.steps] == [Open]
    first, scale = asked.session.receive(Row(1))
    assert isinstance(first, Feed)
    assert isinstance(scale, Feed)
    assert (first.index, bytes(first.message.payload)) == (0, np.float32([6, 8]).tobytes())
    assert (scale.index, scale.message.payload) == (1, b"\x02")
    assert asked.session.half_close() == (EndInput("infer"),)
    asked.emit(0, 5.0)
    asked.emit(0, 20.0)
    assert values(asked.finish()) == [[5.0, 20.0]]


@pytest.mark.parametrize("inputs", [(np.zeros((2, 2), "f4"), [1]), (np.zeros((2, 2), "f4"), 1)])
def test_G063_G073_all_inputs_have_as_many_rows(inputs: Any) -> None:
    """E9 before the function runs."""
    assert code_of(Asked(model_of(norms), ask(*inputs)).refusal) is Code.SHAPE


def test_G073_as_many_rows_come_out() -> None:
    """Fewer and more are E18."""
    asked = Asked(model_of(norms), ask(np.zeros((2, 2), "f4"), [1, 2]))
    asked.emit(0, 1.0)
    assert code_of(asked.finish()) is Code.BAD_OUTPUT
    asked = Asked(model_of(norms), ask(np.zeros((1, 2), "f4"), [1]))
    asked.emit(0, 1.0)
    (cancel,) = asked.emit(0, 1.0)
    assert isinstance(cancel, Cancel)


async def test_G073_GT42_a_thousand_rows_through_the_machinery() -> None:
    """Equal to those of numpy; a function that drops one is E18; no rows are no rows."""
    points = np.arange(2000, dtype="f4").reshape(-1, 2)
    async with inferring(norms, dropping) as one:
        response = await one.infer(one.first, bytearray(ask(points, np.full(1000, 2))), transport="test")
        assert np.allclose(values(response)[0], np.hypot(points[:, 0], points[:, 1]) * 2)
        none = await one.infer(one.first, bytearray(ask(points[:0], np.zeros(0, "i8"))), transport="test")
        assert values(none) == [[]]
        dropped = await one.infer(one.models["dropping"], bytearray(ask(points)), transport="test")
        assert code_of(dropped) is Code.BAD_OUTPUT


async def test_G073_a_slow_function_holds_rows_back() -> None:
    """More rows than an invocation may hold unread pass, since they are cut only when there is room."""
    points = np.zeros((3000, 2), "f4")
    async with inferring(norms, limits=Limits(hard_frames=1024)) as one:
        response = await one.infer(one.first, bytearray(ask(points, np.ones(3000, "i1"))), transport="test")
    assert len(values(response)[0]) == 3000


def test_rows_of_tensors() -> None:
    """Views of numbers, parts of strings."""
    for value in (np.arange(12, dtype=">i2").reshape(3, 2, 2), np.array([["a"], ["b"], ["c"]]), np.int8([1, 2, 3])):
        tensor = to_tensor(value)
        rows = [row(tensor, index) for index in range(3)]
        assert to_array(rows[1]).tolist() == to_array(tensor)[1].tolist()
        assert stacked(rows, "y") == tensor
    with pytest.raises(GraphPipeError, match="row 1 is Int64"):
        stacked([to_tensor(1.5), to_tensor(1)], "output 'y'")


@pytest.mark.parametrize("value", [np.arange(12, dtype="f4").reshape(4, 3), np.array([["a"], ["bb"], ["c"], ["d"]])])
def test_G072_spans_of_a_tensor_joined_are_the_tensor(value: NDArray[Any]) -> None:
    """Wherever it is cut; each span has the shape and the elements of its rows."""
    tensor = to_tensor(value)
    for at in range(1, 4):
        first, rest = span(tensor, 0, at), span(tensor, at, 4)
        assert to_array(rest).tolist() == to_array(tensor)[at:].tolist()
        assert (first.shape[0], rest.shape[0]) == (at, 4 - at)
        assert joined([first, rest], "y") == tensor


def test_G073_empty_rows_have_a_limit() -> None:
    """Each would be a value of its own; as many as the limit pass."""
    port = model_of(norms).inputs[0]
    for rows in (65_536, 65_537):
        given = [GivenInput(port, to_tensor(np.zeros((rows, 0), "f4")))]
        if rows == 65_536:
            assert count_rows(given) == rows
        else:
            with pytest.raises(
                GraphPipeError, match="there are 65537 rows without elements, which exceeds the limit of 65536"
            ):
                count_rows(given)


def test_an_output_without_rows_is_as_declared() -> None:
    """As far as it is."""
    (port,) = model_of(dropping).outputs
    assert (no_rows(port).type, no_rows(port).shape) == (TensorType.FLOAT32, (0, 2))


def test_a_row_after_the_end_is_nothing() -> None:
    """The function may have failed meanwhile."""
    asked = Asked(model_of(dropping), ask(np.zeros((2, 2), "f4")))
    asked.finish(GraphPipeError(Code.FUNCTION_FAILED))
    assert asked.session.receive(Row(1)) == ()
    assert GraphPipeSession(model_of(dropping)).receive(Row(0)) == ()


def test_the_option_is_true_or_false() -> None:
    """As a decorator's options are."""
    with pytest.raises(SpecError, match="must be True or False"):
        graphpipe.Rows(3)  # type: ignore[arg-type]
