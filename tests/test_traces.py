"""`invoker.traces`: which headers tell of a trace, and what is answered."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.context import Context
from invoker.message import Headers
from invoker.traces import SPAN, Trace, begun, new_span, trace_id_of, trace_of

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SENT = f"00-{TRACE}-{PARENT}-01"


def told(traceparent: str, **more: str) -> Headers:
    return Headers({"traceparent": traceparent, **more})


def test_H150_a_traceparent_is_read() -> None:
    """The caller's span is the parent, and the invocation has a span of its own."""
    trace = trace_of(told(SENT, tracestate="a=1,b=2"))
    assert (trace.trace_id, trace.parent_id, trace.is_sampled, trace.state) == (TRACE, PARENT, True, "a=1,b=2")
    assert re.fullmatch("[0-9a-f]{16}", trace.span_id)
    assert trace.span_id != PARENT
    assert trace.traceparent == f"00-{TRACE}-{trace.span_id}-01"
    assert trace.headers == {"traceparent": trace.traceparent, "tracestate": "a=1,b=2"}


@pytest.mark.parametrize(
    ("sent", "flags"),
    [(f"00-{TRACE}-{PARENT}-00", "00"), (f"00-{TRACE}-{PARENT}-ff", "03"), (f"cc-{TRACE}-{PARENT}-01", "01"),
     (f"cc-{TRACE}-{PARENT}-01-what-the-future-will-be", "01"), (f"01-{TRACE}-{PARENT}-02-", "02")],
)  # fmt: skip
def test_H150_later_versions_and_flags_are_read_as_far_as_they_are_known(sent: str, flags: str) -> None:
    """Trace Context, 4.3: what goes out is of version 00, with the flags that this one knows."""
    trace = trace_of(told(sent))
    assert (trace.trace_id, trace.parent_id) == (TRACE, PARENT)
    assert trace.traceparent.endswith(f"-{flags}")
    assert trace.traceparent.startswith("00-")
    assert trace_id_of(told(sent)) == TRACE


INVALID = [
    "", "00", SENT.upper(), f"ff-{TRACE}-{PARENT}-01", f"00-{'0' * 32}-{PARENT}-01", f"00-{TRACE}-{'0' * 16}-01",
    f"{SENT}-more", f"{SENT}-", f"{SENT} ", f" {SENT}", f"{SENT}, {SENT}", f"00-{TRACE[1:]}-{PARENT}-01",
    f"0-{SENT[3:]}",
    f"00-{TRACE}-{PARENT}-1", f"00-{TRACE}-{PARENT}", f"cc-{TRACE}-{PARENT}-01what", f"00_{TRACE}_{PARENT}_01",
    f"{SENT}\n", SENT.replace("4", "g"), SENT.replace("f", "\N{FULLWIDTH DIGIT ONE}"),
]  # fmt: skip


@pytest.mark.parametrize("sent", INVALID)
def test_H151_an_invalid_traceparent_begins_a_new_trace(sent: str) -> None:
    """And its tracestate is dropped with it; nothing is answered."""
    trace = trace_of(told(sent, tracestate="a=1"))
    assert re.fullmatch("[0-9a-f]{32}", trace.trace_id)
    assert trace.trace_id != TRACE
    assert (trace.parent_id, trace.state, trace.is_sampled) == ("", "", False)
    assert trace_id_of(told(sent)) == ""
    assert begun(sent) is None


def test_H152_the_answer_has_the_span_that_the_function_sees() -> None:
    """Each request has another one."""
    spans = set()
    for _ in range(3):
        met = begun(SENT)
        assert met is not None
        span, headers = met
        trace = trace_of(told(SENT, **{SPAN: span}))
        assert headers == (("traceparent", trace.traceparent), ("traceresponse", trace.traceparent))
        assert trace.span_id == span
        spans.add(span)
    assert len(spans) == 3


def test_a_context_tells_of_its_trace_and_request() -> None:
    """It stays the same one; a nested call is a child of the function that calls."""
    context = Context(metadata=told(SENT, **{"X-Request-Id": "r-1"}))
    assert context.trace is context.trace
    assert context.trace.parent_id == PARENT
    assert context.request_id == "r-1"
    nested = Context(metadata=context.metadata)
    nested.caller = context
    assert (nested.trace.trace_id, nested.trace.parent_id) == (TRACE, context.trace.span_id)
    assert Context().request_id == ""
    assert Context().trace.parent_id == ""


def test_a_tracestate_of_any_length_is_no_burden() -> None:
    """What is beyond every limit is dropped."""
    assert trace_of(told(SENT, tracestate="a" * 8193)).state == ""


@given(st.text(alphabet="0123456789abcdefgF-, ", max_size=70), st.text(max_size=20))
def test_any_headers_make_a_trace(sent: str, state: str) -> None:
    """What goes out is valid, whatever came in."""
    headers = Headers({"traceparent": sent, "tracestate": state, SPAN: state})
    trace = trace_of(headers)
    assert isinstance(trace, Trace)
    assert trace_id_of(told(trace.traceparent)) == trace.trace_id
    met = begun(sent)
    for _, value in met[1] if met is not None else ():
        assert trace_id_of(told(value)) == trace_id_of(headers)


def test_spans_are_random() -> None:
    """No two are the same."""
    assert len({new_span() for _ in range(1000)}) == 1000
