"""`invoker.protocols.typed.service.web`: Connect and gRPC-Web on both carriers of the HTTP transport."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from invoker import function
from invoker.author.prepare import prepare_function
from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.protocols.typed.calls import calls_of
from invoker.protocols.typed.envelopes import END, Envelopes, envelope
from invoker.server.server import Server
from invoker.server.table import TABLE
from tests.conftest import SLOW

LEFT = threading.Event()
GO = threading.Event()


@function(safe=True)
def add(a: int, b: int = 5) -> int:
    return a + b


def spell(word: str) -> Iterator[str]:
    for sign in word:
        if sign == "!":
            raise RuntimeError("too loud")
        yield sign


def wait(word: str) -> Iterator[str]:
    yield word
    assert GO.wait(20)
    yield "went"


async def forever(word: str) -> AsyncIterator[str]:
    try:
        yield word
        await asyncio.sleep(60)
    finally:
        LEFT.set()


def total(xs: Iterator[int]) -> int:
    return sum(xs)


async def echo(words: AsyncIterator[str]) -> AsyncIterator[str]:
    async for word in words:
        yield word


def kind(value: Any) -> str:
    return type(value).__name__


def kinds(values: Iterator[Any]) -> Iterator[str]:
    for value in values:
        yield type(value).__name__


FUNCTIONS = (add, spell, wait, forever, total, echo, kind, kinds)
PATHS = {one.spec.name: one.path for one in calls_of([prepare_function(one).spec for one in FUNCTIONS])}


@pytest.fixture(params=["1.1", "2"])
async def client(request) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server, over each version of HTTP."""
    few = {
        "high_frames": 64,
        "hard_frames": 512,
        "max_containers": 9000,
    }  # so that a piece of a body may have more messages than may wait
    config = TABLE.configured(host="127.0.0.1", grpc_port=0, port=0, protocols=("http", "typed"), **few)
    server = Server(config, Catalog([prepare_function(one).function for one in FUNCTIONS]), builtin(entry_points=False))
    await server.start()
    GO.clear()
    LEFT.clear()
    is_2 = request.param == "2"
    async with httpx.AsyncClient(
        base_url=f"http://{server.http_address}", http1=not is_2, http2=is_2, trust_env=False, timeout=5 * SLOW
    ) as made:
        yield made
    GO.set()
    await server.stop(drain_s=1)


def messages(body: bytes) -> list[tuple[int, bytes]]:
    """The messages of a body."""
    return Envelopes(10_000).feed(body)


async def post(client, name: str, content_type: str, body: bytes, **headers: str) -> httpx.Response:
    """Call a method."""
    return await client.post(PATHS[name], content=body, headers={"Content-Type": content_type, **headers})


async def test_H110_unary_calls(client):
    """In both forms; the body may be packed, and so may the response."""
    answer = await post(client, "add", "application/json", b'{"a": 1}')
    assert (answer.status_code, answer.headers["content-type"], answer.json()) == (
        200,
        "application/json",
        {"out": "6"},
    )
    answer = await post(client, "add", "application/proto", b"\x08\x01\x10\x02")
    assert (answer.headers["content-type"], answer.content) == ("application/proto", b"\x08\x03")


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(
    ("value", "said"),
    [(b"[" * 50_000 + b"]" * 50_000, "recursion"), (b"[" + b",".join([b"[]"] * 9000) + b"]", "INVOKER_MAX_CONTAINERS")],
)
async def test_H111_json_that_is_nested_or_has_too_many_containers_is_refused(client, is_stream, value, said):
    """As everywhere: the caller's fault, and no error of ours in the log; what is just below passes."""
    for content, is_refused in ((value, True), (b"[" + b",".join([b"[]"] * 8900) + b"]", False)):
        body = b'{"%b": %b}' % (b"values" if is_stream else b"value", content)
        if is_stream:
            answer = await post(client, "kinds", "application/connect+json", envelope(body))
            _, end = messages(answer.content)[-1]
            error = json.loads(end).get("error", {})
        else:
            answer = await post(client, "kind", "application/json", body)
            assert answer.status_code == (400 if is_refused else 200)
            error = answer.json() if is_refused else {}
        assert error.get("code", "") == ("invalid_argument" if is_refused else "")
        assert said in error.get("message", said)


async def test_H111_errors_of_unary_calls(client):
    """A status of HTTP, and JSON."""
    answer = await post(client, "add", "application/json", b'{"a": "x"}')
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_argument")
    assert "parameter 'a'" in answer.json()["message"]


async def test_H113_a_safe_function_by_get(client):
    """With the message in the query."""
    query = {"encoding": "json", "message": json.dumps({"a": 2}), "connect": "v1"}
    answer = await client.get(PATHS["add"], params=query)
    assert answer.json() == {"out": "7"}
    assert (await client.get(PATHS["spell"], params=query)).status_code == 405


async def test_H110_responses_stream(client):
    """The first message is here while the function waits."""
    headers = {"Content-Type": "application/connect+json"}
    async with client.stream("POST", PATHS["wait"], content=envelope(b'{"word":"a"}'), headers=headers) as answer:
        pieces, reader = answer.aiter_bytes(), Envelopes(1000)
        found = reader.feed(await anext(pieces))
        assert found == [(0, b'{"out": "a"}')]
        GO.set()
        async for piece in pieces:
            found += reader.feed(piece)
    assert found[1:] == [(0, b'{"out": "went"}'), (END, b"{}")]


