"""The relay, against a scripted endpoint on loopback."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager

import pytest
from google.protobuf import any_pb2, struct_pb2

from functions.relay_openai import LARGEST_EVENT, Relay, delta, events
from invoker import Context, Message, Status, StatusError
from invoker.protocols.evergreen.configs import ActionConfig
from invoker.testing import Harness
from tests.functions.endpoint import SSE, WHOLE, Endpoint, chunk, said


@asynccontextmanager
async def relay(monkeypatch, *script, key="", timeout_s=5.0):
    """A relay with a scripted endpoint behind it."""
    endpoint = Endpoint(script)
    async with endpoint.served() as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_MODEL", "small")
        monkeypatch.setenv("OPENAI_API_KEY", key)
        monkeypatch.setenv("OPENAI_TIMEOUT_S", str(timeout_s))
        async with Relay() as made:
            yield made, endpoint


async def prompt(*leaves):
    """A conversation."""
    for leaf in leaves:
        yield leaf


async def pieces(made, *leaves, ctx=None):
    """What the relay streams."""
    leaves = leaves or (said("Who wrote it?"),)
    return [message async for message in made(prompt(*leaves), ctx or Context())]


async def refused(made, *leaves, ctx=None):
    """How the relay fails."""
    with pytest.raises(StatusError) as failure:
        await pieces(made, *leaves, ctx=ctx)
    return failure.value


async def test_an_answer_streams_back(monkeypatch):
    """Pieces come as the endpoint sends them, with the role of a model; empty ones are left out."""
    async with relay(monkeypatch, *WHOLE) as (made, endpoint):
        found = await pieces(made)
    assert [one.payload for one in found] == ["It was ", "Carroll."]
    assert {(one.headers["role"], one.media_type) for one in found} == {("model", "text/plain")}
    line, fields, body = endpoint.requests[0]
    assert line == "POST /v1/chat/completions HTTP/1.1"
    assert "authorization" not in fields
    assert body == {"model": "small", "stream": True, "messages": [{"role": "user", "content": "Who wrote it?"}]}


async def test_the_first_piece_does_not_wait_for_the_second(monkeypatch):
    """A slow endpoint delays only what it has not said yet."""
    more = asyncio.Event()
    script = (SSE, chunk("one"), more, chunk("two"), chunk(finish="stop"))
    async with relay(monkeypatch, *script) as (made, _), aclosing(made(prompt(said("?")), Context())) as answer:
        assert (await anext(answer)).payload == "one"
        more.set()
        assert [one.payload async for one in answer] == ["two"]


async def test_the_key_is_sent(monkeypatch):
    """As a bearer token, and in no error."""
    async with relay(monkeypatch, b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n", key="sesame") as (made, endpoint):
        error = await refused(made)
    assert endpoint.requests[0][1]["authorization"] == "Bearer sesame"
    assert error.status is Status.UNAUTHENTICATED
    assert "sesame" not in str(error)


async def test_roles_and_parts(monkeypatch):
    """Leaves of one role are one message; user, model and system become user, assistant and system."""
    leaves = [
        said("Be brief.", "system"),
        said("What is this?"),
        said(b"\x89PNG", media_type="image/png"),
        said(b"", media_type="application/x-protobuf; type=EndOfTurn"),
        said("A cat.", "model"),
        said("And now?", ""),
    ]
    async with relay(monkeypatch, *WHOLE) as (made, endpoint):
        await pieces(made, *leaves)
    assert endpoint.requests[0][2]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
            ],
        },
        {"role": "assistant", "content": "A cat."},
        {"role": "user", "content": "And now?"},
    ]


@pytest.mark.parametrize(
    ("leaf", "named"),
    [
        (said(b"%PDF", media_type="application/pdf"), "application/pdf"),
        (said("x", "narrator"), "'narrator'"),
        (said(b"", media_type="application/x-protobuf; type=EndOfTurn"), "empty"),
    ],
)
async def test_what_cannot_be_sent_is_refused(monkeypatch, leaf, named):
    """Before anything is asked."""
    async with relay(monkeypatch, *WHOLE) as (made, endpoint):
        error = await refused(made, leaf)
    assert error.status is Status.INVALID_ARGUMENT
    assert named in str(error)
    assert endpoint.requests == []


def configured(config):
    """A context with a config."""
    struct, packed = struct_pb2.Struct(), any_pb2.Any()
    struct.update(config)
    packed.Pack(struct)
    return Context(configs=(ActionConfig(packed),))


async def test_configs_are_passed_on(monkeypatch):
    """Whole numbers stay whole; what a caller may not say is refused by name."""
    ctx = configured({"temperature": 0.5, "max_tokens": 100, "stop": ["."], "model": "large", "accept": {"a": "b"}})
    async with relay(monkeypatch, *WHOLE) as (made, endpoint):
        await pieces(made, ctx=ctx)
        error = await refused(made, ctx=configured({"base_url": "http://elsewhere/"}))
    asked = endpoint.requests[0][2]
    assert asked["model"] == "large"
    assert (asked["temperature"], asked["max_tokens"], asked["stop"]) == (0.5, 100, ["."])
    assert isinstance(asked["max_tokens"], int)
    assert "accept" not in asked
    assert error.status is Status.INVALID_ARGUMENT
    assert "'base_url'" in str(error)
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("code", "body", "status", "text"),
    [
        (400, b'{"error": {"message": "too long"}}', Status.INVALID_ARGUMENT, "answered 400: too long"),
        (404, b'{"error": "no such model"}', Status.NOT_FOUND, "answered 404: no such model"),
        (403, b'["x"]', Status.PERMISSION_DENIED, 'answered 403: ["x"]'),
        (429, b"slow down", Status.RESOURCE_EXHAUSTED, "answered 429: slow down"),
        (500, b"", Status.UNAVAILABLE, "answered 500: nothing"),
        (302, b"", Status.UNAVAILABLE, "answered 302: nothing"),
        (503, b"x" * 2000, Status.UNAVAILABLE, "answered 503: " + "x" * 500),
    ],
)
async def test_an_error_status_is_told(monkeypatch, code, body, status, text):
    """With the endpoint's own words, cut at 500 signs."""
    head = f"HTTP/1.1 {code} X\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    async with relay(monkeypatch, head, body) as (made, _):
        error = await refused(made)
    assert error.status is status
    assert str(error) == f"relay: the endpoint {text}"


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ([SSE, chunk("half")], "broke off"),
        ([SSE, chunk("half"), b'data: {"error": {"message": "out of memory"}}\n\n'], "broke off: out of memory"),
        ([SSE, b"data: {]\n\n"], "no chat event"),
        ([SSE, b"data: 7\n\n"], "no chat event"),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n", chunk("half")], "broke off"),
        ([b"nonsense\r\n\r\n"], "broke off"),
        ([SSE, b"data: " + b"x" * (LARGEST_EVENT + 1)], "above"),
    ],
)
async def test_a_broken_stream_is_no_answer(monkeypatch, script, text):
    """An answer that ends without its end fails, however it broke."""
    async with relay(monkeypatch, *script) as (made, _):
        error = await refused(made)
    assert error.status is Status.UNAVAILABLE
    assert text in str(error)


