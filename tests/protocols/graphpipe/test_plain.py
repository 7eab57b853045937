"""`invoker.protocols.graphpipe.plain`: tensors for functions that know no arrays."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import msgspec
import numpy as np
import pytest

from invoker.message import EMPTY, Message
from invoker.protocols.graphpipe.plain import JSON, MSGPACK, OCTETS, TEXT, message_as, tensor_of
from invoker.tensors import Code, GraphPipeError, Tensor, TensorType
from invoker.tensors.arrays import to_array, to_tensor


def packed(value: Any) -> Message[bytes]:
    return Message(msgspec.msgpack.encode(value), EMPTY, MSGPACK)


@pytest.mark.parametrize(
    "value",
    [
        np.arange(24, dtype="i2").reshape(2, 3, 4),
        np.float16([1.5, -2]),
        np.uint64([2**64 - 1]),
        np.int64(7),
        np.array(["a", "é"]),
        np.zeros((2, 0, 3), "f4"),
        np.zeros((0, 3), "f4"),
    ],
)
def test_G074_tensors_are_nested_lists(value: Any) -> None:
    """Exactly what numpy's own lists are."""
    tensor = to_tensor(value)
    for media_type, decode in ((MSGPACK, msgspec.msgpack.decode), (JSON, msgspec.json.decode)):
        message = message_as(tensor, media_type, "input 'x'")
        assert message.media_type == media_type
        assert decode(message.payload) == value.tolist()


def test_G074_one_string_is_text_or_bytes() -> None:
    """As it came; Uint8 is bytes, too."""
    tensor = to_tensor("é")
    assert message_as(tensor, TEXT, "x") == Message("é".encode(), EMPTY, "text/plain; charset=utf-8")
    assert message_as(tensor, OCTETS, "x").payload == "é".encode()
    assert message_as(to_tensor(np.uint8([1, 2])), OCTETS, "x").payload == b"\1\2"


def test_one_element_is_one_value_where_that_is_wanted() -> None:
    """Go's clients have no scalars (G-039); truth values are numbers on the wire."""
    one = to_tensor(np.int32([7]))
    assert msgspec.msgpack.decode(message_as(one, MSGPACK, "x", is_single=True).payload) == 7
    assert msgspec.msgpack.decode(message_as(one, MSGPACK, "x").payload) == [7]
    truth = message_as(to_tensor(True), MSGPACK, "x", is_single=True, is_truth=True)
    assert msgspec.msgpack.decode(truth.payload) is True


@pytest.mark.parametrize(
    ("value", "media_type", "why"),
    [
        (np.float32([1]), TEXT, "one String is expected"),
        (np.float32([1]), OCTETS, "one String is expected"),
        (np.array(["a", "b"]), TEXT, "one String is expected"),
        (np.float64([1, np.nan]), JSON, "NaN"),
        (np.float32([np.inf]), JSON, "infinity"),
        (b"\xff", JSON, "not UTF-8"),
    ],
)
def test_G074_what_cannot_be_is_E8(value: Any, media_type: str, why: str) -> None:
    """Before the function runs."""
    with pytest.raises(GraphPipeError, match=why) as caught:
        message_as(to_tensor(value), media_type, "input 'x'")
    assert caught.value.code is Code.TYPE_MISMATCH


def test_strings_that_are_no_text_stay_bytes() -> None:
    """MessagePack has both."""
    message = message_as(to_tensor([b"\xff", b"a"]), MSGPACK, "x")
    assert msgspec.msgpack.decode(message.payload) == [b"\xff", "a"]


@pytest.mark.parametrize(
    ("value", "type_", "shape", "elements"),
    [
        (7, TensorType.INT64, (), 7),
        (True, TensorType.UINT8, (), 1),
        ([[1, 2.5], [3, 4]], TensorType.FLOAT64, (2, 2), [[1.0, 2.5], [3.0, 4.0]]),
        (["a", b"\xff"], TensorType.STRING, (2,), [b"a", b"\xff"]),
        ("é", TensorType.STRING, (), "é".encode()),
        ([], TensorType.FLOAT64, (0,), []),
        ([[], []], TensorType.FLOAT64, (2, 0), [[], []]),
        ([True, False], TensorType.UINT8, (2,), [1, 0]),
    ],
)
def test_G046_plain_values_become_tensors(value: Any, type_: TensorType, shape: tuple[int, ...], elements: Any) -> None:
    """As numpy would make them."""
    tensor = tensor_of(packed(value), "output 'y'")
    assert (tensor.type, tensor.shape, to_array(tensor).tolist()) == (type_, shape, elements)


@pytest.mark.parametrize("value", [[1, "a"], [[1], [1, 2]], [[1], 2], [2, [1]], {"a": 1}, None, 2**64 - 1, [[1], []]])
def test_G047_what_is_no_tensor_is_E18(value: Any) -> None:
    """Ragged, mixed, too large, or something else."""
    with pytest.raises(GraphPipeError, match="output 'y'") as caught:
        tensor_of(packed(value), "output 'y'")
    assert caught.value.code is Code.BAD_OUTPUT


@pytest.mark.parametrize(
    ("payload", "type_", "shown"),
    [
        (b"9223372036854775808", "Int64", "9223372036854775808"),
        (b"[[0, 1], [2, -9223372036854775809]]", "Int64", "-9223372036854775809"),
        (b"[-9223372036854775808, 9223372036854775808]", "Int64", "9223372036854775808"),
        (b"[9223372036854775807, -9223372036854775809]", "Int64", "-9223372036854775809"),
        (b"[1, " + b"9" * 4000 + b"]", "Int64", "9" * 40),
        (b"[1, 2.5, " + b"9" * 400 + b"]", "Float64", "9" * 40),
    ],
    ids=["one", "nested", "above", "below", "long", "beside floats"],
)
def test_G047_numbers_out_of_range_are_named(payload: bytes, type_: str, shown: str) -> None:
    """In our words, since each release of Python has its own."""
    with pytest.raises(GraphPipeError) as caught:
        tensor_of(Message(payload, EMPTY, JSON), "output 'y'")
    assert caught.value.code is Code.BAD_OUTPUT
    assert caught.value.detail == f"output 'y' cannot be {type_}: {shown} is out of range"


def test_other_media_types_are_one_string() -> None:
    """An image is its bytes."""
    assert tensor_of(Message(b"\x89PNG", EMPTY, "image/png"), "y") == Tensor(TensorType.STRING, (), [b"\x89PNG"])
    assert tensor_of(Message(b"hi", EMPTY, "text/plain; charset=utf-8"), "y").data == [b"hi"]


def test_numpy_is_not_imported() -> None:
    """Nor by anything that serves functions without arrays."""
    code = "import sys; from invoker.protocols.graphpipe.service import framed, http; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"
