"""`ask`: reads the head of an HTTP request. The result can be used again for every request with the same head."""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec

from invoker.core.http import RequestHead
from invoker.core.steps import Open
from invoker.errors import (
    FunctionError,
    InvocationError,
    LimitExceeded,
    NotAcceptable,
    Status,
    StatusError,
    UnsupportedMediaType,
)
from invoker.mediatypes import rank
from invoker.message import EMPTY, Headers
from invoker.protocols.web.cloudevents import asks_for_events, is_packed, prefers_events, received, without_events
from invoker.protocols.web.faults import ways
from invoker.protocols.web.fields import Signature
from invoker.protocols.web.filling import straight
from invoker.protocols.web.formats import EVENTS, LINES, MIXED, accepted
from invoker.protocols.web.items import Reading, reading_of
from invoker.protocols.web.values import HIDDEN, SENT_AS

ID = "http"
"""The id of the only invocation of a request, within its session."""
NAMES_OUT = ("out",)
"""The name of the only output of a request."""
_JSON = "application/json"
_OCTETS = "application/octet-stream"
_LARGEST_DIGITS = 18
_READING = ("GET", "HEAD")
_PAGE = "; a browser finds a page to try them here, if the server is started with --page on"


class RefusedError(Exception):
    """The head of a request is refused.

    Attributes:
        error: Why it is refused.
        status: The status of the response; 0: the status of the error.
        headers: The headers of the response.
    """

    def __init__(self, error: InvocationError, *, status: int = 0, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(str(error))
        self.error = error
        self.status = status
        self.headers = headers


class Asked(msgspec.Struct, frozen=True):
    """The request that a head describes.

    Attributes:
        accept: The Accept header as it came; never empty once the head was read.
        function: The name of the function; empty: the only one.
        inputs: The inputs of the function.
        query: The query of the request's URL.
        content_type: The media type of the body; empty when it was missing.
        headers: The headers that the function can read.
        opening: If the whole body is one value: the step that opens the invocation, and the media type of the value.
        reading: How the body is read.
        stream: The media type of the streamed response, and the accepted types of each item; None: the response is one
            value.
        is_implied: Whether the response is a stream because of the path, and not because of the Accept header (H-240).
        is_piped: Whether the body would be fed item by item if the response were a stream.
        is_bodiless: Whether the request counts as having no body, even if bytes come.
        is_head: Whether only the head of a response is wanted.
        is_repeated: Whether a browser reconnects to a stream of events after it has received some of them.
        wanted: The accepted media types of a value.
        as_events: Whether each value is sent as an event of CloudEvents.
    """

    accept: str = ""
    function: str = ""
    inputs: Signature = Signature(())
    query: str = ""
    content_type: str = ""
    headers: Headers = EMPTY
    opening: tuple[Open, str] | None = None
    reading: Reading = Reading.WHOLE
    stream: tuple[str, str] | None = None
    is_piped: bool = False
    is_bodiless: bool = False
    is_head: bool = False
    is_repeated: bool = False
    wanted: str = ""
    as_events: bool = False
    is_implied: bool = False

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs that become the response; empty if the function has no output (H-018)."""
        return NAMES_OUT if self.inputs.outputs else ()

    @property
    def streams(self) -> bool:
        """Whether the body or the response is a stream."""
        return self.stream is not None or self.reading is not Reading.WHOLE


def ask(head: RequestHead, signature: Callable[[str], Signature], *, most_bytes: int) -> Asked:
    """Read the head of a request.

    Args:
        head: The head of the request.
        signature: Finds the signature of the function that the request names, or of the only function if it names none;
            raises InvocationError if there is no such function.
        most_bytes: A body whose head announces more bytes is refused, unless it is fed item by item.

    Raises:
        RefusedError: The request cannot be answered.
    """
    try:
        return _asked(head, signature, most_bytes)
    except InvocationError as error:
        raise RefusedError(error) from None


def _asked(head: RequestHead, signature: Callable[[str], Signature], most_bytes: int) -> Asked:
    try:
        function, inputs = _function(head, signature)
    except InvocationError as error:
        if head.path == "/":  # these checks are the same for every function
            _check_method(head, is_safe=head.method in _READING)
            if head.method in _READING:
                error.add_hint(_PAGE)
        raise
    _check_method(head, is_safe=inputs.is_safe)
    _check_coding(head)
    is_bodiless = head.method in _READING
    sent_as = "" if is_bodiless else head.value("content-type").strip()
    is_binary = any(name == "ce-specversion" for name, _ in head.headers)
    content_type = sent_as or ("" if is_bodiless else _JSON if is_binary else _assumed(head, inputs))
    accept = head.value("accept").strip() or "*/*"
    announced = head.value("content-length")
    reading = reading_of(inputs, content_type, has_length=True, is_stream=False)
    stream, is_implied = _stream(inputs, head.path, accept, is_lines=reading is not Reading.WHOLE)
    as_events = prefers_events(accept) if stream is None else asks_for_events(accept)
    as_stream = _as_stream(inputs, content_type, "0" if is_bodiless else announced, most_bytes)
    if stream is not None and not is_implied:
        reading = as_stream
    elif head.path != "/" and inputs.is_streaming and as_stream is not Reading.PARTS:
        reading = as_stream  # H-241: also if the response is one value
    is_piped = stream is None and as_stream is not reading
    wanted = accept if stream is None else stream[1]
    if as_events:
        wanted = without_events(wanted)
    if inputs.plain_type and not rank(wanted, [inputs.plain_type]):
        # H-208: a message may have another type than Accept lists, since only the function determines its type
        wanted += f", {inputs.plain_type};q=0.001"
    if inputs.can_give is not None and not inputs.can_give(wanted):
        raise NotAcceptable(f"the function's value can be {', '.join(inputs.offered)}, and Accept lists {accept!a}")
    if reading is Reading.WHOLE:
        _check_length(announced, most_bytes)
    headers, is_event = _input_headers(head, sent_as), is_packed(content_type)
    if is_binary and not is_event:
        headers = received(headers)
    plain = None if is_bodiless or is_event else straight(inputs, head.query, content_type)
    out = NAMES_OUT if inputs.outputs else ()
    opening = (
        None
        if plain is None
        else (Open(ID, function, (wanted,) * len(out), plain[0], out, headers, protocol=ID), plain[1])
    )
    return Asked(
        accept,
        function,
        inputs,
        head.query,
        content_type,
        headers,
        opening,
        reading,
        stream,
        is_piped,
        is_bodiless,
        head.method == "HEAD",
        stream is not None and head.value("last-event-id") != "",
        wanted,
        as_events,
        is_implied,
    )


def _stream(inputs: Signature, path: str, accept: str, *, is_lines: bool) -> tuple[tuple[str, str] | None, bool]:
    """The result of `accepted`, and whether the response is a stream only because of the path."""
    stream = accepted(accept, is_several=inputs.is_streaming or is_lines)
    if stream is None and path != "/" and (inputs.gives_many or is_lines) and not prefers_events(accept):
        stream = _implied(inputs, accept)
        return stream, stream is not None
    if stream is None and len(inputs.outputs) > 1:
        # refused here, since a later error about the number of outputs would name outputs that the client has
        # not asked for.
        names = ", ".join(inputs.outputs)
        text = f"the function has the outputs {names}, and this response is exactly one value; {ways(inputs)}"
        raise RefusedError(FunctionError(text))
    return stream, False


def _as_stream(inputs: Signature, content_type: str, announced: str, most_bytes: int) -> Reading:
    """How the body of a request with a streamed response is read; a body too long for one value is read in pieces."""
    found = reading_of(inputs, content_type, has_length=announced != "", is_stream=True)
    if found is Reading.WHOLE and _is_too_long(announced, most_bytes):
        fed = reading_of(inputs, content_type, has_length=False, is_stream=True)
        return fed if fed is Reading.PIECES else found
    return found


def _implied(inputs: Signature, accept: str) -> tuple[str, str] | None:
    """For the function's own path: the media type of the stream, and the accepted types of its values; None: no stream.

    Raises:
        NotAcceptable: The function yields a stream, and Accept lists no type that this stream can have.
    """
    kinds = [one for one in (inputs.pieces if inputs.gives_many else "", LINES) if one]
    ranked = rank(accept, kinds)
    if not ranked:
        if not inputs.gives_many:
            return None
        listed = ", ".join(dict.fromkeys((*kinds, EVENTS, LINES, MIXED)))
        raise NotAcceptable(
            f"the function gives a stream of values, which can be {listed}, and Accept lists {accept!a}"
        )
    kind = ranked[0][0]
    if kind == LINES:
        return kind, f"{_JSON}, */*;q=0.1"
    return kind, f"{kind}, {accept}" if inputs.is_told else f"{kind}, */*;q=0.1"


def _function(head: RequestHead, signature: Callable[[str], Signature]) -> tuple[str, Signature]:
    """The name of the requested function, empty for the only one, and its signature."""
    named = head.value("invoker-function").strip()
    if head.path == "/":
        return named, signature(named)
    path = head.path.removeprefix("/") or "/"
    found = signature(path)
    if named and named != path:
        text = f"Invoker: Bad Request: the path asks for {path!a}, and the header Invoker-Function for {named!a}"
        raise StatusError(Status.INVALID_ARGUMENT, text)
    return path, found


def _check_method(head: RequestHead, *, is_safe: bool) -> None:
    """R-142: Check the method: POST calls every function, and GET only safe ones."""
    allowed: Collection[str] = ("GET", "HEAD", "POST") if is_safe else ("POST",)
    if head.method in allowed:
        return
    allow = (("Allow", ", ".join(allowed)),)
    hint = ", and GET calls functions that are marked @function(safe=True)" if head.method in _READING else ""
    if hint and head.path == "/":
        hint += _PAGE
    if head.method == "PUT":
        hint = " (curl -T sends a PUT; with -X POST it sends a POST)"
    text = f"Invoker: Method Not Allowed: {head.method!a}; {', '.join(allowed)} can be used here{hint}"
    raise RefusedError(StatusError(Status.UNIMPLEMENTED, text), status=405, headers=allow)


def _check_coding(head: RequestHead) -> None:
    coding = head.value("content-encoding").strip().lower()
    if coding not in ("", "identity"):
        # Otherwise the function would get compressed bytes as its value (RFC 9110, 15.5.16).
        packed = UnsupportedMediaType(f"a body with Content-Encoding {coding!a} is not supported; send it uncompressed")
        raise RefusedError(packed, headers=(("Accept-Encoding", "identity"),))


def _assumed(head: RequestHead, inputs: Signature) -> str:
    """R-143: If a function takes bytes, a body without a Content-Type is a value, even an empty body."""
    is_announced = head.value("content-length") or head.value("transfer-encoding")
    takes_it = inputs.fields and inputs.fields[0].known is not None and inputs.fields[0].is_value
    return _OCTETS if is_announced and takes_it else ""


def _check_length(announced: str, most_bytes: int) -> None:
    if _is_too_long(announced, most_bytes):
        raise RefusedError(too_long(most_bytes), status=413)


def _is_too_long(announced: str, most_bytes: int) -> bool:
    is_number = announced.isascii() and announced.isdigit()
    return is_number and (len(announced) > _LARGEST_DIGITS or int(announced) > most_bytes)


def too_long(most_bytes: int) -> LimitExceeded:
    """The error of a body that is longer than ``most_bytes``."""
    return LimitExceeded(f"the body exceeds the limit of {most_bytes} bytes (--max-message-bytes)")


def is_form(content_type: str) -> bool:
    """Whether a body has the media type ``multipart/form-data``."""
    return content_type.partition(";")[0].strip().lower() == "multipart/form-data"


def _input_headers(head: RequestHead, content_type: str) -> Headers:
    """The headers that the function can read.

    Content-Type and Accept are left out, repeated headers are joined, and X-Http-* are set here (R-151, H-209).
    """
    joined: dict[str, tuple[str, list[str]]] = {}
    for name, value in head.headers:
        key = name.lower()
        if key not in HIDDEN:
            joined.setdefault(key, (name, []))[1].append(value)
    items = {name: ("; " if key == "cookie" else ", ").join(values) for key, (name, values) in joined.items()}
    items["X-Http-Method"] = head.method
    items["X-Http-Path"] = head.path
    items["X-Http-Query"] = head.query
    items["X-Http-Proto"] = "HTTP/2.0" if head.http_version == "2" else f"HTTP/{head.http_version}"
    if content_type:
        items[SENT_AS] = content_type
    return Headers(items)
