"""`invoker.protocols.graphpipe.binding`: names, types and shapes of a request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import function
from invoker.protocols import graphpipe
from invoker.protocols.graphpipe.binding import admit, given_inputs, wanted_outputs
from invoker.protocols.graphpipe.model import Model
from invoker.tensors import Code, GraphPipeError, InferRequest
from invoker.tensors.arrays import to_tensor
from tests.protocols.graphpipe.asking import model_of

Rows = Annotated[NDArray[np.float32], ("batch", 3)]


class Both(NamedTuple):
    low: Iterator[NDArray[np.float32]]
    high: Iterator[NDArray[np.float32]]


def two(left: Rows, right: NDArray[np.int64], scale: float = 1.0) -> Both:
    raise NotImplementedError


ROWS = np.float32([[1, 2, 3]])
ONES = np.int64([1])


def request(*inputs: Any, **more: Any) -> InferRequest:
    return InferRequest(tuple(to_tensor(one) for one in inputs), **more)


def bound(model: Model, asked: InferRequest) -> list[tuple[str, Any]]:
    return [(one.port.own, one.tensor.shape) for one in given_inputs(model, asked, {})]


def refused(model: Model, asked: InferRequest) -> Code:
    with pytest.raises(GraphPipeError) as caught:
        given_inputs(model, asked, {})
    return caught.value.code


def test_G052_tensors_without_names_are_the_inputs_in_order() -> None:
    """G-056: those with defaults may be left out."""
    model = model_of(two)
    assert bound(model, request(ROWS, ONES)) == [("left", (1, 3)), ("right", (1,))]
    assert bound(model, request(ROWS, ONES, 2.0))[2] == ("scale", ())


def test_G070_GT34_declared_order_counts_not_that_of_the_wire() -> None:
    """Names say which is which; aliases, too."""
    model = model_of(two)
    for names in (("right", "left"), ("input1", "input0"), ("right", "input0")):
        assert bound(model, request(ONES, ROWS, input_names=names)) == [("left", (1, 3)), ("right", (1,))]


def test_G053_an_empty_name_is_the_default_at_its_place() -> None:
    """Others may be named."""
    assert bound(model_of(two), request(ROWS, ONES, input_names=("", "right")))[0][0] == "left"


@pytest.mark.parametrize(
    ("inputs", "names", "code"),
    [
        ((ROWS, ONES), ("left", "wrong"), Code.UNKNOWN_INPUT),
        ((ROWS, ONES, 1.0, 1.0), (), Code.UNKNOWN_INPUT),
        ((ROWS, ROWS), ("left", "left"), Code.DUPLICATE_NAME),
        ((ROWS, ROWS), ("left", "input0"), Code.DUPLICATE_NAME),
        ((ROWS, ROWS), ("left", ""), Code.TYPE_MISMATCH),
        ((ROWS,), (), Code.MISSING_INPUT),
        ((ONES,), ("right",), Code.MISSING_INPUT),
        ((), (), Code.MISSING_INPUT),
    ],
)
def test_G054_G055_GT33_wrong_names(inputs: Any, names: tuple[str, ...], code: Code) -> None:
    """Each has its code; missing ones count only if they have no default."""
    assert refused(model_of(two), request(*inputs, input_names=names)) is code


def test_a_near_miss_is_hinted_at() -> None:
    """As everywhere."""
    with pytest.raises(GraphPipeError, match="did you mean 'right'"):
        given_inputs(model_of(two), request(ROWS, ONES, input_names=("left", "rihgt")), {})


@pytest.mark.parametrize(
    ("left", "code"),
    [
        (ROWS.astype("f8"), Code.TYPE_MISMATCH),
        (np.array([["a", "b", "c"]]), Code.TYPE_MISMATCH),
        (np.float32([[1, 2]]), Code.SHAPE),
        (np.float32([1, 2, 3]), Code.SHAPE),
    ],
)
def test_G061_G062_GT38_types_and_shapes_are_checked(left: Any, code: Code) -> None:
    """Nothing is cast."""
    assert refused(model_of(two), request(left, ONES)) is code


def test_G062_any_size_may_be_zero() -> None:
    """Of a dimension that has a name."""
    assert bound(model_of(two), request(np.zeros((0, 3), "f4"), ONES))[0] == ("left", (0, 3))


def test_G063_equal_names_of_sizes_across_inputs() -> None:
    """E9 when they differ."""

    def paired(a: Annotated[NDArray[Any], ("batch", -1)], b: Annotated[NDArray[Any], ("batch",)]) -> None:
        raise NotImplementedError

    model = model_of(paired)
    assert len(bound(model, request(np.zeros((2, 5)), np.zeros(2)))) == 2
    assert refused(model, request(np.zeros((2, 5)), np.zeros(3))) is Code.SHAPE


def test_G057_G058_GT35_outputs_as_they_are_asked_for() -> None:
    """None named: all; order and repetition are the caller's."""
    model = model_of(two)
    assert wanted_outputs(model, request()) == (0, 1)
    assert wanted_outputs(model, request(output_names=("high",))) == (1,)
    assert wanted_outputs(model, request(output_names=("high", "low", "output1"))) == (1, 0, 1)


