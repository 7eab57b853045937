"""`GraphPipeSession`: one GraphPipe request; an inference is one invocation, whose inputs are named tensors.

Theory. A conversation is one request and one response, over HTTP and on raw sockets::

    state    what comes        next     steps
    -------  ----------------  -------  -----------------------------------------------------------------------------
    FRESH    a request         RUNNING  Open (with the inputs that are given, in declared order), a Feed each, EndInput
    FRESH    for metadata      CLOSED   Send(Reply), Close (G-092: there is no invocation)
    FRESH    invalid request   CLOSED   Send(Reply), Close
    FRESH    end               -        ProtocolViolation
    RUNNING  a Row             RUNNING  a Feed for each input, if the function is fed by rows (G-073)
    RUNNING  end               RUNNING  EndInput, if the function is fed by rows
    RUNNING  Emitted           RUNNING  - (kept); Cancel if an output has too many values or bytes
    RUNNING  Finished          CLOSED   Send(Answer) or Send(Reply with the error), Close

`invoker.protocols.graphpipe.prepare` does all checks that are possible before the function runs. For a large buffer, a
transport may call it in a thread and pass the checked request to the session (G-102).
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import msgspec

from invoker.core.steps import CallStep, Cancel, Close, Emitted, EndInput, Event, Feed, Finished, Send
from invoker.errors import EncodeError, ProtocolViolation
from invoker.message import EMPTY, Headers, Message
from invoker.protocols.graphpipe.answer import Answer, refusal
from invoker.protocols.graphpipe.binding import GivenInput
from invoker.protocols.graphpipe.checked import ID, CheckedRequest, message_for
from invoker.protocols.graphpipe.errors import translated
from invoker.protocols.graphpipe.model import Model
from invoker.protocols.graphpipe.plans import Buffer
from invoker.protocols.graphpipe.prepare import prepare
from invoker.protocols.graphpipe.rows import row
from invoker.tensors import LIMIT_BYTES, Code, GraphPipeError


class Row(msgspec.Struct, frozen=True):
    """A frame by which a transport feeds one more row."""

    index: int


class State(enum.Enum):
    """The states of a conversation; each request has one."""

    FRESH = "waiting for the request"
    RUNNING = "the function runs"
    CLOSED = "the response was given"


class GraphPipeSession:
    """Translates one request into one invocation, and its outputs into the response.

    Args:
        model: The model.
        limit_bytes: The largest request, in bytes.
        metadata: The metadata of the conversation.
    """

    __slots__ = ("_limit_bytes", "_messages", "_metadata", "_model", "_prepared", "_size", "state")

    def __init__(self, model: Model, *, limit_bytes: int = LIMIT_BYTES, metadata: Headers = EMPTY) -> None:
        self.state = State.FRESH
        self._model = model
        self._limit_bytes = limit_bytes
        self._metadata = metadata
        self._prepared = CheckedRequest(())
        self._messages: dict[int, list[Message[bytes]]] = {}
        self._size = 0

    def receive(self, frame: Buffer | CheckedRequest | Row) -> Sequence[CallStep]:
        """Translate the request, as a buffer or after `prepare`; or feed one of its rows.

        Raises:
            ProtocolViolation: There already was a request.
        """
        if isinstance(frame, Row):
            return self._row(frame.index) if self.state is State.RUNNING else ()
        if self.state is not State.FRESH:
            raise ProtocolViolation(f"a request came while {self.state.value}")
        if not isinstance(frame, CheckedRequest):
            frame = prepare(self._model, frame, limit_bytes=self._limit_bytes, metadata=self._metadata)
        self._prepared = frame
        self._messages = {index: [] for index in frame.wanted}
        self.state = State.CLOSED if isinstance(frame.steps[-1], Close) else State.RUNNING
        return frame.steps

    def half_close(self) -> Sequence[CallStep]:
        """Translate the end of the peer's frames.

        Raises:
            ProtocolViolation: No request came.
        """
        if self.state is State.FRESH:
            raise ProtocolViolation("the conversation ended without a request")
        return (EndInput(ID),) if self.state is State.RUNNING and self._prepared.rows is not None else ()

    def deliver(self, event: Event) -> Sequence[CallStep]:
        """Translate an event of the invocation; the response is sent at its end."""
        if self.state is not State.RUNNING:
            return ()
        if type(event) is Emitted:
            return self._emitted(event)
        if type(event) is not Finished:
            return ()
        prepared, given = self._prepared, self._messages
        self.release()
        if event.error is not None:
            error = translated(event.error, self._model, prepared.met)
            if error.code is Code.BAD_OUTPUT and isinstance(event.error, EncodeError):
                error = GraphPipeError(error.code, error.detail + self._model.hint)
            return (Send(refusal(error)), Close(error))
        messages = tuple(tuple(given[index]) for index in prepared.wanted)
        answer = Answer(prepared.ports, messages, prepared.known, prepared.rows, prepared.parts, plans=prepared.answers)
        return (Send(answer), Close())

    def release(self) -> None:
        """Drop the tensors after the end of the conversation, since this object may stay in memory."""
        self.state = State.CLOSED
        self._prepared = CheckedRequest(())
        self._messages = {}

    def _row(self, index: int) -> Sequence[CallStep]:
        several = ((at, GivenInput(one.port, row(one.tensor, index))) for at, one in enumerate(self._prepared.given))
        try:
            return tuple(Feed(ID, at, message_for(one)) for at, one in several)
        except GraphPipeError as error:
            return (Cancel(ID, error),)

    def _emitted(self, event: Emitted) -> Sequence[CallStep]:
        messages = self._messages.get(event.index)
        if messages is None:
            return ()
        port = self._model.outputs[event.index]
        rows = self._prepared.rows
        is_full = bool(messages) and not port.is_joined if rows is None else len(messages) >= rows
        if is_full:  # G-071, G-072, G-073
            detail = f"the function gave value {len(messages) + 1} for output '{port.name}', which is one too many"
            return (Cancel(ID, GraphPipeError(Code.BAD_OUTPUT, detail)),)
        self._size += len(event.message.payload)
        if self._size > self._prepared.most_bytes:
            detail = f"the outputs of the function exceed the limit of {self._prepared.most_bytes} bytes"
            return (Cancel(ID, GraphPipeError(Code.BAD_OUTPUT, detail)),)
        messages.append(event.message)
        return ()
