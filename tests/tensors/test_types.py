"""`invoker.tensors.types`: the twelve types."""

from __future__ import annotations

from invoker.tensors import ITEM_BYTES, TensorType, count_of, spelled


def test_types_are_those_of_the_schema() -> None:
    """Ids, names and sizes."""
    assert [spelled(one) for one in range(14)] == [
        "Null", "Uint8", "Int8", "Uint16", "Int16", "Uint32", "Int32", "Uint64", "Int64",
        "Float16", "Float32", "Float64", "String", "type 13",
    ]  # fmt: skip
    assert [int(one) for one in TensorType] == list(range(13))
    assert [ITEM_BYTES[one] for one in TensorType] == [0, 1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8, 0]


def test_counts_are_exact() -> None:
    """However large; a scalar has one element."""
    assert count_of(()) == 1
    assert count_of((2, 3)) == 6
    assert count_of((2**62, 2**62, 0)) == 0
    assert count_of((2**62,) * 32) == 2 ** (62 * 32)
