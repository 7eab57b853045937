"""The request bodies that drivers send, and the sizes of their replies: length-prefixed riff signals, made once per
row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from invoker._pb.riff import riff_rpc_pb2 as pb

TEXT = "text/plain"
JSON = "application/json"
OCTETS = "application/octet-stream"
JSON_VALUE = b'{"id":1234,"name":"a name","tags":["one","two"],"ratio":0.5}'


class WrongReplyError(Exception):
    """A reply has other bytes than the row expects, or its status is not OK."""


def framed(message: bytes) -> bytes:
    """Put gRPC's prefix (not compressed, length) before a message."""
    return b"\0" + len(message).to_bytes(4, "big") + message


@dataclass(frozen=True)
class Body:
    """One call's input: a StartFrame and ``frames`` rounds of one InputFrame for each of ``inputs`` inputs.

    The function under test answers each round with one frame that has the payloads of all inputs and the same headers.
    """

    frames: int
    payload: bytes
    media_type: str = TEXT
    inputs: int = 1
    headers: tuple[tuple[str, str], ...] = ()

    @cached_property
    def start(self) -> bytes:
        start = pb.StartFrame(expectedContentTypes=[self.media_type], outputNames=["out"])  # some servers require names
        start.inputNames.extend(f"in{index}" for index in range(self.inputs))
        return framed(pb.InputSignal(start=start).SerializeToString())

    @cached_property
    def round(self) -> bytes:
        """The framed InputFrames of one round, one for each input."""
        return b"".join(framed(self._input(index).SerializeToString()) for index in range(self.inputs))

    @cached_property
    def reply(self) -> bytes:
        """The framed OutputFrame that answers a round."""
        data = pb.OutputFrame(
            payload=self.payload * self.inputs, contentType=self.media_type, headers=dict(self.headers)
        )
        return framed(pb.OutputSignal(data=data).SerializeToString())

    @property
    def data(self) -> bytes:
        """The whole request body."""
        return self.start + self.round * self.frames

    @property
    def expected(self) -> int:
        """The length of the whole reply in bytes: frames x (5 + frame length)."""
        return self.frames * len(self.reply)

    @property
    def messages(self) -> int:
        """The number of InputFrames in the body."""
        return self.frames * self.inputs

    def _input(self, index: int) -> pb.InputSignal:
        frame = pb.InputFrame(payload=self.payload, contentType=self.media_type, argIndex=index)
        frame.headers.update(dict(self.headers))
        return pb.InputSignal(data=frame)
