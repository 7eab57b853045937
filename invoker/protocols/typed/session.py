"""A call of a typed method: its messages become the inputs of one invocation, whose outputs become its responses.

Theory. The grammar depends on the shape of the method, see `invoker.protocols.typed.calls`::

    state    frame or event     next     steps
    -------  -----------------  -------  ---------------------------------------------------------------
    FRESH    a message          RUNNING  Open, Feed for each of its fields; EndInput unless requests are a stream
    FRESH    half-close         RUNNING  Open, EndInput, if requests are a stream; else Close (H-108)
    RUNNING  a message          RUNNING  Feed for each of its fields
    RUNNING  half-close         RUNNING  EndInput
    RUNNING  Emitted            RUNNING  Send, if responses are a stream; else none: the value is kept
    RUNNING  Finished           CLOSED   Send with the values that were kept, Close
    any      a wrong message    same     Cancel with INVALID_ARGUMENT; Close, if nothing was opened yet

The session does not know the types of values: it cuts a message into its fields (`invoker.protocols.typed.split`), and
each value of an output is already a serialised response. A message in JSON is cut likewise; its fields stay JSON.
"""

from __future__ import annotations

import enum
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from invoker.author.binding import MOST_INPUTS
from invoker.codecs import charsets
from invoker.codecs.containers import json_list_exceeds
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
    Send,
)
from invoker.errors import (
    DecodeError,
    FunctionError,
    InvocationError,
    ProtocolViolation,
    Status,
    StatusError,
)
from invoker.errors.wording import missing, too_late, unknown
from invoker.message import EMPTY, Message
from invoker.protocols.typed.calls import PROTO, Call, Slot
from invoker.protocols.typed.naming import json_name
from invoker.protocols.typed.split import bytes_field, elements, entries, split

_ID = "typed"
_END = EndInput(_ID)
_TOO_MANY = f"exceeds the limit of {MOST_INPUTS} values"


class State(enum.Enum):
    """The states of a call."""

    FRESH = "waiting for the first message"
    RUNNING = "the function runs"
    CLOSED = "the invocation has finished"


