"""The text generator as it is served: one function for Evergreen sessions, riff calls and HTTP requests."""

from __future__ import annotations

import urllib.request

import pytest

from invoker import Message
from invoker.client import CallFailed, EvergreenSession
from invoker.errors import Status
from tests.serving import TestServer, run


@pytest.fixture(scope="module")
def server():
    """Serves the generator."""
    made = TestServer("functions.generate:generate")
    yield made
    assert made.close() == 0


def said(text, **headers):
    """What a user says."""
    return Message(text, headers={"role": "user", **headers}, media_type="text/plain")


async def test_a_conversation_reuses_its_nodes(server):
    """Each turn sends its question only; the answer to the last one quotes what was said in the others."""
    async with EvergreenSession(server.grpc) as session:
        first = session.act("generate", {"prompt": said("My name is Ada. Who stole the tarts?")}, configs=[{"seed": 1}])
        text = await first.text()
        assert "tarts" in text.lower() or "stole" in text
        turns = [first.inputs["prompt"], first.output]
        second = session.act("generate", {"prompt": [*turns, said("What did you say?")]})
        assert await second.text() == f'I said: "{text}"'
        third = session.act(
            "generate", {"prompt": [second.inputs["prompt"], second.output, said("What did I say first?")]}
        )
        assert await third.text() == 'You first said: "My name is Ada. Who stole the tarts?"'


async def test_an_answer_is_one_leaf_of_the_model_in_pieces(server):
    """A fragment a token, with the role of a model on the first."""
    async with EvergreenSession(server.grpc) as session:
        answer = session.act("generate", {"prompt": said("the Queen")}, configs=[{"seed": 2, "max_tokens": 9}])
        pieces = [piece async for piece in answer]
        again = session.act("generate", {"prompt": said("the Queen")}, configs=[{"seed": 2, "max_tokens": 9}])
        (whole,) = [message async for message in again.messages()]
    assert len(pieces) > 1
    assert whole.payload == "".join(pieces)
    assert whole.headers["role"] == "model"
    assert whole.media_type == "text/plain"


async def test_any_file_may_be_attached(server):
    """Text or not: it is named with its size."""
    image = Message(b"\x89PNG", headers={"role": "user", "original-file-name": "cat.png"}, media_type="image/png")
    async with EvergreenSession(server.grpc) as session:
        answer = session.act("generate", {"prompt": [said("Look!"), image]})
        assert (await answer.text()).startswith("I have read cat.png (4 bytes).")


async def test_a_bad_config_is_told(server):
    """The session ends with the function's own words."""
    with pytest.raises(CallFailed, match="temperature") as refused:
        async with EvergreenSession(server.grpc) as session:
            await session.act("generate", {"prompt": said("hello")}, configs=[{"temperature": 9}]).text()
    assert refused.value.status is Status.INVALID_ARGUMENT


def test_riff_and_http_get_the_same_answer(server):
    """Token by token over both."""
    done = run("call", server.grpc, "--accept", "text/plain", stdin=b"I am late\nWhat did I say first?\n")
    assert done.stdout.decode().splitlines() == ["You", " first", " said:", ' "I', " am", ' late"']
    request = urllib.request.Request(
        f"http://{server.http}/generate",
        data=b"What did I say first?",
        headers={"content-type": "text/plain", "x-config": '{"seed": 1}'},
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        assert response.read() == b"You have said nothing before."


@pytest.mark.parametrize(
    ("accept", "first"),
    [("text/event-stream", b"id: 1\ndata: You\n\n"), ("application/x-ndjson", b'"You"\n'), ("*/*", b"You")],
)
def test_the_first_piece_comes_before_the_last(server, accept, first):
    """Whoever asks for a stream, and whoever asks for nothing; nobody waits for the second one, which takes minutes."""
    request = urllib.request.Request(
        f"http://{server.http}/generate",
        data=b"What did I say first?",
        headers={"content-type": "text/plain", "accept": accept, "x-config": '{"seed": 1, "tokens_per_second": 0.01}'},
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        assert response.read1(len(first)) == first
