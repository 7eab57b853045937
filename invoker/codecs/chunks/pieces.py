"""The pieces in which a message is sent, and the terms on which both sides agree.

A message goes as one `Start`, one or more `Data` and one `End`; the receiver answers each `Data` by an `Ack`.
"""

from __future__ import annotations

import zlib
from typing import Final, TypeAlias

import msgspec

from invoker.errors import Status, StatusError

UNCOMPRESSED: Final = 0

LEVELS: Final = {1: 6, 2: 9, 3: 1}
"""The compression level of zlib for each number on the wire (F-033). `UNCOMPRESSED` is not among them."""

_SPARE_BYTES: Final = 64 * 1024

_STEP_BYTES: Final = 1024 * 1024
"""How many bytes are inflated at once."""

_ANY_WRAPPING: Final = 32 + zlib.MAX_WBITS
"""The window bits with which zlib recognises both zlib and gzip by their headers (F-033)."""


class Start(msgspec.Struct, frozen=True):
    """Begins a message.

    Attributes:
        size: Bytes of the message.
        level: 0, or a key of `LEVELS`.
        blob: Bytes on the wire; 0: not given. It is 1 for an empty message (F-022).
    """

    size: int
    level: int
    blob: int


class Data(msgspec.Struct, frozen=True):
    """The next bytes of the message; the first has index 0."""

    index: int
    data: bytes


class Ack(msgspec.Struct, frozen=True):
    """The receiver has the `Data` of this index."""

    index: int


class End(msgspec.Struct, frozen=True):
    """Ends a message, which was sent in ``count`` Data."""

    count: int


Piece: TypeAlias = Start | Data | Ack | End


class Terms(msgspec.Struct, frozen=True):
    """The terms that were agreed on for sending.

    Attributes:
        chunk_bytes: Bytes of each Data except the last; 0: messages are sent whole.
        max_pending: Data that may be sent before one is acked; 0: messages are sent whole.
        level: 0, or a key of `LEVELS`.
    """

    chunk_bytes: int = 0
    max_pending: int = 0
    level: int = UNCOMPRESSED

    @property
    def has_chunks(self) -> bool:
        """Whether messages are sent in chunks; clients in use send zeros for messages without chunks (D1)."""
        return self.chunk_bytes > 0 and self.max_pending > 0


class Limits(msgspec.Struct, frozen=True):
    """The limits of what a receiver accepts.

    Attributes:
        message_bytes: The most bytes of one message, both compressed and decompressed (F-034).
        chunk_bytes: The most bytes of one Data; 0: twice the chunk size of the terms, plus 64 KiB (F-035).
        chunks: The most Data of one message.
    """

    message_bytes: int = 64 * 1024 * 1024
    chunk_bytes: int = 0
    chunks: int = 1_000_000

    def chunk_of(self, terms: Terms) -> int:
        """The most bytes of one Data under these terms; 0: no Data is allowed."""
        if self.chunk_bytes or not terms.has_chunks:
            return self.chunk_bytes
        return 2 * terms.chunk_bytes + _SPARE_BYTES


class Packed(msgspec.Struct, frozen=True):
    """A message in the form that is sent; it can be made once and sent to many peers.

    Attributes:
        blob: The bytes on the wire, compressed unless ``level`` is 0.
        level: 0, or a key of `LEVELS`.
        size: Bytes of the message itself.
    """

    blob: bytes
    level: int
    size: int

    @classmethod
    def of(cls, message: bytes, level: int) -> Packed:
        """Compress a message at a level of `LEVELS`; 0 leaves the message as it is."""
        blob = zlib.compress(message, LEVELS[level]) if level else message
        return cls(blob, level, len(message))


class Incoming(msgspec.Struct, frozen=True):
    """A message that is complete, as it came over the wire.

    Attributes:
        blob: The bytes on the wire, compressed unless ``level`` is 0.
        level: 0, or a key of `LEVELS`.
        size: Bytes that the message itself should have.
    """

    blob: bytearray
    level: int
    size: int

    def unpack(self) -> bytearray:
        """The message, inflated; 60 MiB take half a second.

        Raises:
            StatusError: The size differs from the announced one, or the bytes are damaged (F-034, F-035).
        """
        if not self.level:
            return self.blob
        inflater, message, view = zlib.decompressobj(_ANY_WRAPPING), bytearray(), memoryview(self.blob)
        for start in range(0, len(view), _STEP_BYTES):
            data: bytes | memoryview = view[start : start + _STEP_BYTES]
            while data:
                if inflater.eof:
                    raise broken("bytes follow the end of the compressed data")
                # one byte beyond the announced size shows that there is more; so this is never 0, which means no bound
                most = min(self.size + 1 - len(message), _STEP_BYTES)
                try:
                    message += inflater.decompress(data, most)
                except zlib.error as error:
                    raise broken(f"the bytes cannot be decompressed: {error}") from None
                if len(message) > self.size:
                    raise broken(f"the message has more than the {self.size} bytes that were announced")
                data = inflater.unconsumed_tail or inflater.unused_data
        if not inflater.eof:
            raise broken(f"the compressed bytes are cut off: {len(view)} have come")
        if len(message) != self.size:
            raise broken(f"the message has {len(message)} bytes, and {self.size} were announced")
        return message


def broken(text: str) -> StatusError:
    """The error of a peer that broke the rules of chunked transfer (F-028 to F-036; decision D2: INVALID_ARGUMENT)."""
    return StatusError(Status.INVALID_ARGUMENT, f"chunked transfer: {text}")
