"""Values to frames and back: `InputEncoder` makes InputSignals, `Received` is a value of an output.

Bytes-like payloads are sent unchanged under the media type that the caller gives, which needs no codec. All other
values are encoded by the codecs that the server uses, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.codecs import Registry
from invoker.errors import NotAcceptable, UnsupportedMediaType
from invoker.mediatypes import parse
from invoker.message import Headers, Message
from invoker.protocols.riff.wire import OCTETS

_UNREAD = object()


class InputEncoder:
    """Turns the values of one input into serialised InputSignals.

    Args:
        index: The index of the input, from 0.
        content_type: Media type of the values; empty: the class of each value determines it.
        headers: Sent with every value.
        registry: Codecs for values that are not bytes-like.
    """

    __slots__ = ("_content_type", "_encoders", "_headers", "_index", "_registry")

    def __init__(self, index: int, *, content_type: str, headers: Mapping[str, str], registry: Registry) -> None:
        self._index = index
        self._content_type = content_type
        self._headers = dict(headers)
        self._registry = registry
        self._encoders: dict[tuple[str, type], Callable[[Any], Message[bytes]]] = {}

    def encode(self, value: object) -> bytes:
        """Make the serialised signal for one value, or for a `Message` that carries headers and media type.

        Raises:
            EncodeError: The value cannot be encoded as its media type.
            NotAcceptable: There is no codec for the media type.
        """
        headers, media_type = self._headers, self._content_type
        if isinstance(value, Message):
            headers = {**headers, **value.headers}
            media_type = value.media_type or media_type
            value = value.payload
        payload, media_type = self._payload(value, media_type)
        frame = pb.InputFrame(payload=payload, contentType=media_type, headers=headers, argIndex=self._index)
        return pb.InputSignal(data=frame).SerializeToString()

    def _payload(self, value: object, media_type: str) -> tuple[bytes, str]:
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value), media_type or OCTETS
        wanted = media_type or ("text/plain" if isinstance(value, str) else "application/json")
        encoder = self._encoders.get((wanted, type(value)))
        if encoder is None:
            encoder = self._encoders[wanted, type(value)] = self._encoder(wanted, value)
        encoded = encoder(value)
        # A concrete type is sent as it was given, because codecs leave out unknown parameters.
        return encoded.payload, encoded.media_type if "*" in wanted else wanted

    def _encoder(self, media_type: str, value: object) -> Callable[[Any], Message[bytes]]:
        try:
            offers = self._registry.offers(media_type, index=self._index)
        except NotAcceptable:
            if not isinstance(value, str):
                raise NotAcceptable(
                    f"no codec encodes {type(value).__name__} as {media_type!r} for input #{self._index}; give bytes"
                ) from None
            charset = _charset(media_type)
            return lambda text: Message(text.encode(charset), media_type=media_type)
        return self._registry.encoder(offers, value, index=self._index)


class Received:
    """One value of one output.

    Attributes:
        index: The index of the output, from 0.
        name: The name of the output; empty when the call gave none.
        payload: The bytes as they came.
        media_type: The media type of the payload, as it came.
        headers: The headers as they came; look-ups ignore case.
    """

    __slots__ = ("_registry", "_value", "headers", "index", "media_type", "name", "payload")

    def __init__(self, frame: pb.OutputFrame, *, name: str, registry: Registry) -> None:
        self.index: int = frame.resultIndex
        self.name = name
        self.payload: bytes = frame.payload
        self.media_type: str = frame.contentType
        self.headers = Headers(frame.headers)
        self._registry = registry
        self._value: Any = _UNREAD

    @property
    def value(self) -> Any:
        """The payload decoded by its media type; the bare bytes when no codec knows the type. Decoded once.

        Raises:
            DecodeError: The type has a codec, which refused the payload.
        """
        if self._value is _UNREAD:
            try:
                self._value = self.decode()
            except UnsupportedMediaType:
                self._value = self.payload
        return self._value

    def decode(self, type_: Any = Any) -> Any:
        """Decode the payload into a type: a dataclass, ``list[int]``, ``str``, ...

        Raises:
            UnsupportedMediaType: No codec knows the media type.
            DecodeError: The payload does not fit the type.
        """
        message = Message(self.payload, self.headers, self.media_type)
        return self._registry.decoder(self.media_type, type_)(message)

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        return f"<Received output {self.index}{name}: {self.media_type}, {len(self.payload)} bytes>"


def _charset(media_type: str) -> str:
    try:
        return parse(media_type).charset or "utf-8"
    except ValueError:
        return "utf-8"
