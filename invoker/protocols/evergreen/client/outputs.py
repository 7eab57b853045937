"""`OutputNode`: one output of an action. It can be read once, in one of several ways, and used as an input.

When an iterator or an unread output is garbage-collected, its unread rest is released. So the answer of an action that
is only an input of the next action takes no memory.
"""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator
from typing import Any, Self

from invoker.codecs import Registry
from invoker.connect.portal import on_loop
from invoker.message import Message
from invoker.protocols.evergreen.client.arrivals import Reference
from invoker.protocols.evergreen.client.inbox import Inbox
from invoker.protocols.evergreen.client.media import OCTETS, Ref, charset_of, headers_of, is_bytes, is_text
from invoker.protocols.evergreen.client.nodes import Node, Sender
from invoker.protocols.evergreen.client.outcome import Outcome
from invoker.protocols.evergreen.client.reading import Leaf, Leaves, Reading, content_of, decoded
from invoker.protocols.evergreen.wire import is_marker


class OutputNode(Node):
    """A node that an action of the server produces; iterate it for its pieces as they come.

    The pieces of a text leaf are ``str``, those of a leaf without a codec ``bytes``, as they come; a leaf of any other
    type is decoded when it is complete. An output can be read once.

    Attributes:
        name: The name of the output.
    """

    def __init__(
        self, session: Sender, id_: str, name: str, *, inbox: Inbox, outcome: Outcome, registry: Registry
    ) -> None:
        super().__init__(session, id_)
        self.name = name
        self._inbox = inbox
        self._outcome = outcome
        self._registry = registry
        self._loop = asyncio.get_running_loop()
        inbox.expect(id_)

    def __aiter__(self) -> Pieces:
        return Pieces(self._begin())

    def messages(self) -> Messages:
        """Iterate over the complete leaves, with media type and headers; markers such as EndOfTurn are included."""
        return Messages(self._begin())

    async def text(self) -> str:
        """All text of the output, joined; JSON and similar types are returned as text.

        Raises:
            CallFailed: The action, or the session, failed; or the text cannot be decoded.
            ValueError: A leaf is not text.
        """
        return "".join([self._text(leaf) async for leaf in Leaves(self._begin()) if not is_marker(leaf.media_type)])

    async def items(self) -> list[Any]:
        """The decoded leaves, without markers.

        Raises:
            CallFailed: The action, or the session, failed; or a leaf does not fit its media type.
        """
        return [message.payload async for message in self.messages() if not is_marker(message.media_type)]

    async def value(self) -> Any:
        """The only decoded leaf.

        Raises:
            CallFailed: The action, or the session, failed; or the leaf does not fit its media type.
            ValueError: There is no leaf, or more than one.
        """
        items = await self.items()
        if len(items) != 1:
            raise ValueError(f"output {self.name!r} has {len(items)} leaves, but one was expected; read its items()")
        return items[0]

    def discard(self) -> None:
        """Stop reading the output, which can still be used as an input. Idempotent."""
        self._inbox.discard(self.id)

    def _begin(self) -> Reading:
        if not self._inbox.begin(self.id):
            failure = self._inbox.failure()
            if failure is not None:
                raise failure
            why = "the session was left" if self._inbox.is_closing else "it was read or discarded before"
            raise RuntimeError(f"output {self.name!r} can be read once, inside of its session, but {why}")
        return Reading(self.id, self.name, self._inbox, self._outcome, self._registry)

    def _text(self, leaf: Leaf) -> str:
        if isinstance(leaf.content, Ref):
            raise ValueError(f"output {self.name!r} refers to {leaf.content.uri!r} and has no text of its own")  # noqa: TRY004 - of the content
        try:
            return leaf.content.decode(charset_of(leaf.media_type))
        except UnicodeDecodeError:
            raise ValueError(
                f"output {self.name!r} is {leaf.media_type}, which is not text; read its items()"
            ) from None

    def __del__(self) -> None:
        if hasattr(self, "_loop"):
            on_loop(self._loop, self.discard)


class Messages(AsyncIterator[Message[Any]]):
    """Iterates over the complete leaves of an output, decoded; for a reference the payload is a `Ref`."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._leaves = Leaves(reading)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message[Any]:
        leaf = await anext(self._leaves)
        content = leaf.content
        value = content if isinstance(content, Ref) else decoded(self._reading, content, leaf.media_type)
        return Message(value, headers_of(leaf.metadata), leaf.media_type)


class Pieces(AsyncIterator[Any]):
    """Iterates over the pieces of an output, as early as the media type allows; never empty, and without markers."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._begun: list[bytes | Reference] = []
        self._decoder: codecs.IncrementalDecoder | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        reading = self._reading
        while (part := await reading.part()) is not None:
            media_type = part.metadata.mimetype or OCTETS
            if isinstance(part.payload, Reference):
                self._begun.append(part.payload)
            elif self._begun:
                if part.payload is not None:
                    self._begun.append(part.payload)
                    continue
                begun, self._begun = self._begun, []
                content = content_of(reading, part.metadata, begun)
                return content if isinstance(content, Ref) else decoded(reading, content, media_type)
            elif is_text(media_type):
                if piece := self._text(part.payload, media_type):
                    return piece
            elif is_marker(media_type):
                continue
            elif is_bytes(media_type, reading.registry):
                if part.payload:
                    return part.payload
            elif part.payload is None:
                return decoded(reading, b"", media_type)
            else:
                self._begun.append(part.payload)
        raise StopAsyncIteration

    def _text(self, payload: bytes | None, media_type: str) -> str:
        if self._decoder is None:
            self._decoder = text_decoder(media_type)
        try:
            piece = self._decoder.decode(payload or b"", payload is None)
        except UnicodeDecodeError as error:
            raise self._reading.failed(f"{media_type} that cannot be decoded: {error}") from None
        if payload is None:
            self._decoder = None
        return piece


def text_decoder(media_type: str) -> codecs.IncrementalDecoder:
    """An incremental decoder for text, whose pieces may end within a character."""
    return codecs.getincrementaldecoder(charset_of(media_type))()
