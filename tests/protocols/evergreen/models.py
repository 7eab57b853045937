"""Model functions: bodies that need no driver. See `tests.protocols.evergreen.conversation`."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from invoker.author.spec import FunctionSpec, StreamSpec, Style
from invoker.author.spec import Take as Takes
from invoker.errors import DecodeError, FunctionError, InvocationError
from invoker.message import Message

if TYPE_CHECKING:
    from tests.protocols.evergreen.conversation import Invocation


@dataclass(frozen=True, slots=True)
class Take:
    """The next message of an input; None once it has ended."""

    index: int = 0


@dataclass(frozen=True, slots=True)
class Give:
    """A value for an output."""

    value: Any
    index: int = 0


@dataclass(frozen=True, slots=True)
class End:
    """One of several outputs has ended."""

    index: int = 0


Body = Generator[Take | Give | End, Message[bytes] | None, None]


def message_of(value: Any) -> Message[bytes]:
    """A value as the machinery encodes it where the peer has no preference (E-104)."""
    if isinstance(value, Message):
        return value
    if isinstance(value, str):
        return Message(value.encode(), media_type="text/plain")
    if isinstance(value, bytes):
        return Message(value, media_type="application/octet-stream")
    return Message(json.dumps(value).encode(), media_type="application/json")


def value_of(message: Message[bytes], stream: StreamSpec) -> Any:
    """A message as a parameter takes it."""
    if stream.take is Takes.MESSAGE:
        return message
    if stream.type is bytes:
        return message.payload
    try:
        if message.media_type.startswith("text/"):
            return message.payload.decode()
        return json.loads(message.payload) if message.media_type == "application/json" else message.payload
    except ValueError as error:
        raise DecodeError(f"input '{stream.name}': {error}") from None


def mapped(function: Callable[..., Any], spec: FunctionSpec) -> Callable[[Invocation], Body] | None:
    """The model of a request/reply function; None for a streaming one."""
    if spec.style is Style.STREAMING:
        return None
    streams = {one.name: one for one in (*spec.inputs, *spec.optional)}

    def body(invocation: Invocation) -> Body:
        names = invocation.open.bound or ()
        while True:
            given = []
            for index, name in enumerate(names):
                message = yield Take(index)
                if message is None:
                    return
                given.append(value_of(message, streams.get(name) or spec.inputs[-1]))
            yield Give(_called(function, dict(zip(names, given, strict=True)), by_name=not spec.open_inputs))
            if not names:
                return

    return body


def _called(function: Callable[..., Any], given: dict[str, Any], *, by_name: bool) -> Any:
    try:
        return function(**given) if by_name else function(*given.values())
    except InvocationError:
        raise
    except Exception as error:
        raise FunctionError(f"{type(error).__name__}: {error}") from None


def each(change: Callable[[str], Any]) -> Callable[[Invocation], Body]:
    """A streaming function of one text input and one output."""

    def body(_: Invocation) -> Body:
        while (message := (yield Take())) is not None:
            try:
                text = message.payload.decode()
            except ValueError as error:
                raise DecodeError(str(error)) from None
            yield Give(change(text))

    return body


def source(*values: Any) -> Callable[[Invocation], Body]:
    """A streaming function without inputs; an exception among the values is raised."""

    def body(_: Invocation) -> Body:
        for value in values:
            if isinstance(value, InvocationError):
                raise value
            yield Give(value)

    return body


def idle(_: Invocation) -> Body:
    """Reads its first input to its end and gives nothing."""
    while (yield Take()) is not None:
        pass
