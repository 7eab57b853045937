"""`Outgoing`: sends a session's messages, whole or in chunks; compresses them on the event loop or in a thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Any, Final, TypeAlias

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.codecs.chunks import UNCOMPRESSED, ChunkStream, Packed
from invoker.core.steps import Await, Send, Step
from invoker.errors import LimitExceeded
from invoker.protocols.federated.forms import Form
from invoker.protocols.federated.negotiation import DeviceSettings

PACKED: Final = "packed"
"""The key of the `Await` for an answer that is compressed in a thread."""

Pack: TypeAlias = Callable[[Hashable, Callable[[], Any]], Awaitable[Any]]
"""Runs long work in a thread; simultaneous calls with the same key share one run."""

_LARGE_BYTES: Final = 256 * 1024
"""A larger message is compressed in a thread; this much takes about 10 ms."""


class Outgoing:
    """The answers of one conversation.

    Args:
        stream: The stream that sends them.
        settings: The settings, which limit the size of an answer.
        pack: Compresses large answers in a thread; None: all answers are compressed at once.
    """

    __slots__ = ("_await", "_pack", "_packing", "_settings", "_stream")

    def __init__(self, stream: ChunkStream, settings: DeviceSettings, pack: Pack | None) -> None:
        self._stream, self._settings, self._pack = stream, settings, pack
        self._packing: Form | None = None
        self._await: Await | None = None

    @property
    def is_packing(self) -> bool:
        """Whether an answer is being compressed; later ones have to wait."""
        return self._packing is not None

    def send(self, message: pb.ServerStreamMessage, *, compresses: bool = True) -> None:
        """Send an answer for this client only.

        Raises:
            LimitExceeded: The answer is too large to be sent whole, and the client does not accept chunks (F-039).
        """
        frame = message.SerializeToString()
        level = self._level(frame)
        self._stream.send(Packed.of(frame, level if compresses else UNCOMPRESSED))

    def send_form(self, form: Form) -> None:
        """Send an answer that other conversations share; a large one is first compressed in a thread.

        Raises:
            LimitExceeded: The answer is too large to be sent whole, and the client does not accept chunks (F-039).
        """
        packed = form.packed
        if packed is None:
            frame = form.build().SerializeToString()
            level = self._level(frame)
            if level != UNCOMPRESSED and len(frame) > _LARGE_BYTES and self._pack is not None:
                job = partial(Packed.of, frame, level)
                self._packing = form
                self._await = Await(PACKED, partial(self._pack, (id(form.kept), form.key), job))
                return
            packed = form.keep(Packed.of(frame, level))
        self._stream.send(packed)

    def packed(self, packed: Packed) -> None:
        """Send an answer that was compressed in a thread."""
        form, self._packing = self._packing, None
        assert form is not None
        self._stream.send(form.keep(packed))

    def steps(self) -> list[Step]:
        """Return the steps that are due: frames to send, and an answer to compress."""
        steps: list[Step] = [Send(frame) for frame in self._stream.drain()]
        if self._await is not None:
            steps.append(self._await)
            self._await = None
        return steps

    def _level(self, frame: bytes) -> int:
        """The compression level for an answer; an answer that is sent whole is not compressed."""
        size, terms, settings = len(frame), self._stream.terms, self._settings
        if terms.has_chunks:
            return terms.level if size > settings.chunk_bytes else UNCOMPRESSED
        if size > settings.whole_bytes:
            raise LimitExceeded(
                f"an answer of {size} bytes exceeds the limit of {settings.whole_bytes} for clients without chunks"
            )
        return UNCOMPRESSED
