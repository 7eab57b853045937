"""Downloads of plans and checkpoints by HTTP, with a cache (F-068 to F-073).

A URI must be https, or begin with ``http://localhost:``. This literal prefix ensures that a name which resolves to
another machine is never contacted without TLS. Redirects are not followed.
"""

from __future__ import annotations

import http.client
import ssl
import urllib.parse
import zlib
from typing import Final

import msgspec

from invoker.connect.failure import CallFailed
from invoker.errors import Status
from invoker.errors.http import STATUS
from invoker.protocols.federated.client.cache import Cache, Entry
from invoker.protocols.federated.wire.names import GZIP_SUFFIX

MOST_BYTES: Final = 64 << 20
"""The largest body in bytes, before and after decompression (F-034)."""

_LOCAL: Final = "http://localhost:"


class Source(msgspec.Struct, frozen=True):
    """A plan or a checkpoint: either its bytes, from the message, or its URI.

    Attributes:
        data: The bytes, if they came with the message.
        uri: The URI; None: the bytes came, or there are none.
        cache_id: The id of the content; empty: it is not cached.
        max_age_s: For how many seconds it may be cached.
    """

    data: bytes = b""
    uri: str | None = None
    cache_id: str = ""
    max_age_s: float = 0.0


class Downloads:
    """Downloads plans and checkpoints that a server offers as URIs; it blocks, so it is called in threads.

    Args:
        cache: Keeps bodies that may be cached.
        timeout_s: The time limit of each network operation, in seconds.
        most_bytes: Larger bodies are refused, in bytes.
        tls: The TLS settings for https; None: the certificate authorities of this machine are trusted.
    """

    def __init__(
        self,
        cache: Cache,
        *,
        timeout_s: float = 60.0,
        most_bytes: int = MOST_BYTES,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._cache, self._timeout_s, self._most, self._tls = cache, timeout_s, most_bytes, tls

    def fetch(self, source: Source, what: str) -> bytes:
        """Return the bytes of a source; download them if necessary.

        Args:
            source: The source.
            what: The kind of content for error texts, such as ``plan``.

        Raises:
            CallFailed: The download failed; F-070 lists the statuses.
        """
        if source.uri is None:
            return source.data
        try:
            entry = self._cache.get(source.cache_id) if source.cache_id else None
            if entry is None:
                entry = self._get(source.uri)
                if source.cache_id:
                    self._cache.put(source.cache_id, entry, source.max_age_s)
            return _unpacked(entry, self._most)
        except CallFailed as error:
            raise CallFailed(error.status, f"{what} fetch failed: {error.detail}") from error

    def _get(self, uri: str) -> Entry:
        connection, target = self._connect(uri)
        try:
            connection.request("GET", target, headers={"Connection": "close", "Accept-Encoding": "identity"})
            with connection.getresponse() as response:
                return self._read(response)
        except (OSError, http.client.HTTPException) as error:
            status = Status.DEADLINE_EXCEEDED if isinstance(error, TimeoutError) else Status.UNAVAILABLE
            raise CallFailed(status, f"{_shown(uri)}: {str(error) or type(error).__name__}") from error
        finally:
            connection.close()

    def _connect(self, uri: str) -> tuple[http.client.HTTPConnection, str]:
        if not uri:
            raise CallFailed(Status.INVALID_ARGUMENT, "the server names no address")
        try:
            parts = urllib.parse.urlsplit(uri)
            host, port = parts.hostname or "", parts.port
        except ValueError as error:
            raise CallFailed(Status.INVALID_ARGUMENT, f"{_shown(uri)} is not a valid address: {error}") from None
        if not uri.isascii() or not uri.isprintable() or " " in uri or "@" in parts.netloc:
            raise CallFailed(Status.INVALID_ARGUMENT, f"{_shown(uri)} is not a valid address")
        target = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
        if uri.startswith("https://") and host:
            tls = self._tls or ssl.create_default_context()
            return http.client.HTTPSConnection(host, port, timeout=self._timeout_s, context=tls), target
        if uri.startswith(_LOCAL):
            return http.client.HTTPConnection("localhost", port, timeout=self._timeout_s), target
        raise CallFailed(Status.INVALID_ARGUMENT, f"{_shown(uri)} is neither https:// nor {_LOCAL}PORT")

    def _read(self, response: http.client.HTTPResponse) -> Entry:
        if response.status != 200:
            raise CallFailed(_status_of(response.status), f"the server answered {response.status} {response.reason}")
        coding = response.getheader("content-encoding", "identity").lower()
        if coding != "identity":
            raise CallFailed(
                Status.INVALID_ARGUMENT, f"the body is compressed with {coding[:40]!r}, which was not asked for"
            )
        length = response.length
        if length is not None and length > self._most:
            raise CallFailed(
                Status.RESOURCE_EXHAUSTED, f"the body has {length} bytes, which exceeds the limit of {self._most} bytes"
            )
        if length is None:
            body = response.read(self._most + 1)
            if len(body) > self._most:
                raise CallFailed(Status.RESOURCE_EXHAUSTED, f"the body exceeds the limit of {self._most} bytes")
        else:
            # The library stops at the announced length. F-071 refuses a longer body, so the underlying file is read.
            file = response.fp
            body = file.read(length) if length else b""
            if len(body) < length:
                raise CallFailed(
                    Status.INVALID_ARGUMENT, f"the body has {len(body)} bytes of {length} that were announced"
                )
            if response.will_close and file.read(1):
                raise CallFailed(Status.OUT_OF_RANGE, f"the body has more than the {length} bytes that were announced")
        return Entry(body, response.getheader("content-type", ""))


def select_uri(template: str, served_at_id: str, key: int) -> str:
    """The URI of one slice of federated select (F-073).

    Raises:
        CallFailed: INVALID_ARGUMENT: the template is not https, or has no placeholder.
    """
    if not template.startswith("https://") or "{served_at_id}" not in template or "{key_base10}" not in template:
        expected = "expected an address that starts with https:// and contains {served_at_id} and {key_base10}"
        raise CallFailed(Status.INVALID_ARGUMENT, f"{_shown(template)} cannot name a slice; {expected}")
    return template.replace("{served_at_id}", served_at_id).replace("{key_base10}", str(key))


def _unpacked(entry: Entry, most: int) -> bytes:
    """Decompress an entry; the cache keeps bodies as they came (F-072)."""
    if not entry.media_type.partition(";")[0].strip().lower().endswith(GZIP_SUFFIX):
        return entry.body
    inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        data = inflate.decompress(entry.body, most + 1)
    except zlib.error as error:
        raise CallFailed(Status.INVALID_ARGUMENT, f"the body cannot be inflated: {error}") from None
    if len(data) > most:
        raise CallFailed(
            Status.RESOURCE_EXHAUSTED, f"the body exceeds the limit of {most} bytes when it is decompressed"
        )
    if not inflate.eof or inflate.unused_data:
        raise CallFailed(Status.INVALID_ARGUMENT, "the compressed body is cut off, or something follows it")
    return data


def _status_of(status: int) -> Status:
    if found := STATUS.get(status):
        return found
    return Status.FAILED_PRECONDITION if 400 <= status < 500 else Status.INTERNAL


def _shown(uri: str) -> str:
    """A URI for error texts: shortened, and without its path, which is secret (F-066)."""
    parts = urllib.parse.urlsplit(uri) if "[" not in uri else None
    return repr(f"{parts.scheme}://{parts.netloc}/..."[:100]) if parts is not None and parts.netloc else repr(uri[:40])
