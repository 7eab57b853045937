"""`invoker.codecs.exact`: MessagePack where it keeps a value, else `google.protobuf.Any`."""

from __future__ import annotations

import datetime as dt
import enum
from typing import Any

import pytest

from invoker.codecs import builtin
from invoker.codecs.anyvalue import ANY, Opaque
from invoker.codecs.exact import EXACT
from invoker.errors import EncodeError, NotAcceptable, UnsupportedMediaType

REGISTRY = builtin(entry_points=False)
MSGPACK = "application/msgpack"


class Colour(enum.Enum):
    RED = "red"


def there_and_back(value: Any, accept: str = EXACT) -> tuple[str, Any]:
    message = REGISTRY.encoder(REGISTRY.offers(accept), value)(value)
    return message.media_type, REGISTRY.decoder(message.media_type, Any)(message)


@pytest.mark.parametrize("value", [None, True, 2**64 - 1, -(2**63), 1.5, "x", b"\0", [1, "x"], {1: 2}])
def test_what_messagepack_keeps_is_messagepack(value: Any) -> None:
    assert there_and_back(value) == (MSGPACK, value)


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, [2**70], dt.timedelta(seconds=-1), Opaque("x", "W")])
def test_what_it_would_change_or_refuse_is_any(value: Any) -> None:
    media_type, found = there_and_back(value)
    assert (media_type, found, type(found)) == (ANY, value, type(value))


def test_other_classes_are_what_messagepack_makes_of_them() -> None:
    assert there_and_back(Colour.RED) == (MSGPACK, "red")


def test_what_neither_holds_is_refused() -> None:
    """With the reason, also where the first try failed by another one; a class without a form takes the next offer."""
    with pytest.raises(EncodeError, match="surrogates"):
        there_and_back("\ud800")
    with pytest.raises(EncodeError, match="a key of type int"):
        there_and_back({1: 2**70})
    with pytest.raises(EncodeError, match="takes object"):
        there_and_back(object())


def test_no_peer_meets_it_by_chance() -> None:
    """It is asked for by its name only, and nothing is of its type."""
    assert there_and_back(2**63, "application/*")[0] != EXACT
    with pytest.raises(NotAcceptable):
        REGISTRY.offers("application/x-invoker-values")
    with pytest.raises(UnsupportedMediaType):
        REGISTRY.decoder(EXACT, Any)
