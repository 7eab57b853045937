"""`Resources`: serves plans and checkpoints over HTTP for devices to download (F-065 to F-067).

A path contains a keyed hash of the content, so it cannot be guessed. Every process that has the key and the content
answers at this path, so a download need not reach the process that runs the round. Content is dropped when no object
refers to its `Blob` any more, that is, after the rounds that offer it.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import hmac
import re
import weakref
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from invoker.core.http import Response
from invoker.protocols.federated.messages import Blob, Resource
from invoker.protocols.federated.wire.names import GZIP_SUFFIX

if TYPE_CHECKING:
    from invoker.transports.http.exchange import Exchange

PREFIX: Final = "/federated/"

_NAME: Final = re.compile(r"[0-9a-f]{64}")
_MEDIA_TYPE: Final = "application/octet-stream"
_MAX_AGE_S: Final = 24 * 3600.0
_TEXT: Final = ("Content-Type", "text/plain")


class Resources:
    """The contents that can be downloaded, and the HTTP handler for their paths.

    Args:
        base_url: Returns the base URL by which devices reach the HTTP transport; empty: nothing can be downloaded.
        miss: Called before a request for an unknown path is refused; it publishes content of other processes.
    """

    def __init__(self, base_url: Callable[[], str], miss: Callable[[], Awaitable[None]]) -> None:
        self._base_url = base_url
        self._miss = miss
        self._looking = asyncio.Lock()
        self._asked = self._looked = 0
        self._key = b""
        self._contents: dict[str, _Content] = {}
        self._hashed: tuple[bytes, str] = (b"", "")

    def __len__(self) -> int:
        return len(self._contents)

    def unlock(self, key: bytes) -> None:
        """Set the key for paths, which all processes of a service share; nothing can be published before."""
        self._key = key

    def expect(self, data: bytes, digest: str) -> None:
        """Record the hash of the bytes for the next `publish`; it was computed in a thread, since that takes long."""
        self._hashed = (data, digest)

    def publish(self, data: bytes) -> Blob:
        """Let devices download these bytes while an object refers to the blob."""
        base_url = self._base_url()
        if not base_url or not data:
            return Blob(data)
        assert self._key, "there is no key yet"
        known, digest = self._hashed
        if known is not data:
            digest = hash_of(data)
        name = hmac.new(self._key, digest.encode(), hashlib.sha256).hexdigest()
        content = self._contents.get(name)
        if content is None:
            content = self._contents[name] = _Content(data)
        content.blobs += 1
        uri = f"{base_url}{PREFIX}{name}"
        blob = Blob(content.data, Resource(uri, uri + GZIP_SUFFIX, digest, _MAX_AGE_S))
        weakref.finalize(blob, self._release, name).atexit = False
        return blob

    def _release(self, name: str) -> None:
        content = self._contents[name]
        content.blobs -= 1
        if not content.blobs:
            del self._contents[name]

    async def _look(self) -> None:
        """Call ``miss`` to find content of other processes.

        Requests that come meanwhile share one call, since it may read large models.
        """
        self._asked += 1
        own = self._asked
        async with self._looking:
            if self._looked < own:
                asked = self._asked
                await self._miss()
                self._looked = asked

    async def answer(self, exchange: Exchange) -> Response:
        """Answer one HTTP request."""
        head = exchange.head
        if head.method not in ("GET", "HEAD"):
            return Response(405, (_TEXT, ("Allow", "GET, HEAD")), b"use GET to read this\n")
        name = head.path.removeprefix(PREFIX)
        is_gzip = name.endswith(GZIP_SUFFIX)
        name = name.removesuffix(GZIP_SUFFIX)
        if name not in self._contents and _NAME.fullmatch(name):
            await self._look()
        content = self._contents.get(name)
        if content is None:
            return Response(404, (_TEXT,), b"there is no such plan or checkpoint, or its rounds are over\n")
        body = await content.zipped() if is_gzip else content.data
        media_type = _MEDIA_TYPE + (GZIP_SUFFIX if is_gzip else "")
        return Response(200, (("Content-Type", media_type), ("Cache-Control", "private, no-transform")), body)


def hash_of(data: bytes) -> str:
    """The id by which clients cache content (F-067)."""
    return hashlib.sha256(data).hexdigest()


class _Content:
    """The bytes of a content, and how many blobs refer to it."""

    __slots__ = ("_zipped", "blobs", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.blobs = 0
        self._zipped: asyncio.Future[bytes] | None = None

    async def zipped(self) -> bytes:
        """The bytes, compressed by gzip in a thread on the first request."""
        if self._zipped is None:
            loop = asyncio.get_running_loop()
            self._zipped = loop.run_in_executor(None, gzip.compress, self.data, 6)
        return await asyncio.shield(self._zipped)
