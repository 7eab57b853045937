"""Handles CloudEvents for both HTTP sessions: `filled` reads a body that may be an event, `given` makes an event.

The data of an event in structured mode gives values to parameters just as the same body in binary mode does. In a
batch, each event gives values for itself; these become the items of the first input.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, quote

from invoker.errors import DecodeError
from invoker.message import Headers, Message, as_headers
from invoker.protocols.web.asking import Asked
from invoker.protocols.web.cloudevents import binary, is_packed, structured, unpacked
from invoker.protocols.web.filling import Filled, fill
from invoker.protocols.web.values import SENT_AS


def filled(asked: Asked, body: bytes) -> tuple[Filled, Headers]:
    """The values and the metadata of a request whose whole body has come. It may be an event or a batch of events.

    The attributes of a single event become metadata, too, so that a function can read them without taking a message.

    Raises:
        DecodeError: The body is an invalid event, or the values do not fit the parameters (see `fill`).
    """
    if not is_packed(asked.content_type):
        # H-140: an event in binary mode without a Content-Type counts as JSON, unless its body is empty
        is_assumed = SENT_AS not in asked.headers and "ce-specversion" in asked.headers
        content_type = asked.content_type if body or not is_assumed else ""
        return fill(asked.inputs, asked.query, content_type, body, asked.headers), asked.headers
    events = unpacked(asked.content_type, body, asked.headers)
    if not events:
        return fill(asked.inputs, asked.query, "", b"", asked.headers), asked.headers
    first = names, messages, _ = _filled(asked, events[0])
    metadata = as_headers(events[0].headers)
    if len(events) > 1:
        metadata = asked.headers
        signature = asked.inputs
        if any(one.is_value for one in signature.fields[:1]) and (signature.is_streaming or asked.stream is None):
            raise DecodeError(
                f"the body is a batch of {len(events)} events, and the function takes one value; for one value of each "
                "event, accept a stream, such as application/x-ndjson"
            )
        queried = {name for name, _ in parse_qsl(asked.query, keep_blank_values=True)}
        for event in events[1:]:
            others, more, _ = _filled(asked, event)
            if others != names:
                raise DecodeError("the events of the batch do not give values for the same parameters")
            messages += [(index, message) for index, message in more if names[index] not in queried]
    return first, metadata


def given(message: Message[bytes], asked: Asked) -> Message[bytes]:
    """The message that is sent for a value: an event, if the value is one or the client wants only events.

    Raises:
        EncodeError: The value must be an event, and its attributes are invalid.
    """
    if not (message.headers or asked.as_events):
        return message
    name = asked.inputs.name
    source = f"/{quote(name)}"
    if asked.as_events:
        return structured(message, source=source, kind=f"invoker.{name}")
    headers = binary(message.headers, source=source)
    return message if headers is message.headers else Message(message.payload, headers, message.media_type)


def _filled(asked: Asked, event: Message[bytes]) -> Filled:
    return fill(asked.inputs, asked.query, event.media_type, event.payload, as_headers(event.headers))
