"""Sends messages in chunks, with flow control, compression and limits, for both ends of a stream (ADR 42).

Clients and servers use `ChunkStream`; `Sender` and `Receiver` are its halves.
"""

from invoker.codecs.chunks.pieces import (
    LEVELS,
    UNCOMPRESSED,
    Ack,
    Data,
    End,
    Incoming,
    Limits,
    Packed,
    Piece,
    Start,
    Terms,
)
from invoker.codecs.chunks.receiver import Receiver
from invoker.codecs.chunks.sender import Sender
from invoker.codecs.chunks.stream import ChunkStream

__all__ = [
    "LEVELS",
    "UNCOMPRESSED",
    "Ack",
    "ChunkStream",
    "Data",
    "End",
    "Incoming",
    "Limits",
    "Packed",
    "Piece",
    "Receiver",
    "Sender",
    "Start",
    "Terms",
]
