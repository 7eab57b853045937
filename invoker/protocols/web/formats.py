"""Formats of streamed responses; each encodes items, heartbeats, the end and an error.

===================== ============================= ======================= =============================
format                an item                       the end                 an error
===================== ============================= ======================= =============================
text/event-stream     an event with ``id``          ``event: end``          ``event: error``
application/x-ndjson  a line                        nothing                 a line ``{"error": problem}``
multipart/mixed       a part                        the closing delimiter   a part of problem+json
any other type        its bytes                     nothing                 nothing: the response ends early
===================== ============================= ======================= =============================

In the formats made of JSON, a value that is not JSON, such as an image, becomes an object with its media type and its
bytes in base64. If there are several outputs, each item names its output.

Sources: HTML, "Server-sent events"; RFC 2046, 5.1; RFC 9457.
"""

from __future__ import annotations

import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import msgspec

from invoker.errors import EncodeError
from invoker.mediatypes import Range, ranges
from invoker.message import Message
from invoker.protocols.web.asjson import as_json, json_parts, line_parts, slices, string_parts
from invoker.protocols.web.reply import LINES, fit, typed_by

__all__ = [
    "EVENTS",
    "LINES",
    "MIXED",
    "EventStream",
    "Format",
    "Lines",
    "Mixed",
    "Pieces",
    "accepted",
    "as_json",
    "format_of",
]

EVENTS: Final = "text/event-stream"
MIXED: Final = "multipart/mixed"
_ALIASES: Final = {
    EVENTS: EVENTS,
    LINES: LINES,
    "application/ndjson": LINES,
    "application/jsonl": LINES,
    MIXED: MIXED,
}

_JSON: Final = "application/json"
_PROBLEM: Final = "application/problem+json"
_ESCAPES: Final = {'"': "%22", "\r": "%0D", "\n": "%0A"}
_SIGNS: Final = str.maketrans(_ESCAPES)
_BREAK: Final = re.compile("\r\n|\r|\n")


def accepted(accept: str, *, is_several: bool) -> tuple[str, str] | None:
    """The stream that an Accept header asks for, and the accepted types of each item; None: it asks for one value.

    A wildcard never asks for a stream. If the header lists both a stream and another type, the stream is chosen if it
    is ranked first, or if the function may yield several values.

    Args:
        accept: The value of the header.
        is_several: Whether the function may yield several values.
    """
    listed = [one for one in ranges(accept) if one.q > 0] if accept else []
    streams = [one for one in listed if one.media_type.essence in _ALIASES]
    if not streams:
        return None
    best, first = min(streams, key=_order), min(listed, key=_order)
    if best is not first and not is_several:
        return None
    kind = _ALIASES[best.media_type.essence]
    items = sorted((one for one in listed if one.media_type.essence not in _ALIASES), key=_order)
    wanted = ", ".join(f"{one.media_type};q={one.q:g}" for one in items)
    if kind == MIXED:
        return kind, wanted or "*/*"
    is_text = any(one.media_type.essence == "text/plain" for one in items)
    # Values that are not JSON are sent as base64 within JSON; a client that prefers plain text lists it.
    return kind, "text/plain, application/json;q=0.9, */*;q=0.1" if is_text else "application/json, */*;q=0.1"


def _order(one: Range) -> tuple[float, int]:
    return (-one.q, one.position)


