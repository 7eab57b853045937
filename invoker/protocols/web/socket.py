"""riff over WebSocket: each connection is one invocation, whose inputs and outputs have names.

Theory. A frame is text, which holds a JSON object, or binary. The handshake opens the invocation, and its query gives
values to parameters by name::

    state      frame                                        next       steps
    ---------  -------------------------------------------  ---------  ----------------------------------------------
    FRESH      the head of the handshake                    RUNNING    Open; Feed, EndInput for values of the query
    RUNNING    {"data": ...}, {"base64": "..."}             RUNNING    Feed
    RUNNING    {"contentType": "..."}, alone                ANNOUNCED  -
    RUNNING    binary                                       RUNNING    Feed, for the first input, as octet-stream
    RUNNING    {"end": "NAME"}                              RUNNING    EndInput
    RUNNING    {"end": true}                                ENDED      EndInput of all
    ANNOUNCED  binary                                       RUNNING    Feed
    ANNOUNCED  text                                         -          ProtocolViolation
    ENDED      any                                          -          ProtocolViolation
    any        Emitted                                      same       Send of a text; not JSON: of a text and a binary
    any        OutputEnded, one of several                  same       Send
    any        Finished                                     CLOSED     Close

An item is for the first input unless its member ``input`` names another one. A function without parameters is called
for each item, and once if there are no items. Outputs are sent as JSON if possible. Only ``{"end": true}`` is a
half-close; if a client closes the connection before, the function is cancelled.
"""

from __future__ import annotations

import codecs
import enum
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec

from invoker.author.spec import FunctionSpec
from invoker.codecs import Registry
from invoker.core.http import LONG_BYTES, LongMessage, RequestHead
from invoker.core.steps import Close, Emitted, EndInput, Event, Feed, Finished, Open, OutputEnded, Send, Step
from invoker.errors import DecodeError, InvocationError, ProtocolViolation
from invoker.errors.wording import known_as, quoted
from invoker.message import EMPTY, Headers, Message
from invoker.protocols.web.faults import at_fault, named
from invoker.protocols.web.fields import Signature, signature_of
from invoker.protocols.web.filling import fill_query
from invoker.protocols.web.items import Wrapped, wrapped
from invoker.protocols.web.naming import check_names
from invoker.protocols.web.reply import problem
from invoker.protocols.web.values import HIDDEN, typed

_ID: Final = "socket"
_JSON: Final = "application/json"
_OCTETS: Final = "application/octet-stream"
_ACCEPT: Final = f"{_JSON}, */*;q=0.5"
_END: Final = '{"end":true}'
_MOST_NAMES: Final = 100
_NOTHING: Final = msgspec.Raw(b"")
_MARK: Final = "\ufeff"
_OF_CONNECTION: Final = frozenset({"connection", "upgrade"})


class State(enum.Enum):
    """The states of a conversation; the module's docstring explains them."""

    FRESH = "waiting for the handshake"
    RUNNING = "taking items"
    ANNOUNCED = "waiting for the binary frame that was announced"
    ENDED = "the peer has ended its items"
    CLOSED = "the function has finished"


class Shape(msgspec.Struct, frozen=True):
    """What a WebSocket session needs to know about a function.

    Attributes:
        function: The name of the function.
        signature: The signature of the function.
        singles: Names of parameters that have one value for the whole call.
        outputs: Names of the outputs.
        has_open_outputs: Whether the client may name further outputs.
        is_called: Whether the function has no parameters, so that each item causes one call and its content is ignored.
        wrapped: By the name of an input, the `Wrapped` that finds the value in an object with a member of this name.
    """

    function: str
    signature: Signature
    singles: frozenset[str]
    outputs: tuple[str, ...]
    has_open_outputs: bool = False
    is_called: bool = False
    wrapped: Mapping[str, Wrapped] = {}


