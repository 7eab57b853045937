"""The codec of the media type ANY: what a parameter wants, what results become, and when it is asked."""

from __future__ import annotations

import datetime as dt
import math
import pickle
import typing
from dataclasses import dataclass

import pytest

from invoker.codecs import builtin
from invoker.codecs.anyvalue import ANY, BadAny, Unserializable, known, pack, unpack
from invoker.errors import DecodeError
from invoker.message import Message


@dataclass
class Point:
    """Two numbers."""

    x: int
    y: float = 0


def decoded(value: object, type_: object) -> object:
    """What a parameter of this type gets."""
    return builtin(entry_points=False).decoder(ANY, type_)(Message(pack(value), media_type=ANY))


@pytest.mark.parametrize(
    ("value", "type_", "wanted"),
    [
        (5, int, 5),
        (5, float, 5.0),
        (3.0, int, 3),
        (3.0, typing.Optional[int], 3),  # noqa: UP045 - both spellings
        (3.0, typing.Annotated[int, "x"], 3),
        (2.0**53, int, 2**53),
        ([1, 2.0], list[int], [1, 2]),
        ([1], list[float], [1.0]),
        ([1, 2], tuple[int, int], (1, 2)),
        ({"x": 1}, Point, Point(1)),
        ([{"x": 1, "y": 2}], list[Point], [Point(1, 2.0)]),
        (b"x", bytes, b"x"),
        ("x", bytes, b"x"),  # Elixir cannot tell them apart
        ([b"x"], list[bytes], [b"x"]),
        ("a", typing.Literal["a", "b"], "a"),
        (None, int | None, None),
        (
            dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
            dt.datetime,
            dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        ),
        (2**70, int, 2**70),
        (5, typing.Any, 5),
        (5.0, typing.Any, 5.0),
    ],
)
def test_T040_values_become_what_is_annotated(value: object, type_: object, wanted: object) -> None:
    """Nothing is cast but an int to a float, and an integral double to an int (scenario 16)."""
    found = decoded(value, type_)
    assert found == wanted
    assert type(found) is type(wanted)


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (True, int), (1, bool), ("3", int), (3, str), (True, float), (b"a", str), (["a"], list[bytes]), (None, int),
        (3.5, int), (math.nan, int), (math.inf, int), (2.0**53 + 2, int), ([3.5], list[int]), ([True], list[int]),
        ({"x": "1"}, Point), ({"y": 1}, Point), ("c", typing.Literal["a", "b"]), ("2026-01-01", int | None),
    ],
)  # fmt: skip
def test_T041_other_values_are_refused(value: object, type_: object) -> None:
    """What would be a cast is a bad input (scenarios 15, 16)."""
    with pytest.raises(DecodeError, match="input #0"):
        decoded(value, type_)


def test_a_known_value_is_not_decoded_again() -> None:
    """A payload that knows its value gives it for the type that it was made for, and for no other."""
    value = [1]
    payload = known(b"broken", value, list[int])
    registry = builtin(entry_points=False)
    type_ = payload.type_
    assert registry.decoder(ANY, type_)(Message(payload, media_type=ANY)) is value
    with pytest.raises(BadAny):
        registry.decoder(ANY, list[str])(Message(payload, media_type=ANY))
    assert type(pickle.loads(pickle.dumps(payload))) is bytes


def test_results_are_encoded_only_if_they_are_asked_for_by_name() -> None:
    """The codec never answers a wildcard, and writes what `pack` writes."""
    registry = builtin(entry_points=False)
    offers = registry.offers(ANY)
    for value in (5, "x", None, [1], Point(1)):
        message = registry.encoder(offers, value)(value)
        assert (message.payload, message.media_type) == (pack(value), ANY)
        assert registry.encoder(registry.offers("*/*"), value)(value).media_type != ANY
    assert all(str(one.media_type) != ANY for one in registry.offers("application/*"))


def test_T104_a_result_without_a_form_is_an_error_with_its_path() -> None:
    """The error of the machinery still has the path."""
    registry = builtin(entry_points=False)
    encode = registry.encoder(registry.offers(ANY), {})
    with pytest.raises(
        Unserializable, match=r"output #0: the value at \['a'\]\[1\]\[1\] has a key of type int"
    ) as caught:
        encode({"a": [0, {1: 2}]})
    assert caught.value.path == "['a'][1][1]"
    assert caught.value.details == {"code": "unserializable", "path": "['a'][1][1]"}


def test_T052_an_argument_that_cannot_be_read_has_its_type_url() -> None:
    """The error of the machinery still has the code and the type URL."""
    decode = builtin(entry_points=False).decoder(ANY, int, index=2, name="size")
    with pytest.raises(
        BadAny, match="input #2 'size': a value of the type URL 'x/Thing' is of an unknown type"
    ) as caught:
        decode(Message(b"\n\x07x/Thing", media_type=ANY))
    assert (caught.value.code, caught.value.type_url) == ("decode", "x/Thing")


def test_the_same_codec_reads_what_it_writes() -> None:
    """A result is read by the `unpack` of a client."""
    registry = builtin(entry_points=False)
    value = {"a": [1, b"x", None]}
    assert unpack(registry.encoder(registry.offers(ANY), value)(value).payload) == value
