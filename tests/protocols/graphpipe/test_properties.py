"""What must hold of any request: it costs no more than it may, and means what a naive reading of the rules says."""

from __future__ import annotations

import struct
import time
import tracemalloc
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from invoker import function
from invoker.core.steps import Close, EndInput, Feed, Open, Send
from invoker.protocols.graphpipe.checked import CheckedRequest
from invoker.protocols.graphpipe.prepare import joint, prepare
from invoker.protocols.graphpipe.session import GraphPipeSession
from invoker.tensors import Code, GraphPipeError
from tests.conftest import SLOW
from tests.fuzz import tensors_naive as naive
from tests.fuzz.tensors_attacks import same_names, same_numbers, same_strings
from tests.protocols.graphpipe.asking import ask, model_of
from tests.tensors.samples import fixture

LIMIT = 1 << 18


def echo(x: NDArray[Any]) -> NDArray[Any]:
    return x


def listed(x: list[Any], y: list[Any] | None = None, z: list[Any] | None = None) -> list[Any]:
    return x


def octets(x: bytes) -> bytes:
    return x


# Bombs: small requests that would have us do much.

NAME = b"y" * (LIMIT - 5000)
ASTRAL = NAME[:-4] + "\U0001f600".encode()
BOMBS = {
    "long name": ask([1], input_names=("y" * (LIMIT - 500),)),
    "long output name": ask([1], output_names=("y" * (LIMIT - 500),)),
    "wide name": ask([1], input_names=(str(ASTRAL, "utf-8"),)),
    **{f"{count} names in slot {slot}": same_names(slot, count, NAME) for slot in (1, 3) for count in (3, 1000)},
    **{f"{count} wide names in slot {slot}": same_names(slot, count, ASTRAL) for slot in (1, 3) for count in (1, 9)},
    "2^16 names": same_names(1, 2**16 - 1000, b""),
    **{f"{count} strings": same_strings(count, size) for count, size in ((3, LIMIT - 5000), (2000, 400), (10_000, 1))},
    **{f"{count} of type {type_}": same_numbers(count, LIMIT - 8192, type_) for count in (1, 9) for type_ in (1, 8)},
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


def test_G025_G102_what_nobody_is_given_is_not_copied() -> None:
    """Names and strings of more than a limit, of which a small request has as many as four."""
    for buffer in (same_strings(100, LIMIT // 30), same_names(1, 300, NAME[: LIMIT // 100]), same_names(3, 3, NAME)):
        tracemalloc.start()
        try:
            assert refused(prepare(model_of(echo), buffer, limit_bytes=LIMIT)) is Code.TOO_LARGE
            assert tracemalloc.get_traced_memory()[1] < 1.5 * LIMIT
        finally:
            tracemalloc.stop()


def test_G025_what_is_too_large_is_said_before_it_is_made() -> None:
    """By its elements, and for functions of lists by what lists of them take."""

    def three(x: NDArray[Any], y: NDArray[Any], z: NDArray[Any]) -> NDArray[Any]:
        raise NotImplementedError

    for served, buffer in (
        (three, same_numbers(3, LIMIT - 8192)),
        (echo, same_strings(3, LIMIT - 5000)),
        (listed, same_numbers(3, LIMIT // 2)),
        (listed, same_numbers(1, LIMIT // 2)),
        (listed, same_numbers(1, LIMIT - 8192, 11)),
    ):
        assert refused(prepare(model_of(served), buffer, limit_bytes=LIMIT)) is Code.TOO_LARGE


def refused(prepared: CheckedRequest) -> Code | None:
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


# Names, against a naive reading of G-051 to G-059, G-067 and G-069.


class Two(NamedTuple):
    low: NDArray[Any]
    high: NDArray[Any]


def none() -> NDArray[Any]:
    raise NotImplementedError


def single(x: NDArray[Any]) -> NDArray[Any]:
    raise NotImplementedError


def mixed(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any] | None = None, d: int = 1) -> Two:
    raise NotImplementedError


FUNCTIONS: dict[Any, tuple[list[str], int, list[str]]] = {
    none: ([], 0, ["output0"]),
    single: (["x"], 1, ["output0"]),
    mixed: (["a", "b", "c", "d"], 2, ["low", "high"]),
}
"""Their inputs, how many of these are required, and their outputs."""

NAMES = st.sampled_from(["", "", "a", "b", "c", "d", "x", "input0", "input1", "input2", "input3", "input9", "A", "é"])
OUTPUTS = st.sampled_from(["low", "low", "high", "high", "output0", "output1", "output0", "output2", "", "Low"])


def bound(inputs: list[str], required: int, names: list[str], count: int) -> dict[str, int] | Code:
    """Which tensor is for which input, or what is wrong first."""
    if names and len(names) != count:
        return Code.NAME_COUNT
    found: dict[str, int] = {}
    aliases = {f"input{index}": one for index, one in enumerate(inputs)} | {one: one for one in inputs}
    for index in range(count):
        name = names[index] if names else ""
        if not name and index >= len(inputs):
            return Code.UNKNOWN_INPUT
        own = aliases.get(name) if name else inputs[index]
        if own is None:
            return Code.UNKNOWN_INPUT
        if own in found:
            return Code.DUPLICATE_NAME
        found[own] = index
    return found if all(one in found for one in inputs[:required]) else Code.MISSING_INPUT


def chosen(outputs: list[str], names: list[str]) -> list[int] | Code:
    """Which outputs are wanted, in order."""
    known = {f"output{index}": index for index in range(len(outputs))} | {one: at for at, one in enumerate(outputs)}
    if not names:
        return list(range(len(outputs)))
    return [known[one] for one in names] if all(one in known for one in names) else Code.UNKNOWN_OUTPUT


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.sampled_from(sorted(FUNCTIONS, key=str)),
    st.lists(NAMES, max_size=5),
    st.integers(-1, 1) | st.just(0),
    st.lists(OUTPUTS, max_size=4),
    st.booleans(),
)
def test_G051_G059_G067_G069_G078_names_are_bound_as_the_rules_say(
    served: Any, names: list[str], more: int, outputs: list[str], is_named: bool
) -> None:
    """Each tensor tells by its value where it came from; of several errors the first counts."""
    inputs, required, declared = FUNCTIONS[served]
    count = max(0, len(names) + more) if is_named else len(names)
    sent = names if is_named else []
    wanted_inputs, wanted_outputs = bound(inputs, required, sent, count), chosen(declared, outputs)
    prepared = prepare(
        model_of(served), ask(*range(count), input_names=tuple(sent), output_names=tuple(outputs)), limit_bytes=LIMIT
    )
    errors = [one for one in (wanted_inputs, wanted_outputs) if isinstance(one, Code)]
    if errors:
        assert refused(prepared) is errors[0]
        return
    opened, *feeds, end = prepared.steps
    assert isinstance(opened, Open)
    assert isinstance(end, EndInput)
    assert isinstance(wanted_inputs, dict)
    order = [one for one in inputs if one in wanted_inputs]  # G-070: declared, not as they came
    assert list(opened.bound or ()) == order
    assert [value(one) for one in feeds] == [wanted_inputs[one] for one in order]
    assert list(prepared.wanted) == wanted_outputs


def value(step: Any) -> int:
    """Of the one number that is fed."""
    assert isinstance(step, Feed)
    payload = bytes(step.message.payload)
    if step.message.media_type.startswith("application/vnd.graphpipe.tensor"):
        return int.from_bytes(payload, "little")
    found: int = msgspec.msgpack.decode(payload)
    return found


# Any bytes through the whole session.


@pytest.mark.parametrize("name", ["metadata_request", "infer_request", "go_strings"])
@pytest.mark.parametrize("served", [single, listed])
def test_G032_G064_G080_each_flipped_bit_has_an_answer_of_a_legal_kind(name: str, served: Any) -> None:
    """The function is opened, or there is one buffer, with errors or with metadata, and the end."""
    model, whole = model_of(served), fixture(name)
    for bit in range(8 * len(whole)):
        buffer = bytearray(whole)
        buffer[bit // 8] ^= 1 << bit % 8
        session = GraphPipeSession(model, limit_bytes=LIMIT)
        first, *rest = session.receive(buffer)
        if isinstance(first, Open):
            assert [type(one) for one in rest] == [Feed, EndInput]
            continue
        assert isinstance(first, Send)
        assert [type(one) for one in rest] == [Close]
        answer = bytes(first.frame)  # type: ignore[call-overload]
        error = first.frame.error  # type: ignore[union-attr]
        if error is None:
            assert answer == model.metadata_buffer
        else:
            found = naive.read_response(answer)
            assert found["output_tensors"] == []
            assert found["errors"][0]["code"] == error.code
            assert 1 <= error.code <= 17
