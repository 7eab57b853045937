"""CloudEvents 1.0.2 over HTTP: an event is a value with attributes, which are headers with names such as ``ce-id``.

Theory. An event is received and sent in one of these modes; a function gets the same message in each::

    mode        where the attributes are           where the data is        Content-Type
    ----------  ---------------------------------  -----------------------  ------------------------------------------
    binary      headers ce-id, ce-source, ...      the body                 of the data
    structured  members of a JSON object           data, or data_base64     application/cloudevents+json
    batch       members of objects of an array     data, or data_base64     application/cloudevents-batch+json

A function gets the data as its value, and the attributes, decoded, as headers of the message (``ce-id`` and others).
Its result is an event if it is a message with the header ``ce-type``; id, source, time and specversion are added if
they are missing. If the caller asks for the structured mode, every result is sent as an event, and a missing type is
added, too.

Sources: CloudEvents 1.0.2, its JSON format, its HTTP protocol binding.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, unquote
from uuid import uuid4

import msgspec

from invoker.codecs import charsets
from invoker.codecs.exponents import json_value
from invoker.errors import DecodeError, EncodeError
from invoker.mediatypes import parse, ranges
from invoker.message import Headers, Message

EVENT: Final = "application/cloudevents+json"
BATCH: Final = "application/cloudevents-batch+json"

_PREFIX: Final = "ce-"
_VERSION: Final = "1.0"
_JSON: Final = "application/json"
_OCTETS: Final = "application/octet-stream"
_REQUIRED: Final = ("specversion", "id", "source", "type")
_NAME: Final = re.compile(r"[a-z0-9]+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_BLANK: Final = re.compile(r"\s")
_TIME: Final = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])[Tt](?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?"
    r"(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)
_ESCAPE: Final = re.compile(r"\\(.)")
_PLAIN: Final = "".join(chr(one) for one in range(0x21, 0x7F) if chr(one) not in '"%')
"""Characters that are not percent-encoded in a header (HTTP binding, 3.1.3.2)."""
_INT32: Final = range(-(2**31), 2**31)


def is_packed(content_type: str) -> bool:
    """Whether a body holds one event, or several, in structured mode."""
    return _essence(content_type) in (EVENT, BATCH)


def prefers_events(accept: str) -> bool:
    """Whether an Accept header ranks events in structured mode first; of equal entries the first counts."""
    best = (
        min(ranges(accept), key=lambda one: (-one.q, one.position), default=None) if EVENT in accept.lower() else None
    )
    return best is not None and best.q > 0 and best.media_type.essence == EVENT


def asks_for_events(accept: str) -> bool:
    """Whether an Accept header lists events in structured mode; the items of a stream are then such events."""
    return EVENT in accept.lower() and any(one.q > 0 and one.media_type.essence == EVENT for one in ranges(accept))


def without_events(accept: str) -> str:
    """The Accept header for the data of an event: the listed types without events; ``*/*`` if none is left."""
    rest = [one for one in ranges(accept) if one.media_type.essence not in (EVENT, BATCH)]
    return ", ".join(f"{one.media_type};q={one.q:g}" for one in rest) or "*/*"


def received(headers: Headers) -> Headers:
    """The headers of a request; if it is an event in binary mode, its attributes are checked and decoded.

    Raises:
        DecodeError: The request is an event, and an attribute is missing or invalid.

    Source: HTTP binding, 3.1.
    """
    if "ce-specversion" not in headers:
        return headers
    attributes: dict[str, str] = {}
    others: dict[str, str] = {}
    for name, value in headers.items():
        folded = name.lower()
        if not folded.startswith(_PREFIX):
            others[name] = value
        elif folded != "ce-datacontenttype":  # in binary mode the Content-Type says this
            attributes[folded[len(_PREFIX) :]] = _decoded(folded, value)
    _check(attributes)
    return Headers({**others, **_prefixed(attributes)})


