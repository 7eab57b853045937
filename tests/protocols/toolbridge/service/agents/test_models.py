"""The language models of agents: an OpenAI-compatible endpoint, and a function."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

pytest.importorskip("dspy")

from dspy import lm15

from invoker.protocols.toolbridge.service.agents.models import MOST_CHARACTERS, Endpoint, FunctionModel, Nowhere
from tests.protocols.toolbridge.service.agents.endpoints import Chat, reply

REQUEST = lm15.Request(model="anthropic/gpt-5:x", messages=(lm15.Message.user("hi"),), system="be kind")


async def asked(chat: Chat, *, key: str = "sk-secret", timeout_s: float = 5.0, delays_s: Any = (0.0, 0.0)) -> Any:
    """What the endpoint answers to one request."""
    endpoint = Endpoint(chat.url, key, timeout_s, delays_s, lambda _: None)
    try:
        return (await endpoint.complete(REQUEST)).message.text
    finally:
        await endpoint.aclose()


async def test_T137_it_asks_the_operators_url_whatever_the_model_is_called() -> None:
    with Chat("hello") as chat:
        assert await asked(chat) == "hello"
    ((path, headers, body),) = chat.asked
    assert path == "/v1/chat/completions"
    assert headers["authorization"] == "Bearer sk-secret"
    assert body["model"] == "anthropic/gpt-5:x"
    assert "be kind" in str(body["messages"])


async def test_T139_keys_of_the_environment_for_other_things_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    with Chat("hello") as chat:
        await asked(chat, key="")
    assert "sk-other" not in str(chat.asked)


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_T145_it_is_asked_again_twice(status: int) -> None:
    with Chat(status, status, "hello") as chat:
        assert await asked(chat) == "hello"
    assert len(chat.asked) == 3


@pytest.mark.parametrize("status", [429, 500])
async def test_T145_then_it_has_failed(status: int) -> None:
    with Chat(status) as chat, pytest.raises(lm15.LM15Error) as caught:
        await asked(chat)
    assert len(chat.asked) == 3
    assert caught.value.status == status


@pytest.mark.parametrize("status", [400, 401, 404])
async def test_T139_T145_other_errors_are_final_and_their_text_goes_nowhere(status: int) -> None:
    """The endpoint repeats the key in its error."""
    with Chat(status) as chat, pytest.raises(lm15.LM15Error) as caught:
        await asked(chat)
    assert len(chat.asked) == 1
    assert "sk-secret" not in repr(caught.value) + str(caught.value)
    assert caught.value.__cause__ is None


async def test_T145_the_delays_are_waited_for() -> None:
    with Chat(500, "hello") as chat:
        began = time.monotonic()
        await asked(chat, delays_s=(0.2,))
    assert time.monotonic() - began >= 0.2


def cut(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


async def test_T145_a_broken_connection_is_tried_again() -> None:
    with Chat(cut, "hello") as chat:
        assert await asked(chat) == "hello"


async def test_T145_nobody_listens() -> None:
    with Chat("hello") as chat:
        pass
    with pytest.raises(lm15.TransportError):
        await asked(chat)


async def test_T145_a_slow_endpoint_is_given_up() -> None:
    stop = threading.Event()
    with Chat(lambda _: stop.wait(5)) as chat:
        try:
            with pytest.raises(lm15.TimeoutError):
                await asked(chat, timeout_s=0.1)
            assert len(chat.asked) == 3
        finally:
            stop.set()


@pytest.mark.parametrize(
    "body", [b"", b"garbage", b"[]", b"{}", b'{"choices": []}', b'{"choices": [{"message": 1}]}', b"\xff"]
)
async def test_T145_garbage_is_an_error(body: bytes) -> None:
    with Chat(lambda handler: reply(handler, 200, body)) as chat, pytest.raises(lm15.LM15Error):
        await asked(chat)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_T137_a_redirect_is_not_followed(status: int) -> None:
    """A listed endpoint cannot send this server, and the key, to an internal address."""
    with Chat("inside") as inside:
        go = f"{inside.url}/chat/completions"
        with Chat(lambda handler: reply(handler, status, b"{}", location=go)) as chat, pytest.raises(lm15.LM15Error):
            await asked(chat)
        assert inside.asked == []


async def test_T149_a_cancel_asks_nothing_again() -> None:
    stop = threading.Event()
    with Chat(lambda _: stop.wait(5)) as chat:
        try:
            task = asyncio.ensure_future(asked(chat))
            await asyncio.to_thread(chat.came.wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert len(chat.asked) == 1
        finally:
            stop.set()


async def of(function: Callable[[list[dict[str, str]]], Any]) -> Any:
    """What a function answers."""
    model = FunctionModel(function, lambda _: None)
    try:
        return (await model.complete(REQUEST)).message.text
    finally:
        await model.aclose()


async def test_a_function_gets_the_messages() -> None:
    assert await of(str) == str([{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}])


async def test_a_sync_function_runs_in_a_thread_and_an_async_one_on_the_loop() -> None:
    async def here(messages: list[dict[str, str]]) -> str:
        return threading.current_thread().name

    assert await of(here) == threading.current_thread().name
    assert (await of(lambda _: threading.current_thread().name)).startswith("llm")


async def test_a_function_that_fails_tells_its_class_only() -> None:
    def fail(_: Any) -> str:
        raise KeyError("sk-secret")

    with pytest.raises(lm15.ProviderError, match="KeyError") as caught:
        await of(fail)
    assert "sk-secret" not in str(caught.value)
    with pytest.raises(lm15.ProviderError, match="int"):
        await of(lambda _: 5)


@pytest.mark.parametrize("more", [0, 1, 1_200_000])
async def test_T145_an_answer_that_takes_long_to_read_is_an_error(more: int) -> None:
    """Of either kind of model, one character above the most; 1.2 MB took DSPy 15 s, in which nobody else was served."""
    text = "x" * (MOST_CHARACTERS + more)

    async def said(_messages: list[dict[str, str]]) -> str:
        return text

    model = FunctionModel(said, lambda _: None)
    with Chat(text) as chat:
        for answer in (asked(chat), model.complete(REQUEST)):
            if more:
                with pytest.raises(lm15.ProviderError, match=f"{len(text)} characters and exceeds the limit of 65536"):
                    await answer
            else:
                found = await answer
                assert (found if isinstance(found, str) else found.message.text) == text
        assert len(chat.asked) == 1


def test_agents_never_block() -> None:
    with pytest.raises(lm15.ConfigurationError):
        Nowhere().complete(REQUEST)
