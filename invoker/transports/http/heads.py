r"""Heads of HTTP/1.1: the bytes up to the empty line become a `Head`, or are refused.

Theory. Two programs that read one head differently can be made to disagree about where a request ends, so that one of
them passes a request which it has never seen ("request smuggling"). So there is one way to read a head here: that of
the grammar of RFC 9112, and whatever leaves a choice is refused. The grammar is two regular expressions, since it is a
regular language::

    refused with 400     why
    -------------------  ------------------------------------------------------------------------------------------
    a bare CR or LF      some programs take it for the end of a line, others for a part of it
    a folded line        some unfold it, others take it for a field of its own
    blank before colon   some strip it, others do not know the field then
    control characters   some stop at a NUL
    two lengths          two Content-Length, or one beside Transfer-Encoding: nobody knows which one counts
    a lower-case method  it is another method, but some programs capitalise it
    no Host, or two      the rules of `origins` would judge another host than the one that is meant
    PRI                  HTTP/2 begins a connection, or does not come (RFC 9113, 3.4)

A Transfer-Encoding other than ``chunked`` is 501, another version of HTTP 505, a head with too many fields 431.

The same bytes always mean the same, so a reader of many heads of one peer may keep the last one with what it meant.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

import msgspec

from invoker.core.http import RequestHead

__all__ = [
    "FIELDS",
    "MOST_BYTES",
    "MOST_FIELDS",
    "Head",
    "RefusedError",
    "check_begun",
    "read_head",
    "target_host",
    "text_of",
]

MOST_BYTES: Final = 16 * 1024
MOST_FIELDS: Final = 500

_TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_LINE: Final = re.compile(rb"(" + _TOKEN + rb") ([\x21-\x7e]+) HTTP/([0-9]\.[0-9])\r\n")
FIELDS: Final = re.compile(rb"(?:" + _TOKEN + rb":[\t\x20-\x7e\x80-\xff]*\r\n)*\r\n")
_LENGTH: Final = re.compile(r"[0-9]{1,20}")
_TELLING: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "expect", "upgrade"},
)  # fmt: skip
"""Fields that this transport itself understands."""


class RefusedError(Exception):
    """A peer's bytes are not what HTTP allows here.

    Attributes:
        status: Says it to the peer.
    """

    def __init__(self, why: str, status: int = 400) -> None:
        super().__init__(why)
        self.status = status


class Head(msgspec.Struct, frozen=True):
    """What a head means.

    Attributes:
        request: What handlers see of it.
        host: The host of a target that is a whole URI; else empty.
        length: Bytes of the body; None: it comes in chunks.
        is_kept: Whether the connection may serve another request.
        waits: Whether the client waits for 100 before it sends the body.
        is_socket: Whether it is the handshake of a WebSocket.
    """

    request: RequestHead
    host: str
    length: int | None
    is_kept: bool
    waits: bool
    is_socket: bool


def read_head(data: bytes) -> Head:
    """Read the head of a request.

    Args:
        data: The bytes from the first byte of the request to the end of the empty line.

    Raises:
        RefusedError: It is not well formed, leaves a choice, or asks for what is not served.

    Source: RFC 9112, 2 to 7.
    """
    if len(data) > MOST_BYTES:
        raise RefusedError("the head is too long", 431)
    line = _LINE.match(data)
    if line is None:
        raise RefusedError("the first line is no request")
    method, target, version = line[1].decode(), line[2].decode(), line[3].decode()
    if method != method.upper():
        raise RefusedError("the method is not in capitals")
    if method == "PRI":
        raise RefusedError("HTTP/2 is begun in the middle of a connection")
    if version not in ("1.1", "1.0"):
        raise RefusedError(f"HTTP/{version} is not spoken here", 505)
    if not FIELDS.fullmatch(data, line.end()):
        raise RefusedError("a field is not well formed")
    headers, told = _fields(data, line.end())
    path, _, query = target.partition("?")
    host = target_host(path)
    if host:
        path = "/" + path.partition("://")[2].partition("/")[2]
    if "%" in path:
        path = unquote(path)
    is_new = version == "1.1"
    connection = _tokens(told.get("connection", ""))
    return Head(
        RequestHead(method, path, query, version, headers),
        host,
        _length(told, is_new=is_new),
        is_new and "close" not in connection,
        is_new and "100-continue" in _tokens(told.get("expect", "")),
        is_new and method == "GET" and "upgrade" in connection and told.get("upgrade", "").lower() == "websocket",
    )


def _fields(data: bytes, at: int) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """All fields, and those that the transport itself understands; the values of a repeated one are joined."""
    headers: list[tuple[str, str]] = []
    told: dict[str, str] = {}
    # Latin-1 keeps every byte, so a value that is UTF-8 can be read again.
    text = data[at:-4].decode("latin-1")
    is_plain = text.isascii()
    for line in text.split("\r\n") if text else ():
        name, _, value = line.partition(":")
        name, value = name.lower(), value.strip(" \t")
        if not is_plain:
            value = text_of(value.encode("latin-1"))
        headers.append((name, value))
        if name in _TELLING:
            told[name] = f"{told[name]}, {value}" if name in told else value
    if len(headers) > MOST_FIELDS:
        raise RefusedError(f"the head has {len(headers)} fields, and at most {MOST_FIELDS} are taken", 431)
    if sum(name == "host" for name, _ in headers) > 1:
        raise RefusedError("the head has more than one Host")
    return headers, told


def _length(told: dict[str, str], *, is_new: bool) -> int | None:
    """How long the body is; None when it comes in chunks.

    Raises:
        RefusedError: It is given twice, or in a form that is not understood; or the head names no host.
    """
    if is_new and "host" not in told:
        raise RefusedError("the head has no Host")
    length, coding = told.get("content-length"), told.get("transfer-encoding")
    if coding is None:
        if length is None:
            return 0
        if not _LENGTH.fullmatch(length):
            raise RefusedError("Content-Length is not one number")
        return int(length)
    if length is not None:
        # RFC 9112, 6.1: somebody on the way may have taken the body's end to be elsewhere.
        raise RefusedError("a head has both Content-Length and Transfer-Encoding")
    if not is_new:
        raise RefusedError("HTTP/1.0 knows no Transfer-Encoding")
    if coding.lower() != "chunked":
        raise RefusedError("a Transfer-Encoding other than chunked is not understood", 501)
    return None


def _tokens(value: str) -> set[str]:
    return {one.strip().lower() for one in value.split(",")} if value else set()


def check_begun(data: bytes, at: int) -> None:
    """Refuse early what cannot become a head.

    Raises:
        RefusedError: It is too long, or nobody would end its lines so.
    """
    if len(data) >= MOST_BYTES:
        raise RefusedError("the head is too long", 431)
    if data[0] < 0x21 or data[0] > 0x7E:
        raise RefusedError("this is not HTTP")
    line = data.find(b"\n", at)
    if line > 0 and data[line - 1] != 0x0D:
        raise RefusedError("a line ends with a bare LF")


def target_host(target: str) -> str:
    """The host of a target that is a whole URI, which counts instead of `Host` (RFC 9112, 3.2.2); else nothing."""
    if not target.startswith(("http://", "https://")):
        return ""
    return re.split(r"[/?]", target.partition("://")[2], maxsplit=1)[0].lower()


def text_of(data: bytes) -> str:
    """Header bytes as text: UTF-8, which is what our own responses use, else Latin-1, which takes everything."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
