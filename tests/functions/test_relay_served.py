"""The relay as it is served, between a client of Evergreen sessions and a scripted endpoint."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from invoker.client import CallFailed, EvergreenSession
from tests.functions.endpoint import SSE, WHOLE, Endpoint, chunk, said
from tests.serving import TestServer, forked_python

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "openai-compatible-endpoint.md"


@asynccontextmanager
async def served(monkeypatch, *script):
    """A server of the relay with a scripted endpoint behind it."""
    endpoint = Endpoint(script)
    async with endpoint.served() as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "")
        server = await asyncio.to_thread(TestServer, "functions.relay_openai:Relay")
        try:
            yield server, endpoint
        finally:
            assert await asyncio.to_thread(server.close) == 0


@pytest.mark.timeout(30)
async def test_a_session_holds_a_conversation(monkeypatch):
    """The second request has the whole conversation, of which the client sent one question."""
    async with served(monkeypatch, *WHOLE) as (server, endpoint), EvergreenSession(server.grpc) as session:
        first = session.act("relay", {"prompt": said("Who?")}, configs=[{"temperature": 0}])
        assert await first.text() == "It was Carroll."
        again = session.act("relay", {"prompt": [first.inputs["prompt"], first.output, said("When?")]})
        assert await again.text() == "It was Carroll."
    assert endpoint.requests[0][2]["temperature"] == 0
    assert endpoint.requests[1][2]["messages"] == [
        {"role": "user", "content": "Who?"},
        {"role": "assistant", "content": "It was Carroll."},
        {"role": "user", "content": "When?"},
    ]


@pytest.mark.timeout(30)
async def test_a_client_that_goes_away_closes_the_request(monkeypatch):
    """The endpoint sees the end, whether the action was cancelled or the session is gone."""
    script = (SSE, chunk("one"), asyncio.Event())
    async with served(monkeypatch, *script) as (server, endpoint):
        async with EvergreenSession(server.grpc, extensions=("cancel",)) as session:
            answer = session.act("relay", {"prompt": said("Who?")})
            pieces = aiter(answer)
            assert await anext(pieces) == "one"
            answer.cancel()
            await asyncio.wait_for(endpoint.left.wait(), 5)
            with pytest.raises(CallFailed):
                await anext(pieces)
        endpoint.left.clear()
        async with EvergreenSession(server.grpc) as session:
            assert await anext(aiter(session.act("relay", {"prompt": said("Who?")}))) == "one"
            session.cancel()
        await asyncio.wait_for(endpoint.left.wait(), 5)


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("accept", "first"),
    [("text/event-stream", b"id: 1\ndata: one\n\n"), ("application/x-ndjson", b'"one"\n'), ("*/*", b"one")],
)
async def test_the_first_piece_comes_before_the_last(monkeypatch, accept, first):
    """Over HTTP: the endpoint says the rest only when the first piece has been read."""
    goes_on = asyncio.Event()
    headers = {"Content-Type": "text/plain", "Accept": accept}
    async with (
        served(monkeypatch, SSE, chunk("one"), goes_on, chunk(" two"), chunk("", "stop")) as (server, _),
        httpx.AsyncClient(trust_env=False) as client,
        client.stream("POST", f"http://{server.http}/relay", content=b"Who?", headers=headers) as response,
    ):
        pieces = response.aiter_bytes()
        assert await anext(pieces) == first
        goes_on.set()
        assert b" two" in b"".join([piece async for piece in pieces])


@pytest.mark.timeout(60)
async def test_the_commands_of_the_page_work(monkeypatch):
    """Chat with a system text and a config, a riff call, and curl; the answer is the endpoint's each time."""
    blocks = re.findall(r"^```sh elsewhere\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    commands = [line for text in blocks[1:] for line in text.splitlines()]
    assert [("chat" in line, " call " in line, "curl" in line).index(True) for line in commands] == [0, 1, 2]
    async with served(monkeypatch, *WHOLE) as (server, endpoint):
        there = {"localhost:8081": server.grpc, "localhost:8080": server.http}
        there |= {"python -m": f"{forked_python()} -m", "curl": "curl -s"}
        for command in commands:
            line = re.sub("|".join(there), lambda found: there[found[0]], command)
            process = await asyncio.create_subprocess_shell(
                line, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
            said, _ = await process.communicate(b"Who wrote it?\n")
            assert process.returncode == 0
            assert said.decode().replace("\n", "") == "It was Carroll."
    chat, call, curl = (body for _, _, body in endpoint.requests)
    assert chat["temperature"] == 0.2
    assert [(one["role"], one["content"]) for one in chat["messages"]] == [
        ("system", "Be brief."),
        ("user", "Who wrote it?"),
    ]
    assert call["messages"] == curl["messages"] == [{"role": "user", "content": "Who wrote Alice in Wonderland?"}]