class Format(ABC):
    """Encodes one streamed response.

    Args:
        names: The names of the outputs.

    Attributes:
        headers: The headers of the response.
        heartbeat: Bytes that readers ignore and that may be sent between items; empty: the format has none.
    """

    heartbeat: bytes = b""

    def __init__(self, names: Sequence[str]) -> None:
        self.headers: tuple[tuple[str, str], ...] = ()
        self._names = names
        self._is_named = len(names) > 1

    @abstractmethod
    def item(self, index: int, message: Message[bytes]) -> bytes:
        """Encode one value of one output.

        Raises:
            EncodeError: The format cannot represent the message.
        """

    def parts(self, index: int, message: Message[bytes]) -> Iterator[bytes]:
        """Encode one long value; the parts together are the bytes of `item`, and are made when they are taken.

        Raises:
            EncodeError: The format cannot represent the message.
        """
        before, after = self._around(index, message)
        return chain((before,), self._value(message), (after,))

    @abstractmethod
    def _around(self, index: int, message: Message[bytes]) -> tuple[bytes, bytes]:
        """The bytes before and after the value of an item."""

    @abstractmethod
    def _value(self, message: Message[bytes]) -> Iterator[bytes]:
        """The encoded value in parts."""

    @abstractmethod
    def end(self) -> bytes:
        """The bytes that end a response without an error."""

    @abstractmethod
    def error(self, problem: Mapping[str, Any]) -> bytes:
        """The bytes that end a response with an error."""

    def _name(self, index: int) -> str:
        return self._names[index] if index < len(self._names) else str(index)


class EventStream(Format):
    """Sends each item as a server-sent event, with an id."""

    heartbeat = b":\n\n"

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        # These headers keep proxies from buffering items; nginx needs a header of its own.
        self.headers = (("Content-Type", EVENTS), ("Cache-Control", "no-cache"), ("X-Accel-Buffering", "no"))
        self._count = 0

    def item(self, index: int, message: Message[bytes]) -> bytes:
        """One event; its data is text as lines, and any other value as JSON."""
        before, after = self._around(index, message)
        if message.media_type.startswith("text/plain"):
            # Each kind of line end separates the lines of an event; readers join them by LF.
            lines = _BREAK.split(message.payload.decode("utf-8", "replace"))
            data = "\ndata: ".join(lines).encode()
        else:
            data = as_json(message)
        return before + data + after

    def _around(self, index: int, message: Message[bytes]) -> tuple[bytes, bytes]:  # noqa: ARG002 - as `Format`
        self._count += 1
        if self._is_named:
            return b"event: %b\nid: %d\ndata: " % (self._name(index).encode(), self._count), b"\n\n"
        return b"id: %d\ndata: " % self._count, b"\n\n"

    def _value(self, message: Message[bytes]) -> Iterator[bytes]:
        return line_parts(message.payload) if message.media_type.startswith("text/plain") else json_parts(message)

    def end(self) -> bytes:
        """The event named ``end``."""
        return b"event: end\ndata: {}\n\n"

    def error(self, problem: Mapping[str, Any]) -> bytes:
        """An event named ``error``, with the problem as JSON."""
        return b"event: error\ndata: %b\n\n" % msgspec.json.encode(problem)


