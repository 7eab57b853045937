"""Pieces of messages that a client sends in chunks."""

from __future__ import annotations

from typing import Any

from invoker._pb.federated import federated_api_pb2 as pb


def chunk(**pieces: Any) -> pb.ClientStreamMessage:
    """A piece of the client."""
    return pb.ClientStreamMessage(chunked_transfer=pb.ChunkedTransferMessage(**pieces))


def start(size: int, level: int, blob: int) -> pb.ClientStreamMessage:
    """A message begins."""
    piece = pb.ChunkedTransferMessage.Start(uncompressed_size=size, blob_size_bytes=blob)
    piece.compression_level = level  # type: ignore[assignment]
    return chunk(start=piece)


def data(index: int, given: bytes) -> pb.ClientStreamMessage:
    """A chunk."""
    return chunk(data=pb.ChunkedTransferMessage.Data(chunk_index=index, chunk_bytes=given))


def ack(index: int) -> pb.ClientStreamMessage:
    """An ack."""
    return chunk(ack=pb.ChunkedTransferMessage.Ack(chunk_index=index))


def end(count: int) -> pb.ClientStreamMessage:
    """The end of a message."""
    return chunk(end=pb.ChunkedTransferMessage.End(chunk_count=count))
