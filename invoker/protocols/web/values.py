"""Makes messages for parameters from the texts of a query or a form, and from the parts of a multipart body."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import parse_qsl, unquote_plus

import msgspec

from invoker.codecs import Part, PartReader, charsets
from invoker.codecs.form import MAX_FIELDS
from invoker.errors import DecodeError
from invoker.errors.wording import normalised
from invoker.mediatypes import parse
from invoker.message import EMPTY, Headers, Message
from invoker.protocols.web.fields import Field

_Given: TypeAlias = list[tuple[str, Message[bytes]]]

_OCTETS = "application/octet-stream"
_TEXT = "text/plain"
_JSON = "application/json"
_MSGPACK = "application/msgpack"
SENT_AS = "X-Http-Content-Type"
"""The header of a message with the media type of a body or part as the client sent it (H-209)."""
HIDDEN = frozenset(
    {
        *("content-type", "accept", "x-http-method", "x-http-path", "x-http-query", "x-http-proto"),
        SENT_AS.lower(),
    }
)
"""Headers of requests that are not passed to functions, or only as the server sets them (R-151)."""


def query_pairs(query: str) -> list[tuple[str, str]]:
    """The names and texts in a query.

    Raises:
        DecodeError: The query is not UTF-8.
    """
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict")
    except ValueError as error:
        raise DecodeError(f"the query is not UTF-8: {error}") from None
    return pairs if "%" not in query and query.isascii() else [(normalised(name), value) for name, value in pairs]


def form_pairs(body: bytes, content_type: str) -> list[tuple[str, str]] | None:
    """The names and texts in a form; None if its charset is unknown, since the codec has a better error for that.

    Raises:
        DecodeError: The body is not in its charset, or has too many fields (H-230).
    """
    try:
        charset = charsets.lookup(parse(content_type).charset or "utf-8")
    except ValueError:
        return None
    if charset is None:
        return None
    try:
        text = charsets.decoder(charset)(body)
        pairs = parse_qsl(text, keep_blank_values=True, encoding=charset, errors="strict", max_num_fields=MAX_FIELDS)
        return pairs if "%" not in text and text.isascii() else [(normalised(name), value) for name, value in pairs]
    except UnicodeDecodeError as error:
        raise DecodeError(f"the form is not {charset}: {error}") from None
    except ValueError:
        raise DecodeError(f"the form has more than {MAX_FIELDS} fields") from None


def is_form_of(body: bytes, names: Collection[str]) -> bool:
    """Whether a body is a form with only these names; `curl --data-binary @FILE` labels any bytes as a form."""
    if b"=" not in body or body.count(b"&") >= MAX_FIELDS:
        return False
    fields = body.decode("utf-8", "replace").split("&")
    return all(normalised(unquote_plus(one.partition("=")[0])) in names for one in fields if one)


def object_members(body: bytes, content_type: str) -> Mapping[str, msgspec.Raw] | None:
    """The members of a JSON object, undecoded; None for any other body, for which the codec has a better error."""
    try:
        charset = charsets.lookup(parse(content_type).charset or "utf-8", only_unicode=True)
        if charset is None:
            return None
        if charset != "utf-8" or body[:1] == b"\xef":
            body = charsets.decoder(charset)(body).encode()
        if body.lstrip()[:1] != b"{":
            return None
        members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except (ValueError, RecursionError):
        return None
    return members if all(map(str.isascii, members)) else named_members(members)


def named_members(members: dict[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
    """The members with names normalised as Python does; unchanged if two would get the same name."""
    made = {normalised(name): value for name, value in members.items()}
    return made if len(made) == len(members) else members


def read_parts(content_type: str, body: bytes) -> list[Part]:
    """The parts of a multipart body, with names normalised as Python does.

    Raises:
        DecodeError: The body is malformed.
    """
    reader = PartReader(content_type)
    parts = reader.feed(body)
    reader.close()
    return named_parts(parts)


def named_parts(parts: list[Part]) -> list[Part]:
    """The same parts, with names normalised as Python does."""
    for part in parts:
        part.name = normalised(part.name)
    return parts


def from_texts(
    fields: Collection[Field], pairs: Iterable[tuple[str, str]], headers: Headers, more: Field | None = None
) -> _Given:
    """The messages for these parameters, from names and texts; other names are ignored, unless ``more`` takes them."""
    texts: dict[str, list[str]] = {}
    empty = {one.name for one in fields if one.skips_empty}
    for name, value in pairs:
        if value or name not in empty:
            texts.setdefault(name, []).append(value)
    known = {one.name: one for one in fields}
    if more is not None:
        known |= {name: more for name in texts if name and name not in known}
    return [(name, message) for name, one in known.items() for message in _of_texts(one, texts.get(name, ()), headers)]


def from_parts(fields: Collection[Field], parts: Sequence[Part], headers: Headers, more: Field | None = None) -> _Given:
    """The messages for these parameters, from parts; ``more`` takes the parts with other names.

    Raises:
        DecodeError: A part is not text although its parameter needs text.
    """
    known = {part.name: more for part in parts if more is not None} | {one.name: one for one in fields}
    given: _Given = []
    several: dict[str, list[Part]] = {}
    for part in without_empty(fields, parts):
        one = known[part.name]
        if one.is_list or (one.is_json and not part.media_type and part.filename is None):
            several.setdefault(part.name, []).append(part)
        else:
            given.append((part.name, message_of(part, headers, one)))
    return given + [(name, message) for name, own in several.items() for message in of_list(known[name], own, headers)]


def without_empty(fields: Iterable[Field], parts: Iterable[Part]) -> list[Part]:
    """The parts without the empty ones that browsers send for form fields that were left empty (H-237)."""
    empty = {one.name for one in fields if one.skips_empty}
    return [
        part for part in parts
        if part.payload or part.name not in empty or part.media_type or part.filename is not None
    ]  # fmt: skip


def of_list(one: Field, parts: Sequence[Part], headers: Headers) -> list[Message[bytes]]:
    """The messages for a parameter from the parts of its name: JSON, or a list with an item for each part (H-235).

    Raises:
        DecodeError: A part is not text although its parameter needs text.
    """
    if len(parts) == 1 and parts[0].media_type and not _is_item(one, parts[0]):
        return [message_of(parts[0], headers, one)]  # the part is the whole list
    if one.is_bytes:
        return _of_bytes([part.payload for part in parts], headers)
    return _of_texts(one, [_text_of(part) for part in parts], headers)


def _is_item(one: Field, part: Part) -> bool:
    """Whether the only part of a name is an item of the list, and not the whole list."""
    essence = part.media_type.partition(";")[0].strip().lower()
    if one.is_bytes:
        return part.filename is not None or essence not in (_JSON, _MSGPACK)
    return essence.startswith("text/") or essence == _OCTETS


def _of_bytes(items: Sequence[bytes], headers: Headers) -> list[Message[bytes]]:
    return [Message(msgspec.msgpack.encode(items), headers, _MSGPACK)]


def typed(one: Field, content_type: str) -> str:
    """The media type for the codecs: a text parameter takes further types of text, and a bytes parameter any type."""
    content_type = content_type.strip()
    essence, sign, parameters = content_type.partition(";")
    if essence.strip().lower() in one.texts:
        return _TEXT + sign + parameters
    if one.known is None or not content_type or one.known(content_type) or not _is_concrete(content_type):
        return content_type
    return _OCTETS  # H-019: an image, for example, whose bytes the function receives


def message_of(part: Part, headers: Headers, one: Field | None = None) -> Message[bytes]:
    """Make the message for an input from a part.

    The message has the request's headers; the headers of the part override them, except X-Http-*.
    """
    own = {name: value for name, value in part.headers.items() if name.lower() not in HIDDEN}
    if part.media_type:
        own[SENT_AS] = part.media_type
    # the request's Content-Type is left out, since it describes the whole form
    taken = {name.lower() for name in own} | {SENT_AS.lower()}
    shared = {name: value for name, value in headers.items() if name.lower() not in taken}
    media_type = part.media_type if one is None else typed(one, part.media_type)
    return Message(part.payload, Headers({**own, **shared}) if shared or own else EMPTY, media_type or _TEXT)


def _of_texts(one: Field, values: Sequence[str], headers: Headers) -> list[Message[bytes]]:
    """Make messages from texts; a list becomes JSON whether it came as one text or item by item."""
    if not values or not (one.is_list or one.is_json):
        return [Message(value.encode(), headers, _TEXT) for value in values]
    if one.is_list and not (len(values) == 1 and values[0].lstrip()[:1] == "["):
        if one.is_bytes:
            return _of_bytes([value.encode() for value in values], headers)
        items = values if one.is_json else [json.dumps(value) for value in values]
        values = [f"[{','.join(items)}]"]
    return [Message(value.encode(), headers, _JSON) for value in values]


def _text_of(part: Part) -> str:
    try:
        return part.text
    except ValueError as error:
        raise DecodeError(f"parameter '{part.name}': {error}") from None


def _is_concrete(content_type: str) -> bool:
    try:
        return not parse(content_type).is_wildcard
    except ValueError:
        return False
