r"""A relay to an OpenAI-compatible endpoint: it forwards conversations and streams answers. Needs `pip install httpx`.

OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_MODEL=llama3.2 python -m invoker functions.relay_openai:Relay
python -m invoker chat localhost:8081 --action relay
printf 'Who wrote Alice in Wonderland?\n' | python -m invoker call localhost:8081 --accept text/plain
curl -N -d 'Who wrote Alice in Wonderland?' localhost:8080/relay
"""

import base64
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self

import httpx

from invoker import Context, Message, Status, StatusError, function

ROLES = {"": "user", "user": "user", "model": "assistant", "assistant": "assistant", "system": "system"}
SETTINGS = ("model", "temperature", "top_p", "max_tokens", "seed", "stop", "presence_penalty", "frequency_penalty")
LARGEST_EVENT = 1024 * 1024

# How HTTP statuses of the endpoint are translated; other 4xx are errors of the caller, 5xx of the endpoint.
STATUSES = {
    401: Status.UNAUTHENTICATED,
    403: Status.PERMISSION_DENIED,
    404: Status.NOT_FOUND,
    408: Status.DEADLINE_EXCEEDED,
    429: Status.RESOURCE_EXHAUSTED,
    504: Status.DEADLINE_EXCEEDED,
}


@function(name="relay")
class Relay:
    """Keeps the connections to the endpoint.

    The operator sets the endpoint and the key by the variables OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL and
    OPENAI_TIMEOUT_S (the limit between two pieces of an answer). A caller's config can have the settings in `SETTINGS`.
    """

    def __init__(self) -> None:
        env = os.environ
        self._base_url = env.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
        self._model = env.get("OPENAI_MODEL") or "gpt-4o-mini"
        self._key = env.get("OPENAI_API_KEY", "")
        self._timeout_s = float(env.get("OPENAI_TIMEOUT_S") or 60)

    async def __aenter__(self) -> Self:
        self._client = httpx.AsyncClient(
            base_url=self._base_url,
            headers={"authorization": f"Bearer {self._key}"} if self._key else {},
            timeout=httpx.Timeout(self._timeout_s, connect=min(self._timeout_s, 10)),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def __call__(self, prompt: AsyncIterator[Message[Any]], ctx: Context) -> AsyncIterator[Message[str]]:
        """Answer a conversation by the endpoint's model, piece by piece."""
        asked = {"model": self._model, **settings(ctx), "messages": await conversation(prompt), "stream": True}
        async with aclosing(self._pieces(asked)) as pieces:
            async for piece in pieces:
                yield Message(piece, headers={"role": "model"}, media_type="text/plain")

    async def _pieces(self, asked: Mapping[str, Any]) -> AsyncGenerator[str, None]:
        """Yield the texts of an answer as they come; leaving the iteration closes the request.

        Raises:
            StatusError: The endpoint reported an error, which is quoted.
        """
        try:
            async with self._client.stream("POST", "chat/completions", json=asked) as response:
                if response.status_code != 200:
                    raise refusal(response.status_code, await response.aread())
                is_over = False
                async with aclosing(events(response.aiter_bytes())) as found:
                    async for data in found:
                        if data.strip() == "[DONE]":
                            return
                        piece, is_last = delta(data)
                        is_over |= is_last
                        if piece:
                            yield piece
                if not is_over:
                    raise StatusError(Status.UNAVAILABLE, "relay: the endpoint's answer broke off")
        except httpx.TimeoutException as error:
            what = "no connection" if isinstance(error, httpx.ConnectTimeout) else "silence"
            raise StatusError(Status.DEADLINE_EXCEEDED, f"relay: {what} for {self._timeout_s:g} s") from error
        except httpx.RemoteProtocolError as error:
            raise StatusError(Status.UNAVAILABLE, "relay: the endpoint's answer broke off") from error
        except httpx.TransportError as error:
            raise StatusError(Status.UNAVAILABLE, "relay: the endpoint cannot be reached") from error


def settings(ctx: Context) -> dict[str, Any]:
    """Read the caller's settings, in the form for the endpoint.

    Raises:
        StatusError: A setting is unknown.
    """
    said = {name: value for name, value in (ctx.config(dict) or {}).items() if name != "accept"}
    if unknown := sorted(set(said) - {*SETTINGS}):
        raise StatusError(Status.INVALID_ARGUMENT, f"relay: no setting {unknown[0]!r}; there are {', '.join(SETTINGS)}")
    # Numbers of a Struct are floats, but endpoints refuse 100.0 tokens.
    return {n: int(v) if isinstance(v, float) and v.is_integer() else v for n, v in said.items()}


async def conversation(prompt: AsyncIterator[Message[Any]]) -> list[dict[str, Any]]:
    """Convert leaves to chat messages; consecutive leaves with one role are parts of one message.

    Raises:
        StatusError: A leaf is neither text nor an image, or the prompt is empty.
    """
    made: list[dict[str, Any]] = []
    async for message in prompt:
        if "type=EndOfTurn" in message.media_type.replace(" ", ""):
            continue
        said = message.headers.get("role", "")
        if said not in ROLES:
            raise StatusError(Status.INVALID_ARGUMENT, f"relay: role {said!r} is none of user, model, system")
        if not made or made[-1]["role"] != ROLES[said]:
            made.append({"role": ROLES[said], "content": []})
        made[-1]["content"].append(_part(message))
    if not made:
        raise StatusError(Status.INVALID_ARGUMENT, "relay: the prompt is empty")
    for one in made:
        if len(one["content"]) == 1 and one["content"][0]["type"] == "text":
            one["content"] = one["content"][0]["text"]  # the form that every endpoint accepts
    return made


def _part(message: Message[Any]) -> dict[str, Any]:
    if isinstance(message.payload, str):
        return {"type": "text", "text": message.payload}
    if isinstance(message.payload, bytes) and message.media_type.startswith("image/"):
        content = base64.b64encode(message.payload).decode("ascii")
        return {"type": "image_url", "image_url": {"url": f"data:{message.media_type};base64,{content}"}}
    raise StatusError(Status.INVALID_ARGUMENT, f"relay: {message.media_type} cannot be sent; text and images can")


async def events(chunks: AsyncIterator[bytes]) -> AsyncGenerator[str, None]:
    """Yield the data of server-sent events; comments and other fields are skipped.

    Lines end with LF or CRLF only, since other line ends of Unicode may occur within JSON.

    Raises:
        StatusError: An event is larger than `LARGEST_EVENT`.
    """
    rest, data = b"", list[str]()
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            field, _, value = line.rstrip(b"\r").decode("utf-8", "replace").partition(":")
            if field == "data":
                data.append(value.removeprefix(" "))
            elif not field and not value and data:
                yield "\n".join(data)
                data = []
        if len(rest) + sum(map(len, data)) > LARGEST_EVENT:
            raise StatusError(Status.UNAVAILABLE, f"relay: the endpoint sent an event above {LARGEST_EVENT} bytes")
    if data:
        yield "\n".join(data)


def delta(data: str) -> tuple[str, bool]:
    """The text of one event, and whether it completes the answer.

    Raises:
        StatusError: The event is an error, or is not valid.
    """
    try:
        event = json.loads(data)
        if "error" in event:
            raise StatusError(Status.UNAVAILABLE, f"relay: the endpoint broke off: {_words(data.encode())}")
        choices = event.get("choices") or []
        if not choices:
            return "", False  # the event with the usage has no choices
        return choices[0].get("delta", {}).get("content") or "", choices[0].get("finish_reason") is not None
    except (ValueError, AttributeError, TypeError) as error:
        raise StatusError(Status.UNAVAILABLE, f"relay: the endpoint sent no chat event: {data[:80]!r}") from error


def refusal(code: int, body: bytes) -> StatusError:
    """Translate an error of the endpoint, and quote its text."""
    status = STATUSES.get(code, Status.INVALID_ARGUMENT if 400 <= code < 500 else Status.UNAVAILABLE)
    return StatusError(status, f"relay: the endpoint answered {code}: {_words(body)}")


def _words(body: bytes) -> str:
    try:
        said = json.loads(body)["error"]
        text = said["message"] if isinstance(said, dict) else str(said)
    except (ValueError, KeyError, TypeError):
        text = body.decode("utf-8", "replace").strip()
    return str(text)[:500] or "nothing"