async def test_an_end_without_done_is_an_end(monkeypatch):
    """Some endpoints only say why they finished."""
    async with relay(monkeypatch, SSE, chunk("all"), chunk(finish="length")) as (made, _):
        assert [one.payload for one in await pieces(made)] == ["all"]


async def test_silence_is_a_deadline(monkeypatch):
    """An endpoint that says nothing for too long is given up, and the request is closed."""
    async with relay(monkeypatch, SSE, chunk("one"), asyncio.Event(), timeout_s=0.2) as (made, endpoint):
        error = await refused(made)
        await asyncio.wait_for(endpoint.left.wait(), 5)
    assert error.status is Status.DEADLINE_EXCEEDED
    assert str(error) == "relay: silence for 0.2 s"


async def test_nobody_there(monkeypatch):
    """A refused connection is told without an address."""
    async with Endpoint([]).served() as url:
        pass
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    async with Relay() as made:
        error = await refused(made)
    assert error.status is Status.UNAVAILABLE
    assert str(error) == "relay: the endpoint cannot be reached"


async def test_leaving_early_closes_the_request(monkeypatch):
    """Whether the answer is closed, or its task cancelled while it waits: the endpoint sees the end."""
    async with relay(monkeypatch, SSE, chunk("one"), asyncio.Event()) as (made, endpoint):
        async with aclosing(made(prompt(said("?")), Context())) as answer:
            assert (await anext(answer)).payload == "one"
        await asyncio.wait_for(endpoint.left.wait(), 5)
    async with relay(monkeypatch, SSE, asyncio.Event()) as (made, endpoint):
        waiting = asyncio.create_task(pieces(made))
        await asyncio.wait_for(endpoint.asked.wait(), 5)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait_for(endpoint.left.wait(), 5)


async def test_it_serves(monkeypatch):
    """Started, called and stopped as the server does it."""
    endpoint = Endpoint(WHOLE)
    async with endpoint.served() as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        harness = Harness("functions.relay_openai:Relay")
        assert harness.function.spec.name == "relay"
        result = await harness.ainvoke([Message("Who?", media_type="text/plain")], accept="text/plain")
    assert result.error is None
    assert result.values() == ["It was ", "Carroll."]


async def test_events_survive_any_split():
    """Comments, CRLF, several data lines, and line ends of Unicode inside of an event."""
    stream = ': hi\r\ndata: a\u2028b\r\ndata:c\r\n\r\nevent: x\nid: 1\n\ndata: {"d": "日"}\n\ndata: rest\n'.encode()

    async def split(size):
        for start in range(0, len(stream), size):
            yield stream[start : start + size]

    for size in (1, 2, 3, 7, len(stream)):
        assert [one async for one in events(split(size))] == ["a\u2028b\nc", '{"d": "日"}', "rest"]


def test_events_without_text():
    """The role at the beginning and the usage at the end say nothing."""
    assert delta('{"choices": [{"delta": {"role": "assistant", "content": null}, "finish_reason": null}]}') == (
        "",
        False,
    )
    assert delta('{"choices": [], "usage": {"total_tokens": 3}}') == ("", False)
    assert delta('{"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}') == ("x", True)