class TypedSession:
    """Translates one call.

    Args:
        call: The method.
        metadata: The metadata of the call, given to the function's context.
        is_json: Whether messages are JSON; otherwise they have protobuf's binary encoding.
    """

    __slots__ = ("_call", "_came", "_is_json", "_kept", "_metadata", "_names", "_types", "state")

    def __init__(self, call: Call, metadata: Mapping[str, str] = EMPTY, *, is_json: bool = False) -> None:
        self.state = State.FRESH
        self._call = call
        self._is_json = is_json
        self._metadata = metadata
        self._came: frozenset[int] = frozenset()  # the numbers of the fields that came in earlier requests
        self._kept: dict[int, bytes] = {}
        self._names: tuple[str, ...] = ()
        self._types = call.json if is_json else call.proto

    def receive(self, frame: bytes) -> Sequence[CallStep]:
        """Translate one message; a wrong one ends the call with INVALID_ARGUMENT (H-108)."""
        if self.state is State.CLOSED:
            return ()
        call = self._call
        is_first = self.state is State.FRESH
        if not (is_first or call.streams_in):
            return self._refuse(f"{call.method} takes one message, and got a second one")
        try:
            parts = self._parts(frame)
            if call.streams_in:
                self._came |= parts.keys()
            return self._begin(parts) if is_first else self._feeds(parts)
        except (ValueError, RecursionError) as error:
            kind = "JSON" if self._is_json else "a message of protobuf"
            return self._refuse(f"{len(frame)} bytes were received that are not {kind}: {error}")
        except ProtocolViolation as error:
            return self._refuse(error.detail)

    def half_close(self) -> Sequence[CallStep]:
        """Translate the normal end of the caller's messages."""
        is_first = self.state is State.FRESH
        if not self._call.streams_in:
            return self._refuse(f"{self._call.method} takes one message, and got none") if is_first else ()
        if self.state is State.CLOSED:
            return ()
        for slot in self._call.slots:
            if not (slot.is_stream or slot.is_option or slot.number in self._came):
                return self._refuse(str(missing(self._call.spec.name, slot.name)))
        return (*self._begin({}), _END) if is_first else (_END,)

    def deliver(self, event: Event) -> Sequence[CallStep]:
        """Translate an event of the invocation."""
        if self.state is State.CLOSED:
            return ()
        if type(event) is Emitted:
            payload = event.message.payload
            if not event.message.media_type.startswith(PROTO):
                payload = self._held(event)
            if self._call.streams_out:
                return (Send(payload),)
            if event.index in self._kept:
                text = f"the function gave a second value; {self._call.method} returns exactly one"
                return (Cancel(_ID, FunctionError(text)),)
            self._kept[event.index] = payload
            return ()
        if type(event) is not Finished:
            return ()
        self.state = State.CLOSED
        error = event.error
        if error is None and not self._call.streams_out:
            if len(self._kept) == len(self._call.outputs):
                return (Send(self._response()), Close())
            error = FunctionError(f"the function gave no value; {self._call.method} returns exactly one")
        return (Close(None if error is None else told(error, self._names)),)

    def _begin(self, parts: Mapping[int, bytes]) -> Sequence[CallStep]:
        """Open the invocation with all required inputs, and with the optional inputs that have come."""
        call = self._call
        given: list[tuple[Slot, bytes | None]] = []
        found: list[str] = []
        for slot in call.slots:
            part = parts.get(slot.number)
            if slot.is_variadic:
                given += [(slot, one) for one in self._elements(slot, part)]
                found += [f"#{index}" for index in range(len(found), len(given))]
            elif slot.is_named:
                more = self._entries(part)
                given += [(slot, one) for one in more.values()]
                found += more
            elif part is not None or slot.is_stream or not slot.is_option:
                given.append((slot, part))
                found.append(slot.name)
        names = tuple(found) or ((call.trigger,) if call.trigger else ())
        if call.binder is not None:
            bound = call.binder.named(names)
            if bound.faults:
                raise ProtocolViolation(str(bound.faults[0]))
            names = bound.names
        self.state = State.RUNNING
        self._names = names
        opening = Open(_ID, call.spec.name, self._types.accepts, metadata=self._metadata, bound=names, protocol="typed")
        if not given and call.trigger:
            feeds = [Feed(_ID, 0, Message(b"", EMPTY, "application/octet-stream"))]
        else:
            feeds = [
                Feed(_ID, index, self._message(slot, part))
                for index, (slot, part) in enumerate(given)
                if part is not None or not call.streams_in
            ]
        return (opening, *feeds) if call.streams_in else (opening, *feeds, _END)

    def _feeds(self, parts: Mapping[int, bytes]) -> Sequence[CallStep]:
        """Return the steps that feed the inputs with the fields of a later message."""
        feeds: list[CallStep] = []
        for slot in self._call.slots:
            part = parts.get(slot.number)
            if part is None:
                continue
            if slot.name not in self._names:
                said = too_late(self._call.spec.name)
                raise ProtocolViolation(f"input '{slot.field}' {said}; it may come with the first message only")
            feeds.append(Feed(_ID, self._names.index(slot.name), self._message(slot, part)))
        return feeds

    def _parts(self, frame: bytes) -> Mapping[int, bytes]:
        """The fields of a message, by number."""
        call = self._call
        if self._is_json:
            return self._json_parts(frame)
        if len(call.slots) == 1 and (call.is_bare or not (call.streams_in or call.slots[0].is_option)):
            return {call.slots[0].number: frame}  # the whole message is the payload of the only input
        return split(frame)

    def _json_parts(self, frame: bytes) -> Mapping[int, bytes]:
        body = frame if frame[:1] != b"\xef" else charsets.strip_mark(frame)
        found = msgspec.json.decode(body or b"{}", type=dict[str, msgspec.Raw])
        parts: dict[int, bytes] = {}
        for slot in self._call.slots:
            raw = found.get(json_name(slot.field), found.get(slot.field))
            # A field that is null counts as missing, unless null is a value (protobuf JSON).
            if raw is not None and (bytes(raw) != b"null" or not slot.is_option):
                parts[slot.number] = bytes(raw)
            elif self._call.is_bare:
                parts[slot.number] = b""
        return parts

    def _elements(self, slot: Slot, part: bytes | None) -> Iterable[bytes]:
        """The values for ``*args``.

        Raises:
            ProtocolViolation: There are too many elements.
        """
        if part is None:
            return ()
        if not self._is_json:
            found = elements(part, slot.packing, MOST_INPUTS + 1)
        elif json_list_exceeds(part, MOST_INPUTS):
            raise ProtocolViolation(f"the field '{slot.field}' {_TOO_MANY}")
        else:
            found = [bytes(one) for one in msgspec.json.decode(part, type=list[msgspec.Raw])]
        if len(found) > MOST_INPUTS:
            raise ProtocolViolation(f"the field '{slot.field}' {_TOO_MANY}")
        return found

    def _entries(self, part: bytes | None) -> Mapping[str, bytes]:
        """The values for ``**kwargs``, by name.

        Raises:
            ProtocolViolation: A name is empty.
        """
        if part is None:
            return {}
        if self._is_json:
            found = {key: bytes(one) for key, one in msgspec.json.decode(part, type=dict[str, msgspec.Raw]).items()}
        else:
            found = entries(part)
        if "" in found:
            known = [one.name for one in self._call.slots if not one.is_named]
            raise ProtocolViolation(str(unknown(self._call.spec.name, "", known)))
        return found

    def _message(self, slot: Slot, part: bytes | None) -> Message[bytes]:
        return Message(part or b"", EMPTY, self._types.inputs[slot.number])

    def _response(self) -> bytes:
        """The response of a unary call: one message with all outputs."""
        kept = [self._kept[index] for index in sorted(self._kept)]
        if not self._is_json:
            return b"".join(kept)
        if len(kept) == 1:
            return kept[0]
        merged: dict[str, msgspec.Raw] = {}
        for one in kept:
            merged |= msgspec.json.decode(one, type=dict[str, msgspec.Raw])
        return msgspec.json.encode(merged)

    def _held(self, event: Emitted) -> bytes:
        """Make a response around a payload that the function has encoded itself.

        Only JSON distinguishes text and bytes; protobuf encodes both alike.
        """
        output, payload = self._call.outputs[event.index], event.message.payload
        if self._is_json:
            text = payload.decode(errors="replace") if output.holds == "text" else b64encode(payload).decode()
            return msgspec.json.encode({json_name(output.field): text})
        return bytes_field(output.number, payload)

    def _refuse(self, text: str) -> Sequence[CallStep]:
        return self.break_off(StatusError(Status.INVALID_ARGUMENT, f"{ProtocolViolation.prefix}: {text}"))

    def break_off(self, error: InvocationError) -> Sequence[CallStep]:
        """End the call with an error that was found outside of this session."""
        if self.state is State.FRESH:
            self.state = State.CLOSED
            return (Close(error),)
        return (Cancel(_ID, error),)


def told(error: InvocationError, names: Sequence[str] = ()) -> InvocationError:
    """The error that is sent to the caller; an error that the caller made becomes INVALID_ARGUMENT (H-108).

    Args:
        error: The error with which the invocation has ended.
        names: The names of the inputs, in the order of their index.
    """
    if not isinstance(error, (DecodeError, ProtocolViolation)):
        return error
    detail, place = error.detail, error.place
    index = place.index if place is not None and place.kind == "input" else None
    if index is not None and index < len(names) and not names[index].startswith("#"):
        detail = error.said_at(f"parameter '{names[index]}'")
    return StatusError(Status.INVALID_ARGUMENT, f"{error.prefix}: {detail}")
