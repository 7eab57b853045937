"""Typed methods over HTTP: Connect, and gRPC-Web, which browsers speak.

Theory. A `WebSession` unwraps the messages of a request, passes them to a `TypedSession`, and wraps the messages that
this sends. The Content-Type of a request says how its messages are wrapped::

    Content-Type                       for              request and response        the end
    ---------------------------------  ---------------  --------------------------  ------------------------------
    application/proto, /json           unary            the message                 status of HTTP, error in JSON
    application/connect+proto, +json   streams          envelopes                   an envelope of JSON
    application/grpc-web, -text        all              envelopes, maybe in base64  an envelope of trailers

A unary method that is safe can also be called by GET. Compression of whole bodies is the transport's business
(Content-Encoding). The messages in envelopes of a request may be compressed by gzip, since some clients do that by
default (connect-python); those of a response are not.

Source: Connect protocol; gRPC-Web (PROTOCOL-WEB.md).
"""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64decode
from binascii import Error as Base64Error
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from urllib.parse import parse_qs

from invoker.core.http import BodyChunk, RequestHead, Response, ResponseHead
from invoker.core.steps import CallStep, Close, Event, Send
from invoker.errors import (
    InvocationError,
    LimitExceeded,
    ProtocolViolation,
    Status,
    StatusError,
)
from invoker.message import Headers
from invoker.protocols.typed.calls import Call
from invoker.protocols.typed.envelopes import COMPRESSED, END, GZIP, TRAILERS, Envelopes, Text, envelope, unpacked
from invoker.protocols.typed.session import TypedSession, told
from invoker.protocols.typed.webstatus import end_of_stream, error_body, http_status, trailers

_UNARY: Final = {"application/proto": False, "application/json": True}
_CONNECT: Final = {"application/connect+proto": False, "application/connect+json": True}
_WEB: Final = {
    "application/grpc-web": False,
    "application/grpc-web+proto": False,
    "application/grpc-web+json": True,
    "application/grpc-web-text": False,
    "application/grpc-web-text+proto": False,
}
_UNITS: Final = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_TIMEOUT: Final = re.compile(r"([0-9]{1,8})([HMSmun])")
_TIMES_AT_ONCE: Final = 4
"""The compressed messages in one piece of a body may add up to this many times the largest message."""
_MILLIS: Final = re.compile(r"[0-9]{1,10}")
_HIDDEN: Final = frozenset(
    {
        *("accept", "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect"),
        *("host", "keep-alive", "te", "transfer-encoding", "upgrade"),
    }
)


class _Form(NamedTuple):
    """How messages are wrapped.

    Attributes:
        kind: ``unary``, ``connect`` or ``web``.
        is_json: Whether messages are JSON.
        is_text: Whether the body is base64.
        content_type: The media type of the response.
    """

    kind: str
    is_json: bool
    is_text: bool
    content_type: str


