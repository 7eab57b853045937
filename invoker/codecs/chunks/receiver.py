"""`Receiver`: assembles pieces to messages, and limits bytes and work, whatever the peer sends.

A compressed message stays compressed until it is complete. Then it is inflated to at most one byte more than the
announced size (F-034). The owner of the complete message (`Incoming`) decides when and in which thread, since inflating
may take long.
"""

from __future__ import annotations

from invoker.codecs.chunks.pieces import LEVELS, UNCOMPRESSED, Data, End, Incoming, Limits, Start, broken
from invoker.errors import LimitExceeded


class Receiver:
    """Receives one direction of a stream, one message at a time.

    Attributes:
        chunk_bytes: The most bytes of one Data; 0: none may come.
        total: Bytes of the current message that have come.
    """

    __slots__ = ("_count", "_limits", "_message", "_start", "chunk_bytes", "total")

    def __init__(self, limits: Limits | None = None) -> None:
        self.chunk_bytes = 0
        self._limits = limits or Limits()
        self._start: Start | None = None
        self._count = self.total = 0
        self._message = bytearray()

    @property
    def inflated(self) -> int:
        """Bytes that the current message will have when it is inflated; 0: there is none, or it is not compressed."""
        return self._start.size if self._start is not None and self._start.level else 0

    @property
    def is_receiving(self) -> bool:
        """Whether a message has begun, and is not complete."""
        return self._start is not None

    def start(self, piece: Start) -> None:
        """Begin a message.

        Raises:
            StatusError: A message must not begin now, or not with these values (F-028, F-032, F-035, F-036).
            LimitExceeded: The message is too large (F-034).
        """
        if not self.chunk_bytes:
            raise broken("a message begins in chunks, which were not agreed on")
        if self._start is not None:
            raise broken("a Start came inside another message")
        if piece.level != UNCOMPRESSED and piece.level not in LEVELS:
            raise broken(f"{piece.level} is not a compression level; expected 0 to {max(LEVELS)}")
        size, blob, most = piece.size, piece.blob, self._limits.message_bytes
        if size < 0 or blob < 0:
            raise broken(f"the sizes of a message, {size} bytes and {blob} on the wire, must not be negative")
        if size > most or blob > most:
            raise LimitExceeded(f"a message of {size} bytes, {blob} on the wire, exceeds the limit of {most} bytes")
        if blob and piece.level == UNCOMPRESSED and blob != size and (size, blob) != (0, 1):
            raise broken(f"an uncompressed message of {size} bytes cannot have {blob} on the wire")
        self._start = piece
        self._count = self.total = 0

    def data(self, piece: Data) -> None:
        """Add the next bytes; the caller acks them at once (F-025).

        Raises:
            StatusError: No message has begun, another chunk is expected, or the number of bytes is not possible (F-028,
                F-032, F-035).
            LimitExceeded: There are more bytes than a message may have.
        """
        start, size = self._start, len(piece.data)
        if start is None:
            raise broken(f"chunk {piece.index} comes outside a message")
        if piece.index != self._count:
            raise broken(f"chunk {piece.index} has come, and chunk {self._count} was expected")
        if size > self.chunk_bytes:
            raise broken(f"chunk {piece.index} has {size} bytes and exceeds the limit of {self.chunk_bytes} bytes")
        if self._count == self._limits.chunks:
            raise broken(f"a message has more than {self._limits.chunks} chunks")
        self._count += 1
        self.total += size
        if start.blob and self.total > start.blob:
            raise broken(f"{self.total} bytes came of a message that was announced with {start.blob} bytes on the wire")
        if self.total > self._limits.message_bytes:
            raise LimitExceeded(f"a message exceeds the limit of {self._limits.message_bytes} bytes on the wire")
        if not start.level and self.total > start.size:
            raise broken(f"the message has more than the {start.size} bytes that were announced")
        self._message += piece.data

    def end(self, piece: End) -> Incoming:
        """Give the complete message.

        Raises:
            StatusError: The message is not complete (F-028, F-032, F-034, F-035).
        """
        start, message = self._start, self._message
        if start is None:
            raise broken("an End came without a Start")
        if piece.count != self._count or not piece.count:
            raise broken(f"the message ends after {piece.count} chunks, and {self._count} have come")
        has_nothing = self.total == 0 and start.size == 0
        if start.blob and self.total != start.blob and not (start.blob == 1 and has_nothing):
            raise broken(f"the message ends after {self.total} of {start.blob} bytes on the wire")
        if not start.level and self.total != start.size:
            raise broken(f"the message has {self.total} bytes, and {start.size} were announced")
        self._start, self._message = None, bytearray()
        return Incoming(message, 0 if has_nothing else start.level, start.size)
