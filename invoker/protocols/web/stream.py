"""`StreamSession`: an HTTP request whose body or response is a stream.

Theory. The invocation is opened as soon as its required values and options are known. Later items of the body are fed
to it. Its values are sent at once if the response is a stream::

    state    what comes        next     steps
    -------  ----------------  -------  --------------------------------------------------------------------------
    FRESH    a head            WAITING  -, if the body is read as one value, or may begin with options
    FRESH    a head            RUNNING  Open, and Feed for the values in the query
    WAITING  chunk             WAITING  -; or RUNNING with Open and Feed, when the first item of an input is there
    WAITING  end               RUNNING  Open, Feed, EndInput
    RUNNING  chunk             RUNNING  Feed for each item that is complete
    RUNNING  end               RUNNING  Feed, EndInput
    RUNNING  Emitted           RUNNING  Send(head) before the first, Send(item); a unary response is kept (R-149)
    RUNNING  Elapsed           RUNNING  Send(head), or Send(heartbeat)
    RUNNING  Finished          CLOSED   Send(end or error), Close; before the head an error is a response like any other
    any      a bad body        CLOSED   Cancel, and as for Finished with an error

The driver passes `Elapsed` to the session at intervals. At the first one, the head is sent even if the function has
yielded nothing, so that the client sees that the server answers; at each later one, a heartbeat is sent.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final

from invoker.core.http import LONG_BYTES, BodyChunk, BodyParts, RequestHead, Response, ResponseHead
from invoker.core.steps import (
    CallStep,
    Cancel,
    Close,
    Elapsed,
    Emitted,
    EndInput,
    Event,
    Feed,
    Finished,
    Open,
    OutputEnded,
    Send,
)
from invoker.errors import DecodeError, EncodeError, InvocationError, LimitExceeded, ProtocolViolation
from invoker.errors.wording import too_late
from invoker.message import Message
from invoker.protocols.web.asking import ID, Asked, too_long
from invoker.protocols.web.events import filled, given
from invoker.protocols.web.faults import at_fault, hint, named, no_value, second, unaccepted
from invoker.protocols.web.fields import Field
from invoker.protocols.web.filling import from_query, is_plain
from invoker.protocols.web.formats import Format, format_of
from invoker.protocols.web.items import Items, Reading, Reads, reads
from invoker.protocols.web.naming import check_names
from invoker.protocols.web.reply import FENCE, NOTHING, answer, opened, problem, refusal, told_text

_LABEL = "in"
_END = EndInput(ID)
_VARY = ("Vary", "Accept")
_ITEM_BYTES = 200
"""The memory that an item takes in addition to its payload, in bytes."""


class _State(enum.Enum):
    FRESH = "waiting for the request's head"
    WAITING = "taking what opens the function"
    RUNNING = "the function runs"
    CLOSED = "the response is complete"


_CLOSED: Final = _State.CLOSED  # each item is compared with it, and Python 3.11 looks up members of an enum slowly


class StreamSession:
    """Translates one HTTP request into one invocation, item by item.

    Args:
        asked: The request that the head describes; its body or its response is a stream.
        most_bytes: The largest item, and the largest body that is read as one value, in bytes.
    """

    def __init__(self, asked: Asked, *, most_bytes: int) -> None:
        self._asked = asked
        self._most_bytes = most_bytes
        self._state = _State.FRESH
        self._is_begun = False  # the response
        self._has_ended = False  # the body
        self._body: list[bytes] = []
        self._size = 0
        self._reads: Reads | None = None
        self._metadata = asked.headers
        self._labels: tuple[str, ...] = ()
        self._names: tuple[str, ...] = ()
        self._begins = b""
        self._early: list[tuple[str, Message[bytes]]] = []
        self._indexes: dict[str, int] = {}
        self._output: Message[bytes] | None = None
        self._outputs = outputs = asked.inputs.outputs if asked.stream is not None else asked.outputs
        self._format: Format | None = (
            None if asked.stream is None else format_of(asked.stream[0], outputs, is_text=asked.inputs.is_text)
        )
        self._waits = asked.is_implied and asked.inputs.is_told  # whether the head waits for the first message

    @property
    def has_begun(self) -> bool:
        """Whether the head of a streamed response was sent."""
        return self._is_begun

    @property
    def is_told(self) -> bool:
        """Whether the response, or the end of the stream, was sent."""
        return self._state is _State.CLOSED

    @property
    def cuts(self) -> bool:
        """Whether the connection is closed to show an error, because the format of the response cannot."""
        return self._asked.is_implied

    @property
    def held(self) -> int:
        """How many bytes of the body are buffered: an incomplete item, and all options before the first item."""
        if self._reads is None:
            return 0
        return self._reads.held + (self._size if self._state is _State.WAITING else 0)

    def receive(self, frame: RequestHead | BodyChunk) -> Sequence[CallStep]:
        """Translate the head, or a chunk of the body.

        Raises:
            ProtocolViolation: A head is not the first frame, or a chunk is the first one.
        """
        if self._state is _State.CLOSED:
            return ()
        if isinstance(frame, BodyChunk) and self._state is not _State.FRESH:
            try:
                return self._chunk(frame.payload)
            except InvocationError as error:
                return self._refuse(error.with_traceback(None))
        if isinstance(frame, RequestHead) and self._state is _State.FRESH:
            try:
                return self._begin()
            except InvocationError as error:
                return self._refuse(error.with_traceback(None))
        raise ProtocolViolation(f"a {type(frame).__name__} came while {self._state.value}")

    def half_close(self) -> Sequence[CallStep]:
        """Translate the end of the body.

        Raises:
            ProtocolViolation: No head came.
        """
        if self._state is _State.FRESH:
            raise ProtocolViolation("the request ended without a head")
        if self._state is _State.CLOSED or self._has_ended:
            return ()
        self._has_ended = True
        try:
            if self._asked.reading is Reading.WHOLE:
                return self._whole()
            assert self._reads is not None
            items = self._reads.close()
            if self._state is _State.RUNNING:
                return (*self._feeds(items), _END)
            return (*self._opened(items), _END)
        except InvocationError as error:
            return self._refuse(error.with_traceback(None))

    def deliver(self, event: Event) -> Sequence[CallStep]:
        """Translate an event of the invocation, or `Elapsed`."""
        if self._state is _CLOSED:
            return ()
        if type(event) is Emitted:
            return self._emitted(event.index, event.message)
        if type(event) is Elapsed:
            return self._elapsed()
        if type(event) is OutputEnded:
            return ()
        assert type(event) is Finished
        self._over()
        if event.error is not None:
            return self._told(event.error)
        if self._format is not None:
            return (*self._head(), *_sent(self._format.end()), Close())
        if self._output is None:
            if not self._outputs:
                return (Send(NOTHING), Close())
            return self._told(no_value(self._asked.inputs))
        try:
            fence = FENCE if self._asked.is_bodiless else ()
            response = answer(given(self._output, self._asked), fence, is_text=self._asked.inputs.is_text)
            return (Send(response), Close())
        except EncodeError as error:
            return self._told(error)

    def refusal(self, error: InvocationError, *, status: int = 0, parameter: str = "") -> Response:
        """The response for an error before anything was sent."""
        return refusal(error, self._asked.accept, status=status or _status(error), parameter=parameter)

    def farewell(self, error: InvocationError) -> bytes:
        """The bytes that end a response that has begun, for an error from outside of this session."""
        assert self._format is not None
        return self._format.error(problem(error, _status(error)))

    # Inputs.

    def _begin(self) -> Sequence[CallStep]:
        asked = self._asked
        self._state = _State.WAITING
        if asked.is_repeated:
            # H-010: a browser reconnects after the end of the events; this status stops it.
            self._state = _State.CLOSED
            return (Send(NOTHING), Close())
        if asked.is_head and self._format is not None:
            self._state = _State.CLOSED
            return (*self._head(), Close())
        if asked.reading is Reading.WHOLE:
            return ()
        free, spare = self._prepare()
        fields, most = (*free, *spare), self._most_bytes
        self._reads = reads(asked.reading, asked.content_type, asked.headers, fields, most, asked.inputs)
        return self._open() if free and not spare else ()

    def _prepare(self) -> tuple[Sequence[Field], Sequence[Field]]:
        """Take the values in the query.

        Returns the inputs that still need values, and the options that may come before them.

        Raises:
            DecodeError: The query has two values for one input.
        """
        asked = self._asked
        signature = asked.inputs
        given = from_query(signature, asked.query, asked.headers)
        queried = [name for name, _ in given]
        check_names(signature, [one for one in queried if one not in signature.streams])
        count = max(len(signature.inputs), 1)
        free = [one for one in signature.fields[:count] if one.name not in queried]
        is_named = len(free) > 1 or asked.reading is Reading.PARTS
        spare = [one for one in signature.fields[count:] if one.name not in queried] if is_named else []
        self._early = given
        self._labels = signature.inputs if len(signature.inputs) > 1 else (_LABEL,)
        self._indexes = {one.name: index for index, one in enumerate(signature.fields[:count])}
        if free:
            self._indexes[""] = self._indexes[free[0].name]
        return free, spare

    def _chunk(self, payload: bytes) -> Sequence[CallStep]:
        if self._reads is None:
            if self._asked.is_bodiless:
                return ()
            self._size += len(payload)
            if self._size > self._most_bytes:
                return self._refuse(too_long(self._most_bytes))
            self._body.append(payload)
            return ()
        items = self._reads.feed(payload)
        if self._state is _State.RUNNING:
            return self._feeds(items)
        self._size += sum(len(message.payload) + _ITEM_BYTES for _, message in items)
        if self._size > self._most_bytes:
            raise LimitExceeded(f"more than {self._most_bytes} bytes of options came before the first item of an input")
        if any(name in self._indexes for name, _ in items):
            return self._opened(items)
        self._early += items
        return ()

    def _opened(self, items: Items) -> list[CallStep]:
        """Open the invocation with the options that came before the first item of an input.

        Options after that item are too late, even in the same chunk.
        """
        at = next((index for index, (name, _) in enumerate(items) if name in self._indexes), len(items))
        self._early += items[:at]
        return [*self._open(), *self._feeds(items[at:])]

    def _open(self) -> list[CallStep]:
        """Open the invocation with the options that have come, and feed the other values that have come."""
        options = tuple(dict.fromkeys(name for name, _ in self._early if name not in self._indexes))
        names = (*self._labels, *options)
        self._indexes.update((name, len(self._labels) + at) for at, name in enumerate(options))
        self._state = _State.RUNNING
        early, self._early = self._early, []
        return [self._opening(names, None), *self._feeds(early)]

    def _feeds(self, items: Items) -> list[CallStep]:
        indexes = self._indexes
        try:
            return [Feed(ID, indexes[name], message) for name, message in items]
        except KeyError as missing:
            raise DecodeError(
                f"parameter {missing.args[0]!a} {too_late(self._asked.inputs.name)}; give it before the first item, "
                "or in the query"
            ) from None

    def _whole(self) -> Sequence[CallStep]:
        """Handle the complete body if it is read as one value (R-162)."""
        asked = self._asked
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body.clear()
        self._begins = body[:1]
        if asked.opening is not None:
            plain, media_type = asked.opening
            if is_plain(media_type, body):
                self._state = _State.RUNNING
                return (
                    self._opening(plain.input_names, None),
                    Feed(ID, 0, Message(body, asked.headers, media_type)),
                    _END,
                )
        (names, messages, bound), self._metadata = filled(asked, body)
        self._state = _State.RUNNING
        return (self._opening(names, bound), *(Feed(ID, index, message) for index, message in messages), _END)

    def _opening(self, names: tuple[str, ...], bound: tuple[str, ...] | None) -> Open:
        asked, self._names = self._asked, names
        return Open(
            ID,
            asked.function,
            (asked.wanted,) * len(self._outputs),
            names,
            self._outputs,
            self._metadata,
            bound,
            protocol=ID,
        )

    # Outputs.

    def _emitted(self, index: int, message: Message[bytes]) -> Sequence[CallStep]:
        if self._format is None:
            if self._output is None:
                self._output = message
                return ()
            return (Cancel(ID, second(self._asked.inputs)),)
        item: BodyChunk | BodyParts
        try:
            if message.headers or self._asked.as_events:
                message = given(message, self._asked)
            if len(message.payload) <= LONG_BYTES:
                item = BodyChunk(self._format.item(index, message))
            else:
                values = 2 if self._asked.inputs.gives_ahead else 1
                item = BodyParts(self._format.parts(index, message), values * len(message.payload))
            if self._is_begun:
                return (Send(item),)
            return (*self._head(message), Send(item))
        except EncodeError as error:
            return (Cancel(ID, error),)

    def _elapsed(self) -> Sequence[CallStep]:
        if self._format is None or (self._waits and not self._is_begun):
            return ()
        return _sent(self._format.heartbeat) if self._is_begun else (*self._head(), *_sent(self._format.heartbeat))

    def _head(self, first: Message[bytes] | None = None) -> tuple[Send, ...]:
        if self._is_begun or self._format is None:
            return ()
        status, headers = 200, self._format.headers
        if self._waits and first is not None:
            status, headers = opened(first, headers, is_text=self._asked.inputs.is_text)
        elif self._asked.is_implied and self._asked.inputs.is_text:
            headers = told_text(headers)
        self._is_begun = True
        fenced = FENCE if self._asked.is_bodiless else ()
        return (Send(ResponseHead(status, (*headers, _VARY, *fenced))),)

    # Endings.

    def _told(self, error: InvocationError) -> Sequence[CallStep]:
        inputs = self._asked.inputs
        parameter = at_fault(error, inputs, self._names)
        if parameter and isinstance(error, DecodeError):
            error = named(error, parameter)
            error.add_hint(hint(inputs, parameter, self._asked.content_type, self._begins))
        else:
            error = unaccepted(error, inputs, self._asked.accept)
        if self._is_begun:
            assert self._format is not None
            return (*_sent(self._format.error(problem(error, _status(error), parameter=parameter))), Close(error))
        return (Send(self.refusal(error, parameter=parameter)), Close(error))

    def _refuse(self, error: InvocationError) -> Sequence[CallStep]:
        """End the request because its body is wrong, and cancel the invocation if it runs."""
        ended = (Cancel(ID, error),) if self._state is _State.RUNNING else ()
        self._over()
        self._body.clear()
        return (*ended, *self._told(error))

    def _over(self) -> None:
        self._state = _State.CLOSED
        self._reads = None  # frees the bytes that it has buffered


def _status(error: InvocationError) -> int:
    """The status for a wrong body, such as 400 for a second item of a single value; 0: the one of the error's class."""
    return 400 if isinstance(error, ProtocolViolation) else 0


def _sent(data: bytes) -> tuple[Send, ...]:
    return (Send(BodyChunk(data)),) if data else ()
