"""Reads bodies that stream in: takes items from a body before the rest of it has come.

=========  ==================================================  ==============================================
reading    of                                                  an item is
=========  ==================================================  ==============================================
LINES      application/x-ndjson                                a line of JSON
TEXTS      a body of no announced length, for text or numbers  a line of text
PIECES     such a body, for bytes                              a chunk, as it came
PARTS      multipart/form-data                                 a part, for the input of its name
=========  ==================================================  ==============================================

If several inputs still need values, a line of JSON is an object with one or more values, each for the input of its
name. A body of any other kind is one value, or one for each parameter (`invoker.protocols.web.filling`).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Sequence
from typing import Protocol, TypeAlias

import msgspec

from invoker.codecs import Part, PartReader, charsets
from invoker.errors import DecodeError, LimitExceeded
from invoker.message import Headers, Message
from invoker.protocols.web.fields import Field, Signature
from invoker.protocols.web.naming import refuse
from invoker.protocols.web.values import message_of, named_members, named_parts, object_members, of_list, without_empty

Items: TypeAlias = Sequence[tuple[str, Message[bytes]]]
"""Names of inputs, each with a message; an empty name means the only input that still needs values."""

_LINES = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl"})
_PLAIN = frozenset({"", "text/plain", "application/octet-stream"})
_MEMBERS = dict[str, msgspec.Raw]
_UNTOLD = Signature(())
_JSON = "application/json"
_OCTETS = "application/octet-stream"


class Reading(enum.Enum):
    """How a body is read; see the table above."""

    WHOLE = "as one"
    LINES = "by lines of JSON"
    TEXTS = "by lines of text"
    PIECES = "by pieces"
    PARTS = "by parts"


def reading_of(signature: Signature, content_type: str, *, has_length: bool, is_stream: bool) -> Reading:
    """How the body of a request is read.

    Args:
        signature: The signature of the function.
        content_type: The media type of the body; empty when it was missing.
        has_length: Whether the head announces its length.
        is_stream: Whether the response is a stream.
    """
    essence = content_type.partition(";")[0].strip().lower()
    if signature.is_open or signature.more is not None or not signature.fields:
        return Reading.WHOLE
    if essence in _LINES and not signature.own_lines:
        return Reading.LINES
    first = signature.fields[0]
    if not is_stream:
        return Reading.WHOLE
    if essence == "multipart/form-data" and (
        len(signature.inputs) > 1 or (signature.is_streaming and not first.is_value and not first.takes_parts)
    ):
        return Reading.PARTS
    if has_length or essence not in _PLAIN or len(signature.inputs) > 1 or (first.is_value and signature.is_streaming):
        return Reading.WHOLE
    if first.sent_as == _OCTETS:
        return Reading.PIECES
    return Reading.LINES if first.sent_as == _JSON and essence != "text/plain" else Reading.TEXTS


class Reads(Protocol):
    """Takes the items from one body."""

    @property
    def held(self) -> int:
        """How many bytes of an incomplete item are buffered."""

    def feed(self, payload: bytes) -> Items:
        """Take a piece of the body, and return the items that it completes.

        Raises:
            DecodeError: The body is malformed.
            LimitExceeded: An item is too long.
        """

    def close(self) -> Items:
        """Return the items that the end of the body completes; raises the errors of `feed`."""


def reads(
    how: Reading,
    content_type: str,
    headers: Headers,
    fields: Sequence[Field],
    most_bytes: int,
    signature: Signature = _UNTOLD,
) -> Reads:
    """Make the object that takes the items from one body.

    Args:
        how: How the body is read.
        content_type: The media type of the body.
        headers: The headers for every message.
        fields: The fields of the inputs that still need values, and of the optional inputs that may come before them;
            none: the query gives all values, so the body has to be empty.
        most_bytes: The largest item, in bytes.
        signature: The signature of the function.
    """
    if not fields:
        return _Nothing()
    is_named = len(fields) > 1
    if how is Reading.LINES:
        named = [one.name for one in fields] if is_named else None
        options = frozenset(one.name for one in fields if one.is_option)
        known = {one.name for one in signature.fields}
        if not is_named and (by_name := wrapped(fields[0], known, drops=signature.drops)) is not None:
            return _Objects(by_name, headers, most_bytes)
        return _Lines(_JSON, headers, most_bytes, named, options=options, signature=signature)
    if how is Reading.TEXTS:
        _, sign, parameters = content_type.partition(";")
        return _Lines(f"text/plain{sign}{parameters}", headers, most_bytes, None, keeps_blank=fields[0].is_text)
    if how is Reading.PIECES:
        return _Pieces(headers)
    return _Parts(content_type, headers, fields, most_bytes, signature)


class _Lines:
    _sought: re.Pattern[bytes] | None = None  # finds lines that may have other members than the value

    def __init__(
        self,
        media_type: str,
        headers: Headers,
        most_bytes: int,
        names: Sequence[str] | None,
        *,
        keeps_blank: bool = False,
        options: frozenset[str] = frozenset(),
        signature: Signature = _UNTOLD,
    ) -> None:
        self._media_type = media_type
        self._headers = headers
        self._most_bytes = most_bytes
        self._names = names
        self._keeps_blank = keeps_blank
        self._options = options
        self._signature = signature
        self._line = bytearray()  # how many bytes of the incomplete line are buffered
        self._count = 0

    @property
    def held(self) -> int:
        return len(self._line)

    def feed(self, payload: bytes) -> Items:
        if b"\n" not in payload:
            if payload:
                self._hold(payload)
            return ()
        lines = payload.split(b"\n")
        if self._line:
            lines[0] = bytes(self._line + lines[0])
            self._line.clear()
        rest = lines.pop()
        items: list[tuple[str, Message[bytes]]] = []
        for line in lines:
            if line or self._keeps_blank:
                self._take(line, items)
            else:
                self._count += 1
        if rest:
            self._hold(rest)
        return items

    def close(self) -> Items:
        items: list[tuple[str, Message[bytes]]] = []
        if self._line:
            self._take(bytes(self._line), items)
            self._line.clear()
        return items

    def _hold(self, data: bytes) -> None:
        self._check(len(self._line) + len(data))
        self._line += data

    def _check(self, size: int) -> None:
        if size > self._most_bytes:
            raise LimitExceeded(
                f"line {self._count + 1} exceeds the limit of {self._most_bytes} bytes (--max-message-bytes)"
            )

    def _take(self, line: bytes, items: list[tuple[str, Message[bytes]]]) -> None:
        self._check(len(line))
        self._count += 1
        if line.endswith(b"\r"):
            line = line[:-1]
        if not (line or self._keeps_blank) or (not self._keeps_blank and line.isspace()):
            return
        if self._names is None:
            if self._sought is not None and self._sought.search(line):
                line = self._value(line)
            items.append(("", Message(line, self._headers, self._media_type)))
            return
        names, begin = self._names, len(items)
        for name, value in self._members(line).items():
            if name in names:
                items.append((name, Message(bytes(value), self._headers, _JSON)))
            elif not self._signature.drops:
                refuse(self._signature, name, f" (line {self._count})")
        # optional inputs are fed before the others of the same line, wherever they stand in it (H-014)
        if self._options and len(items) > begin + 1:
            items[begin:] = sorted(items[begin:], key=lambda item: item[0] not in self._options)

    def _value(self, line: bytes) -> bytes:
        return line

    def _members(self, line: bytes) -> dict[str, msgspec.Raw]:
        try:
            members = msgspec.json.decode(
                line if line[:1] != b"\xef" else charsets.strip_mark(line) or line, type=_MEMBERS
            )
        except (ValueError, RecursionError):
            assert self._names is not None
            raise DecodeError(
                f"line {self._count} is not a JSON object; the function has several inputs, so each line must name "
                f"its input, as in {{{msgspec.json.encode(self._names[0]).decode()}: ...}}"
            ) from None
        return members if all(map(str.isascii, members)) else named_members(members)


class _Objects(_Lines):
    """Lines of JSON for one input whose values are objects of a class; see `Wrapped`."""

    def __init__(self, wrapped: Wrapped, headers: Headers, most_bytes: int) -> None:
        super().__init__(_JSON, headers, most_bytes, None)
        self._wrapped, self._sought = wrapped, wrapped.sought

    def _value(self, line: bytes) -> bytes:
        return self._wrapped.value(line, f"line {self._count}")


class Wrapped:
    """Finds the value in JSON objects for one input whose values are objects of a class.

    Each JSON object either is the value or has a member with the input's name, which is the value (R-169).

    Args:
        field: The field of the input; its ``keys`` are not None.
        known: Names of all parameters.
        drops: See `Signature`.

    Attributes:
        sought: Matches objects that `value` may have to change; all others it returns unchanged.
    """

    def __init__(self, field: Field, known: Collection[str], *, drops: bool) -> None:
        self._name, self._own = field.name, field.keys or frozenset()
        self._others = {*known} - self._own
        self._drops = drops
        sought = [re.escape(one.encode()) if one.isascii() else b"" for one in self._others]  # non-ASCII may be escaped
        self.sought = re.compile(b"|".join(sought))

    def value(self, payload: bytes, what: str) -> bytes:
        """Return the value in an object.

        Args:
            payload: The object, as JSON.
            what: A description of the payload for the error text, such as its line.

        Raises:
            DecodeError: The object has a further member, which would be lost.
        """
        members = object_members(payload, _JSON)
        met = [name for name in members or () if name in self._others]
        if not members or not met:
            return payload
        if self._name not in met:
            raise DecodeError(
                f"{what} has the member {met[0]!a}, which is not a field of parameter '{self._name}' but "
                f"another parameter; give it in the query (?{met[0]}=...)"
            )
        strangers = [one for one in members if one != self._name]
        if self._drops:
            strangers = [one for one in strangers if one in self._others or one in self._own]
        if strangers:
            raise DecodeError(
                f"{what} has the member {strangers[0]!a} besides {self._name!a}, which is the whole value "
                "of its input; give options in the query"
            )
        return bytes(members[self._name])


def wrapped(field: Field, known: Collection[str], *, drops: bool) -> Wrapped | None:
    """The `Wrapped` of an input; None if each object is the value itself."""
    if field.keys is None or {*known} <= field.keys:
        return None
    return Wrapped(field, known, drops=drops)


class _Nothing:
    held = 0

    def feed(self, payload: bytes) -> Items:
        if payload and not payload.isspace():
            raise DecodeError("the query gives all inputs of the function, so nothing in the body can be for it")
        return ()

    def close(self) -> Items:
        return ()


class _Pieces:
    held = 0

    def __init__(self, headers: Headers) -> None:
        self._headers = headers

    def feed(self, payload: bytes) -> Items:
        return (("", Message(payload, self._headers, _OCTETS)),)

    def close(self) -> Items:
        return ()


class _Parts:
    def __init__(
        self, content_type: str, headers: Headers, fields: Sequence[Field], most_bytes: int, signature: Signature
    ) -> None:
        self._reader = PartReader(content_type, most_parts=None, most_bytes=most_bytes)
        self._headers = headers
        self._fields = {one.name: one for one in fields}
        self._signature = signature
        self._list: list[Part] = []

    @property
    def held(self) -> int:
        return self._reader.held + sum(len(part.payload) for part in self._list)

    def feed(self, payload: bytes) -> Items:
        parts = self._reader.feed(payload)
        if parts:
            parts = named_parts(parts)
        if self._signature.drops:
            parts = [part for part in parts if part.name in self._fields]
        for part in parts:
            if part.name not in self._fields:
                refuse(self._signature, part.name)
        items: list[tuple[str, Message[bytes]]] = []
        for part in without_empty(self._fields.values(), parts):
            one = self._fields[part.name]
            if self._list and self._list[0].name != part.name:
                items += self._listed()
            if one.is_list and one.is_value:
                self._list.append(part)  # consecutive parts of one name make one value
            else:
                items.append((part.name, message_of(part, self._headers, one)))
        return items

    def close(self) -> Items:
        self._reader.close()
        return self._listed()

    def _listed(self) -> Items:
        parts, self._list = self._list, []
        if not parts:
            return ()
        name = parts[0].name
        return [(name, message) for message in of_list(self._fields[name], parts, self._headers)]
