"""The riff request/reply protocol: one HTTP request, one invocation, one response.

Theory. A request is a head, then chunks of the body, then its end; the response is sent in one piece::

    state    what comes      next     steps
    -------  --------------  -------  ---------------------------------------------------------------
    FRESH    POST /          READING  -
    FRESH    another head    CLOSED   Send(404 or 405), Close (R-142)
    FRESH    chunk, end      -        ProtocolViolation
    READING  chunk           READING  -; beyond the limit Send(413), Close (R-154)
    READING  head            -        ProtocolViolation
    READING  end             RUNNING  Open, Feed, EndInput (R-162: the function starts with its input complete)
    RUNNING  Emitted, first  RUNNING  - (kept)
    RUNNING  Emitted, again  RUNNING  Cancel (R-149)
    RUNNING  Finished        CLOSED   Send(Response), Close

`invoker.protocols.web.filling` decides which parameter gets which value.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

from invoker.codecs import Part, PartReader
from invoker.core.http import BodyChunk, RequestHead, Response
from invoker.core.steps import (
    CallStep,
    Cancel,
    Close,
    Emitted,
    EndInput,
    Event,
    Feed,
    Finished,
    Open,
    OutputEnded,
    Send,
)
from invoker.errors import (
    DecodeError,
    EncodeError,
    InvocationError,
    ProtocolViolation,
)
from invoker.message import Headers, Message
from invoker.protocols.web.asking import ID, Asked, RefusedError, ask, is_form, too_long
from invoker.protocols.web.events import filled, given
from invoker.protocols.web.faults import at_fault, hint, named, no_value, second, unaccepted
from invoker.protocols.web.fields import Signature
from invoker.protocols.web.filling import Filled, fill_parts, is_plain
from invoker.protocols.web.reply import FENCE, NOTHING, answer, refusal
from invoker.protocols.web.values import named_parts

_END = EndInput(ID)
_PIPED = (
    "; a body is fed item by item, and is of any length, where the answer is a stream, too: Accept: text/event-stream, "
    "application/x-ndjson or multipart/mixed"
)


class State(enum.Enum):
    """The states of a request and its response."""

    FRESH = "waiting for the request's head"
    READING = "taking the body"
    RUNNING = "the function runs"
    CLOSED = "the response was given"


_NOTHING = Asked()


class HttpSession:
    """Translates one HTTP request into one invocation, and its one output into the response.

    Args:
        signature: Finds the signature of the function that the request names, or of the only one when it names none;
            raises InvocationError when there is no such function.
        max_body_bytes: A longer body is refused with 413 as soon as its length is known.
    """

    __slots__ = (
        "_asked", "_begins", "_body", "_form", "_max_body_bytes", "_names", "_output", "_parts", "_signature", "_size",
        "state",
    )  # fmt: skip

    def __init__(self, signature: Callable[[str], Signature], *, max_body_bytes: int) -> None:
        self.state = State.FRESH
        self._signature = signature
        self._max_body_bytes = max_body_bytes
        self._asked = _NOTHING
        self._names: tuple[str, ...] = ()
        self._begins = b""
        self._body: list[bytes] = []
        self._size = 0
        self._form: PartReader | None = None
        self._parts: list[Part] = []
        self._output: Message[bytes] | None = None

    @property
    def can_repeat(self) -> bool:
        """Whether `again` may be called: a head was read, and the body is not multipart."""
        return self.state is State.READING and self._form is None and not self._asked.streams

    @property
    def asked(self) -> Asked:
        """The request that the head describes.

        If the body or the answer streams, a `StreamSession` has to handle this request.
        """
        return self._asked

    def again(self, body: bytes = b"") -> HttpSession:
        """A session for another request with the same head.

        Args:
            body: The bytes of the body that have come already, at most as many as the head announces.
        """
        other = HttpSession(self._signature, max_body_bytes=self._max_body_bytes)
        other.state, other._asked = self.state, self._asked
        if body:
            other._body.append(body)
        return other

    def receive(self, frame: RequestHead | BodyChunk) -> Sequence[CallStep]:
        """Translate the head, or a chunk of the body.

        Raises:
            ProtocolViolation: A head is not the first frame, or a chunk is the first one.
        """
        if self.state is State.CLOSED:
            return ()  # the request is refused already, so the rest of the body is dropped
        if isinstance(frame, BodyChunk) and self.state is State.READING:
            return self._chunk(frame.payload)
        if isinstance(frame, RequestHead) and self.state is State.FRESH:
            return self._begin(frame)
        raise ProtocolViolation(f"a {type(frame).__name__} came while {self.state.value}")

    def half_close(self) -> Sequence[CallStep]:
        """Translate the end of the body: the invocation is opened, with complete input.

        Raises:
            ProtocolViolation: No head came.

        Source: riff request-reply.md (R-150, R-162).
        """
        if self.state is State.FRESH:
            raise ProtocolViolation("the request ended without a head")
        if self.state is not State.READING:
            return ()
        self.state = State.RUNNING
        asked = self._asked
        try:
            if self._form is not None:
                self._form.close()
                filled_in = fill_parts(asked.inputs, asked.query, self._parts, asked.headers)
                opening, messages = _opened(asked, filled_in, asked.headers)
            else:
                opening, messages = opened(asked, self._taken())
        except InvocationError as error:
            return self._refuse(error.with_traceback(None))
        self._names = opening.input_names
        if len(messages) == 1:
            ((index, message),) = messages
            return (opening, Feed(ID, index, message), _END)
        return (opening, *[Feed(ID, index, message) for index, message in messages], _END)

    def deliver(self, event: Event) -> Sequence[CallStep]:
        """Translate an event of the invocation; the response is sent at its end."""
        if self.state is State.CLOSED:
            return ()
        if type(event) is Emitted:
            if self._output is None:
                self._output = event.message
                return ()
            # a second value is an error; the function need not run any further.
            return (Cancel(ID, second(self._asked.inputs)),)
        if type(event) is OutputEnded:
            return ()
        assert type(event) is Finished
        response, told = reply(self._asked, self._output, event.error, self._names, self._begins)
        return self._answer(response, told)

    def refusal(self, error: InvocationError, *, status: int = 0) -> Response:
        """The response for an error of the transport, such as a bad frame, or a deadline while the body came."""
        return refusal(error, self._asked.accept, status=status)

    def _begin(self, head: RequestHead) -> Sequence[CallStep]:
        self._asked = Asked(head.value("accept"))
        try:
            self._asked = asked = ask(head, self._signature, most_bytes=self._max_body_bytes)
            if is_form(asked.content_type) and (len(asked.inputs.inputs) > 1 or asked.inputs.is_open):
                self._form = PartReader(asked.content_type)
        except RefusedError as refused:
            return self._refuse(refused.error.with_traceback(None), status=refused.status, headers=refused.headers)
        except InvocationError as error:
            return self._refuse(error.with_traceback(None))
        self.state = State.READING
        return ()

    def _chunk(self, payload: bytes) -> Sequence[CallStep]:
        if self._asked.is_bodiless:
            return ()
        self._size += len(payload)
        if self._size > self._max_body_bytes:
            return self._refuse(too_long(self._max_body_bytes))
        if self._form is None:
            self._body.append(payload)
            return ()
        try:
            self._parts += named_parts(self._form.feed(payload))
        except InvocationError as error:
            return self._refuse(error.with_traceback(None))
        return ()

    def _taken(self) -> bytes:
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body.clear()
        self._begins = body[:1]
        return body

    def _refuse(
        self, error: InvocationError, *, status: int = 0, headers: tuple[tuple[str, str], ...] = ()
    ) -> Sequence[CallStep]:
        # The error keeps no traceback, since it would form a cycle that keeps the bytes alive that the connection has
        # read ahead.
        return self._answer(*refused(self._asked, error, self._names, self._begins, status=status, headers=headers))

    def _answer(self, response: Response, error: InvocationError | None) -> Sequence[CallStep]:
        self.state = State.CLOSED
        self._body.clear()
        self._parts.clear()
        self._output = self._form = None
        return (Send(response), Close(error))


def opened(asked: Asked, body: bytes) -> tuple[Open, Sequence[tuple[int, Message[bytes]]]]:
    """The step that opens the invocation of a request, whose whole body has come, and the messages of its inputs.

    Raises:
        InvocationError: The body and the query do not give the values that the function takes.

    Source: riff request-reply.md (R-150, R-162).
    """
    if asked.opening is not None:
        opening, media_type = asked.opening
        if is_plain(media_type, body):
            return opening, ((0, Message(body, asked.headers, media_type)),)
    return _opened(asked, *filled(asked, body))


def _opened(asked: Asked, filled_in: Filled, headers: Headers) -> tuple[Open, Sequence[tuple[int, Message[bytes]]]]:
    names, messages, bound = filled_in
    outputs = asked.outputs
    opening = Open(ID, asked.function, (asked.wanted,) * len(outputs), names, outputs, headers, bound, protocol=ID)
    return opening, messages


def reply(
    asked: Asked, message: Message[bytes] | None, error: InvocationError | None, names: tuple[str, ...], begins: bytes
) -> tuple[Response, InvocationError | None]:
    """The response for an invocation that has ended, and the error that the response reports, if any.

    Args:
        asked: The request.
        message: The value that the function returned; None: there was none.
        error: The error with which the invocation ended, if it failed.
        names: The names of the inputs with which the invocation was opened.
        begins: The first byte of the body.
    """
    if error is None and message is not None:
        try:
            if message.headers or asked.as_events:
                message = given(message, asked)
            return answer(message, FENCE if asked.is_bodiless else (), is_text=asked.inputs.is_text), None
        except EncodeError as unfit:
            error = unfit.with_traceback(None)
    elif error is None:
        if not asked.outputs:
            return NOTHING, None
        error = no_value(asked.inputs)
    return refused(asked, error, names, begins)


def refused(
    asked: Asked,
    error: InvocationError,
    names: tuple[str, ...],
    begins: bytes,
    *,
    status: int = 0,
    headers: tuple[tuple[str, str], ...] = (),
) -> tuple[Response, InvocationError]:
    """The response for an error, and the error rewritten for callers over HTTP.

    Args:
        asked: The request.
        error: Any error.
        names: See `reply`.
        begins: See `reply`.
        status: The status; 0: the status of the error.
        headers: Headers of the response.
    """
    told, parameter = error, at_fault(error, asked.inputs, names)
    if parameter and isinstance(error, DecodeError):
        told = named(error, parameter)
        told.add_hint(_PIPED if asked.is_piped else hint(asked.inputs, parameter, asked.content_type, begins))
    else:
        told = unaccepted(error, asked.inputs, asked.accept)
    return refusal(told, asked.accept, status=status, headers=headers, parameter=parameter), told