def unpacked(content_type: str, body: bytes, headers: Headers) -> list[Message[bytes]]:
    """The events of a body in structured mode, as messages like those of binary mode.

    Args:
        content_type: The media type of the body.
        body: The whole body.
        headers: The headers of the request; headers that look like attributes are ignored.

    Raises:
        DecodeError: The body is not an event, or an attribute or the data is missing or invalid.

    Source: JSON format, 2 to 4; HTTP binding, 3.2 and 3.3.
    """
    try:
        charset = parse(content_type).charset
    except ValueError as error:
        raise DecodeError(f"the Content-Type is {content_type!a}: {error}") from None
    if charset is not None and charsets.lookup(charset) != "utf-8":
        raise DecodeError(f"an event must be JSON in UTF-8, and the charset of its Content-Type is {charset!a}")
    own = {name: value for name, value in headers.items() if not name.lower().startswith(_PREFIX)}
    body = charsets.strip_mark(body) or body
    if _essence(content_type) == EVENT:
        return [_event(body, own)]
    try:
        events = msgspec.json.decode(body, type=list[msgspec.Raw])
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"a batch of events must be an array of JSON objects: {error}") from None
    return [_event(one, own, f"event {index} of the batch: ") for index, one in enumerate(events)]


def binary(headers: Mapping[str, str], *, source: str) -> Mapping[str, str]:
    """The headers of a function's message, for a response in binary mode.

    Args:
        headers: The headers of the message, which is an event if ``ce-type`` is among them.
        source: The source of the event, if the message has no ``ce-source``.

    Raises:
        EncodeError: A header is not a valid attribute of an event.
    """
    if not _is_event(headers):
        return headers
    others, attributes = _split(headers, source=source)
    return others | {name: quote(value, _PLAIN) for name, value in _prefixed(attributes).items()}


def structured(message: Message[bytes], *, source: str, kind: str) -> Message[bytes]:
    """A function's message as an event in structured mode; headers that are no attributes are kept.

    Args:
        message: The message, whose payload becomes the data.
        source: The source of the event, if the message has no ``ce-source``.
        kind: The type of the event, if the message has no ``ce-type``.

    Raises:
        EncodeError: A header is not a valid attribute of an event.
    """
    headers = message.headers if _is_event(message.headers) else {**message.headers, "ce-type": kind}
    others, attributes = _split(headers, source=source)
    data = _data_of(message.payload, message.media_type)
    return Message(msgspec.json.encode({**attributes, **data}), others, EVENT)


def _essence(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _is_event(headers: Mapping[str, str]) -> bool:
    return any(name.lower() == "ce-type" for name in headers)


def _prefixed(attributes: Mapping[str, str]) -> dict[str, str]:
    return {_PREFIX + name: value for name, value in attributes.items()}


def _decoded(name: str, value: str) -> str:
    """HTTP binding, 3.1.3.2: remove quotes, then decode percent-encoded characters, once."""
    if value[:1] == '"' and value[-1:] == '"' and len(value) > 1:
        value = _ESCAPE.sub(r"\1", value[1:-1])
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        raise DecodeError(f"the header {name} is not percent-encoded UTF-8") from None


def _event(body: bytes | msgspec.Raw, headers: Mapping[str, str], where: str = "") -> Message[bytes]:
    try:
        members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"{where}an event must be a JSON object: {error}") from None
    data, packed = members.pop("data", None), members.pop("data_base64", None)
    attributes = {
        name: text for name, raw in members.items() if (text := _text_of(name, _value(raw, where), where)) is not None
    }
    _check(attributes, where)
    kind = attributes.pop("datacontenttype", "")
    media_type, payload = _payload(kind, data, packed, where)
    return Message(payload, Headers({**headers, **_prefixed(attributes)}), media_type)


def _text_of(name: str, value: Any, where: str) -> str | None:
    """The text of an attribute for a header; None if the attribute is null."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) or (isinstance(value, int) and value in _INT32):
        return str(value)
    raise DecodeError(f"{where}the attribute {name!a} is neither a text, a boolean nor an integer of 32 bits")


def _payload(kind: str, data: msgspec.Raw | None, packed: msgspec.Raw | None, where: str) -> tuple[str, bytes]:
    """The media type of an event's data, and the data; both are empty if the event has neither."""
    is_null = data is None or bytes(data) == b"null"
    if packed is not None and bytes(packed) != b"null":
        if not is_null:
            raise DecodeError(f"{where}an event must have data or data_base64, and this one has both")
        text = _value(packed, where)
        with suppress(binascii.Error, ValueError):
            if isinstance(text, str):
                return kind or _OCTETS, base64.b64decode(text, validate=True)
        raise DecodeError(f"{where}data_base64 is not text in Base64")
    if data is None or is_null:
        return kind, b""
    if not kind or _is_json(kind):
        return kind or _JSON, bytes(data)
    text = _value(data, where)
    if not isinstance(text, str):
        raise DecodeError(
            f"{where}the data of an event whose datacontenttype is {kind!a} must be a text, or be given as data_base64"
        )
    try:
        return kind, text.encode(_charset(kind))
    except (UnicodeEncodeError, LookupError):
        raise DecodeError(
            f"{where}the data of an event cannot be encoded as its datacontenttype {kind!a} says"
        ) from None