class Lines(Format):
    """Sends a JSON value on each line."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self.headers = (("Content-Type", LINES), ("Cache-Control", "no-cache"), ("X-Accel-Buffering", "no"))
        self._keys = [msgspec.json.encode(name) for name in names]

    def item(self, index: int, message: Message[bytes]) -> bytes:
        """One line: text as a JSON string, any other value as JSON."""
        if message.media_type.startswith("text/plain"):
            value = msgspec.json.encode(message.payload.decode("utf-8", "replace"))
        else:
            value = as_json(message)
        return b"{%b:%b}\n" % (self._keys[index], value) if self._is_named else value + b"\n"

    def _around(self, index: int, message: Message[bytes]) -> tuple[bytes, bytes]:  # noqa: ARG002 - as `Format`
        return (b"{%b:" % self._keys[index], b"}\n") if self._is_named else (b"", b"\n")

    def _value(self, message: Message[bytes]) -> Iterator[bytes]:
        return string_parts(message.payload) if message.media_type.startswith("text/plain") else json_parts(message)

    def end(self) -> bytes:
        """Return no bytes, since the end of the body ends the stream."""
        return b""

    def error(self, problem: Mapping[str, Any]) -> bytes:
        """A line with an object whose only key is ``error``."""
        return msgspec.json.encode({"error": problem}) + b"\n"


class Mixed(Format):
    """Sends a part for each value, with its own media type and headers.

    Each part is followed at once by the next delimiter, so that a reader knows where the part ends.

    Args:
        names: The names of the outputs.
        is_text: Whether values were encoded from text; None: this is not known.
    """

    def __init__(self, names: Sequence[str], *, is_text: bool | None = None) -> None:
        super().__init__(names)
        self._is_text = is_text
        boundary = secrets.token_hex(16)
        self.headers = (("Content-Type", f"{MIXED}; boundary={boundary}"), ("Cache-Control", "no-cache"))
        self._delimiter = b"\r\n--" + boundary.encode()
        self._has_begun = False

    def item(self, index: int, message: Message[bytes]) -> bytes:
        """One part, and the delimiter after it."""
        before, after = self._around(index, message)
        return b"%b%b%b" % (before, message.payload, after)

    def _around(self, index: int, message: Message[bytes]) -> tuple[bytes, bytes]:
        own = [*typed_by(message, is_text=self._is_text)]
        own.append(("Content-Disposition", f'inline; name="{_quoted(self._name(index))}"'))
        own += [one for one in fit(message.headers) if one[0].lower() != "content-disposition"]
        return self._head(own, len(message.payload)), self._delimiter

    def _value(self, message: Message[bytes]) -> Iterator[bytes]:
        return slices(message.payload)

    def end(self) -> bytes:
        """The characters that turn the last delimiter into the closing one."""
        return (b"" if self._has_begun else self._delimiter[2:]) + b"--\r\n"

    def error(self, problem: Mapping[str, Any]) -> bytes:
        """A last part with the problem as JSON."""
        own = [("Content-Type", _PROBLEM), ("Content-Disposition", 'inline; name="error"')]
        payload = msgspec.json.encode(problem)
        return b"%b%b%b%b" % (self._head(own, len(payload)), payload, self._delimiter, self.end())

    def _head(self, headers: Sequence[tuple[str, str]], size: int) -> bytes:
        begin = b"" if self._has_begun else self._delimiter[2:]
        self._has_begun = True
        lines = b"".join(b"%b: %b\r\n" % (name.encode(), value.encode()) for name, value in headers)
        return b"%b\r\n%bContent-Length: %d\r\n\r\n" % (begin, lines, size)


class Pieces(Format):
    """Sends the values unchanged, one after the other, as pieces of a text or of a file.

    Args:
        media_type: The media type of the whole body.
    """

    def __init__(self, media_type: str) -> None:
        super().__init__(())
        self.headers = (("Content-Type", media_type), ("Cache-Control", "no-cache"), ("X-Accel-Buffering", "no"))

    def item(self, index: int, message: Message[bytes]) -> bytes:  # noqa: ARG002 - as `Format`
        """The payload, unchanged."""
        return message.payload

    def _around(self, index: int, message: Message[bytes]) -> tuple[bytes, bytes]:  # noqa: ARG002 - as `Format`
        return b"", b""

    def _value(self, message: Message[bytes]) -> Iterator[bytes]:
        return slices(message.payload)

    def end(self) -> bytes:
        """Return no bytes, since the end of the body ends the stream."""
        return b""

    def error(self, problem: Mapping[str, Any]) -> bytes:  # noqa: ARG002 - as `Format`
        """Return no bytes: in this format only a response that ends early can show an error."""
        return b""


def _quoted(name: str) -> str:
    """Quote a name as browsers do in the parts of a form, where ``%`` is not escaped.

    Raises:
        EncodeError: The name contains an escape sequence, so a reader would decode another name.
    """
    if any(written in name for written in _ESCAPES.values()):
        raise EncodeError(
            f": {name[:40]!a} cannot name a part of {MIXED}: {', '.join(_ESCAPES.values())} stand for other characters"
        )
    return name.replace("\\", "\\\\").translate(_SIGNS)


_FORMATS: Final[Mapping[str, type[Format]]] = {EVENTS: EventStream, LINES: Lines}


def format_of(kind: str, names: Sequence[str], *, is_text: bool | None = None) -> Format:
    """The format of one response.

    Args:
        kind: The media type of the response.
        names: The names of the outputs.
        is_text: Whether values were encoded from text; None: this is not known.
    """
    if kind == MIXED:
        return Mixed(names, is_text=is_text)
    made = _FORMATS.get(kind)
    return Pieces(kind) if made is None else made(names)
