"""HTTP responses to calls: the status of each error, the bodies of errors, and the output headers that are sent.

=========================================== ======= ================================================================
how the invocation ended                    status  why
=========================================== ======= ================================================================
`UnsupportedMediaType`                      415     R-144
`NotAcceptable`                             406     R-146
`DecodeError`                               400     R-145
`LimitReached`: too many calls at once      429     with Retry-After
`Overloaded`: too many invocations          503     not 429: the server is full for all callers; with Retry-After
`LimitExceeded`: the input is too large     413     R-154, H-242: to send the same again is useless
`NotReady`, `ShuttingDown`                  503     R-154; with Retry-After
`DeadlineExceeded`                          504     R-154
`Cancelled`                                 499     for the log only; the client has left
`StatusError`                               below   the function's choice
anything else                               500     R-147, R-149
=========================================== ======= ================================================================

A `StatusError` is mapped as Google's APIs do: INVALID_ARGUMENT, FAILED_PRECONDITION and OUT_OF_RANGE 400,
UNAUTHENTICATED 401, PERMISSION_DENIED 403, NOT_FOUND 404, ALREADY_EXISTS and ABORTED 409, RESOURCE_EXHAUSTED 429,
CANCELLED 499, UNIMPLEMENTED 501, UNAVAILABLE 503, DEADLINE_EXCEEDED 504, the rest 500.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import ceil
from typing import Final
from urllib.parse import quote

import msgspec

from invoker.core.http import Response
from invoker.core.limits import LimitReached
from invoker.core.problems import problem_of, problem_response, wants_problems
from invoker.errors import (
    Cancelled,
    DeadlineExceeded,
    DecodeError,
    EncodeError,
    InvocationError,
    LimitExceeded,
    NotAcceptable,
    NotReady,
    Overloaded,
    ShuttingDown,
    Status,
    StatusError,
    UnsupportedMediaType,
)
from invoker.errors.http import HTTP_STATUS
from invoker.mediatypes import parse, ranges
from invoker.message import Message

HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that describe the connection and not the message (RFC 9110, 7.6.1)."""

FENCE = (("Content-Security-Policy", "sandbox"),)
"""Headers of every response to GET. A link may open the response in a tab, where it must not run scripts with the
rights of this origin (R-152, H-007)."""

NOTHING = Response(204, (), b"")
"""The response of a function without output, and of a stream of events that has already ended (H-010, H-018)."""

_KINDS: tuple[tuple[type[InvocationError], int], ...] = (
    (UnsupportedMediaType, 415),
    (NotAcceptable, 406),
    (DecodeError, 400),
    (LimitReached, 429),
    (Overloaded, 503),
    (LimitExceeded, 413),
    (NotReady, 503),
    (ShuttingDown, 503),
    (DeadlineExceeded, 504),
    (Cancelled, 499),
)
_OCTETS: Final = "application/octet-stream"
_URIS: Final = frozenset({"location", "content-location"})
_ASCII: Final = "".join(map(chr, range(128)))

_OURS = HOP_BY_HOP | {"content-length", "content-type", "date", "x-http-status"}
_BODILESS = frozenset({204, 205, 304})
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_STATUS = re.compile(r"[2-5][0-9][0-9]")
_MOST_TYPES = 256
LINES: Final = "application/x-ndjson"
"""The media type of NDJSON."""
_RETRY = (("Retry-After", "1"),)


def status_of(error: InvocationError) -> int:
    """The HTTP status for an error; see the table above."""
    if isinstance(error, StatusError):
        return HTTP_STATUS.get(error.status, 500)
    return next((status for kind, status in _KINDS if isinstance(error, kind)), 500)


def problem(error: InvocationError, status: int = 0, *, parameter: str = "") -> dict[str, str | int]:
    """The members of a problem (RFC 9457), for an error within a stream.

    Args:
        error: The error, whose text becomes the detail.
        status: The status; 0: the one in the table.
        parameter: The parameter that the error is about; empty: it is unknown.

    Source: RFC 9457, 3.1; the member ``code``, the name of the gRPC status, is an addition.
    """
    status = status or status_of(error)
    code = "INVALID_ARGUMENT" if status == 400 and error.status == Status.UNKNOWN else error.status.name
    more = {"parameter": parameter} if parameter else {}
    return problem_of(status, _encodable(error), code, **more)


def refusal(
    error: InvocationError,
    accept: str = "",
    *,
    status: int = 0,
    headers: tuple[tuple[str, str], ...] = (),
    parameter: str = "",
) -> Response:
    """The response that reports an error.

    Args:
        error: The error, whose text becomes the body.
        accept: The Accept header of the request, which decides between a problem, JSON and text.
        status: The status; 0: the one in the table.
        headers: The headers to be added.
        parameter: The parameter that the error is about; empty: it is unknown.

    Source: R-153; users of riff's HTTP adapter rely on this form.
    """
    status = status or status_of(error)
    text = _encodable(error)
    if isinstance(error, LimitReached):
        headers += (("Retry-After", str(ceil(error.retry_after_s or 1))),)
    elif status == 503:
        headers += _RETRY
    if wants_problems(accept):
        return problem_response(problem(error, status, parameter=parameter), headers)
    if _prefers_json(accept):
        body = msgspec.json.encode({"error": text})
        return Response(status, (("Content-Type", "application/json"), *headers), body)
    return Response(status, (("Content-Type", "text/plain"), *headers), f"{text}\n".encode())


