"""`invoker.protocols.graphpipe.answer`: outputs made into a response, or into the error that they are none."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from invoker.codecs.tensor import TENSOR
from invoker.message import EMPTY, Message
from invoker.protocols.graphpipe.answer import Answer, refusal
from invoker.protocols.graphpipe.model import ModelPort
from invoker.tensors import Code, GraphPipeError, TensorType, write_tensor
from invoker.tensors.arrays import to_array, to_tensor
from tests.protocols.graphpipe.asking import code_of, received, values

F32 = frozenset({TensorType.FLOAT32})


def port(shape: Any = None, name: str = "y") -> ModelPort:
    return ModelPort(name, name, TENSOR, TensorType.FLOAT32, F32 if shape is not None else None, shape)


def messages(*several: Any) -> tuple[Message[bytes], ...]:
    return tuple(Message(bytes(write_tensor(to_tensor(one))), EMPTY, TENSOR) for one in several)


def answered(shape: Any, *several: Any, **known: int) -> Any:
    return Answer((port(shape),), (messages(*several),), known).response()


def test_G064_a_response_has_tensors_or_errors() -> None:
    """Never both; the first error is the one."""
    assert values(answered(None, np.float32([1, 2]))) == [[1.0, 2.0]]
    response = refusal(GraphPipeError(Code.SHAPE, "x"))
    assert (code_of(response), response.size) == (Code.SHAPE, len(bytes(response)))
    assert response.error is not None


def test_G057_an_output_may_be_wanted_twice() -> None:
    """It is read once."""
    one = port()
    answer = Answer((one, port(name="z"), one), (messages(1), messages(2), messages(1)), {})
    assert values(answer.response()) == [1, 2, 1]
    assert answer.size == 3 * len(messages(1)[0].payload)


def test_the_bytes_of_large_tensors_are_not_copied() -> None:
    """They are pieces of the response."""
    (message,) = messages(np.zeros(100_000, "f4"))
    response = Answer((port(),), ((message,),), {}).response()
    large = max(response.pieces, key=len)
    assert len(large) == 400_000
    assert np.shares_memory(np.frombuffer(large, "u1"), np.frombuffer(message.payload, "u1"))


def test_G072_GT41_several_values_are_joined_where_the_first_size_is_any() -> None:
    """Along it; strings, too."""
    assert values(answered(("n", 2), np.float32([[1, 2]]), np.float32([[3, 4], [5, 6]]), n=3)) == [
        [[1, 2], [3, 4], [5, 6]]
    ]
    several = messages(np.array(["a"]), np.array(["b", "c"]))
    strings = Answer((ModelPort("s", "s", TENSOR, shape=(-1,)),), (several,), {}).response()
    assert values(strings) == [[b"a", b"b", b"c"]]


@pytest.mark.parametrize(
    ("shape", "given"),
    [
        ((2,), ([np.float32([1, 2])] * 2)),
        (None, [1, 2]),
        ((-1, 2), [np.float32([[1, 2]]), np.float32([[1, 2, 3]])]),
        ((-1,), [np.float32([1]), np.int8([1])]),
        ((-1,), [np.float32([1]), np.float32(1)]),
        ((-1,), []),
        ((2,), [np.float32([1])]),
        ((-1,), [np.float64([1])]),
    ],
)
def test_G066_G071_G072_what_was_not_promised_is_E18(shape: Any, given: list[Any]) -> None:
    """Number, type and shape of what the function gave."""
    assert code_of(answered(shape, *given)) is Code.BAD_OUTPUT


def test_G066_a_named_size_is_that_of_the_inputs() -> None:
    """E18 when it is not."""
    assert values(answered(("batch",), np.float32([1, 2]), batch=2)) == [[1, 2]]
    assert code_of(answered(("batch",), np.float32([1, 2]), batch=3)) is Code.BAD_OUTPUT


def test_values_that_are_no_tensors() -> None:
    """MessagePack is read; what is broken is E18."""
    packed = Message(msgspec.msgpack.encode([[1, 2]]), EMPTY, "application/msgpack")
    (tensor,) = received(Answer((port(),), ((packed,),), {}).response()).tensors
    assert (tensor.type, to_array(tensor).tolist()) == (TensorType.INT64, [[1, 2]])
    for media_type in ("application/msgpack", TENSOR):
        broken = Answer((port(),), ((Message(b"\xc1", EMPTY, media_type),),), {})
        assert code_of(broken.response()) is Code.BAD_OUTPUT
