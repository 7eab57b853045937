"""What is found out about a request is not looked for again in the next one like it, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from invoker import function
from invoker.core.steps import Feed, Open
from invoker.message import Headers
from invoker.protocols import graphpipe
from invoker.protocols.graphpipe import plans
from invoker.protocols.graphpipe.checked import CheckedRequest
from invoker.protocols.graphpipe.model import Model
from invoker.protocols.graphpipe.prepare import prepare
from invoker.tensors import Code
from tests.protocols.graphpipe.asking import METADATA_REQUEST, Asked, ask, code_of, model_of, values

MOST = 2 * 64


def same(x: NDArray[Any]) -> NDArray[Any]:
    return x


def summed(
    x: Annotated[NDArray[np.float32], ("n", 2)], y: Annotated[NDArray[np.float32], ("n",)]
) -> NDArray[np.float32]:
    return x.sum(1) + y


def whole(x: int, label: str = "") -> int:
    return x


@function(options=[graphpipe.Rows()])
def by_rows(x: NDArray[np.float32]) -> NDArray[np.float32]:
    return x


@function(batch_max=8)
def batched(x: NDArray[np.float32]) -> NDArray[np.float32]:
    return x


X, Y = np.ones((3, 2), np.float32), np.ones(3, np.float32)
REQUESTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "one": (same, (X,), {}),
    "two": (summed, (X, Y), {}),
    "named": (summed, (Y, X), {"input_names": ("y", "x"), "output_names": ("output0",), "config": b"{}"}),
    "twice": (same, (X,), {"output_names": ("output0", "output0")}),
    "number": (whole, (np.int64(3),), {}),
    "rows": (by_rows, (X,), {}),
    "batch": (batched, (X,), {}),
}


def told(checked: CheckedRequest) -> Any:
    """All that is known of a request, in what can be compared."""
    steps: list[Any] = []
    for step in checked.steps:
        if type(step) is Open:
            opened = (step.function, step.accepts, step.bound, step.unwanted, step.output_names, step.metadata)
            steps.append((*opened, [one.value for one in step.configs]))
        elif type(step) is Feed:
            steps.append((step.index, bytes(step.message.payload), step.message.media_type))
        else:
            steps.append(type(step))
    given = [(one.port, one.tensor.type, one.tensor.shape, bytes(one.tensor.data)) for one in checked.given]  # type: ignore[arg-type]  # numbers
    others = ("wanted", "ports", "known", "most_bytes", "rows", "about", "config", "kind", "met", "parts")
    return (steps, given, *(getattr(checked, name) for name in others))


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_is_known_comes_to_the_same(name: str) -> None:
    """Its own elements are fed, and its own metadata reach the function; only the first one is read."""
    called, inputs, more = REQUESTS[name]
    model = model_of(called)
    prepare(model, ask(*inputs, **more))
    assert len(model.plans) == 1
    other = ask(*(one * 7 for one in inputs), **more)
    plan = plans.find(model, other, 64 << 20)
    assert plan is not None
    metadata = Headers({"x": "y"})
    assert told(prepare(model, other, metadata=metadata)) == told(prepare(model_of(called), other, metadata=metadata))
    assert plans.find(model, other, 64 << 20) is plan


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 255)), max_size=4))
def test_G101_a_model_that_knows_requests_answers_any_bytes_as_one_that_does_not(flips: list[tuple[int, int]]) -> None:
    """What earlier requests taught, hostile ones included, changes nothing."""
    called, inputs, more = REQUESTS["named"]
    buffer = ask(*inputs, **more)
    prepare(KNOWING, buffer)
    other = bytearray(buffer)
    for at, byte in flips:
        other[at % len(other)] = byte
    for one in (bytes(other), buffer, other):
        assert outcome(KNOWING, one) == outcome(model_of(called), one)


KNOWING = model_of(summed)


def outcome(model: Model, buffer: bytes | bytearray) -> Any:
    asked = Asked(model, buffer)  # type: ignore[arg-type]  # any buffer
    if isinstance(asked.steps[0], Open):
        return told(prepare(model, buffer))
    return bytes(asked.refusal)


def test_another_limit_is_checked_anew() -> None:
    """What fits in one limit may be too large for another."""
    model = model_of(same)
    buffer = ask(X)
    prepare(model, buffer)
    refused = prepare(model, buffer, limit_bytes=16)
    assert code_of(refused.steps[0].frame) is Code.TOO_LARGE  # type: ignore[union-attr]  # a Send


def test_what_is_refused_teaches_nothing() -> None:
    """Each refusal is found and told anew; so is metadata, which has no elements."""
    model = model_of(summed)
    for buffer in (ask(X), ask(X, np.ones(4, np.float32)), ask(X, Y, input_names=("x", "z")), b"", METADATA_REQUEST):
        assert told_refusal(prepare(model, buffer)) == told_refusal(prepare(model, buffer))
    assert len(model.plans) == 0


def test_values_that_an_input_cannot_take_are_still_refused() -> None:
    """Where a value matters, and not only its type, a known request is refused as an unknown one is."""

    @function(input_types="application/json")
    def plain(x: float) -> float:
        return x

    model = model_of(plain)
    right, wrong = ask(np.float64(1)), ask(np.float64(np.nan))
    assert isinstance(prepare(model, right).steps[0], Open)
    assert told_refusal(prepare(model, wrong)) == told_refusal(prepare(model_of(plain), wrong))


def told_refusal(checked: CheckedRequest) -> Any:
    frame = checked.steps[0].frame  # type: ignore[union-attr]  # a Send
    return (bytes(frame), checked.about)


def test_R011_peers_cannot_fill_the_memory_with_plans() -> None:
    """They choose sizes and names; a few plans of each size are kept, of few sizes, and the one in use stays."""
    model = model_of(same)
    used = ask(X)
    prepare(model, used)
    for size in range(1, 300):
        prepare(model, ask(np.zeros(size, np.uint8)))
        prepare(model, ask(np.zeros((1, size), np.uint8), config=b"x" * (size % 50)))
        assert plans.find(model, used, 64 << 20) is not None
        assert len(model.plans) <= MOST
    for number in range(20):
        prepare(model, ask(np.zeros(4, np.uint8), config=b"%02d" % number))
    size = len(ask(np.zeros(4, np.uint8), config=b"00"))
    assert len(model.plans.find(size) or ()) == 8


def test_a_view_is_read_each_time() -> None:
    """It has no quick way to be compared; transports give bytes."""
    model = model_of(same)
    prepare(model, memoryview(ask(X)))
    assert len(model.plans) == 0
    prepare(model, ask(X))
    assert isinstance(prepare(model, memoryview(ask(X))).steps[0], Open)


def test_an_answer_to_a_known_request_is_its_own() -> None:
    """Request and answer are both known the second time."""
    model = model_of(same)
    for factor in (1, 2, 3):
        asked = Asked(model, ask(X * factor))
        asked.emit(0, X * factor)
        assert values(asked.finish()) == [(X * factor).tolist()]
