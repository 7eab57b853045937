"""What a function is fed for its inputs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import function
from invoker.codecs.tensor import TENSOR
from invoker.protocols.graphpipe.binding import GivenInput
from invoker.protocols.graphpipe.checked import messages_for
from invoker.protocols.graphpipe.prepare import prepare
from invoker.tensors import Code, GraphPipeError
from invoker.tensors.arrays import to_tensor
from tests.protocols.graphpipe.asking import ask, model_of


@function(batch_max=4)
def both(x: NDArray[np.float32], label: str = "") -> NDArray[np.float32]:
    return x


def test_G074_each_input_gets_what_it_takes() -> None:
    """An array its elements as they are, a text its bytes."""
    array, text = (one for one in model_of(both).inputs)
    given = [GivenInput(array, to_tensor(np.ones(2, np.float32))), GivenInput(text, to_tensor("é"))]
    first, second = messages_for(given, 100)
    assert (first.media_type, bytes(first.payload)) == (
        f"{TENSOR};type=float32;shape=2",
        np.ones(2, np.float32).tobytes(),
    )
    assert (second.media_type, second.payload) == ("text/plain; charset=utf-8", "é".encode())


def test_G025_what_is_fed_is_bounded_in_all() -> None:
    """Tensors that share their data count each time."""
    (array, _) = model_of(both).inputs
    given = [GivenInput(array, to_tensor(np.ones(2, np.float32)))] * 3
    assert len(messages_for(given, 24)) == 3
    with pytest.raises(GraphPipeError, match="the inputs have 24 bytes, which exceeds the limit of 23") as caught:
        messages_for(given, 23)
    assert caught.value.code is Code.TOO_LARGE


def test_inputs_are_kept_only_where_they_are_needed() -> None:
    """A batch is joined of them; otherwise they have been fed."""
    checked = prepare(model_of(both), ask(np.ones((3, 2), np.float32)))
    assert checked.keeps_given
    assert checked.count == 3
    alone = prepare(model_of(both), ask(np.float32(1)))
    assert (alone.keeps_given, alone.given) == (False, ())


@function
def kept(data: bytes, text: str, array: NDArray[np.float32]) -> int:
    return len(data) + len(text) + array.nbytes


@pytest.mark.parametrize("time", ["first", "again"])
@pytest.mark.parametrize("is_string", [True, False])
def test_copies_are_weighed_before_they_are_made(is_string: bool, time: str) -> None:
    """Each time, also where the plan of an earlier request is taken; an array is a view on the request."""
    model, size, weighed = model_of(kept), 1 << 20, list[int]()
    data = bytes(size) if is_string else np.zeros(size, np.uint8)
    buffer = ask(data, "t" * size, np.zeros(size, np.float32), input_names=("data", "text", "array"))
    for _ in range(1 if time == "first" else 2):
        weighed.clear()
        assert prepare(model, buffer, weigh=weighed.append).steps
    assert 2 * size <= max(weighed) <= 2 * size + 1000
