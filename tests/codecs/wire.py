"""What the tests of codecs share: one payload in, one value out, and types to fill."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypedDict

import msgspec
import pydantic
from hypothesis import settings

from invoker.codecs import Registry
from invoker.errors import DecodeError
from invoker.message import EMPTY, Message

PATIENT = settings(deadline=None)
"""Other tests may keep this machine busy; time is limited by the test's own limit."""

JSON = "application/json"
TEXT = "text/plain"
OCTETS = "application/octet-stream"
FORM = "application/x-www-form-urlencoded"
CLOUDEVENTS = "application/cloudevents+json"
MSGPACK = "application/msgpack"


def decode(media_type: str, payload: bytes, type_: Any = Any, registry: Registry | None = None) -> Any:
    """One payload as input 0 of a function with this annotation."""
    decoder = (registry or Registry()).decoder(media_type, type_)
    return decoder(Message(payload, EMPTY, media_type))


def encode(accept: str, value: Any, registry: Registry | None = None) -> tuple[str, bytes]:
    """Media type and payload of a value for output 0 of a peer that accepts this."""
    registry = registry or Registry()
    message = registry.encoder(registry.offers(accept), value)(value)
    assert message.headers is EMPTY
    assert type(message.payload) is bytes
    return message.media_type, message.payload


def survives(action: Callable[[], Any], error: type[Exception] = DecodeError) -> None:
    """Whatever comes in ends in a value or in this error, whose text is fit for the wire."""
    try:
        action()
    except error as caught:
        text = str(caught)
    else:
        return
    text.encode()
    assert len(text) < 1500


class Colour(enum.Enum):
    """An enum of texts."""

    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    """A dataclass with a default."""

    x: int
    y: int = 0


@dataclass
class Shape:
    """A dataclass within a dataclass."""

    name: str
    corners: list[Point] = field(default_factory=list)
    colour: Colour | None = None


class Person(TypedDict):
    """A TypedDict."""

    name: str


class Pair(NamedTuple):
    """A NamedTuple."""

    left: int
    right: int = 0


class Model(pydantic.BaseModel):
    """A pydantic model with a constraint and an alias."""

    size: int = pydantic.Field(gt=0)
    kind: str = pydantic.Field("plain", alias="type")


class Circle(msgspec.Struct):
    """A Struct."""

    radius: float


class Odd(bytes):
    """Bytes that do not let themselves be read."""

    def __bytes__(self) -> bytes:
        raise RecursionError


class OddText(str):
    """A str that encodes itself to nonsense."""

    __slots__ = ()

    def encode(self, *_: object) -> str:  # type: ignore[override]
        """No bytes."""
        return "nonsense"


def released() -> memoryview:
    """A view that its owner took back."""
    view = memoryview(b"x")
    view.release()
    return view


class Opaque:
    """A class of which no codec knows anything."""

    def __init__(self, secret: object) -> None:
        self.secret = secret