@pytest.mark.parametrize("name", ["", "wrong", "output2"])
def test_G059_unknown_outputs_are_E5(name: str) -> None:
    """An empty name, too."""
    with pytest.raises(GraphPipeError) as caught:
        wanted_outputs(model_of(two), request(output_names=(name,)))
    assert caught.value.code is Code.UNKNOWN_OUTPUT


def test_G067_a_function_without_inputs_takes_no_tensors() -> None:
    """And refuses one."""

    def nothing() -> int:
        raise NotImplementedError

    assert bound(model_of(nothing), request()) == []
    assert refused(model_of(nothing), request(1)) is Code.UNKNOWN_INPUT


def test_any_number_of_inputs() -> None:
    """Further ones have numbers."""

    def several(first: NDArray[Any], *rest: NDArray[Any]) -> NDArray[Any]:
        raise NotImplementedError

    model = model_of(several)
    assert [one for one, _ in bound(model, request(1, 2, 3, 4))] == ["first", "rest", "rest2", "rest3"]
    swapped = request(1, 2, 3, input_names=("input2", "first", "rest"))
    assert [one for one, _ in bound(model, swapped)] == ["first", "rest", "rest2"]
    assert [one for one, _ in bound(model, request(1))] == ["first"]
    assert refused(model, request()) is Code.MISSING_INPUT
    assert refused(model, request(1, 2, 3, input_names=("first", "rest", "input9"))) is Code.UNKNOWN_INPUT


def test_G074_an_input_that_takes_no_tensors_is_E8() -> None:
    """Before the function runs."""

    @function(input_types="image/png")
    def pictures(x: bytes) -> int:
        raise NotImplementedError

    assert refused(model_of(pictures), request(b"x")) is Code.TYPE_MISMATCH


def several(model: Model, asked: InferRequest) -> list[tuple[Code, str]]:
    """The errors with which a request is refused."""
    with pytest.raises(GraphPipeError) as caught:
        given_inputs(model, asked, {})
    return [(one.code, one.detail) for one in (caught.value, *caught.value.further)]


def test_G084_each_wrong_input_has_an_error() -> None:
    """In declared order; those that are called wrongly come first."""
    model = model_of(two)
    wrong = {"left": np.float32([1]), "right": np.float32([1])}
    assert [code for code, _ in several(model, request(*wrong.values()))] == [Code.SHAPE, Code.TYPE_MISMATCH]
    needs = [f"'two' needs its input '{name}', which is not given" for name in ("left", "right")]
    assert [detail for _, detail in several(model, request())] == needs
    named = several(model, request(*wrong.values(), 1, input_names=("lefft", "right", "right")))
    assert [code for code, _ in named] == [Code.UNKNOWN_INPUT, Code.DUPLICATE_NAME, Code.TYPE_MISMATCH]
    assert all("which is not given" not in detail for _, detail in named)


def test_G084_a_wrong_input_says_nothing_of_the_sizes_of_others() -> None:
    """Else one mistake would be two."""

    def agree(a: Annotated[NDArray[np.int64], ("n", 2)], b: Annotated[NDArray[np.int64], ("n",)]) -> int: ...  # type: ignore[empty-body]  # it is not called

    assert len(several(model_of(agree), request(np.zeros((3, 5), "i8"), np.zeros(4, "i8")))) == 1


def test_G061_a_refusal_of_what_could_be_cast_says_so() -> None:
    """To whom it may help."""
    ((_, detail),) = several(model_of(two), request(np.zeros((1, 2)), np.zeros(1, "i8")))
    assert detail == (
        "input 'left' is Float64, and Float32 is declared; "
        "nothing is cast, unless the function has the option graphpipe.Casting(inputs='same_kind')"
    )


def test_G061_G025_what_casting_takes_is_bounded() -> None:
    """Eight bytes may become of one."""

    @function(options=[graphpipe.Casting(inputs="same_kind")])
    def wide(x: NDArray[np.float64]) -> int:
        raise NotImplementedError

    (one,) = given_inputs(model_of(wide), request(np.zeros(100, "u1")), {})
    assert one.cast_bytes == 800
    admit((one,), 800)
    with pytest.raises(GraphPipeError, match="the inputs have 800 bytes, which exceeds the limit of 799") as caught:
        admit((one,), 799)
    assert caught.value.code is Code.TOO_LARGE
    (same,) = given_inputs(model_of(wide), request(np.zeros(100)), {})
    assert same.cast_bytes == 0
