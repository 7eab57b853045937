"""Compresses ("packs") responses: decides which ones to pack, and packs whole ones (`pack`) and streams (`Packer`).

A whole response is packed if all of these hold; a stream, if all but the second do:

* the client accepts an available coding (`invoker.transports.http.codings`), and does not prefer plain bytes;
* the body has at least `LEAST_BYTES`: below that, the packed body with its header is hardly shorter;
* its media type is one that packing makes shorter: text, JSON, XML and the like, arrays; not images, audio or archives;
* it has no header that forbids it: Content-Encoding (it is packed already), Content-Range (it is a part), a digest of
  it, or ``Cache-Control: no-transform``.

A client that refuses unpacked bodies (``identity;q=0``) gets every response packed for which no header forbids it. A
response that would be packed for another client has ``Vary: Accept-Encoding``, and a strong ETag becomes a weak one
where it is packed, because its bytes are others. The response to a HEAD has the header fields of the response to a GET,
so it is made in the same way.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, Protocol

from invoker.core.http import RequestHead, Response, ResponseHead
from invoker.transports.http.codings import GZIP, IDENTITY, ZSTD, Choice, zstd_module

LEAST_BYTES: Final = 1024

AT_ONCE_BYTES: Final = 32 * 1024
"""Packing a body of more bytes takes more than a millisecond, so it is done in a thread where the loop would have to
wait."""

_GZIP_LEVEL: Final = 4
_SMALL: Final = (13, 6)
"""Window and memory level of gzip for a stream, which then takes 70 kB of memory instead of 270 kB."""
_ZSTD_WINDOW_LOG: Final = 15
_ZSTD_LEVEL: Final = 1
_BODILESS: Final = frozenset({204, 205, 304})
_FORBIDDING: Final = frozenset({"content-encoding", "content-range", "content-digest", "repr-digest", "content-md5"})
_VARY: Final = ("Vary", "Accept-Encoding")
_CODED: Final = {GZIP: ("Content-Encoding", GZIP), ZSTD: ("Content-Encoding", ZSTD)}
_WORTH: Final = frozenset(
    {
        "application/json", "application/xml", "application/javascript", "application/ecmascript", "application/yaml",
        "application/x-yaml", "application/toml", "application/sql", "application/graphql", "application/rtf",
        "application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-seq", "application/wasm",
        "application/x-tex", "application/x-latex", "application/x-www-form-urlencoded", "application/msgpack",
        "application/x-msgpack", "application/vnd.msgpack", "application/vnd.graphpipe.tensor", "application/x-npy",
        "multipart/mixed", "multipart/form-data", "image/bmp", "image/x-portable-pixmap", "font/ttf", "font/otf",
    }
)  # fmt: skip
_SUFFIXES: Final = ("+json", "+xml", "+yaml", "+json-seq")
_FRAMED: Final = ("application/grpc", "application/connect")
"""These protocols pack their own frames."""
_NO_TRANSFORM: Final = re.compile(r"(?:^|[,\s])no-transform(?:$|[,;\s])", re.IGNORECASE)
_TAG: Final = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')


class _Stream(Protocol):
    def compress(self, data: bytes | memoryview, /) -> bytes: ...
    def flush(self, mode: int = ..., /) -> bytes: ...


@lru_cache(256)
def is_worth(content_type: str) -> bool:
    """Whether packing makes bodies of a media type much shorter.

    Args:
        content_type: The content type as the header has it, with parameters.
    """
    essence = content_type.partition(";")[0].strip().lower()
    if essence.startswith(_FRAMED):
        return False
    return essence.startswith("text/") or essence in _WORTH or essence.endswith(_SUFFIXES)


def coding_for(response: Response | ResponseHead, choice: Choice, size: int) -> str | None:
    """The coding of a response; `IDENTITY`: the response is unpacked for this client, but might be packed for another.

    Args:
        response: The response, whose headers decide.
        choice: The coding that the client prefers.
        size: Bytes of the body; of a stream, `LEAST_BYTES`.

    Returns:
        None: content codings do not matter for this response.
    """
    if (size < LEAST_BYTES and not choice.is_forced) or response.status in _BODILESS:
        return None
    content_type = ""
    for name, value in response.headers:
        folded = name.lower()
        if folded == "content-type":
            content_type = value
        elif folded in _FORBIDDING or (folded == "cache-control" and _NO_TRANSFORM.search(value)):
            return None
    return choice.coding if choice.coding and (choice.is_forced or is_worth(content_type)) else None


def headers_for(headers: Iterable[tuple[str, str]], coding: str) -> tuple[tuple[str, str], ...]:
    """The headers of a response that `coding_for` has decided on."""
    if coding == IDENTITY:
        return (*headers, _VARY)
    kept = (one for one in headers if one[0].lower() not in ("content-length", "accept-ranges"))
    return (*((name, _weak(value) if name.lower() == "etag" else value) for name, value in kept), _CODED[coding], _VARY)


def pack(response: Response, coding: str) -> Response:
    """Compress a response with the coding that `coding_for` chose, which is slow for a long body."""
    headers = headers_for(response.headers, coding)
    if coding == IDENTITY:
        return Response(response.status, headers, response.body, response.pieces, response.close)
    stream = _gzip() if coding == GZIP else zstd_module().ZstdCompressor(level=_ZSTD_LEVEL)
    parts = [stream.compress(part) for part in (response.body, *response.pieces)]
    parts.append(stream.flush())
    return Response(response.status, headers, b"".join(parts), (), response.close)


def not_modified(response: Response, head: RequestHead) -> Response:
    """A 304 with the ETag that the client has: a weak one, if it got the body packed (RFC 9111, 4.3.4)."""
    had = head.value("if-none-match")
    if "W/" not in had:
        return response
    tags = set(_TAG.findall(had))
    headers = tuple(
        (name, _weak(value) if name.lower() == "etag" and value not in tags else value)
        for name, value in response.headers
    )
    return Response(response.status, headers, response.body, response.pieces, response.close)


class Packer:
    """Packs a stream; the client can read packed bytes only after the next `flush`.

    It needs little memory, since there may be thousands of streams.

    Args:
        coding: A coding other than `IDENTITY`.
    """

    __slots__ = ("_flush", "_stream")

    def __init__(self, coding: str) -> None:
        self._stream: _Stream
        if coding == ZSTD:
            zstd = zstd_module()
            options = {
                zstd.CompressionParameter.compression_level: _ZSTD_LEVEL,
                zstd.CompressionParameter.window_log: _ZSTD_WINDOW_LOG,
            }
            self._stream = zstd.ZstdCompressor(options=options)
            self._flush = int(zstd.ZstdCompressor.FLUSH_BLOCK)
        else:
            self._stream = _gzip(*_SMALL)
            self._flush = zlib.Z_SYNC_FLUSH

    def pack(self, data: bytes | memoryview) -> bytes:
        """Pack more bytes; the result is often empty."""
        return self._stream.compress(data)

    def flush(self) -> bytes:
        """The bytes that let the client read everything that was packed before."""
        return self._stream.flush(self._flush)

    def end(self) -> bytes:
        """The last bytes; call it once, and only if the stream has ended as it should."""
        return self._stream.flush()


def _gzip(window_bits: int = zlib.MAX_WBITS, memory: int = zlib.DEF_MEM_LEVEL) -> Any:
    return zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, window_bits + 16, memory)


def _weak(tag: str) -> str:
    return tag if tag.startswith("W/") else f"W/{tag}"
