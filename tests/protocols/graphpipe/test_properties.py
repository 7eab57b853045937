"""What must hold of any request: it costs no more than it may, and means what a naive reading of the rules says."""

from __future__ import annotations

import struct
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import function
from invoker.core.steps import Send
from invoker.protocols.graphpipe.session import Prepared, joint, prepare
from invoker.tensors import ITEM_BYTES, Code, GraphPipeError
from tests.conftest import SLOW
from tests.protocols.graphpipe.asking import ask, model_of
from tests.tensors.samples import Raw

LIMIT = 1 << 18


def echo(x: NDArray[Any]) -> NDArray[Any]:
    return x


def listed(x: list[Any], y: list[Any] | None = None, z: list[Any] | None = None) -> list[Any]:
    return x


def octets(x: bytes) -> bytes:
    return x


# Bombs: small requests that would have us do much.


def infer(slot: int, count: int, target: Callable[[Raw], int]) -> bytes:
    """An inference with a vector of references that all lead to the same."""
    raw = Raw()
    root = raw.table([b"\1\0\0\0", bytes(4)])
    table = raw.table([None] * slot + [bytes(4)])
    raw.link(root + 8, table)
    vector = raw.open(count)
    raw.link(table + 4, vector)
    to = target(raw)
    for at in range(vector + 4, vector + 4 + 4 * count, 4):
        raw.link(at, to)
    return raw.root(root)


def names(slot: int, count: int, name: bytes) -> bytes:
    return infer(slot, count, lambda raw: raw.octets(name))


def numbers(count: int, type_: int, size: int) -> bytes:
    """References to one tensor of zeros."""

    def target(raw: Raw) -> int:
        table = raw.table([bytes([type_, 0, 0, 0]), bytes(4), bytes(4)])
        raw.link(table + 8, raw.shape(size // ITEM_BYTES[type_]))
        raw.link(table + 12, raw.octets(bytes(size)))
        return table

    return infer(2, count, target)


def strings(count: int, size: int) -> bytes:
    """A tensor whose strings are all the same one."""

    def target(raw: Raw) -> int:
        table = raw.table([b"\x0c\0\0\0", bytes(4), None, bytes(4)])
        raw.link(table + 8, raw.shape(count))
        vector = raw.open(count)
        raw.link(table + 12, vector)
        to = raw.octets(b"z" * size)
        for at in range(vector + 4, vector + 4 + 4 * count, 4):
            raw.link(at, to)
        return table

    return infer(2, 1, target)


NAME = b"y" * (LIMIT - 5000)
ASTRAL = NAME[:-4] + "\U0001f600".encode()
BOMBS = {
    "long name": ask([1], input_names=("y" * (LIMIT - 500),)),
    "long output name": ask([1], output_names=("y" * (LIMIT - 500),)),
    "wide name": ask([1], input_names=(str(ASTRAL, "utf-8"),)),
    **{f"{count} names in slot {slot}": names(slot, count, NAME) for slot in (1, 3) for count in (3, 1000)},
    **{f"{count} wide names in slot {slot}": names(slot, count, ASTRAL) for slot in (1, 3) for count in (1, 3, 1000)},
    "2^16 names": names(1, 2**16 - 1000, b""),
    **{f"{count} strings": strings(count, size) for count, size in ((3, LIMIT - 5000), (2000, 400), (10_000, 1))},
    **{f"{count} of type {type_}": numbers(count, type_, LIMIT - 8192) for count in (1, 3, 99) for type_ in (1, 8, 11)},
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("served", [echo, listed, octets])
def test_G025_G032_GT17_a_bomb_costs_no_more_than_a_few_limits(name: str, served: Any) -> None:
    """Five, of which one is for what it is written in; nor does it take a second."""
    model, buffer = model_of(served), BOMBS[name]
    assert len(buffer) <= LIMIT
    tracemalloc.start()
    began = time.process_time()
    try:
        prepared = prepare(model, buffer, limit_bytes=LIMIT)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.process_time() - began < SLOW
    assert peak < (5 if type(prepared.steps[0]) is Send else 9) * LIMIT + (1 << 18)


def test_G025_what_is_too_large_is_said_before_it_is_made() -> None:
    """By its elements, and for functions of lists by what lists of them take."""

    def three(x: NDArray[Any], y: NDArray[Any], z: NDArray[Any]) -> NDArray[Any]:
        raise NotImplementedError

    for served, buffer in (
        (three, numbers(3, 1, LIMIT - 8192)),
        (echo, strings(3, LIMIT - 5000)),
        (listed, numbers(3, 1, LIMIT // 2)),
        (listed, numbers(1, 1, LIMIT // 2)),
        (listed, numbers(1, 11, LIMIT - 8192)),
    ):
        assert refused(prepare(model_of(served), buffer, limit_bytes=LIMIT)) is Code.TOO_LARGE


def refused(prepared: Prepared) -> Code | None:
    first = prepared.steps[0]
    return first.frame.error.code if type(first) is Send else None  # type: ignore[union-attr]


def test_G076_a_batch_that_is_too_large_is_not_joined() -> None:
    """It is refused by the sum of sizes; its requests run alone then."""

    @function(batch_max=100)
    def several(x: NDArray[np.uint8]) -> NDArray[np.uint8]:
        raise NotImplementedError

    model = model_of(several)
    one = prepare(model, ask(np.zeros((1, LIMIT // 2), "u1")), limit_bytes=LIMIT)
    tracemalloc.start()
    try:
        with pytest.raises(GraphPipeError) as caught:
            joint(model, [one] * 50, limit_bytes=LIMIT)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.code is Code.TOO_LARGE
    assert peak < LIMIT


@pytest.mark.parametrize("name", ["input{}x", "xs{}", "y{}\U0001f600", "input0"])
def test_G054_G084_many_wrong_names_take_no_longer(name: str) -> None:
    """Of a function with any number of inputs, whose names there are as many of; some of the errors are told."""

    def several(*xs: NDArray[Any]) -> NDArray[Any]:
        raise NotImplementedError

    names = tuple(name.format(number) for number in range(1000))
    buffer = ask(*[0] * 1000, input_names=names)
    began = time.process_time()
    prepared = prepare(model_of(several), buffer)
    assert time.process_time() - began < SLOW / 4
    assert refused(prepared) in (Code.UNKNOWN_INPUT, Code.DUPLICATE_NAME)
    first = prepared.steps[0]
    assert type(first) is Send
    assert first.frame.size < 20_000  # type: ignore[union-attr]


def test_G083_a_long_name_is_shown_in_part() -> None:
    """Whatever is in it."""
    for name in ("y" * 5000, "\U0001f600" * 5000, "\0" * 5000):
        for more in ({"input_names": (name,)}, {"output_names": (name,)}):
            first = prepare(model_of(echo), ask([1], **more)).steps[0]
            assert type(first) is Send
            assert len(first.frame.error.message) < 1200  # type: ignore[union-attr]
            assert struct.unpack_from("<I", bytes(first.frame))[0] < first.frame.size  # type: ignore[union-attr]
