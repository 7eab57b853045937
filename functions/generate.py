r"""A text generator: it reads a conversation, and streams an answer token by token.

python -m invoker functions.generate:generate
python -m invoker chat localhost:8081 --action generate
printf 'Who stole the tarts?\n' | python -m invoker call localhost:8081 --accept text/plain
curl -N -d 'Who stole the tarts?' localhost:8080/generate
curl -N -d 'Who stole the tarts?' -H 'Accept: text/event-stream' localhost:8080/generate

The model is an n-gram model of one book, so its answers are nonsense about the words of the question; later answers
also use words of earlier turns. It can quote earlier questions, answers and names of attached files.
"""

import asyncio
import functools
import json
import random
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec

from functions.text.ngram import Ngrams, render
from invoker import Context, Message, Status, StatusError, function

END_OF_TURN = "type=EndOfTurn"


class Settings(msgspec.Struct, forbid_unknown_fields=True):
    """The settings in a config of an action, or in the header ``x-config`` (JSON) if the protocol has no configs."""

    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] = 0.7
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 120
    seed: int | None = None
    stop: str | list[str] = msgspec.field(default_factory=list)
    tokens_per_second: Annotated[float, msgspec.Meta(ge=0)] = 0
    stream: bool = True

    @property
    def stops(self) -> list[str]:
        """The stop texts; the answer ends before the first of them."""
        return [text for text in ([self.stop] if isinstance(self.stop, str) else self.stop) if text]


