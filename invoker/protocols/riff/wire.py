"""The wire format of riff: names of methods and metadata, and the bytes of output frames.

These frames are the hot path, so they are written by hand, byte for byte as protobuf would write them.
"""

from __future__ import annotations

from typing import Final

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.codecs.varint import varint
from invoker.message import Message

SERVICE: Final = "streaming.Riff"
INVOKE: Final = "Invoke"
"""The method of `SERVICE` that calls a function."""

FUNCTIONS: Final = "invoker.v1.Functions"
DESCRIBE: Final = "Describe"
"""The method of `FUNCTIONS` that describes a function."""

FUNCTION_KEY: Final = "invoker-function"
"""The metadata that names one function of a catalogue."""

OCTETS: Final = "application/octet-stream"
"""The media type of bytes that come without one."""

_SHORT: Final = 0x80 - 2
"""In a frame of fewer bytes, each length field takes one byte."""


def output_tail(media_type: str, index: int) -> bytes:
    """The bytes that follow the payload in an ``OutputFrame`` without headers."""
    return pb.OutputFrame(contentType=media_type or OCTETS, resultIndex=index).SerializeToString()


def output_signal(payload: bytes, tail: bytes) -> bytes:
    """A serialised ``OutputSignal``, at a fifth of the cost of protobuf's.

    Fields come in the order of their numbers: the payload is the first one of ``OutputFrame``, and ``tail`` follows it;
        ``data`` is the only field of the signal. An empty payload is not written at all.
    """
    size = len(payload)
    if 0 < size < _SHORT - len(tail):
        return b"\n%c\n%c%b%b" % (size + len(tail) + 2, size, payload, tail)
    head = b"\n" + varint(size) if size else b""
    return b"".join((b"\n", varint(len(head) + size + len(tail)), head, payload, tail))


def output_with_headers(message: Message[bytes], index: int) -> bytes:
    """A serialised ``OutputSignal`` whose frame has headers."""
    frame = pb.OutputFrame(payload=message.payload, contentType=message.media_type or OCTETS, resultIndex=index)
    frame.headers.update(message.headers)
    return pb.OutputSignal(data=frame).SerializeToString()