class WebSession:
    """Translates one request for a method.

    Args:
        call: The method.
        most_bytes: The largest message, in bytes.

    Attributes:
        has_begun: Whether the head of a stream was sent.
        is_told: Whether the response, or the end of the stream, was sent.
        cuts: Whether an error closes the connection. It never does, since the end of a stream reports errors.
    """

    cuts = False

    __slots__ = (
        *("_body", "_call", "_envelopes", "_form", "_inner", "_is_packed", "_message", "_most_bytes", "_size", "_text"),
        *("has_begun", "is_told"),
    )

    def __init__(self, call: Call, *, most_bytes: int) -> None:
        self.has_begun = self.is_told = False
        self._call = call
        self._most_bytes = most_bytes
        self._form = _Form("unary", is_json=True, is_text=False, content_type="application/json")
        self._inner = TypedSession(call)
        self._envelopes = Envelopes(most_bytes)
        self._text = Text()
        self._body: list[bytes] = []
        self._size = 0
        self._is_packed = False  # whether messages with the flag COMPRESSED are gzip
        self._message: bytes | None = None  # the message of a unary response

    @property
    def held(self) -> int:
        """How many bytes of the body are buffered."""
        return self._size + self._envelopes.held

    def receive(self, frame: RequestHead | BodyChunk) -> Sequence[CallStep]:
        """Translate the head, or a piece of the body."""
        if self.is_told:
            return ()
        if isinstance(frame, RequestHead):
            return self._begin(frame)
        if self._form.kind == "unary":
            self._size += len(frame.payload)
            if self._size > self._most_bytes:
                return self._end(LimitExceeded(f"the message exceeds the limit of {self._most_bytes} bytes"))
            self._body.append(frame.payload)
            return ()
        try:
            piece = self._text.feed(frame.payload) if self._form.is_text else frame.payload
            messages = self._messages(piece)
        except ValueError as error:
            return self._violated(str(error))
        steps: list[CallStep] = []
        for message in messages:
            steps += self._sent(self._inner.receive(message))
        return steps

    def half_close(self) -> Sequence[CallStep]:
        """Translate the end of the body."""
        if self.is_told:
            return ()
        if self._form.kind == "unary":
            body = b"".join(self._body)
            self._body.clear()
            return (*self._sent(self._inner.receive(body)), *self._sent(self._inner.half_close()))
        if self._envelopes.is_within or self._text.is_within:
            return self._violated("the body ended within a message")
        return self._sent(self._inner.half_close())

    def deliver(self, event: Event) -> Sequence[CallStep]:
        """Translate an event of the invocation."""
        return () if self.is_told else self._sent(self._inner.deliver(event))

    def refusal(self, error: InvocationError, *, status: int = 0) -> Response:  # noqa: ARG002 - Connect has its own
        """The response to a request that fails before anything else was sent."""
        self.is_told = True
        error = told(error)
        if self._form.kind == "unary":
            return Response(http_status(error), (("Content-Type", "application/json"),), error_body(error))
        return Response(200, self._headers(), self._last(error))

    def farewell(self, error: InvocationError) -> bytes:
        """The bytes that end a stream that has begun with an error."""
        self.is_told = True
        return self._last(told(error))

    def _begin(self, head: RequestHead) -> Sequence[CallStep]:
        if head.method in ("GET", "HEAD"):
            return self._asked(head)
        if head.method != "POST":
            allowed = "GET, HEAD, POST" if self._may_get else "POST"
            return self._refuse(405, f"{head.method!a}; a call needs POST", ("Allow", allowed))
        form = _form(head, self._call)
        if form is None:
            types = ", ".join(_types(self._call))
            return self._refuse(
                415, f"{head.value('content-type')!a}; this method takes {types}", ("Accept-Post", types)
            )
        self._form = form
        self._inner = TypedSession(self._call, _metadata(head), is_json=form.is_json)
        coding = head.value("connect-content-encoding" if form.kind == "connect" else "grpc-encoding").strip().lower()
        self._is_packed = coding == GZIP
        if form.kind != "unary" and coding not in ("", "identity", GZIP):
            return self._end(_unknown_coding(coding))
        version = head.value("connect-protocol-version").strip()
        if form.kind != "web" and version not in ("", "1"):
            return self._violated(f"Connect-Protocol-Version is {version!a}, but 1 is expected")
        return ()

    @property
    def _may_get(self) -> bool:
        call = self._call
        return call.is_safe and not (call.streams_in or call.streams_out)

    def _asked(self, head: RequestHead) -> Sequence[CallStep]:
        """Translate a GET, whose query has the message (Connect, "Unary-Get-Request")."""
        if not self._may_get:
            text = f"{head.method!a}; it can only call safe functions with one request and one response"
            return self._refuse(405, text, ("Allow", "POST"))
        query = {name: values[0] for name, values in parse_qs(head.query, keep_blank_values=True).items()}
        encoding = query.get("encoding", "")
        if encoding not in ("json", "proto"):
            return self._violated(f"the query has the encoding {encoding!a}, which is neither json nor proto")
        coding = query.get("compression", "")
        if coding not in ("", "identity", GZIP):
            return self._end(_unknown_coding(coding))
        self._form = _Form("unary", encoding == "json", is_text=False, content_type=f"application/{encoding}")
        message = query.get("message", "").encode("utf-8", "surrogateescape")
        if query.get("base64") == "1":
            try:
                message = urlsafe_b64decode(message + b"=" * (-len(message) % 4))
            except Base64Error:
                return self._violated("the message of the query is not base64")
        elif encoding == "proto":
            message = parse_qs(head.query, encoding="latin-1").get("message", [""])[0].encode("latin-1")
        if coding == GZIP:
            try:
                message = unpacked(message, self._most_bytes)
            except ValueError as error:
                return self._violated(str(error))
        self._inner = TypedSession(self._call, _metadata(head), is_json=encoding == "json")
        self._body.append(message)
        return ()

    def _messages(self, piece: bytes) -> list[bytes]:
        """Return the messages that this piece of a body completes, decompressed.

        Raises:
            ValueError: A message is invalid, or the messages are too large once they are decompressed.
        """
        found: list[bytes] = []
        size, most = 0, _TIMES_AT_ONCE * self._most_bytes
        for flags, message in self._envelopes.feed(piece):
            if flags & (END | TRAILERS):
                continue  # a request ends with its body; clients may send such a message, which says nothing more
            if not flags & COMPRESSED:
                found.append(message)
                continue
            if not self._is_packed:
                raise ValueError("a message is compressed, and no compression was agreed on")
            found.append(unpacked(message, self._most_bytes))
            size += len(found[-1])
            if size > most:
                raise ValueError(
                    f"messages that come together exceed the limit of {most} bytes once they are decompressed"
                )
        return found

    def _sent(self, steps: Iterable[CallStep]) -> Sequence[CallStep]:
        """Wrap the frames of some steps into responses or pieces of a stream."""
        made: list[CallStep] = []
        for step in steps:
            if type(step) is Send:
                if self._form.kind == "unary":
                    self._message = step.frame
                else:
                    made += self._head()
                    made.append(Send(BodyChunk(self._wrapped(envelope(step.frame)))))
            elif type(step) is Close:
                made += self._end(step.error)
            else:
                made.append(step)
        return made

    def _end(self, error: InvocationError | None) -> Sequence[CallStep]:
        self._body.clear()
        if self._form.kind == "unary":
            if error is not None:
                return (Send(self.refusal(error)), Close(error))
            self.is_told = True
            return (Send(Response(200, self._headers(), self._message or b"")), Close())
        if not self.has_begun and error is not None:
            return (Send(self.refusal(error)), Close(error))
        head = self._head()
        self.is_told = True
        return (*head, Send(BodyChunk(self._last(error))), Close(error))

    def _violated(self, text: str) -> Sequence[CallStep]:
        """End the call of a request that breaks the protocol, before or after the function has started."""
        error = StatusError(Status.INVALID_ARGUMENT, f"{ProtocolViolation.prefix}: {text}")
        steps = self._inner.break_off(error)
        return self._sent(steps)

    def _refuse(self, status: int, text: str, header: tuple[str, str]) -> Sequence[CallStep]:
        """Refuse a request that does not follow the protocol, by an HTTP status and a sentence."""
        self.is_told = True
        words = "Method Not Allowed" if status == 405 else "Unsupported Media Type"
        body = f"Invoker: {words}: {text}\n".encode()
        response = Response(status, (("Content-Type", "text/plain"), header), body)
        return (Send(response), Close(StatusError(Status.INVALID_ARGUMENT, text)))

    def _head(self) -> Sequence[CallStep]:
        if self.has_begun:
            return ()
        self.has_begun = True
        return (Send(ResponseHead(200, self._headers())),)

    def _headers(self) -> tuple[tuple[str, str], ...]:
        return (("Content-Type", self._form.content_type),)

    def _last(self, error: InvocationError | None) -> bytes:
        if self._form.kind == "connect":
            return envelope(end_of_stream(error), END)
        return self._wrapped(envelope(trailers(error), TRAILERS))

    def _wrapped(self, data: bytes) -> bytes:
        return b64encode(data) if self._form.is_text else data


