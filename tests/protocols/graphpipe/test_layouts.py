"""Answers that differ from known ones in elements alone are laid out as those were, and all others anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from invoker.codecs.tensor import TENSOR
from invoker.message import EMPTY, Message
from invoker.protocols.graphpipe.layouts import AnswerPlans
from invoker.tensors import Written, write_infer_response, write_tensor
from invoker.tensors.arrays import to_tensor


def given(*values: Any) -> list[list[Message[bytes]]]:
    return [[Message(bytes(write_tensor(to_tensor(one))), EMPTY, TENSOR)] for one in values]


def response(*values: Any) -> Written:
    return write_infer_response([to_tensor(one) for one in values])


ANSWERS = {
    "one": (np.ones((1, 4), np.float32),),
    "scalar": (np.float64(1),),
    "several": (np.ones((2, 3), np.float32), np.ones(5, np.uint8), np.ones((), np.int64)),
    "none": (),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_known_answer_is_laid_out_as_before(name: str) -> None:
    """Byte by byte what the writer gives, with the elements of this answer."""
    values = ANSWERS[name]
    plans = AnswerPlans()
    assert plans.response(given(*values)) is None
    plans.learn(given(*values), response(*values))
    for factor in (1, 3):
        others = [one * factor for one in values]
        assert plans.response(given(*others)) == bytes(response(*others))


def test_answers_of_other_types_or_shapes_are_not_known() -> None:
    """Each is known once it was laid out, and none is taken for another."""
    plans = AnswerPlans()
    several = [np.ones(4, np.float32), np.ones(2, np.float64), np.ones((2, 2), np.float32), np.ones(4, np.int32)]
    for index, one in enumerate(several):
        assert plans.response(given(one)) is None
        plans.learn(given(one), response(one))
        for known in several[: index + 1]:
            assert plans.response(given(known * 2)) == bytes(response(known * 2))


def test_R011_only_the_first_few_are_remembered() -> None:
    """A function whose answers always differ costs no more than a few tries."""
    plans = AnswerPlans()
    for size in range(1, 20):
        plans.learn(given(np.ones(size)), response(np.ones(size)))
    assert [plans.response(given(np.ones(size))) is not None for size in (1, 4, 5, 19)] == [True, True, False, False]


ODD: dict[str, tuple[list[list[Message[bytes]]], Written]] = {
    "strings": (given(["a", "b"]), response(["a", "b"])),
    "several values": ([given(np.ones(2))[0] * 2], response(np.ones(4))),
    "another form": ([[Message(b"[1]", EMPTY, "application/json")]], response(np.ones(1))),
    "no tensor": ([[Message(b"", EMPTY, TENSOR)]], response(np.ones(1))),
    "large": (given(np.ones(10_000)), response(np.ones(10_000))),
}


@pytest.mark.parametrize("name", ODD)
def test_other_answers_are_not_remembered(name: str) -> None:
    """They are laid out each time."""
    plans = AnswerPlans()
    plans.learn(*ODD[name])
    assert plans.response(ODD[name][0]) is None


def test_G057_an_output_that_is_wanted_twice_is_laid_out_each_time() -> None:
    """It is sent once, and its elements stand for two tensors."""
    tensor = to_tensor(np.ones(2))
    twice = given(np.ones(2)) * 2
    plans = AnswerPlans()
    plans.learn(twice, write_infer_response([tensor, tensor]))
    assert plans.response(twice) is None
