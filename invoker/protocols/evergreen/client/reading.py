"""`Reading`: reads one output, by parts or by complete leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Self

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.codecs import Registry
from invoker.connect.failure import CallFailed
from invoker.connect.portal import on_loop
from invoker.errors import DecodeError, Status
from invoker.protocols.evergreen.client.arrivals import BadNode, Cursor, End, Part, Reference
from invoker.protocols.evergreen.client.inbox import Inbox
from invoker.protocols.evergreen.client.media import OCTETS, Ref, decode, headers_of
from invoker.protocols.evergreen.client.outcome import Outcome


class Leaf:
    """A complete leaf, before it is decoded."""

    __slots__ = ("content", "metadata")

    def __init__(self, metadata: pb.ChunkMetadata, content: bytes | Ref) -> None:
        self.metadata = metadata
        self.content = content

    @property
    def media_type(self) -> str:
        """The media type of the leaf; ``application/octet-stream`` if none is given (E-038)."""
        return self.metadata.mimetype or OCTETS


class Reading:
    """Reads one output, up to its end or until `stop` is called."""

    def __init__(self, root: str, name: str, inbox: Inbox, outcome: Outcome, registry: Registry) -> None:
        self.name = name
        self.registry = registry
        self._root = root
        self._inbox = inbox
        self._outcome = outcome
        self._cursor: Cursor | None = Cursor(inbox.arrivals, root)
        self._loop = asyncio.get_running_loop()

    async def part(self) -> Part | None:
        """Wait for the next part; None after the last one, if the action did not fail.

        Raises:
            CallFailed: The action, the session or the server failed, or the caller cancelled.
        """
        if self._cursor is None:
            return None
        try:
            while True:
                self._outcome.check()
                found = self._cursor.step()
                if isinstance(found, Part):
                    self._inbox.went()
                    return found
                if isinstance(found, End):
                    await self._outcome.settled()
                    self.stop()
                    return None
                if self._inbox.ended.is_set():
                    raise self._inbox.incomplete(self.name, self._cursor.waits_for)  # noqa: TRY301 - as all errors of reading
                await self._inbox.arrival(self._cursor.waits_for)
        except asyncio.CancelledError:
            raise  # no part is lost, so the caller may continue to read
        except BadNode as error:
            self.stop()
            raise self.failed(f"{error}") from None
        except BaseException:
            self.stop()
            raise

    def failed(self, what: str) -> CallFailed:
        """The error for invalid content from the server, which ``what`` describes."""
        return CallFailed(Status.INTERNAL, f"{self._inbox.target} sent in output {self.name!r} {what}")

    def stop(self) -> None:
        """Release the unread rest. Idempotent."""
        if self._cursor is not None:
            self._cursor.drop()
            self._cursor = None
            self._inbox.finish(self._root)

    def __del__(self) -> None:
        if getattr(self, "_cursor", None) is not None:
            on_loop(self._loop, self.stop)


class Leaves(AsyncIterator[Leaf]):
    """Iterates over the leaves in order, each when it is complete."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._begun: list[bytes | Reference] = []

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Leaf:
        while (part := await self._reading.part()) is not None:
            if part.payload is None:
                begun, self._begun = self._begun, []
                return Leaf(part.metadata, content_of(self._reading, part.metadata, begun))
            self._begun.append(part.payload)
        raise StopAsyncIteration


def content_of(reading: Reading, metadata: pb.ChunkMetadata, parts: list[bytes | Reference]) -> bytes | Ref:
    """The content of a complete leaf.

    Raises:
        CallFailed: The leaf has a reference and other parts, which cannot be joined.
    """
    references = [part for part in parts if isinstance(part, Reference)]
    if not references:
        return b"".join(part for part in parts if isinstance(part, bytes))
    if len(parts) > 1:
        raise reading.failed("a leaf that mixes references, or bytes and references, which are not joined here")
    return Ref(str(references[0]), metadata.mimetype or OCTETS, headers_of(metadata))


def decoded(reading: Reading, payload: bytes, media_type: str) -> Any:
    """Decode the payload of a leaf.

    Raises:
        CallFailed: The payload does not fit its media type.
    """
    try:
        return decode(payload, media_type, reading.registry)
    except (DecodeError, UnicodeDecodeError) as error:
        why = error.detail if isinstance(error, DecodeError) else str(error)
        raise reading.failed(f"{media_type} that cannot be decoded: {why}") from None