async def test_H111_an_error_ends_a_stream(client):
    """Behind what was given."""
    answer = await post(client, "spell", "application/connect+json", envelope(b'{"word":"a!"}'))
    first, last = messages(answer.content)
    assert (answer.status_code, first) == (200, (0, b'{"out": "a"}'))
    assert json.loads(last[1])["error"]["code"] == "unknown"


async def test_H112_grpc_web(client):
    """Every shape whose requests are here before responses are read."""
    body = envelope(b"\x08\x01") + envelope(b"\x08\x02")
    answer = await post(client, "total", "application/grpc-web+proto", body)
    assert messages(answer.content) == [(0, b"\x08\x03"), (128, b"grpc-status: 0\r\n")]
    answer = await post(client, "spell", "application/grpc-web", envelope(b"\x0a\x02a!"))
    assert messages(answer.content)[0] == (0, b"\x0a\x01a")
    assert messages(answer.content)[1][1].startswith(b"grpc-status: 2\r\ngrpc-message: ")


async def test_H110_requests_stream_while_responses_leave(client):
    """Each message is answered before the next one is sent; over HTTP/1.1, whose chunks are written by hand."""
    address = client.base_url
    reader, writer = await asyncio.open_connection(address.host, address.port)
    head = f"POST {PATHS['echo']} HTTP/1.1\r\nHost: {address.host}:{address.port}\r\nTransfer-Encoding: chunked\r\n"
    writer.write(f"{head}Content-Type: application/connect+json\r\n\r\n".encode())
    for word in ("a", "b"):
        message = envelope(json.dumps({"words": word}).encode())
        writer.write(b"%x\r\n%b\r\n" % (len(message), message))
        await reader.readuntil(envelope(json.dumps({"out": word}).encode()))
    writer.write(b"0\r\n\r\n")
    await reader.readuntil(envelope(b"{}", END))
    writer.close()
    await writer.wait_closed()


async def test_H110_many_small_messages_are_taken_as_the_function_reads_them(client):
    """Also where a piece of the body has more of them than may wait."""
    body = envelope(b"\x08\x01") * 100_000
    answer = await post(client, "total", "application/connect+proto", body)
    assert messages(answer.content)[0] == (0, b"\x08\xa0\x8d\x06")


async def test_H114_the_deadline_of_the_caller_ends_a_call(client):
    """With what was given before."""
    limit = {"Connect-Timeout-Ms": f"{200 * SLOW:.0f}"}
    answer = await post(client, "forever", "application/connect+json", envelope(b'{"word":"a"}'), **limit)
    first, last = messages(answer.content)
    assert first[1] == b'{"out": "a"}'
    assert json.loads(last[1])["error"]["code"] == "deadline_exceeded"
    assert await asyncio.to_thread(LEFT.wait, 10)


async def test_H114_the_limit_of_http_ends_a_call():
    """Also one without a deadline of its own; the session of another carrier is no concern of it."""
    given = {"protocols": ("http", "typed"), "http_timeout_s": 0.2 * SLOW}
    config = TABLE.configured(host="127.0.0.1", grpc_port=0, port=0, **given)
    server = Server(config, Catalog([prepare_function(forever).function]), builtin(entry_points=False))
    await server.start()
    LEFT.clear()
    async with httpx.AsyncClient(base_url=f"http://{server.http_address}", trust_env=False, timeout=5 * SLOW) as client:
        path = calls_of([prepare_function(forever).spec])[0].path
        headers = {"Content-Type": "application/connect+json"}
        answer = await client.post(path, content=envelope(b'{"word":"a"}'), headers=headers)
        assert json.loads(messages(answer.content)[-1][1])["error"]["code"] == "deadline_exceeded"
    assert await asyncio.to_thread(LEFT.wait, 10)
    await server.stop(drain_s=1)


async def test_H110_a_client_that_leaves_cancels_the_function(client):
    """Its `finally` runs."""
    headers = {"Content-Type": "application/connect+json"}
    async with client.stream("POST", PATHS["forever"], content=envelope(b'{"word":"a"}'), headers=headers) as answer:
        await anext(answer.aiter_bytes())
    await client.aclose()  # over HTTP/2 this client resets no stream
    assert await asyncio.to_thread(LEFT.wait, 10)


async def test_paths_of_no_method_belong_to_others(client):
    """As before."""
    service = PATHS["add"].rpartition("/")[0]
    assert (await post_to(client, f"{service}/Nope")).status_code == 404
    assert (await client.post("/add", content=b'{"a": 1}', headers={"Content-Type": "application/json"})).text == "6"


async def post_to(client, path: str) -> httpx.Response:
    """A request for any path."""
    return await client.post(path, content=b"{}", headers={"Content-Type": "application/json"})


@pytest.mark.parametrize("content_type", ["application/json", "application/connect+json", "text/plain"])
async def test_H110_pages_of_strangers_call_nothing(client, content_type):
    """Nor does a name that somebody made point here; not even a safe function answers."""
    for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        for name in ("add", "spell"):
            answer = await post(client, name, content_type, b'{"a": 1}', **headers)
            assert answer.status_code == 403
        query = {"encoding": "json", "message": "{}"}
        assert (await client.get(PATHS["add"], params=query, headers=headers)).status_code == 403
