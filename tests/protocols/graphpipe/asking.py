"""What the tests of GraphPipe share: models, requests, and what came of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from invoker.author.reader import read
from invoker.codecs.tensor import TENSOR
from invoker.core.steps import Cancel, Close, Emitted, Finished, Open, Send, Step
from invoker.message import EMPTY, Message
from invoker.protocols.graphpipe.answer import Answer, Reply
from invoker.protocols.graphpipe.model import Model
from invoker.protocols.graphpipe.session import GraphPipeSession
from invoker.tensors import (
    METADATA_REQUEST,
    Code,
    InferRequest,
    InferResponse,
    read_infer_response,
    write_request,
    write_tensor,
)
from invoker.tensors.arrays import to_array, to_tensor

__all__ = ["METADATA_REQUEST", "Asked", "ask", "code_of", "model_of", "received", "values"]


def model_of(function: Callable[..., Any], *, has_arrays: bool = True) -> Model:
    """A function as GraphPipe sees it."""
    return Model(read(function), has_arrays=has_arrays, server="invoker/test")


def ask(*inputs: Any, **more: Any) -> bytes:
    """A request with what can be tensors; names and config as in `InferRequest`."""
    return bytes(write_request(InferRequest(tuple(to_tensor(one) for one in inputs), **more)))


def received(response: Reply | bytes) -> InferResponse:
    """A response as a client reads it."""
    return read_infer_response(bytes(response))


def values(response: Reply | bytes) -> list[Any]:
    """Its tensors as lists; it has no errors."""
    read = received(response)
    assert read.errors == ()
    return [to_array(one).tolist() for one in read.tensors]


def code_of(response: Reply | bytes) -> Code:
    """The code of its first error, which is the primary one (G-084); it has no tensors (G-064)."""
    read = received(response)
    assert read.tensors == ()
    return Code(read.errors[0].code)


class Asked:
    """A session that was given a request, and does with outputs as a driver would.

    Args:
        model: What is asked.
        buffer: The request.
    """

    def __init__(self, model: Model, buffer: bytes) -> None:
        self.session = GraphPipeSession(model)
        self.steps: Sequence[Step] = self.session.receive(buffer)

    @property
    def opened(self) -> Open:
        """What it opens; it is not refused."""
        first = self.steps[0]
        assert type(first) is Open, self.refusal
        return first

    @property
    def refusal(self) -> Reply:
        """How it is refused, without the function."""
        first, last = self.steps
        assert type(first) is Send
        assert type(last) is Close
        assert isinstance(first.frame, Reply)
        return first.frame

    def emit(self, index: int, value: Any) -> Sequence[Step]:
        """The function gives something."""
        message = Message(bytes(write_tensor(to_tensor(value))), EMPTY, TENSOR)
        return self.session.deliver(Emitted(self.opened.id, index, message))

    def finish(self, error: Any = None) -> Reply:
        """The function ends; the response."""
        sent, closed = self.session.deliver(Finished(self.opened.id, error))
        assert type(sent) is Send
        assert type(closed) is Close
        return sent.frame.response() if isinstance(sent.frame, Answer) else sent.frame

    def cancelled(self, steps: Sequence[Step]) -> Reply:
        """The response to what the session cancels itself."""
        (step,) = steps
        assert type(step) is Cancel
        return self.finish(step.error)
