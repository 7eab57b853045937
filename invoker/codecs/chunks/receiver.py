"""`Receiver`: pieces to messages, with bounds on bytes and on work whatever the peer sends.

What is compressed is inflated as it comes, never further than one byte beyond the size that was told (F-034). So a
message takes no more memory than it said that it would, and twice that for the moment in which it is complete.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

from invoker.codecs.chunks.pieces import LEVELS, UNCOMPRESSED, Data, End, Limits, Start, broken
from invoker.errors import LimitExceeded

__all__ = ["Receiver"]

_ANY_WRAPPING: Final = 32 + zlib.MAX_WBITS
"""Both zlib and gzip, told apart by their headers (F-033)."""

_STEP_BYTES: Final = 1024 * 1024
"""Bytes that are inflated at once."""


class Receiver:
    """One direction of a stream; it has one message at a time.

    Attributes:
        chunk_bytes: The most bytes of one Data; 0: none may come.
    """

    __slots__ = ("_count", "_inflater", "_limits", "_message", "_start", "_total", "chunk_bytes")

    def __init__(self, limits: Limits | None = None) -> None:
        self.chunk_bytes = 0
        self._limits = limits or Limits()
        self._start: Start | None = None
        self._count = self._total = 0
        self._message = bytearray()
        self._inflater: Any = None

    @property
    def is_receiving(self) -> bool:
        """Whether a message has begun, and is not complete."""
        return self._start is not None

    def start(self, piece: Start) -> None:
        """A message begins.

        Raises:
            StatusError: It may not begin here, or not so (F-028, F-032, F-035, F-036).
            LimitExceeded: It is too large (F-034).
        """
        if not self.chunk_bytes:
            raise broken("a message begins, and no chunks were agreed on")
        if self._start is not None:
            raise broken("a message begins inside another one")
        if piece.level != UNCOMPRESSED and piece.level not in LEVELS:
            raise broken(f"{piece.level} is no compression level; 0 to {max(LEVELS)} are")
        size, blob, most = piece.size, piece.blob, self._limits.message_bytes
        if size < 0 or blob < 0:
            raise broken(f"a message of {size} bytes, {blob} of them on the wire, cannot be")
        if size > most or blob > most:
            raise LimitExceeded(f"a message of {size} bytes, {blob} on the wire; {most} are the most that is taken")
        if blob and piece.level == UNCOMPRESSED and blob != size and (size, blob) != (0, 1):
            raise broken(f"an uncompressed message of {size} bytes cannot have {blob} on the wire")
        self._start = piece
        self._count = self._total = 0
        self._inflater = zlib.decompressobj(_ANY_WRAPPING) if piece.level else None

    def data(self, piece: Data) -> None:
        """The next bytes; the caller acks them at once (F-025).

        Raises:
            StatusError: There is no message, it is another chunk's turn, or the bytes cannot be (F-028, F-032, F-035).
            LimitExceeded: There are more bytes than a message may have.
        """
        start, size = self._start, len(piece.data)
        if start is None:
            raise broken(f"chunk {piece.index} comes outside a message")
        if piece.index != self._count:
            raise broken(f"chunk {piece.index} comes, and it is the turn of {self._count}")
        if size > self.chunk_bytes:
            raise broken(f"chunk {piece.index} has {size} bytes; {self.chunk_bytes} are the most that is taken")
        if self._count == self._limits.chunks:
            raise broken(f"a message has more than {self._limits.chunks} chunks")
        self._count += 1
        self._total += size
        if start.blob and self._total > start.blob:
            raise broken(f"{self._total} bytes came of a message that was to have {start.blob} on the wire")
        if self._total > self._limits.message_bytes:
            raise LimitExceeded(f"a message has over {self._limits.message_bytes} bytes on the wire")
        if self._inflater is not None:
            self._inflate(start, piece.data)
        else:
            self._message += piece.data
            self._check_size(start)

    def end(self, piece: End) -> bytearray:
        """Give the complete message.

        Raises:
            StatusError: It is not complete (F-028, F-032, F-034, F-035).
        """
        start, message = self._start, self._message
        if start is None:
            raise broken("a message ends that has not begun")
        if piece.count != self._count or not piece.count:
            raise broken(f"the message ends after {piece.count} chunks, and {self._count} have come")
        has_nothing = self._total == 0 and start.size == 0
        if start.blob and self._total != start.blob and not (start.blob == 1 and has_nothing):
            raise broken(f"the message ends after {self._total} of {start.blob} bytes on the wire")
        if self._inflater is not None and not self._inflater.eof and not has_nothing:
            raise broken(f"the compressed bytes are cut off: {self._total} have come")
        if len(message) != start.size:
            raise broken(f"the message has {len(message)} bytes, and {start.size} were told")
        self.drop()
        return message

    def drop(self) -> None:
        """Forget what has come of a message."""
        self._start = self._inflater = None
        self._message = bytearray()

    def _inflate(self, start: Start, data: bytes) -> None:
        inflater, message = self._inflater, self._message
        while data:
            if inflater.eof:
                raise broken("bytes come behind the end of the compressed ones")
            # One byte more than was told shows that there is more; so 0, which means no bound, never stands here.
            most = min(start.size + 1 - len(message), _STEP_BYTES)
            try:
                message += inflater.decompress(data, most)
            except zlib.error as error:
                raise broken(f"the bytes cannot be decompressed: {error}") from None
            self._check_size(start)
            data = inflater.unconsumed_tail or inflater.unused_data

    def _check_size(self, start: Start) -> None:
        if len(self._message) > start.size:
            raise broken(f"the message has more than the {start.size} bytes that were told")