def shape_of(spec: FunctionSpec, registry: Registry) -> Shape:
    """Read the spec of a function.

    Args:
        spec: The spec as it was read.
        registry: The codecs for values.
    """
    singles = frozenset(one.name for one in (*spec.inputs, *spec.spare) if one.single or one.is_option)
    outputs = tuple(one.name for one in spec.outputs)
    if spec.open_outputs and not outputs:
        outputs = (spec.any_output.name,)
    is_called = (
        all(one.is_ignored for one in spec.inputs) and bool(spec.inputs) and not (spec.optional or spec.open_names)
    )
    signature = signature_of(spec, registry)
    known = {one.name for one in (*signature.fields, *signature.options)}
    found = {one.name: wrapped(one, known, drops=signature.drops) for one in signature.fields if not one.is_option}
    named = {name: one for name, one in found.items() if one is not None}
    return Shape(spec.name, signature, singles, outputs, spec.open_outputs, is_called, named)


class _Told(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """The members of a text frame from the client."""

    data: msgspec.Raw = _NOTHING
    base64: str | None = None
    input: str | None = None
    content_type: str = ""
    headers: dict[str, str] = {}
    end: bool | str | None = None


_Letters = codecs.getincrementaldecoder("utf-8")

_read = msgspec.json.Decoder(_Told).decode


class SocketSession:
    """Translates the messages of one connection.

    Args:
        shape: The shape of the function.
    """

    def __init__(self, shape: Shape) -> None:
        self.state = State.FRESH
        self._shape = shape
        self._signature = shape.signature
        self._names: tuple[str, ...] = ()
        self._indexes: dict[str, int] = {}
        self._wrapped: dict[int, Wrapped] = {}
        self._outputs = shape.outputs
        self._heads: list[str] = []
        self._announced = (0, EMPTY, "")
        self._has_item = False

    # Messages from the client.

    def receive(self, frame: str | bytes | RequestHead) -> Sequence[Step]:
        """Translate the head of the handshake, which comes first, or a message; a text message is a `str`.

        Raises:
            ProtocolViolation: The frame is not a message of this protocol, or is not allowed in this state.
            DecodeError: A value in the query is invalid, an object has a member that would be lost, or the function has
                no input of the given name.
        """
        state = self.state
        if state is State.CLOSED:
            return ()
        if type(frame) is str and state is State.RUNNING:
            return self._text(frame)
        if type(frame) is bytes and state in (State.RUNNING, State.ANNOUNCED):
            return self._binary(frame)
        if isinstance(frame, RequestHead) and state is State.FRESH:
            return self._begin(frame)
        kind = "text" if isinstance(frame, str) else "binary" if isinstance(frame, bytes) else "first"
        raise ProtocolViolation(f"a {kind} frame came while {state.value}")

    def half_close(self) -> Sequence[Step]:
        """Translate the end of the client's items."""
        if self.state in (State.CLOSED, State.ENDED):
            return ()
        self.state = State.ENDED
        if self._shape.is_called and not self._has_item:
            return (Feed(_ID, 0, Message(b"", EMPTY, _OCTETS)), EndInput(_ID))
        return (EndInput(_ID),)

    # Events of the invocation.

    def deliver(self, event: Event) -> Sequence[Step]:
        """Translate an event of the invocation."""
        if self.state is State.CLOSED:
            return ()
        if type(event) is Emitted:
            return self._emitted(event)
        if type(event) is OutputEnded:
            return (Send(_json({"ended": self._outputs[event.index]})),) if len(self._outputs) > 1 else ()
        assert type(event) is Finished
        self.state = State.CLOSED
        return (Close(event.error),)

    def farewell(self, error: InvocationError | None) -> str:
        """The last message, which reports how the conversation ended."""
        return _END if error is None else _json({"error": self.problem(error)})

    def problem(self, error: InvocationError) -> dict[str, str | int]:
        """The problem that the client gets for an error, with the names of parameters instead of inputs."""
        parameter = at_fault(error, self._signature, self._names)
        told = named(error, parameter) if parameter else error
        return problem(told, 400 if isinstance(error, ProtocolViolation) else 0, parameter=parameter)

    # Private helpers.

    def _begin(self, head: RequestHead) -> Sequence[Step]:
        shape, signature, query = self._shape, self._signature, head.query
        known = {one.name for one in (*signature.fields, *signature.options)}
        outputs = _listed(query, "outputs", known) if shape.has_open_outputs else ()
        self._outputs = outputs or shape.outputs
        self._heads = [f'{{"output":{_json(name)},"data":' for name in self._outputs]
        if signature.is_open and (listed := _listed(query, "inputs", known)):
            signature = msgspec.structs.replace(signature, inputs=listed)
        names, messages, bound = fill_query(signature, query, EMPTY)
        self._names = names
        self._indexes = {name: index for index, name in enumerate(signature.named(names))}
        self._wrapped = {index: shape.wrapped[name] for name, index in self._indexes.items() if name in shape.wrapped}
        fed = {index for index, _ in messages}
        ended = [self._indexes[one] for one in self._indexes if one in shape.singles or one not in known]
        self.state = State.RUNNING
        opening = Open(
            _ID,
            shape.function,
            (_ACCEPT,) * len(self._outputs),
            names,
            self._outputs,
            _metadata(head),
            bound,
            protocol="websocket",
        )
        feeds = (Feed(_ID, index, message) for index, message in messages)
        return (opening, *feeds, *(EndInput(_ID, index) for index in ended if index in fed))

    def _text(self, frame: str) -> Sequence[Step]:
        try:
            told = _read(frame[1:] if frame[:1] == _MARK else frame)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            raise ProtocolViolation(
                f'a text frame is not as expected: {error}; send an object such as {{"data": 1}} or {{"end": true}}'
            ) from None
        if told.end is not None:
            return self._end(told)
        self._has_item = True
        index = self._index(told.input)
        headers = _headers(told.headers) if told.headers else EMPTY
        if told.data is not _NOTHING:
            if told.base64 is not None:
                raise ProtocolViolation("a text frame has both data and base64")
            payload, media_type = self._value(index, bytes(told.data)), _JSON
            if told.content_type:
                payload, media_type = _as_text(payload), self._typed(index, told.content_type)
        elif told.base64 is not None:
            try:
                payload = b64decode(told.base64, validate=True)
            except ValueError as error:
                raise ProtocolViolation(f"the member base64 is invalid: {error}") from None
            media_type = self._typed(index, told.content_type) or _OCTETS
        elif told.content_type:
            self.state = State.ANNOUNCED
            self._announced = (index, headers, self._typed(index, told.content_type))
            return ()
        else:
            raise ProtocolViolation("a text frame must have data, base64, contentType or end")
        return (Feed(_ID, index, Message(payload, headers, media_type)),)

    def _value(self, index: int, data: bytes) -> bytes:
        """The value of an item, which may be an object with a member of the input's name (R-169)."""
        by_name = self._wrapped.get(index)
        if by_name is None or not by_name.sought.search(data):
            return data
        return by_name.value(data, "data")

    def _binary(self, frame: bytes) -> Sequence[Step]:
        self._has_item = True
        if self.state is State.RUNNING:
            return (Feed(_ID, self._index(None), Message(frame, EMPTY, _OCTETS)),)
        self.state = State.RUNNING
        index, headers, media_type = self._announced
        return (Feed(_ID, index, Message(frame, headers, media_type)),)

    def _end(self, told: _Told) -> Sequence[Step]:
        if told.end is False or told != _Told(end=told.end):
            raise ProtocolViolation(
                'the end must be {"end": true}, or {"end": "NAME"} for one input, without other members'
            )
        if told.end is True:
            return self.half_close()
        return (EndInput(_ID, self._index(told.end)),)

    def _index(self, name: str | None) -> int:
        """The index of the input of this name; without a name, that of the first input."""
        if name is None:
            if not self._indexes:
                raise ProtocolViolation("the function takes no input")
            return 0
        index = self._indexes.get(name)
        if index is None and (index := self._indexes.get(known_as(name, self._indexes))) is None:
            check_names(self._signature, [name])
            raise DecodeError(f"'{self._shape.function}' takes its input {quoted(name)} from the query only")
        return index

    def _typed(self, index: int, content_type: str) -> str:
        fields = self._signature.fields
        return typed(fields[index], content_type) if index < len(fields) else content_type

    def _emitted(self, event: Emitted) -> Sequence[Step]:
        message = event.message
        if len(message.payload) > LONG_BYTES:
            return self._long(event.index, message)
        if message.media_type == _JSON and not message.headers:
            try:
                return (Send(f"{self._heads[event.index]}{message.payload.decode()}}}"),)
            except UnicodeDecodeError:
                pass  # a function may send bytes that are not JSON as JSON
        told: dict[str, Any] = {"output": self._outputs[event.index]}
        if message.headers:
            told["headers"] = dict(message.headers)
        if message.media_type == _JSON and _is_text(message.payload):
            told["data"] = msgspec.Raw(message.payload)
            return (Send(_json(told)),)
        told |= {"contentType": message.media_type or _OCTETS, "size": len(message.payload)}
        return (Send(_json(told)), Send(message.payload))

    def _long(self, index: int, message: Message[bytes]) -> Sequence[Step]:
        """The frames of a long value, which is sent without copying."""
        told: dict[str, Any] = {"output": self._outputs[index]}
        if message.headers:
            told["headers"] = dict(message.headers)
        payload = message.payload
        if message.media_type == _JSON and _is_text(payload):
            begin = f'{_json(told)[:-1]},"data":'
            return (Send(LongMessage((begin.encode(), payload, b"}"), is_text=True)),)
        told |= {"contentType": message.media_type or _OCTETS, "size": len(payload)}
        return (Send(_json(told)), Send(LongMessage((payload,))))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _is_text(payload: bytes) -> bool:
    letters, view = _Letters(), memoryview(payload)
    try:
        # encoding a long text in one piece would block the loop, and need the memory twice
        for at in range(0, len(view), LONG_BYTES):
            letters.decode(view[at : at + LONG_BYTES])
        letters.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _as_text(data: bytes) -> bytes:
    try:
        return msgspec.json.decode(data, type=str).encode()
    except (msgspec.MsgspecError, UnicodeError):
        raise ProtocolViolation("with contentType, data must be a text") from None


def _listed(query: str, key: str, known: set[str]) -> tuple[str, ...]:
    """The names of inputs or outputs in the query; none if the function has a parameter with the name of this key."""
    if not query or key in known:
        return ()
    names = tuple(name for one in parse_qs(query).get(key, ()) for name in one.split(","))
    if not all(names) or len(set(names)) < len(names) or len(names) > _MOST_NAMES:
        raise DecodeError(f"the parameter {key!a} of the query must list names, at most {_MOST_NAMES}, each once")
    return names


def _headers(given: dict[str, str]) -> Headers:
    return Headers({name: value for name, value in given.items() if name.lower() not in HIDDEN})


def _metadata(head: RequestHead) -> Headers:
    """The headers of the handshake that a function can read, as for any other request."""
    found: dict[str, str] = {}
    for name, value in head.headers:
        if name not in HIDDEN and name not in _OF_CONNECTION and not name.startswith("sec-websocket-"):
            found[name] = f"{found[name]}, {value}" if name in found else value
    found["X-Http-Method"], found["X-Http-Path"] = head.method, head.path
    found["X-Http-Query"], found["X-Http-Proto"] = head.query, f"HTTP/{head.http_version}"
    return Headers(found)
