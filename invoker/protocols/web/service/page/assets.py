"""`Assets`: the files of the page, read on first use."""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from invoker.core.http import RequestHead, Response

INDEX: Final = "index.html"

_FOLDER: Final = Path(__file__).parent / "files"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""The policy allows only the page's own files to run and to be loaded, and no other page to frame this one. A browser
with Trusted Types refuses to parse text as HTML, so that a mistake in the scripts cannot inject any."""

_HEADERS: Final = (
    ("Cache-Control", "no-cache"),
    ("Content-Security-Policy", _POLICY),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Frame-Options", "DENY"),
)


class _File(NamedTuple):
    """A file with its headers."""

    body: bytes
    etag: str
    media_type: str


class Assets:
    """Serves the files of the page, each with an ETag of its content."""

    @cached_property
    def files(self) -> dict[str, _File]:
        """The files of the page by their names, read once."""
        return {one.name: _read(one) for one in sorted(_FOLDER.iterdir()) if one.suffix in _TYPES}

    def answer(self, head: RequestHead, name: str, headers: tuple[tuple[str, str], ...] = ()) -> Response:
        """The response to a GET or HEAD of a file; 304 if the client already has the file.

        Args:
            head: The head of the request.
            name: The name of the file.
            headers: Headers to add.
        """
        file = self.files.get(name)
        if head.method not in ("GET", "HEAD"):
            return Response(405, (("Content-Type", "text/plain"), ("Allow", "GET, HEAD")), b"use GET to read this\n")
        if file is None:
            return Response(404, (("Content-Type", "text/plain"), ("Cache-Control", "no-store")), b"no such file\n")
        always = (("ETag", file.etag), *_HEADERS, *headers)
        if _has(head.value("if-none-match"), file.etag):
            return Response(304, always, b"")
        return Response(200, (("Content-Type", file.media_type), *always), file.body)


def _read(path: Path) -> _File:
    body = path.read_bytes()
    return _File(body, f'"{hashlib.sha256(body).hexdigest()[:20]}"', _TYPES[path.suffix])


def _has(given: str, etag: str) -> bool:
    """Whether ``If-None-Match`` lists the tag, by weak comparison (RFC 9110, 13.1.2)."""
    listed = {one.strip().removeprefix("W/") for one in given.split(",")}
    return etag in listed or "*" in listed
