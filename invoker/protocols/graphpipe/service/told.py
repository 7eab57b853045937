"""`ToldSession`: an inference that a transport runs without a task, with its log line and the transport's frames.

It stands between a driver and a `GraphPipeSession`: the transport gives it a buffer, and gets the frame that it makes
of the `Reply`. The thread of the conversation also reads the buffer and lays out the response, so buffers are small
(G-102).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from invoker.core.budget import Share
from invoker.core.steps import CallStep, Close, Event, Send
from invoker.errors import InvocationError
from invoker.message import EMPTY, Headers
from invoker.protocols.graphpipe.answer import Answer, Reply, refusal
from invoker.protocols.graphpipe.errors import translated
from invoker.protocols.graphpipe.model import Model
from invoker.protocols.graphpipe.prepare import prepare
from invoker.protocols.graphpipe.service.inferences import Inferences
from invoker.protocols.graphpipe.session import GraphPipeSession


def can_tell(model: Model) -> bool:
    """Whether a model's inferences run one by one, neither in batches nor in rows."""
    return not model.by_row and model.spec.batching.rows <= 1


class ToldSession:
    """One inference.

    Args:
        inferences: Has the limits, and writes the log line.
        model: The model that is asked.
        make: Makes the frame of the transport.
        transport: The transport, for the log.
        metadata: The metadata of the conversation.
        share: Counts the bytes of the buffer and of its elements; None: the inference has a share of its own for the
            elements.
    """

    __slots__ = (
        "_about",
        "_began",
        "_inferences",
        "_make",
        "_metadata",
        "_model",
        "_owned",
        "_session",
        "_share",
        "_transport",
        "_untold",
        "_was_opened",
    )  # fmt: skip

    def __init__(
        self,
        inferences: Inferences,
        model: Model,
        make: Callable[[Reply], Any],
        *,
        transport: str,
        metadata: Headers = EMPTY,
        share: Share | None = None,
    ) -> None:
        self._inferences = inferences
        self._model = model
        self._make = make
        self._transport = transport
        self._metadata = metadata
        self._session = GraphPipeSession(model)
        self._began = time.monotonic()
        self._about = "nothing"
        self._was_opened = False
        self._share = share
        self._owned: Share | None = None
        self._untold = [True]  # emptied by the thread that logs, which may be another one than the function's

    def receive(self, frame: bytes) -> Sequence[CallStep]:
        """Check the request, and open its invocation or refuse it."""

        def weigh(size: int) -> None:
            share = self._share
            if share is None:
                share = self._share = self._owned = self._inferences.share()
            share.grow(len(frame) + size)

        try:
            limit_bytes = self._inferences.limit_bytes
            checked = prepare(self._model, frame, limit_bytes=limit_bytes, metadata=self._metadata, weigh=weigh)
        except InvocationError as error:  # the process holds too much
            told = translated(error)
            return self._passed((Send(refusal(told)), Close(told)))
        self._about, self._was_opened = checked.about, type(checked.steps[-1]) is not Close
        return self._passed(self._session.receive(checked))

    def half_close(self) -> Sequence[CallStep]:
        """Do nothing, since each request has one buffer."""
        return self._session.half_close()

    def deliver(self, event: Event) -> Sequence[CallStep]:
        """Translate an event of the invocation; its end is the response."""
        return self._passed(self._session.deliver(event))

    def refusal(self, error: InvocationError) -> Any:
        """The frame of an error, if it has to be sent before the session does."""
        return self._made(refusal(translated(error)))

    def _passed(self, steps: Sequence[CallStep]) -> Sequence[CallStep]:
        if not steps or type(steps[-1]) is not Close:
            return steps
        if self._owned is not None:
            self._owned.close()
        sent, close = steps
        assert type(sent) is Send, "a conversation is closed behind its response"
        answer: Answer | Reply = sent.frame
        return (Send(self._made(answer.response() if isinstance(answer, Answer) else answer)), close)

    def _made(self, reply: Reply) -> Any:
        """Make the frame of a reply, and write the log line unless that was done."""
        try:
            self._untold.pop()
        except IndexError:
            pass
        else:
            self._inferences.tell(
                reply, self._transport, self._began, was_opened=self._was_opened, model=self._model, request=self._about
            )
        return self._make(reply)
