"""The relay as it is served, between a client of Evergreen sessions and a scripted endpoint."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from invoker.client import CallFailed, EvergreenSession
from invoker.testing import TestServer
from tests.functions.endpoint import SSE, WHOLE, Endpoint, chunk, said


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
