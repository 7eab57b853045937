"""`DirectInput`: an input as a sync function sees it, whose pull reads the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from invoker.author.spec import Take
from invoker.core.streams import InputStream
from invoker.drive.bodies.runner import shape
from invoker.errors import DecodeError

__all__ = ["DirectInput"]


class Source(Protocol):
    """Where an input pulls from."""

    def pull(self, stream: InputStream) -> Any:
        """A message of ``stream`` with its decoder; None when it has ended."""

    def decode_failed(self, error: DecodeError) -> None:
        """An input could not be decoded: the invocation is over."""


class DirectInput:
    """An input as a sync function sees it: an iterator of decoded values."""

    __slots__ = ("_stream", "failed", "pull")

    def __init__(self, source: Source, stream: InputStream) -> None:
        self._stream = stream
        self.pull: Callable[[InputStream], Any] = source.pull
        self.failed: Callable[[DecodeError], None] = source.decode_failed

    def __iter__(self) -> DirectInput:
        return self

    def __next__(self) -> Any:
        stream = self._stream
        item = self.pull(stream)
        if item is None:
            raise StopIteration
        decode, message = item
        try:
            value = decode(message)
        except DecodeError as error:
            # Ruling 3: a failed decode ends the invocation even if user code swallows the exception.
            self.failed(error)
            raise
        return value if stream.spec.take is Take.PAYLOAD else shape(stream.spec, message, value)
