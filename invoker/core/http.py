"""HTTP's own types: one request's head and body, and the response. Transports carry them; protocols translate them.

A session sends one `Response`; or a `ResponseHead`, then a `BodyChunk` or `BodyParts` for each piece of its body until
it closes. On a WebSocket it sends texts, bytes, and long messages as `LongMessage`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

LONG_BYTES: Final = 256 * 1024
"""A value with more bytes is written part by part, so that other calls can continue between two parts."""


class RequestHead(msgspec.Struct, frozen=True):
    """An HTTP request without its body.

    Attributes:
        method: Upper case.
        path: The path without the query.
        query: Without the question mark.
        http_version: "1.0", "1.1" or "2".
        headers: Pairs in wire order; a name may repeat.
    """

    method: str
    path: str
    query: str = ""
    http_version: str = "1.1"
    headers: Sequence[tuple[str, str]] = ()

    def value(self, name: str) -> str:
        """All values of a header, joined by commas; empty when there is none.

        Args:
            name: The name in lower case.
        """
        size = len(name)
        found = [value for key, value in self.headers if len(key) == size and key.lower() == name]
        return found[0] if len(found) == 1 else ", ".join(found)


class BodyChunk(msgspec.Struct, frozen=True):
    """A piece of a body, in order: of a request, or of a streamed response."""

    payload: bytes


class BodyParts(msgspec.Struct, frozen=True):
    """A long piece of a response that is streamed, whose parts are made when the client takes them, in order.

    Attributes:
        parts: Its parts.
        size: How many bytes are kept until all parts are made: those of the value, and of the next part, which a thread
            makes ahead.
    """

    parts: Iterator[bytes]
    size: int = 0


class LongMessage(msgspec.Struct, frozen=True):
    """A long WebSocket message.

    Attributes:
        parts: Together they are the message; any of them may be long.
        is_text: Whether they are UTF-8.
    """

    parts: tuple[bytes, ...]
    is_text: bool = False

    @property
    def size(self) -> int:
        """The total length of its parts in bytes."""
        return sum(map(len, self.parts))

    def joined(self) -> str | bytes:
        """The message with its parts joined, which copies them."""
        data = b"".join(self.parts)
        return data.decode() if self.is_text else data


class Response(msgspec.Struct, frozen=True):
    """A whole HTTP response. The transport adds Content-Length.

    Attributes:
        status: A final one, 200 to 599.
        headers: Pairs, in the order in which they are sent.
        body: The beginning of the body, or the whole body if there are no pieces.
        pieces: The rest of the body, in order.
        close: Whether the client should use another connection from now on.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    pieces: Sequence[bytes | bytearray | memoryview] = ()
    close: bool = False


class ResponseHead(msgspec.Struct, frozen=True):
    """The head of a response whose body follows piece by piece, so that its length is not yet known.

    Attributes:
        status: A final one, 200 to 599.
        headers: Pairs, in the order in which they are sent.
    """

    status: int
    headers: tuple[tuple[str, str], ...] = ()
