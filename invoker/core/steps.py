"""The vocabulary between sessions, invocations and drivers: commands, events, steps.

A session turns wire frames into *commands* on invocations, and the *events* of invocations into frames to `Send`. What
a session asks its driver to do is a *step*: a command, a `Send` or a `Close`. Nine words, and a new one needs an ADR.

Values are slotted and frozen; making one costs about 0.1 µs, which the hot path pays once a frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from invoker.errors import InvocationError
from invoker.message import EMPTY, Message

__all__ = [
    "ALL",
    "Cancel",
    "Close",
    "Command",
    "Emitted",
    "EndInput",
    "Event",
    "FailInputs",
    "Feed",
    "Finished",
    "Open",
    "Send",
    "Step",
]

ALL = -1
"""The index of `EndInput` that means every input."""


class Open(msgspec.Struct, frozen=True):
    """Start an invocation.

    Attributes:
        id: Chosen by the session; unique within it while the invocation lives.
        function: Name in the catalogue; empty means its only or default function.
        accepts: One comma list of media ranges an output, or None: no preference for any output (``*/*``).
        input_names: As the peer sent them; empty means unnamed.
        output_names: As the peer sent them; empty means unnamed.
        metadata: Of the conversation, for the function's `Context`.
    """

    id: str
    function: str = ""
    accepts: tuple[str, ...] | None = None
    input_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()
    metadata: Mapping[str, str] = EMPTY


class Feed(msgspec.Struct, frozen=True):
    """Give one message to input ``index``; an empty media type means ``application/octet-stream``."""

    id: str
    index: int
    message: Message[bytes]


class EndInput(msgspec.Struct, frozen=True):
    """Input ``index`` ended normally; `ALL` ends every input that is still open. Idempotent."""

    id: str
    index: int = ALL


class FailInputs(msgspec.Struct, frozen=True):
    """Every open input ended with an error, which its reader shall see. The invocation itself goes on."""

    id: str
    error: InvocationError


class Cancel(msgspec.Struct, frozen=True):
    """End the invocation with ``error``: inputs fail, the body is closed. Idempotent."""

    id: str
    error: InvocationError


class Emitted(msgspec.Struct, frozen=True):
    """Output ``index`` has one more message, with a concrete media type."""

    id: str
    index: int
    message: Message[bytes]


class Finished(msgspec.Struct, frozen=True):
    """The invocation is over; the only way it can end. ``error`` is None for a normal end."""

    id: str
    error: InvocationError | None = None


class Send(msgspec.Struct, frozen=True):
    """Write ``frame`` to the peer."""

    frame: Any


class Close(msgspec.Struct, frozen=True):
    """The conversation is over, with ``error`` as its status (None: OK). No step follows it."""

    error: InvocationError | None = None


Command: TypeAlias = Open | Feed | EndInput | FailInputs | Cancel
Event: TypeAlias = Emitted | Finished
Step: TypeAlias = Command | Send | Close
