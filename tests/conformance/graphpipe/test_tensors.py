"""Tensors as scenarios write them."""

from __future__ import annotations

import pytest

from invoker_conformance.graphpipe.tensors import (
    FLOAT16,
    INT64,
    STRING,
    UINT8,
    Tensor,
    floats,
    numbers,
    spelled,
    strings,
)


@pytest.mark.parametrize(
    ("tensor", "shown"),
    [
        (floats(1, 0.5), "Float32[2] (1, 0.5)"),
        (floats(7, shape=()), "Float32[] (7)"),
        (Tensor(10, None, bytes(4)), "Float32 (0)"),
        (Tensor(10, (2,), b"\1"), "Float32[2] '\\x01'"),
        (numbers(UINT8, (9,), range(9)), "Uint8[9] '\\x00\\x01\\x02\\x03\\x04\\x05\\x06\\x07\\x08'"),
        (strings(b"a", b"b", b"c", b"d", b"e"), "String[5] 'a', 'b', 'c', 'd', ..."),
        (Tensor(99, (1,), b"\0"), "type 99[1] '\\0'".replace("\\0", "\\x00")),
        (Tensor(10, (-1, 3)), "Float32[-1, 3]"),
    ],
)
def test_a_tensor_as_text(tensor: Tensor, shown: str) -> None:
    """Type, shape, and few numbers or the first bytes."""
    assert str(tensor) == shown


def test_numbers_are_packed() -> None:
    """Little-endian, in the width of their type."""
    assert numbers(INT64, (), (-2,)).data == b"\xfe" + b"\xff" * 7
    assert numbers(FLOAT16, (2,), (1, -0.0)).data == b"\x00\x3c\x00\x80"
    assert floats(1, 2, shape=(2, 1)).values == [1, 2]
    assert floats(shape=(0, 3)).count == 0


def test_names_of_types() -> None:
    """As the schema has them."""
    assert [spelled(each) for each in (0, 1, STRING, 13)] == ["Null", "Uint8", "String", "type 13"]
