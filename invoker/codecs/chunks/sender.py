"""`Sender`: cuts messages into pieces, and sends no more than the receiver has room for.

The credit spans transfers (F-136): it counts all Data that are not acked, of all messages. While none is left, nothing
is sent, neither the End of a message nor the Start of the next one (F-024).
"""

from __future__ import annotations

from collections.abc import Iterator

from invoker.codecs.chunks.pieces import UNCOMPRESSED, Data, End, Packed, Piece, Start, Terms, broken


class Sender:
    """Cuts messages into pieces, in the order in which they were put.

    A message that was put while there were no terms for chunks, or that is small, is sent whole. Messages are sent in
    the order in which they were put, and never between the pieces of another message (F-029).

    Attributes:
        terms: The terms for messages that are put from now on. Their ``max_pending`` counts at once, for all messages
            (F-019).
        whole_bytes: Messages of at most this many bytes are always sent whole.
    """

    # There may be thousands of senders, so they have no ``__dict__``; the lists hold a few entries each.
    __slots__ = ("_pending", "_unacked", "_waiting", "terms", "whole_bytes")

    def __init__(self, *, whole_bytes: int = 0) -> None:
        self.terms = Terms()
        self.whole_bytes = whole_bytes
        self._waiting: list[Iterator[Piece | bytes]] = []
        self._unacked: list[int] = []
        self._pending = 0

    @property
    def is_idle(self) -> bool:
        """Whether all pieces of all messages are sent, even if they are not acked."""
        return not self._waiting

    def put(self, message: bytes | Packed) -> None:
        """Add a message; a message that is already `Packed` is not compressed again, whatever level the terms name."""
        terms = self.terms
        size, level = (message.size, message.level) if isinstance(message, Packed) else (len(message), UNCOMPRESSED)
        is_small = 0 < size <= self.whole_bytes and level == UNCOMPRESSED
        if terms.has_chunks and not is_small:
            packed = message if isinstance(message, Packed) else Packed.of(message, terms.level)
            self._waiting.append(_cut(packed, terms.chunk_bytes))
            self._pending = terms.max_pending
        else:
            self._waiting.append(iter((message if isinstance(message, bytes) else _whole(message),)))

    def take(self) -> Iterator[Piece | bytes]:
        """Yield the pieces and the whole messages that may be sent now."""
        while self._waiting and self._has_credit():
            for piece in self._waiting[0]:
                if type(piece) is Data:
                    self._unacked.append(piece.index)
                yield piece
                if not self._has_credit():
                    return
            self._waiting.pop(0)

    def acked(self, index: int) -> None:
        """Note that the receiver has a Data.

        Raises:
            StatusError: The ack is not for the oldest Data without an ack (F-030).
        """
        if not self._unacked:
            raise broken(f"the ack of chunk {index} does not belong to a chunk")
        if index != self._unacked[0]:
            raise broken(f"the ack is of chunk {index}, and the oldest one without an ack is {self._unacked[0]}")
        self._unacked.pop(0)

    def _has_credit(self) -> bool:
        # New terms may be without chunks; a message that was begun under older terms is still sent by the older ones.
        most = self.terms.max_pending if self.terms.has_chunks else self._pending
        return not self._unacked or len(self._unacked) < most


def _cut(packed: Packed, chunk_bytes: int) -> Iterator[Piece]:
    blob = packed.blob
    # F-022: A blob of no bytes is one empty Data, and its size is given as 1, since 0 means that none is given.
    yield Start(packed.size, packed.level, len(blob) or 1)
    count = max(1, -(-len(blob) // chunk_bytes))
    for index in range(count):
        at = index * chunk_bytes
        yield Data(index, blob[at : at + chunk_bytes])
    yield End(count)


def _whole(packed: Packed) -> bytes:
    if packed.level:
        raise AssertionError("a compressed message can only be sent in chunks")
    return packed.blob
