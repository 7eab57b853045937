"""`ToldSession`: a session for transports that run small inferences without a task; it also writes the log line.

It wraps a `GraphPipeSession`: the transport passes a buffer to it, and gets a frame that is made from the `Reply`. The
buffer is decoded and the response encoded in the thread of the conversation, so only small buffers are allowed (G-102).
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
    """Whether the inferences of a model are neither joined into batches nor fed by rows."""
    return not model.by_row and model.spec.batching.rows <= 1


class ToldSession:
    """Runs one inference.

    Args:
        inferences: The inferences, with the limits and the log.
        model: The model.
        make: Makes the transport's frame from a reply.
        transport: The transport, for the log.
        metadata: The metadata of the conversation.
        share: The share that counts the bytes of the buffer and of copies of elements; None: the inference makes its
            own share for the copies.
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
        # emptied by the thread that writes the log, which may differ from the thread of the function
        self._untold = [True]

    def receive(self, frame: bytes) -> Sequence[CallStep]:
        """Check the request, and open the invocation or refuse the request."""

        def weigh(size: int) -> None:
            share = self._share
            if share is None:
                share = self._share = self._owned = self._inferences.share()
            share.grow(len(frame) + size)

        try:
            limit_bytes = self._inferences.limit_bytes
            checked = prepare(self._model, frame, limit_bytes=limit_bytes, metadata=self._metadata, weigh=weigh)
        except InvocationError as error:  # the process holds too many bytes
            told = translated(error)
            return self._passed((Send(refusal(told)), Close(told)))
        self._about, self._was_opened = checked.about, type(checked.steps[-1]) is not Close
        return self._passed(self._session.receive(checked))

    def half_close(self) -> Sequence[CallStep]:
        """Do nothing: a request is one buffer."""
        return self._session.half_close()

    def deliver(self, event: Event) -> Sequence[CallStep]:
        """Translate an event of the invocation; the response is sent at its end."""
        return self._passed(self._session.deliver(event))

    def refusal(self, error: InvocationError) -> Any:
        """The frame for an error that occurred outside of this session."""
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
        """Make the frame of a reply, and write the log line unless it was already written."""
        try:
            self._untold.pop()
        except IndexError:
            pass
        else:
            self._inferences.tell(
                reply, self._transport, self._began, was_opened=self._was_opened, model=self._model, request=self._about
            )
        return self._make(reply)