def answer(
    message: Message[bytes], extra: tuple[tuple[str, str], ...] = (), *, is_text: bool | None = False
) -> Response:
    """The response with the function's one output.

    Args:
        message: The output.
        extra: Headers to be added.
        is_text: Whether the output was encoded from text; None: that is unknown, and the payload is examined.

    Raises:
        EncodeError: A header would split the response, or ``X-Http-Status`` is no final status.

    Source: riff request-reply.md, "Responses" (R-148, R-152).
    """
    status = 200
    headers: tuple[tuple[str, str], ...] = ()
    if message.headers:
        status = _status(message.headers)
        headers = tuple(fit(message.headers))
    headers += extra
    if status in _BODILESS:
        return Response(status, headers, b"")
    if is_text is None:
        typed = typed_by(message, is_text=None)
    else:
        typed = _typed(message.media_type or _OCTETS, in_utf8=is_text)
    return Response(status, (*typed, *headers) if headers else typed, message.payload)


def opened(
    message: Message[bytes], headers: tuple[tuple[str, str], ...], *, is_text: bool | None = False
) -> tuple[int, tuple[tuple[str, str], ...]]:
    """The status and the headers of a response that streams and begins with this message.

    Args:
        message: Determines the status, the media type of pieces, and further headers.
        headers: The headers of the stream.
        is_text: Whether the pieces are text.

    Raises:
        EncodeError: A header would split the response, or ``X-Http-Status`` is no final status.
    """
    own = tuple(fit(message.headers)) if message.headers else ()
    is_lines = headers[0][1] == LINES
    typed = headers[:1] if is_lines else _typed(message.media_type or _OCTETS, in_utf8=is_text is True)
    return _status(message.headers), (*typed, *headers[1:], *own)


def typed_by(message: Message[bytes], *, is_text: bool | None) -> tuple[tuple[str, str]]:
    """The Content-Type header for a value, in a response or in a part of one.

    Args:
        message: The value.
        is_text: See `answer`.
    """
    media_type = message.media_type or _OCTETS
    if is_text is None:
        is_text = media_type[:5] == "text/" and _is_utf8(message.payload)
    return _typed(media_type, in_utf8=is_text)


def told_text(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The headers of a stream of text, with a charset added to Content-Type, which is the first of them."""
    return (*_typed(headers[0][1], in_utf8=True), *headers[1:])


@lru_cache(_MOST_TYPES)
def _typed(media_type: str, *, in_utf8: bool = False) -> tuple[tuple[str, str]]:
    """The Content-Type header of a response; UTF-8 is named, since browsers misread text without a charset (H-213)."""
    _check("Content-Type", media_type)
    if in_utf8:
        parsed = parse(media_type)
        if parsed.type == "text" and parsed.charset is None and parsed.param("encoding") is None:
            media_type += "; charset=utf-8"
    return (("Content-Type", media_type),)


def _is_utf8(payload: bytes) -> bool:
    """Whether the payload is UTF-8 with characters beyond ASCII; pure ASCII needs no charset."""
    if payload.isascii():
        return False
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


def _encodable(error: InvocationError) -> str:
    return str(error).encode("utf-8", "backslashreplace").decode()  # a lone surrogate cannot be encoded as UTF-8


def _prefers_json(accept: str) -> bool:
    """Whether an Accept header ranks JSON first; of equal entries the first counts."""
    best = min(ranges(accept), key=lambda one: (-one.q, one.position), default=None) if accept else None
    return best is not None and best.q > 0 and best.media_type.essence == "application/json"


def _status(headers: Mapping[str, str]) -> int:
    """R-139, R-148: the function may choose the status."""
    for name, value in headers.items():
        if name.lower() == "x-http-status":
            if not _STATUS.fullmatch(value):
                # 1xx is informational: it announces a response and cannot be one.
                raise EncodeError(f"the output header {name} is {value!r}; expected a final HTTP status, 200 to 599")
            return int(value)
    return 200


def fit(headers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The output headers that may become HTTP headers (R-152).

    Raises:
        EncodeError: A header would split the response.
    """
    own = _OURS | {
        token.strip().lower()
        for name, value in headers.items()
        if name.lower() == "connection"
        for token in value.split(",")
    }
    for name, value in headers.items():
        _check(name, value)
        if name.lower() not in own:
            yield name, _sent(name, value.strip(" \t"))


def _sent(name: str, value: str) -> str:
    """The value to send; in a URI, non-ASCII is percent-encoded, since browsers would read it as Latin-1 (H-247)."""
    return value if value.isascii() or name.lower() not in _URIS else quote(value, safe=_ASCII)


def _check(name: str, value: str) -> None:
    if not _TOKEN.fullmatch(name):
        raise EncodeError(f"the output header {name!a} is not a token, so it cannot be an HTTP header")
    if _CONTROL.search(value):
        # A CR or LF would end the header, and an attacker could add others.
        raise EncodeError(f"the output header {name} has a control character in its value")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise EncodeError(f"the output header {name} is not valid Unicode") from None
