"""`ChunkStream`: both directions of one stream of messages, whose frames may be chunks.

It is used between the wire and the session, in the same way by a client and a server::

    stream = ChunkStream(parse=pb.ClientStreamMessage.FromString, writes=pb.ServerStreamMessage)
    for message in stream.receive(frame):       # complete messages; mostly none or one
        stream.send(answer)
    for frame in stream.drain():                # acks, and what there is credit for
        ...

The classes of messages are arguments, since this package does not import protobuf. Both need a field
``chunked_transfer`` in a oneof ``kind``, with the fields of the federated compute protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from invoker.codecs.chunks.pieces import Ack, Data, End, Incoming, Limits, Packed, Piece, Start, Terms, broken
from invoker.codecs.chunks.receiver import Receiver
from invoker.codecs.chunks.sender import Sender

_STEP_BYTES: Final = 64 * 1024
"""The number of bytes in one call of ``may_receive``."""

_LARGE_BYTES: Final = 256 * 1024
"""A message of more bytes is inflated in a thread if possible; inflating this many takes about 2 ms."""


class ChunkStream:
    """Both directions of one stream.

    Args:
        parse: Makes a message of bytes; raises InvocationError.
        writes: The class of the messages that carry our chunks.
        limits: The limits for what is received.
        whole_bytes: Messages up to this size are sent whole, even if chunks were agreed on.
        may_receive: Takes a number of bytes and the size of the message, and returns whether that number of bytes may
            be held. It is called when the message begins, and then step by step. The size is that of the message or of
            its bytes on the wire, whichever is larger. If it returns False, the message is held up until `resume`: its
            chunks are not acked.
        unpacks_aside: Whether the owner of the stream inflates long messages, which are in `packed`.

    Attributes:
        sent: Bytes of all frames that `drain` has returned (F-144).
        received: Bytes of all received frames.
        is_held: Whether a message is held up.
        packed: A complete message that takes long to inflate; its owner inflates it and gives the result to `unpacked`.
            None: there is none.
    """

    __slots__ = (
        "_asked", "_frames", "_granted", "_held", "_held_bytes", "_limits", "_may_receive", "_most_pending", "_parse",
        "_receiver", "_sender", "_unpacks_aside", "_whole", "_writes", "is_held", "packed", "received", "sent",
    )  # fmt: skip

    def __init__(
        self,
        *,
        parse: Callable[[Any], Any],
        writes: Callable[[], Any],
        limits: Limits | None = None,
        whole_bytes: int = 0,
        may_receive: Callable[[int, int], bool] | None = None,
        unpacks_aside: bool = False,
    ) -> None:
        self._parse, self._writes = parse, writes
        self._limits = limits or Limits()
        self._sender = Sender(whole_bytes=whole_bytes)
        self._receiver = Receiver(self._limits)
        self._receiver.chunk_bytes = self._limits.chunk_of(Terms())
        self._may_receive = may_receive
        self._unpacks_aside = unpacks_aside
        self._whole = self._granted = self._asked = 0  # held, granted and requested bytes of the incoming message
        self.packed: Incoming | None = None
        self._frames: list[bytes] = []
        self._held: list[tuple[Any, int]] = []
        self._held_bytes = self._most_pending = 0
        self.is_held = False
        self.sent = self.received = 0

    def forget(self) -> None:
        """Stop calling ``may_receive``, since no more bytes will come."""
        self._may_receive = self.packed = None

    # Sending.

    @property
    def terms(self) -> Terms:
        """The terms for messages that are sent from now on."""
        return self._sender.terms

    def agree(self, terms: Terms) -> None:
        """Send by these terms from now on, and accept what these or earlier terms allow (F-019).

        The peer may learn them later, so it may still send by the earlier terms.
        """
        self._sender.terms = terms
        self._receiver.chunk_bytes = max(self._receiver.chunk_bytes, self._limits.chunk_of(terms))
        self._most_pending = max(self._most_pending, terms.max_pending)

    def send(self, message: bytes | Packed) -> None:
        """Add a message, serialized, to what `drain` gives."""
        self._sender.put(message)
        self._advance()

    def drain(self) -> list[bytes]:
        """Give the frames that may be sent now, in order."""
        frames, self._frames = self._frames, []
        self.sent += sum(map(len, frames))
        return frames

    @property
    def is_receiving(self) -> bool:
        """Whether the peer has begun a message in chunks that is not yet delivered, even if all of it has come."""
        return self._receiver.is_receiving or self.packed is not None

    @property
    def is_idle(self) -> bool:
        """Whether `drain` has given all frames."""
        return self._sender.is_idle and not self._frames

    def _advance(self) -> None:
        for piece in self._sender.take():
            self._frames.append(piece if isinstance(piece, bytes) else self._framed(piece))

    def _framed(self, piece: Piece) -> bytes:
        message = self._writes()
        chunk = message.chunked_transfer
        if type(piece) is Data:
            chunk.data.chunk_index = piece.index
            chunk.data.chunk_bytes = piece.data
        elif type(piece) is Ack:
            chunk.ack.chunk_index = piece.index
        elif type(piece) is Start:
            chunk.start.uncompressed_size = piece.size
            chunk.start.compression_level = piece.level
            chunk.start.blob_size_bytes = piece.blob
        else:
            assert type(piece) is End
            chunk.end.chunk_count = piece.count
        frame: bytes = message.SerializeToString()
        return frame

    # Receiving.

    def receive(self, frame: bytes) -> list[Any]:
        """Take one frame; returns the messages that it completes, whole and reassembled ones.

        Raises:
            StatusError: The frame breaks the rules of chunked transfer: INVALID_ARGUMENT.
            LimitExceeded: The message is too large.
            InvocationError: ``parse`` raised it.
        """
        self.received += len(frame)
        message = self._parse(frame)
        if message.WhichOneof("kind") == "chunked_transfer":
            piece = _piece(message.chunked_transfer)
            if type(piece) is Ack:
                self._sender.acked(piece.index)
                self._advance()
                return []
            message = piece
        if self.is_held:
            self._hold(message, len(frame))
            return []
        return self._take(message, len(frame))

    def resume(self) -> Iterator[Any]:
        """Continue with the message that was held up; gives messages and raises as `receive` does.

        Several messages may be complete now. Each is yielded before ``may_receive`` is called for the next one.
        """
        self.is_held, self._granted = False, self._asked
        while self._held and not self.is_held:
            one, size = self._held.pop(0)
            self._held_bytes -= size
            yield from self._take(one, size)

    def unpacked(self, message: Any) -> Iterator[Any]:
        """Take the inflated and parsed form of `packed`; gives messages and raises as `resume` does."""
        self.packed = None
        yield _whole(message)
        yield from self.resume()

    def ended(self) -> None:
        """Note that the peer sends no more.

        Raises:
            StatusError: The stream ended within a message.
        """
        if self._receiver.is_receiving:
            raise broken("the peer ended inside a message")

    def _take(self, one: Any, size: int) -> list[Any]:
        receiver = self._receiver
        if type(one) is Data:
            if not self._has_room(receiver.total + len(one.data)):
                return self._put_back(one, size)
            receiver.data(one)
            self._frames.append(self._framed(Ack(one.index)))
        elif type(one) is Start:
            receiver.start(one)
            self._whole, self._granted = max(one.size, one.blob), 0
            self.is_held = not self._has_room(min(self._whole, _STEP_BYTES))
        elif type(one) is End:
            if not self._has_room(receiver.inflated):
                return self._put_back(one, size)
            complete = receiver.end(one)
            if complete.level and complete.size > _LARGE_BYTES and self._unpacks_aside:
                self.packed, self.is_held = complete, True
                return []
            return [_whole(self._parse(complete.unpack()))]
        elif receiver.is_receiving:
            raise broken("a whole message comes inside one in chunks: Chunk reassembly in progress")  # F-029
        else:
            return [one]
        return []

    def _has_room(self, upto: int) -> bool:
        """Whether this many bytes may be held; a message that has to wait may hold them once it is resumed."""
        if self._may_receive is None or not self._receiver.is_receiving or upto <= self._granted:
            return True
        self._asked = max(upto, min(self._granted + _STEP_BYTES, self._whole))
        if not self._may_receive(max(self._whole, upto), self._asked):
            return False
        self._granted = self._asked
        return True

    def _put_back(self, one: Any, size: int) -> list[Any]:
        self._held.insert(0, (one, size))
        self._held_bytes += size
        self.is_held = True
        return []

    def _hold(self, one: Any, size: int) -> None:
        """Keep a piece that the peer may send without an ack; more of them break the rules (F-024)."""
        self._held.append((one, size))
        self._held_bytes += size
        most = max(1, self._most_pending)
        # Messages of one chunk each: three pieces; the chunk of the first one may be acked already.
        if len(self._held) > 3 * most + 2 or sum(type(each) is Data for each, _ in self._held) > most:
            raise broken(f"more than {most} chunks came before one was acked")
        if self._held_bytes > self._receiver.chunk_bytes * (most + 1):
            raise broken(f"{self._held_bytes} bytes came before a chunk was acked")


def _whole(message: Any) -> Any:
    """Check a message that came in chunks."""
    if message.WhichOneof("kind") == "chunked_transfer":
        raise broken("a message that came in chunks is itself a chunk")  # F-031
    return message


def _piece(chunk: Any) -> Piece:
    """Read a piece; the receiver checks its numbers."""
    kind = chunk.WhichOneof("kind")
    if kind == "data":
        return Data(chunk.data.chunk_index, chunk.data.chunk_bytes)
    if kind == "ack":
        return Ack(chunk.ack.chunk_index)
    if kind == "start":
        start = chunk.start
        return Start(start.uncompressed_size, start.compression_level, start.blob_size_bytes)
    if kind == "end":
        return End(chunk.end.chunk_count)
    raise broken("a chunk message has neither start, data, ack nor end")
