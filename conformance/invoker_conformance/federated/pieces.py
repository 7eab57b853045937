"""Makes and reads messages in chunks, independently of the invoker: docs/reference/federated.md 3.2."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from invoker._pb.federated import federated_api_pb2 as pb
from invoker_conformance.scenario import Failure

LEVELS = {1: 6, 2: 9, 3: 1}
"""The zlib level for each compression level on the wire."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a target: size of a chunk, chunks without an ack, level; zeros mean no chunks."""

    size: int = 0
    pending: int = 0
    level: int = 0

    @property
    def has_chunks(self) -> bool:
        """Whether messages are sent in chunks."""
        return self.size > 0 and self.pending > 0


def start(size: int, blob: int, level: int = 0) -> pb.ClientStreamMessage:
    """The frame that begins a message of ``size`` bytes, which has ``blob`` bytes on the wire."""
    piece = {"uncompressed_size": size, "blob_size_bytes": blob, "compression_level": level}
    return pb.ClientStreamMessage(chunked_transfer={"start": piece})


def data(index: int, content: bytes) -> pb.ClientStreamMessage:
    """The frame with the chunk of this index."""
    return pb.ClientStreamMessage(chunked_transfer={"data": {"chunk_index": index, "chunk_bytes": content}})


def ack(index: int) -> pb.ClientStreamMessage:
    """The ack of the chunk of this index."""
    return pb.ClientStreamMessage(chunked_transfer={"ack": {"chunk_index": index}})


def end(count: int) -> pb.ClientStreamMessage:
    """The frame that ends a message, with the number of its chunks."""
    return pb.ClientStreamMessage(chunked_transfer={"end": {"chunk_count": count}})


def packed(message: bytes, level: int) -> bytes:
    """A message, compressed by this level."""
    return zlib.compress(message, LEVELS[level]) if level else message


def cut(message: bytes, terms: Terms, *, is_told: bool = True) -> Iterator[pb.ClientStreamMessage]:
    """Cut a message as a real client does; ``is_told``: with its size on the wire, which old clients do not send."""
    blob = packed(message, terms.level)
    yield start(len(message), (len(blob) or 1) if is_told else 0, terms.level)
    places = range(0, len(blob) or 1, terms.size)
    for index, at in enumerate(places):
        yield data(index, blob[at : at + terms.size])
    yield end(len(places))


@dataclass(slots=True)
class Reader:
    """Joins the chunks of a target's messages, and checks how they were cut (F-022, F-023, F-028).

    Attributes:
        terms: The terms that the target sent.
        sent: The text of the sent messages, for reports.
    """

    terms: Terms = field(default_factory=Terms)
    sent: str = ""
    _start: pb.ChunkedTransferMessage.Start | None = None
    _parts: list[bytes] = field(default_factory=list)

    @property
    def is_inside(self) -> bool:
        """Whether a message has begun and not ended."""
        return self._start is not None

    def take(self, piece: pb.ChunkedTransferMessage) -> bytes | None:
        """Handle a Start, Data or End; returns the message when it is complete."""
        kind = piece.WhichOneof("kind")
        if kind == "start":
            self._require(not self.is_inside, "a Start inside a message", "its Data and its End (F-028)")
            self._start, self._parts = piece.start, []
            return None
        begun = self._start
        if begun is None:
            raise Failure(f"{kind} outside a message", "a Start first (F-022)", self.sent)
        if kind == "data":
            self._take_data(piece.data)
            return None
        count, blob = piece.end.chunk_count, b"".join(self._parts)
        self._require(count == len(self._parts) >= 1, f"chunk_count={count}", f"{len(self._parts)} (F-022)")
        told = f"blob_size_bytes={begun.blob_size_bytes} of {len(blob)} bytes"
        self._require(begun.blob_size_bytes == (len(blob) or 1), told, "the size on the wire (F-023)")
        whole = zlib.decompress(blob) if begun.compression_level else blob
        told = f"uncompressed_size={begun.uncompressed_size} of {len(whole)} bytes"
        self._require(begun.uncompressed_size == len(whole), told, "the size of the message (F-023)")
        self._start = None
        return whole

    def _take_data(self, piece: pb.ChunkedTransferMessage.Data) -> None:
        index, parts, size = piece.chunk_index, self._parts, self.terms.size
        self._require(index == len(parts), f"chunk {index}", f"chunk {len(parts)} (F-022)")
        # the announced size may be that of the message itself
        size = size or len(parts[0] if parts else piece.chunk_bytes)
        is_other = any(len(one) != size for one in parts[-1:]) or len(piece.chunk_bytes) > size
        met = f"chunks of {[len(one) for one in (*parts[-1:], piece.chunk_bytes)]} bytes"
        self._require(not is_other, met, f"{size} in each but the last (F-022)")
        parts.append(piece.chunk_bytes)

    def _require(self, is_right: bool, met: str, expected: str) -> None:  # noqa: FBT001 - the call reads like a sentence
        if not is_right:
            raise Failure(met, expected, self.sent)