@dataclass
class Turn:
    """The messages of one side until the other side answers; ``files`` are names with sizes in bytes."""

    role: str
    texts: list[str] = field(default_factory=list)
    files: list[tuple[str, int]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The whole text of the turn."""
        return " ".join(self.texts)


@functools.cache
def model() -> Ngrams:
    """Train the model, once per process, when the function starts."""
    return Ngrams.load()


@function(init=model)
async def generate(prompt: AsyncIterator[Message[Any]], ctx: Context) -> AsyncIterator[Message[str]]:
    """Answer the last turn of a conversation, with regard to the earlier turns."""
    said = settings(ctx)
    turns = await conversation(prompt)
    # A seed determines the answer to a conversation, but different turns get different answers.
    rng = random.Random() if said.seed is None else random.Random(f"{said.seed} {len(turns)}")
    tokens = until_stop(limited(answer(model(), turns, rng, said.temperature), said.max_tokens), said.stops)
    if not said.stream:
        tokens = iter(["".join(tokens)])
    for token in tokens:
        yield Message(token, headers={"role": "model"}, media_type="text/plain")
        await asyncio.sleep(1 / said.tokens_per_second if said.tokens_per_second else 0)


def settings(ctx: Context) -> Settings:
    """Read the caller's settings.

    Raises:
        StatusError: INVALID_ARGUMENT: a setting is invalid; the text names it.
    """
    try:
        said = ctx.config(dict) or json.loads(ctx.metadata.get("x-config", "{}"))
        if isinstance(said, dict):  # numbers of a Struct are floats; "accept" is for the server
            said = {name: _whole(value) for name, value in said.items() if name != "accept"}
        return msgspec.convert(said, Settings)
    except ValueError as error:
        raise StatusError(Status.INVALID_ARGUMENT, f"generate: bad config: {error}") from None


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


async def conversation(prompt: AsyncIterator[Message[Any]]) -> list[Turn]:
    """Split a prompt into turns: consecutive leaves with the same role, up to an end of turn.

    A message without a role is a turn of its own, so the lines of a riff call are also a conversation.
    """
    turns: list[Turn] = []
    is_open = False
    async for message in prompt:
        role = message.headers.get("role", "")
        if END_OF_TURN in message.media_type.replace(" ", ""):
            is_open = False
            continue
        if not is_open or turns[-1].role != role:
            turns.append(Turn(role or "user"))
        is_open = bool(role)
        payload = message.payload
        is_text = not isinstance(payload, bytes | bytearray)
        if name := message.headers.get("original-file-name"):
            turns[-1].files.append((name, len(str(payload).encode() if is_text else payload)))
        if is_text:
            turns[-1].texts.append(str(payload))
    return turns


def answer(ngrams: Ngrams, turns: list[Turn], rng: random.Random, temperature: float) -> Iterator[str]:
    """The tokens of the whole answer, with the spaces between them."""
    question = turns[-1] if turns else Turn("user")
    if (quoted := recalled(turns)) is not None:
        yield from re.findall(r"\s*\S+", quoted)
        return
    lead = ""
    for name, size in question.files:
        yield from re.findall(r"\s*\S+", f"{lead}I have read {name} ({size} bytes).")
        lead = " "
    asked = ngrams.topics(question.text)
    earlier = [word for turn in turns[:-1] if turn.role != "model" for word in ngrams.topics(turn.text)]
    earlier = [word for word in dict.fromkeys(earlier) if word not in asked]
    chosen = rng.sample(asked, min(2, len(asked))) + rng.sample(earlier, min(1, len(earlier)))
    for about in chosen or [""]:
        made = ngrams.sentence(about, rng, temperature=temperature, favour={*asked, *earlier})
        for token in render(made):
            yield lead + token
            lead = ""
        lead = " "


def recalled(turns: list[Turn]) -> str | None:
    """The answer to a question about the conversation itself; None for other questions."""
    question = turns[-1].text if turns else ""
    mine = [turn for turn in turns[:-1] if turn.role == "user"]
    for pattern, recall in RECALLS.items():
        if re.search(pattern, question, re.IGNORECASE):
            return recall(mine, [turn for turn in turns[:-1] if turn.role == "model"])
    return None


def _first(mine: list[Turn], _: list[Turn]) -> str:
    return f'You first said: "{mine[0].text}"' if mine else "You have said nothing before."


def _last(mine: list[Turn], _: list[Turn]) -> str:
    return f'Before that you said: "{mine[-1].text}"' if mine else "You have said nothing before."


def _own(_: list[Turn], models: list[Turn]) -> str:
    return f'I said: "{models[-1].text}"' if models else "I have said nothing yet."


def _name(mine: list[Turn], _: list[Turn]) -> str | None:
    found = [name for turn in mine for name in re.findall(r"\bmy name is (\w+)", turn.text, re.IGNORECASE)]
    return f"Your name is {found[-1]}." if found else None


def _files(mine: list[Turn], _: list[Turn]) -> str:
    names = [f"{name} ({size} bytes)" for turn in mine for name, size in turn.files]
    return f"You sent me {', '.join(names)}." if names else "You have sent me no file."


RECALLS: dict[str, Callable[[list[Turn], list[Turn]], str | None]] = {
    r"\bdid I (say|ask|tell you)\b.*\bfirst|\bfirst\b.*\bdid I (say|ask)": _first,
    r"\bdid I (just )?(say|ask|tell you)\b": _last,
    r"\bdid you (just )?(say|answer)\b": _own,
    r"\bwhat is my name\b|\bwho am I\b": _name,
    r"\b(what|which)\b.*\bdid I (send|attach|give|show)\b": _files,
}


def limited(tokens: Iterable[str], most: int) -> Iterator[str]:
    """Yield the first ``most`` tokens only."""
    for _, token in zip(range(most), tokens, strict=False):
        yield token


def until_stop(tokens: Iterable[str], stops: list[str]) -> Iterator[str]:
    """The text before the first stop text, which may extend over several tokens."""
    held = ""
    for token in tokens:
        held += token
        found = [place for stop in stops if (place := held.find(stop)) >= 0]
        if found:
            held = held[: min(found)]
            break
        # A possible beginning of a stop text is held back until the next token.
        kept = max((size for stop in stops for size in range(1, len(stop)) if held.endswith(stop[:size])), default=0)
        if len(held) > kept:
            yield held[: len(held) - kept]
        held = held[len(held) - kept :]
    if held:
        yield held
