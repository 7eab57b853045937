"""Both ends of a stream, and what goes between them."""

from __future__ import annotations

from typing import Any

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.codecs.chunks import ChunkStream, Limits, Terms

SMALL = Terms(chunk_bytes=4, max_pending=2)
REAL = Terms(chunk_bytes=8192, max_pending=2)


def server(**options: Any) -> ChunkStream:
    """The end that reads what clients send."""
    return ChunkStream(parse=pb.ClientStreamMessage.FromString, writes=pb.ServerStreamMessage, **options)


def client(**options: Any) -> ChunkStream:
    """The end that reads what servers send; it takes chunks before anything was agreed on."""
    options.setdefault("limits", Limits(chunk_bytes=4 * 2**20))
    return ChunkStream(parse=pb.ServerStreamMessage.FromString, writes=pb.ClientStreamMessage, **options)


def agreed(terms: Terms, **options: Any) -> tuple[ChunkStream, ChunkStream]:
    """A client and a server that have agreed on terms."""
    ends = client(), server(**options)
    for end in ends:
        end.agree(terms)
    return ends


def report(data: bytes) -> pb.ClientStreamMessage:
    """A message with so much in it."""
    message = pb.ClientStreamMessage()
    message.report_request.report.update_checkpoint = data
    return message


def accepted(data: bytes) -> pb.ServerStreamMessage:
    """The same of a server."""
    message = pb.ServerStreamMessage()
    message.checkin_response.acceptance_info.init_checkpoint = data
    return message


def exchange(one: ChunkStream, other: ChunkStream) -> tuple[list[Any], list[Any]]:
    """Carry frames until neither has any; gives what each has received."""
    got: tuple[list[Any], list[Any]] = [], []
    while frames := (one.drain(), other.drain()):
        if not any(frames):
            return got
        for frame in frames[0]:
            got[1].extend(other.receive(frame))
        for frame in frames[1]:
            got[0].extend(one.receive(frame))
    raise AssertionError("a tuple of two is never empty")


def shown(frames: list[bytes], reads: type[Any]) -> list[str]:
    """Frames as short words: ``start 9/0/9``, ``data 0 abcd``, ``ack 0``, ``end 3``, ``whole``."""
    words = []
    for frame in frames:
        message = reads.FromString(frame)
        if message.WhichOneof("kind") != "chunked_transfer":
            words.append("whole")
            continue
        kind, piece = message.chunked_transfer.WhichOneof("kind"), message.chunked_transfer
        said = {
            "start": f"{piece.start.uncompressed_size}/{piece.start.compression_level}/{piece.start.blob_size_bytes}",
            "data": f"{piece.data.chunk_index} {len(piece.data.chunk_bytes)}",
            "ack": f"{piece.ack.chunk_index}",
            "end": f"{piece.end.chunk_count}",
        }
        words.append(f"{kind} {said[kind]}")
    return words
