"""`Trace`: the trace of an invocation, from the headers of W3C Trace Context.

A caller that traces sends ``traceparent: 00-TRACE-PARENT-FLAGS``: the id of the whole trace, and the id of its own
span, of which this invocation becomes a child. The id of the child's span is made here, for each invocation. If a
caller sends no valid header, a new trace begins, as the specification requires. Nothing is exported here: a function
that exports spans finds the ids in `Context.trace`.

The HTTP transport makes the span before the function runs, and passes it on by the header `SPAN`, which no client can
set.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Final

import msgspec

from invoker.message import Headers

SPAN: Final = "x-http-span"
REQUEST_ID: Final = "x-request-id"

# Version ff is invalid; 00 ends after the flags, later ones may have more (Trace Context, 3.2.2.1 to 3.2.2.5 and 4.3).
_PARENT: Final = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?!0{32})(?P<trace>[0-9a-f]{32})-(?!0{16})(?P<parent>[0-9a-f]{16})-"
    r"(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)
_SPAN: Final = re.compile(r"[0-9a-f]{16}")
_REQUEST: Final = re.compile(r"[\x21-\x7e]{1,128}")
_KNOWN_FLAGS: Final = 0x03
"""The flags: sampled, and a random trace id."""
_MOST_STATE: Final = 8192


class Trace(msgspec.Struct, frozen=True):
    """The place of an invocation in a trace.

    Attributes:
        trace_id: 32 hexadecimal digits.
        parent_id: The caller's span, 16 hexadecimal digits; empty if the trace begins here.
        span_id: This invocation's own span, 16 hexadecimal digits.
        is_sampled: Whether the caller may have recorded the trace.
        state: The caller's ``tracestate``; empty if there is none.
        flags: The flags as a number.
    """

    trace_id: str
    parent_id: str
    span_id: str
    is_sampled: bool = False
    state: str = ""
    flags: int = 0

    @property
    def traceparent(self) -> str:
        """The value of the header ``traceparent`` for calls that this invocation makes, and for its response."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags:02x}"

    @property
    def headers(self) -> dict[str, str]:
        """The headers for calls that this invocation makes."""
        state = {"tracestate": self.state} if self.state else {}
        return {"traceparent": self.traceparent, **state}


def trace_of(metadata: Headers, *, caller: Trace | None = None) -> Trace:
    """The trace to which an invocation belongs; a new one if the metadata has none.

    Args:
        metadata: The metadata of the call.
        caller: The trace of the function that has called this one.
    """
    if caller is not None:
        return Trace(caller.trace_id, caller.span_id, new_span(), caller.is_sampled, caller.state, caller.flags)
    found = _parsed(metadata)
    if found is None:
        # The trace's id is random, as its second flag says (Trace Context Level 2).
        return Trace(secrets.token_hex(16), "", new_span(), flags=0x02)
    flags = int(found["flags"], 16) & _KNOWN_FLAGS
    state = metadata.get("tracestate", "")
    span = metadata.get(SPAN, "")
    return Trace(
        found["trace"],
        found["parent"],
        span if _SPAN.fullmatch(span) else new_span(),
        bool(flags & 1),
        state if len(state) <= _MOST_STATE else "",
        flags,
    )


def trace_id_of(metadata: Headers) -> str:
    """The trace id in the headers; empty if there is none."""
    found = _parsed(metadata)
    return found["trace"] if found is not None else ""


def request_id_of(metadata: Mapping[str, str]) -> str:
    """The caller's id of its request, at most 128 visible ASCII characters; empty if it sent no valid id."""
    sent = metadata.get(REQUEST_ID, "")
    return sent if _REQUEST.fullmatch(sent) else ""


def begun(traceparent: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    """A new span for a request with this header, and its response headers; None if the header is invalid.

    The W3C's draft names the header for responses ``traceresponse``; most clients look at ``traceparent``.
    """
    found = _found(traceparent)
    if found is None:
        return None
    span, flags = new_span(), int(found["flags"], 16) & _KNOWN_FLAGS
    told = f"00-{found['trace']}-{span}-{flags:02x}"
    return span, (("traceparent", told), ("traceresponse", told))


def new_span() -> str:
    """A span's id, which is never all zeros."""
    while int(span := secrets.token_hex(8), 16) == 0:
        pass
    return span


def _parsed(metadata: Headers) -> re.Match[str] | None:
    sent = metadata.get("traceparent")
    return _found(sent) if sent else None


def _found(sent: str) -> re.Match[str] | None:
    found = _PARENT.fullmatch(sent)
    return None if found is None or (found["version"] == "00" and found["more"]) else found
