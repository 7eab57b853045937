"""Messages in the body of an HTTP request or response; each follows one byte of flags and four bytes of length.

Connect streams, gRPC-Web and gRPC have the same envelopes; they differ in the flags of the last envelope. A body of
``application/grpc-web-text`` is base64, which is padded wherever the sender flushed.

Source: Connect protocol, "Streaming RPCs"; gRPC-Web, "Protocol differences vs gRPC over HTTP2".
"""

from __future__ import annotations

import zlib
from base64 import b64decode
from binascii import Error as Base64Error
from typing import Final

COMPRESSED: Final = 0x01
"""The message is compressed."""

END: Final = 0x02
"""Connect: the message ends the stream and has its outcome, in JSON."""

TRAILERS: Final = 0x80
"""gRPC-Web: the message is the trailers."""

GZIP: Final = "gzip"
"""The only compression of messages that is supported."""

_HEAD: Final = 5
_WRAPPED: Final = zlib.MAX_WBITS + 16
"""The ``wbits`` argument that makes zlib read and write gzip."""


def envelope(message: bytes, flags: int = 0) -> bytes:
    """A message after the five bytes of its flags and its length."""
    return b"%c%b%b" % (flags, len(message).to_bytes(4, "big"), message)


def unpacked(message: bytes, most_bytes: int) -> bytes:
    """The content of a message that was packed by gzip.

    Args:
        message: One member of gzip.
        most_bytes: The limit of the content, in bytes; unpacking stops there.

    Raises:
        ValueError: The message is not gzip, is incomplete, is followed by other bytes, or is too long.
    """
    member = zlib.decompressobj(_WRAPPED)
    try:
        made = member.decompress(message, most_bytes + 1)
    except zlib.error as error:
        raise ValueError(f"a compressed message is not gzip: {error}") from None
    if len(made) > most_bytes:
        raise ValueError(f"a message exceeds the limit of {most_bytes} bytes once it is decompressed")
    if not member.eof or member.unused_data:
        raise ValueError("a compressed message is not one member of gzip, from its beginning to its end")
    return made


class Envelopes:
    """Splits a body, which comes in pieces, into its messages.

    Args:
        most_bytes: The largest message in bytes; a larger one is refused as soon as its length has come.
    """

    __slots__ = ("_most_bytes", "_rest")

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._rest = bytearray()

    @property
    def is_within(self) -> bool:
        """Whether a message has begun but is incomplete."""
        return bool(self._rest)

    @property
    def held(self) -> int:
        """How many bytes of the incomplete message have come."""
        return len(self._rest)

    def feed(self, piece: bytes) -> list[tuple[int, bytes]]:
        """Take a piece and return the messages that it completes, each with its flags.

        Raises:
            ValueError: A message is longer than it may be.
        """
        rest = self._rest
        rest += piece
        found: list[tuple[int, bytes]] = []
        at = 0
        while len(rest) - at >= _HEAD:
            size = int.from_bytes(rest[at + 1 : at + _HEAD], "big")
            if size > self._most_bytes:
                raise ValueError(f"a message has {size} bytes, which exceeds the limit of {self._most_bytes} bytes")
            if len(rest) - at < _HEAD + size:
                break
            found.append((rest[at], bytes(rest[at + _HEAD : at + _HEAD + size])))
            at += _HEAD + size
        del rest[:at]
        return found


class Text:
    """Decodes base64 that comes in pieces; padding may occur anywhere."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    @property
    def is_within(self) -> bool:
        """Whether a group of four characters has begun but is incomplete."""
        return bool(self._rest)

    def feed(self, piece: bytes) -> bytes:
        """Take a piece and return the bytes that it completes.

        Raises:
            ValueError: The text is not base64.
        """
        signs = self._rest + piece
        whole = len(signs) - len(signs) % 4
        self._rest = signs[whole:]
        made, at = bytearray(), 0
        try:
            while at < whole:
                padding = signs.find(b"=", at, whole)
                end = whole if padding < 0 else padding + 4 - padding % 4
                made += b64decode(signs[at:end], validate=True)
                at = end
        except Base64Error as error:
            raise ValueError(f"it is not base64: {error}") from None
        return bytes(made)
