"""`invoker.protocols.graphpipe.batch`: which requests are alike, and batches made of them and parted again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import function
from invoker.codecs.tensor import TENSOR
from invoker.errors import SpecError
from invoker.message import EMPTY, Message
from invoker.protocols.graphpipe.answer import Answer
from invoker.protocols.graphpipe.batch import merged, parted
from invoker.protocols.graphpipe.prepare import joint, prepare
from invoker.tensors import GraphPipeError, write_tensor
from invoker.tensors.arrays import to_array, to_tensor
from tests.protocols.graphpipe.asking import ask, model_of, values


@function(batch_max=8)
def add(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    raise NotImplementedError


MODEL = model_of(add)
ROW = np.zeros((1, 3))


def kind(*inputs: Any, **more: Any) -> Any:
    return prepare(MODEL, ask(*inputs, **more)).kind


def test_G076_G077_alike_are_types_sizes_outputs_and_config() -> None:
    """The first size may differ; it is the same in all inputs."""
    one = kind(ROW, ROW)
    assert one is not None
    assert kind(np.zeros((4, 3)), np.zeros((4, 3))) == one
    for other in (
        kind(np.zeros((1, 2)), ROW),
        kind(ROW.astype("f4"), ROW),
        kind(ROW, ROW, config=b"x"),
        kind(ROW, ROW, output_names=("output0", "output0")),
    ):
        assert other not in (None, one)
    for none in (kind(ROW, np.zeros((2, 3))), kind(1.0, 2.0), kind(np.zeros((0, 3)), np.zeros((0, 3)))):
        assert none is None


def test_G076_a_batch_is_the_requests_one_after_the_other() -> None:
    """Of numbers and of strings."""
    several = [prepare(MODEL, ask(np.full((n, 2), n), np.full((n,), f"s{n}", object))) for n in (1, 2)]
    first, second = (to_array(one.tensor).tolist() for one in merged([one.given for one in several]))
    assert first == [[1, 1], [2, 2], [2, 2]]
    assert second == [b"s1", b"s2", b"s2"]
    assert joint(MODEL, several).about == "infer a:Int64[3, 2] b:String[3]"
    with pytest.raises(GraphPipeError, match="the limit of 20 bytes"):
        joint(MODEL, several, limit_bytes=20)


def test_G076_outputs_are_parted_by_rows() -> None:
    """Each request gets its own; an output that has not so many rows fails the batch."""
    message = Message(bytes(write_tensor(to_tensor(np.arange(6).reshape(3, 2)))), EMPTY, TENSOR)
    answer = Answer((MODEL.outputs[0],), ((message,),), {})
    assert [values(one) for one in parted(answer, [1, 2])] == [[[[0, 1]]], [[[2, 3], [4, 5]]]]
    with pytest.raises(GraphPipeError, match="the batch has 4 rows"):
        parted(answer, [2, 2])


@pytest.mark.parametrize("said", [{"batch_max": 0}, {"batch_max": True}, {"batch_wait_ms": -1}])
def test_options_that_cannot_be(said: dict[str, Any]) -> None:
    """One sentence each."""
    with pytest.raises(SpecError, match="batch_"):
        function(**said)
