"""Sessions over a few functions, and what is said in them."""

from __future__ import annotations

from typing import Any

from invoker.author.reader import read
from invoker.core.steps import (
    Feed,
    Send,
    Step,
)
from invoker.errors import (
    InvocationError,
)
from invoker.message import EMPTY, Message
from invoker.protocols.evergreen.action_engine.session import ActionEngineSession
from invoker.protocols.evergreen.action_engine.settings import ActionEngineSettings
from invoker.protocols.evergreen.action_engine.statuses import status_chunk
from invoker.protocols.evergreen.action_engine.table import Table
from invoker.protocols.evergreen.action_engine.wire import (
    Action,
    Chunk,
    Fragment,
    Metadata,
    decode,
    encode,
)
from tests.protocols.evergreen.action_engine.functions import concat, echo, split

TEXT = Metadata("text/plain")
ECHO = Action("A", "echo", (("x", "A#x"),), (("y", "A#y"),))


def made(*functions: Any, metadata: dict[str, str] | None = None, **settings: Any) -> ActionEngineSession:
    """A session over functions."""
    known = ActionEngineSettings(**settings)
    return ActionEngineSession(Table(map(read, functions or (echo, concat, split)), known), metadata or {}, known)


def item(id: str, seq: int | None = 0, data: bytes = b"x", *, last: bool = False) -> Fragment:
    """A fragment with text."""
    return Fragment(id, Chunk(data, metadata=TEXT), seq, continued=not last)


def say(session: ActionEngineSession, *parts: Fragment | Action) -> list[Step]:
    """Give the session one message."""
    fragments = [one for one in parts if isinstance(one, Fragment)]
    return list(session.receive(encode(fragments, [one for one in parts if isinstance(one, Action)])))


def told(steps: Any) -> list[Fragment]:
    """The fragments that the peer is sent."""
    frames = [step.frame for step in steps if isinstance(step, Send)]
    return [fragment for frame in frames if isinstance(frame, bytes) for fragment in decode(frame).fragments]


def fed(steps: Any) -> list[bytes]:
    """The payloads that functions are given."""
    return [step.message.payload for step in steps if isinstance(step, Feed)]


def status(name: str, error: InvocationError | None = None) -> Fragment:
    """A status node."""
    return Fragment(name, status_chunk(error))


def text(data: bytes) -> Message[bytes]:
    """What a function gives."""
    return Message(data, EMPTY, "text/plain")