def timeout_of(head: RequestHead) -> float | None:
    """How long the caller waits, in seconds; None if no header of the request says that, or its value is invalid."""
    millis = _MILLIS.fullmatch(head.value("connect-timeout-ms").strip())
    if millis is not None:
        return int(millis[0]) / 1000
    found = _TIMEOUT.fullmatch(head.value("grpc-timeout").strip())
    return None if found is None else int(found[1]) * _UNITS[found[2]]


def _form(head: RequestHead, call: Call) -> _Form | None:
    essence = head.value("content-type").partition(";")[0].strip().lower()
    if essence in _WEB:
        return _Form("web", _WEB[essence], is_text="-text" in essence, content_type=essence)
    is_unary = not (call.streams_in or call.streams_out)
    if is_unary and essence in _UNARY:
        return _Form("unary", _UNARY[essence], is_text=False, content_type=essence)
    if not is_unary and essence in _CONNECT:
        return _Form("connect", _CONNECT[essence], is_text=False, content_type=essence)
    return None


def _unknown_coding(coding: str) -> StatusError:
    return StatusError(Status.UNIMPLEMENTED, f"messages may be plain or compressed by {GZIP}, not by {coding!a}")


def _types(call: Call) -> tuple[str, ...]:
    own = _CONNECT if call.streams_in or call.streams_out else _UNARY
    return (*own, *_WEB)


def _metadata(head: RequestHead) -> Headers:
    """The headers that the function can read, with names in lower case, as over gRPC."""
    found: dict[str, str] = {}
    for name, value in head.headers:
        key = name.lower()
        if key not in _HIDDEN:
            found[key] = f"{found[key]}, {value}" if key in found else value
    return Headers(found)
