"""Converts chunks of the wire to `Message` and back: media types, attributes and times."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from invoker.errors import Status, StatusError
from invoker.message import EMPTY, Message
from invoker.protocols.evergreen.action_engine.statuses import status_error
from invoker.protocols.evergreen.action_engine.wire import BYTES, STATUS, Chunk, Metadata, NodeRef

_TIME = "capture-time"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DEFAULT_CHARSET = ";charset=utf-8"


def message_of(content: Chunk | NodeRef) -> Message[bytes]:
    """The message that a function gets for an item.

    Raises:
        StatusError: The item reports the failure of its producer, or is a reference, which is not supported.
    """
    if isinstance(content, NodeRef):
        raise StatusError(Status.UNIMPLEMENTED, f"a fragment refers to node {content.id!a}; send its chunks instead")
    if content.ref:
        raise StatusError(Status.UNIMPLEMENTED, "a chunk refers to data elsewhere; send the data itself")
    metadata = content.metadata
    if metadata is None:
        return Message(content.data, EMPTY, BYTES)
    if metadata.media_type == STATUS:
        raise status_error(content) or StatusError(
            Status.INVALID_ARGUMENT, "an item is the status OK instead of a value"
        )
    headers = texts(metadata.attributes) if metadata.attributes else EMPTY
    time = None if metadata.time_us is None else _told(metadata.time_us)
    if time is not None:
        headers = {**headers, _TIME: time}
    return Message(content.data, headers, _plain(metadata.media_type))


def chunk_of(message: Message[bytes]) -> Chunk:
    """The chunk that the peer gets for a value of a function's output."""
    media_type = message.media_type or BYTES
    if ";" in media_type:
        # Peers compare media types as strings, so no charset may be added.
        essence, _, _ = media_type.partition(";")
        if media_type.replace(" ", "").lower().endswith(_DEFAULT_CHARSET):
            media_type = essence.strip()
    if not message.headers:
        return Chunk(message.payload, metadata=Metadata(media_type))
    headers = dict(message.headers)
    time = _read(headers.get(_TIME, ""))
    if time is not None:
        del headers[_TIME]
    return Chunk(message.payload, metadata=Metadata(media_type, time, headers))


def texts(pairs: Mapping[str, str]) -> dict[str, str]:
    """Convert pairs of texts to headers; a value that is not UTF-8 becomes base64, under a name with ``-bin``."""
    made: dict[str, str] = {}
    for name, value in pairs.items():
        if _is_text(name) and name:
            key, told = (name, value) if _is_text(value) else (f"{name}-bin", _base64(value))
            made[key] = told
    return made


def _is_text(value: str) -> bool:
    return value.isascii() or not any("\udc80" <= sign <= "\udcff" for sign in value)


def _base64(value: str) -> str:
    return base64.b64encode(value.encode("utf-8", "surrogateescape")).decode()


def _plain(media_type: str) -> str:
    """A media type for the text of an error, escaped if it is not UTF-8."""
    return media_type if _is_text(media_type) else ascii(media_type)


def _told(time_us: int) -> str | None:
    try:
        return (_EPOCH + timedelta(microseconds=time_us)).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return None


def _read(time: str) -> int | None:
    try:
        found = datetime.fromisoformat(time)
    except ValueError:
        return None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return (found - _EPOCH) // timedelta(microseconds=1)
