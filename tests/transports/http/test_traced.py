"""`invoker.transports.http.traced`: the client is told the span that its function sees."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from invoker.context import Context
from invoker.core.http import RequestHead, Response
from invoker.traces import SPAN
from invoker.transports.http.app import Handler
from invoker.transports.http.exchange import Exchange
from invoker.transports.http.traced import traced
from tests.transports.served import Served

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SENT = f"00-{TRACE}-{PARENT}-01"


def span(ctx: Context) -> str:
    return f"{ctx.trace.traceparent} {ctx.trace.parent_id} {ctx.trace.state} {ctx.request_id}"


async def span_later(ctx: Context) -> str:
    return span(ctx)


class StoreChanged:
    """A handler that answers a GET."""

    def answer(self, exchange: Exchange) -> Awaitable[Response]:
        async def answer() -> Response:
            return Response(200, (), exchange.head.value(SPAN).encode())

        return answer()


def handler(path: str) -> Handler | None:
    return StoreChanged() if path == "/told" else None


def test_a_head_without_trace_is_left_as_it_is() -> None:
    """So is one whose trace is not valid; it keeps even a span that a client says, which means nothing then."""
    for headers in ([], [("traceparent", "00-1-2-3")], [("traceparent", SENT), ("traceparent", SENT)]):
        head = RequestHead("GET", "/", headers=headers)
        assert traced(head) == (head, ())
        assert traced(head)[0] is head


def test_H152_a_client_cannot_choose_the_span() -> None:
    """What it says of it is dropped."""
    head = RequestHead("GET", "/", headers=[("traceparent", SENT), (SPAN, "f" * 16), ("a", "b")])
    seen, told = traced(head)
    assert seen.headers[:2] == [("traceparent", SENT), ("a", "b")]
    assert (
        told[0]
        == ("traceparent", f"00-{TRACE}-{dict(seen.headers)[SPAN]}-01")
        != ("traceparent", f"00-{TRACE}-{'f' * 16}-01")
    )


@pytest.mark.parametrize("ops", ["thread", "loop", "http2"])
async def test_H152_responses_say_what_the_function_sees(ops: str) -> None:
    """On each carrier; the same head has another span each time. Without a trace, nothing is said."""
    function: Any = span if ops == "thread" else span_later
    headers = {"traceparent": SENT, "tracestate": "a=1", "X-Request-Id": "r-1", "Accept": "text/plain"}
    async with Served.at(function) as served, served.client(http2=ops == "http2") as client:
        spans = set()
        for _ in range(3):
            got = await client.post("/", headers=headers)
            assert got.text.split(" ") == [got.headers["traceparent"], PARENT, "a=1", "r-1"]
            assert got.headers["traceresponse"] == got.headers["traceparent"] != SENT
            spans.add(got.headers["traceparent"])
        assert len(spans) == 3
        for sent in ({}, {"traceparent": SENT.replace("00-", "ff-", 1)}):
            got = await client.post("/", headers={**sent, "Accept": "text/plain"})
            assert not {"traceparent", "traceresponse"} & set(got.headers)
            assert TRACE not in got.text


@pytest.mark.parametrize("http2", [False, True])
async def test_H152_streams_errors_and_other_handlers_say_it_too(http2: bool) -> None:
    """Whatever answers."""
    async with Served.at(span_later, handler=handler) as served, served.client(http2=http2) as client:
        accept = {"traceparent": SENT, "Accept": "application/x-ndjson"}
        got = await client.post("/", headers=accept)
        assert got.json().split(" ")[0] == got.headers["traceparent"]
        got = await client.get("/told", headers={"traceparent": SENT})
        assert got.headers["traceparent"] == f"00-{TRACE}-{got.text}-01"
        for path in ("/nobody", "/livez"):
            assert TRACE in (await client.get(path, headers={"traceparent": SENT})).headers["traceparent"]
        got = await client.get("/", headers={"traceparent": SENT, "Origin": "https://example.org"})
        assert (got.status_code, TRACE in got.headers["traceparent"]) == (403, True)


IDS = [("r-1", True), ("!~" * 64, True), ("!~" * 64 + "x", False), ("a b", False), ("", False), ("\xe4", False)]


@pytest.mark.parametrize(("sent", "is_taken"), IDS)
@pytest.mark.parametrize("ops", ["thread", "loop", "http2"])
async def test_H153_a_request_keeps_its_name(ops: str, sent: str, is_taken: bool) -> None:
    """At most 128 visible ASCII characters are answered as they came, and known to the function; others to nobody."""
    function: Any = span if ops == "thread" else span_later
    async with Served.at(function, handler=handler) as served, served.client(http2=ops == "http2") as client:
        ids = {"X-Request-Id": sent.encode("latin-1")}
        for path, accept in (("/", "text/plain"), ("/", "application/x-ndjson"), ("/told", "*/*"), ("/no", "*/*")):
            got = await client.post(path, headers={**ids, "Accept": accept})
            assert got.headers.get("x-request-id") == (sent if is_taken else None)
            if path == "/":
                assert got.text.strip(' "\n').endswith(f" {sent}" if is_taken else "-02")


def test_H153_two_names_are_none() -> None:
    """Nobody could tell which one is meant."""
    head = RequestHead("GET", "/", headers=[("x-request-id", "a"), ("x-request-id", "b")])
    assert traced(head) == (head, ())