def _value(raw: msgspec.Raw, where: str) -> Any:
    try:
        return json_value(raw)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"{where}an event must be JSON in UTF-8: {error}") from None


def _is_json(media_type: str) -> bool:
    try:
        parsed = parse(media_type)
    except ValueError:
        return False
    return parsed.subtype == "json" or parsed.suffix == "json"


def _charset(media_type: str) -> str:
    """The charset of a text type.

    Raises:
        LookupError: The charset is not known.
    """
    found: str | None = "utf-8"
    with suppress(ValueError):
        found = charsets.lookup(parse(media_type).charset or "utf-8")
    if found is None:
        raise LookupError(media_type)
    return found


def _check(attributes: Mapping[str, str], where: str = "") -> None:
    """Check the attributes that came (CloudEvents 1.0.2, "Context Attributes").

    Raises:
        DecodeError: An attribute is missing or invalid; all missing ones are named.
    """
    missing = [one for one in _REQUIRED if not attributes.get(one)]
    if missing:
        raise DecodeError(f"{where}the event has no {', '.join(missing)}; it needs {', '.join(_REQUIRED)}")
    fault = _fault(attributes)
    if fault:
        raise DecodeError(f"{where}{fault}")


def _fault(attributes: Mapping[str, str]) -> str:
    """A sentence about the first invalid attribute of an event; empty: all are valid."""
    for name, value in attributes.items():
        if not _NAME.fullmatch(name):
            return f"an attribute of an event is named {name!a}; expected lower-case letters and digits"
        if _CONTROL.search(value):
            return f"the attribute {name!a} of the event has a control character"
    if attributes["specversion"] != _VERSION:
        return f"the event is of specversion {attributes['specversion']!a}; expected {_VERSION}"
    for name in ("source", "dataschema"):
        uri = attributes.get(name)
        if uri is not None and (not uri or _BLANK.search(uri)):
            return f"the attribute '{name}' of the event is {uri!a}; expected a URI"
    moment = attributes.get("time")
    if moment is not None and not _TIME.fullmatch(moment):
        return f"the attribute 'time' of the event is {moment!a}; expected a time such as 2024-01-31T09:30:00Z"
    return ""


def _split(headers: Mapping[str, str], *, source: str) -> tuple[dict[str, str], dict[str, str]]:
    """Split headers into attributes and other headers; required attributes that the function has not set are added."""
    others: dict[str, str] = {}
    attributes = {"specversion": _VERSION, "id": "", "source": source, "type": "", "time": ""}
    for name, value in headers.items():
        folded = name.lower()
        if not folded.startswith(_PREFIX):
            others[name] = value
        elif folded != "ce-datacontenttype":
            attributes[folded[len(_PREFIX) :]] = value
    attributes["id"] = attributes["id"] or str(uuid4())
    attributes["time"] = attributes["time"] or datetime.now(UTC).isoformat().replace("+00:00", "Z")
    fault = _fault(attributes) if attributes["type"] else "its ce-type is empty"
    if fault:
        raise EncodeError(f"the function's message is not an event: {fault}")
    return others, attributes


def _data_of(payload: bytes, media_type: str) -> dict[str, Any]:
    """The members of an event that hold its data."""
    if not payload and not media_type:
        return {}
    media_type = media_type or _OCTETS
    told = {"datacontenttype": media_type}
    if _is_json(media_type):
        try:
            return {**told, "data": msgspec.Raw(msgspec.json.format(payload, indent=-1))}
        except (ValueError, RecursionError):
            pass  # a payload may be invalid although the function declares it as JSON
    elif media_type.startswith("text/"):
        try:
            return {**told, "data": payload.decode(_charset(media_type))}
        except (UnicodeDecodeError, LookupError):
            pass
    return {**told, "data_base64": base64.b64encode(payload).decode()}
