"""Inferences that a transport runs without a task: one frame, and one line in the log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import function
from invoker.codecs.tensor import TENSOR
from invoker.core.budget import ProcessBudget
from invoker.core.steps import Close, Emitted, EndInput, Feed, Finished, Open, Send, Step
from invoker.errors import DeadlineExceeded, FunctionError, InternalError
from invoker.message import EMPTY, Headers, Message
from invoker.protocols import graphpipe
from invoker.protocols.graphpipe.answer import Reply
from invoker.protocols.graphpipe.service.inferences import GraphPipeSettings, Inferences
from invoker.protocols.graphpipe.service.told import ToldSession, can_tell
from invoker.tensors import Code, write_tensor
from invoker.tensors.arrays import to_tensor
from tests.protocols.graphpipe.asking import METADATA_REQUEST, ask, code_of, model_of, values
from tests.transports.models import inferring


def same(x: NDArray[Any]) -> NDArray[Any]:
    return x


class StoreChanged:
    """A session, and the lines that it leaves."""

    def __init__(self, inferences: Inferences) -> None:
        self.lines: list[dict[str, Any]] = []
        told = Inferences(
            inferences.driver,
            GraphPipeSettings(),
            note=lambda _name, text, extra: self.lines.append(extra | {"": text}),
        )
        self.budget = inferences.driver.engine.memory
        self.session = ToldSession(
            told, told.first, lambda reply: ("frame", reply), transport="here", metadata=Headers({"x": "y"})
        )

    def _note(self, _: str, text: str, extra: dict[str, Any]) -> None:
        self.lines.append(extra | {"": text})


@asynccontextmanager
async def telling() -> AsyncIterator[StoreChanged]:
    async with inferring(same) as inferences:
        yield StoreChanged(inferences)


def reply_of(steps: Sequence[Step]) -> Reply:
    """What is sent, which is made into the frame of the transport; and nothing follows it."""
    sent, close = steps
    assert isinstance(sent, Send)
    assert isinstance(close, Close)
    kind, reply = sent.frame
    assert kind == "frame"
    return reply


async def test_an_inference_is_one_frame_and_one_line() -> None:
    """G-105: with what was asked, and never with values."""
    async with telling() as told:
        opened, fed, ended = told.session.receive(ask(np.ones(2, np.float32)))
        assert (type(opened), type(fed), type(ended)) == (Open, Feed, EndInput)
        assert isinstance(opened, Open)
        assert opened.metadata == {"x": "y"}
        assert told.session.half_close() == ()
        message = Message(bytes(write_tensor(to_tensor(np.full(2, 3)))), EMPTY, TENSOR)
        assert told.session.deliver(Emitted(opened.id, 0, message)) == ()
        assert told.lines == []
        reply = reply_of(told.session.deliver(Finished(opened.id)))
        assert values(reply) == [[3, 3]]
        (line,) = told.lines
        assert line.pop("seconds") >= 0
        expected = {"": "here answered", "function": "same", "request": "infer x:Float32[2]", "code": 0}
        assert line == expected | {"bytes": reply.size}


async def test_what_is_answered_at_once_leaves_a_line_too() -> None:
    """Metadata, and what is refused, for which the line has the detail."""
    for buffer, about in ((METADATA_REQUEST, "metadata"), (b"nothing", "nothing")):
        async with telling() as told:
            reply_of(told.session.receive(buffer))
            (line,) = told.lines
            assert line["request"] == about
            assert ("detail" in line) is (about == "nothing")


async def test_an_error_of_the_function_is_translated() -> None:
    """G-065: as on every other transport."""
    async with telling() as told:
        (opened, *_) = told.session.receive(ask(np.ones(2)))
        assert isinstance(opened, Open)
        reply = reply_of(told.session.deliver(Finished(opened.id, FunctionError("broken"))))
        assert code_of(reply) is Code.FUNCTION_FAILED


async def test_G105_who_is_refused_meanwhile_has_that_line_alone() -> None:
    """The function ends later; its client was told already."""
    async with telling() as told:
        (opened, *_) = told.session.receive(ask(np.ones(2)))
        assert isinstance(opened, Open)
        _, reply = told.session.refusal(DeadlineExceeded("late"))
        assert code_of(reply) is Code.TIMEOUT
        assert code_of(reply_of(told.session.deliver(Finished(opened.id, InternalError())))) is Code.FUNCTION_FAILED
        assert [line["code"] for line in told.lines] == [Code.TIMEOUT]


@pytest.mark.parametrize("is_room", [True, False])
async def test_strings_count_against_the_memory_of_the_process(is_room: bool) -> None:
    """Until the inference is over (G-025); where there is no room, the request is refused and may be tried again."""
    async with telling() as told:
        told.budget.most_bytes = 1 << 30 if is_room else 1 << 10
        steps = told.session.receive(ask(["a"] * 1000))
        if is_room:
            (opened, *_) = steps
            assert isinstance(opened, Open)
            assert told.budget.held > 0
            told.session.deliver(Finished(opened.id, InternalError()))
        else:
            assert code_of(reply_of(steps)) is Code.OVERLOADED
        assert told.budget.held == 0


async def test_a_share_of_the_transport_is_left_to_the_transport() -> None:
    """It counts the body as well, and is closed with the request."""
    async with inferring(same) as inferences:
        budget = ProcessBudget()
        share = budget.share()
        session = ToldSession(inferences, inferences.first, bytes, transport="here", share=share)
        (opened, *_) = session.receive(ask(["a"] * 1000))
        assert isinstance(opened, Open)
        held = budget.held
        session.deliver(Finished(opened.id, InternalError()))
        assert held == budget.held > 0
        assert inferences.driver.engine.memory.held == 0


def test_batches_and_rows_are_for_others() -> None:
    """They are more than one conversation, or wait for others."""

    @function(options=[graphpipe.Rows()])
    def rows(x: NDArray[np.float32]) -> NDArray[np.float32]:
        return x

    @function(batch_max=2)
    def batched(x: NDArray[np.float32]) -> NDArray[np.float32]:
        return x

    assert [can_tell(model_of(one)) for one in (same, rows, batched)] == [True, False, False]
