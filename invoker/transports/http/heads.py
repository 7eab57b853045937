r"""Parses heads of HTTP/1.1: the bytes up to the empty line become a `Head`, or are refused.

Theory. Two programs that parse the same head differently may disagree about where a request ends, so that one of them
passes on a request that it has not checked ("request smuggling"). So heads are parsed strictly by the grammar of RFC
9112, and every ambiguity is refused. The grammar is regular, so two regular expressions implement it::

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

Equal bytes always have an equal result, so code that reads many heads of one peer may cache the last result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

import msgspec

from invoker.core.http import RequestHead

MOST_BYTES: Final = 16 * 1024
MOST_FIELDS: Final = 500

_TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_METHOD: Final = re.compile(_TOKEN)
_TARGET: Final = re.compile(rb"[\x21-\x7e]+")
_LINE: Final = re.compile(rb"(" + _TOKEN + rb") (" + _TARGET.pattern + rb") HTTP/([0-9]\.[0-9])\r\n")
_VALUE: Final = rb"[\t\x20-\x7e\x80-\xff]*"
FIELDS: Final = re.compile(rb"(?:" + _TOKEN + rb":" + _VALUE + rb"\r\n)*\r\n")
_FIELD: Final = re.compile(rb":?" + _TOKEN + rb":" + _VALUE)
_LENGTH: Final = re.compile(r"[0-9]{1,20}")
_TELLING: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "expect", "upgrade"},
)  # fmt: skip
"""The fields that this transport evaluates itself."""


class RefusedError(Exception):
    """The peer has sent bytes that HTTP does not allow here.

    Attributes:
        status: The status that is sent to the peer.
    """

    def __init__(self, why: str, status: int = 400) -> None:
        super().__init__(why)
        self.status = status


class Head(msgspec.Struct, frozen=True):
    """A parsed head.

    Attributes:
        request: The part for handlers.
        host: The host in the request target if the target is a whole URI; otherwise empty.
        length: Bytes of the body; None: its length is not announced, since it comes in chunks or in HTTP/2 frames.
        is_kept: Whether the connection may serve another request.
        waits: Whether the client waits for 100 Continue before it sends the body.
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
        RefusedError: The head is malformed or ambiguous, or asks for a feature that is not served.

    Source: RFC 9112, 2 to 7.
    """
    if len(data) > MOST_BYTES:
        raise RefusedError("the head is too long", 431)
    line = _LINE.match(data)
    if line is None:
        raise RefusedError("the first line is not a request line")
    method, target, version = line[1].decode(), line[2].decode(), line[3].decode()
    if method != method.upper():
        raise RefusedError("the method is not in capitals")
    if method == "PRI":
        raise RefusedError("HTTP/2 is begun in the middle of a connection")
    if version not in ("1.1", "1.0"):
        raise RefusedError(f"HTTP/{version} is not supported", 505)
    if not FIELDS.fullmatch(data, line.end()):
        raise RefusedError("a header field is malformed")
    headers, told = _fields(data, line.end())
    host, path, query = _split(target)
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


def head_of_fields(fields: Iterable[tuple[bytes, bytes]]) -> Head:
    """The head of a request of HTTP/2.

    Args:
        fields: The fields of the head, which are valid in HTTP/2; names of those that replace the request line begin
            with a colon.

    Raises:
        RefusedError: The method, the path or a field is not valid in HTTP/1.1, or the request asks for a tunnel.

    Source: RFC 9113, 8.3.1.
    """
    own: dict[bytes, bytes] = {}
    headers: list[tuple[str, str]] = [("host", "")]
    for name, value in fields:
        if not _FIELD.fullmatch(b"%b:%b" % (name, value)):
            raise RefusedError("a header field is malformed")
        if name == b"cookie" and name in own:
            own[name] += b"; " + value  # RFC 9113, 8.2.3: clients send each cookie as a field
            continue
        own[name] = value
        if name[0] != 0x3A and name not in (b"host", b"cookie"):
            headers.append((text_of(name), text_of(value)))
    if b"cookie" in own:
        headers.append(("cookie", text_of(own[b"cookie"])))
    method, target = own[b":method"], own.get(b":path", b"")  # CONNECT has no path
    if not _METHOD.fullmatch(method) or method != method.upper() or method == b"CONNECT":
        raise RefusedError("the method is not served")
    if not _TARGET.fullmatch(target):
        raise RefusedError("the path has characters that are not allowed in a path")
    headers[0] = ("host", text_of(own.get(b":authority", own.get(b"host", b""))))
    host, path, query = _split(target.decode())
    request = RequestHead(method.decode(), path, query, "2", headers)
    length, expected = own.get(b"content-length"), own.get(b"expect", b"").decode("latin-1")
    return Head(
        request, host, None if length is None else int(length), True, "100-continue" in _tokens(expected), False
    )


def _split(target: str) -> tuple[str, str, str]:
    """Split a request target, perhaps a whole URI, into its host, its decoded path, and its query."""
    path, _, query = target.partition("?")
    host = target_host(path)
    if host:
        path = "/" + path.partition("://")[2].partition("/")[2]
    return host, unquote(path) if "%" in path else path, query


def _fields(data: bytes, at: int) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """All fields, and a dict of those that the transport itself uses; the values of a repeated field are joined."""
    headers: list[tuple[str, str]] = []
    told: dict[str, str] = {}
    # Latin-1 keeps every byte, so a value in UTF-8 can be decoded later.
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
        raise RefusedError(f"the head has {len(headers)} fields, which exceeds the limit of {MOST_FIELDS}", 431)
    if sum(name == "host" for name, _ in headers) > 1:
        raise RefusedError("the head has more than one Host")
    return headers, told


def _length(told: dict[str, str], *, is_new: bool) -> int | None:
    """The length of the body; None when it comes in chunks.

    Raises:
        RefusedError: The length is given twice, or in an unknown form; or the head names no host.
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
        # RFC 9112, 6.1: a proxy on the way may have seen the end of the body elsewhere.
        raise RefusedError("a head has both Content-Length and Transfer-Encoding")
    if not is_new:
        raise RefusedError("HTTP/1.0 does not have Transfer-Encoding")
    if coding.lower() != "chunked":
        raise RefusedError("a Transfer-Encoding other than chunked is not understood", 501)
    return None


def _tokens(value: str) -> set[str]:
    return {one.strip().lower() for one in value.split(",")} if value else set()


def check_begun(data: bytes, at: int) -> None:
    """Refuse an incomplete head that cannot become valid.

    Raises:
        RefusedError: The head is too long, or has invalid line ends.
    """
    if len(data) >= MOST_BYTES:
        raise RefusedError("the head is too long", 431)
    if data[0] < 0x21 or data[0] > 0x7E:
        raise RefusedError("this is not HTTP")
    line = data.find(b"\n", at)
    if line > 0 and data[line - 1] != 0x0D:
        raise RefusedError("a line ends with a bare LF")


def target_host(target: str) -> str:
    """The host of a target that is a whole URI, which counts instead of `Host` (RFC 9112, 3.2.2); otherwise empty."""
    if not target.startswith(("http://", "https://")):
        return ""
    return re.split(r"[/?]", target.partition("://")[2], maxsplit=1)[0].lower()


def text_of(data: bytes) -> str:
    """Decode as UTF-8, which the invoker's own responses use, or as Latin-1, which accepts every byte."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
