"""`invoker.codecs.wholes`: 2.0 is an integer on every wire, and no value changes for that."""

from __future__ import annotations

import contextlib
import enum
import gc
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import numpy as np
import pydantic
import pytest
from numpy.typing import NDArray

from invoker import Field
from invoker.codecs import builtin
from invoker.codecs.anyvalue import ANY
from invoker.codecs.anyvalue.pack import pack
from invoker.codecs.typed import converter
from invoker.codecs.wholes import REFUSED, retried
from invoker.errors import DecodeError
from tests.codecs.wire import FORM, JSON, MSGPACK, OCTETS, TEXT, decode


@dataclass
class Left:
    """Integers beside other numbers."""

    n: int
    x: float = 0.5


@dataclass
class Right:
    """Another one."""

    m: int


class Model(pydantic.BaseModel):
    """A model."""

    n: int


class Keys(TypedDict):
    """A dict."""

    n: int


class Level(enum.IntEnum):
    """An Enum of integers."""

    LOW = 1
    HIGH = 2


@dataclass
class Exact:
    """Decimals keep all digits."""

    n: int
    d: Decimal


CASES: list[tuple[Any, Any, Any]] = [
    (int, 2.0, 2),
    (int, -0.0, 0),
    (int | None, 2.0, 2),
    (int | str, 2.0, 2),
    (Annotated[int, Field(le=3)], 2.0, 2),
    (Literal[1, 2], 2.0, 2),
    (Level, 2.0, Level.HIGH),
    (list[int], [1, 2.0, 3.0], [1, 2, 3]),
    (dict[str, int], {"a": 2.0}, {"a": 2}),
    (tuple[int, float], [2.0, 2.5], (2, 2.5)),
    (Left, {"n": 2.0, "x": 3.0}, Left(2, 3.0)),
    (list[Left | Right], [{"n": 2.0}, {"m": 3.0}], [Left(2), Right(3)]),
    (Model, {"n": 2.0}, Model(n=2)),
    (Keys, {"n": 2.0}, {"n": 2}),
    (Annotated[int, pydantic.AfterValidator(abs)], -2.0, 2),
]
WIRES: dict[str, Callable[[Any, Any], Any]] = {
    "json": lambda type_, value: decode(JSON, json.dumps(value).encode(), type_),
    "json with an exponent": lambda type_, value: decode(JSON, json.dumps(value).replace(".0", "0e-1").encode(), type_),
    "+json": lambda type_, value: decode("application/x+json", json.dumps(value).encode(), type_),
    "utf-16": lambda type_, value: decode(f"{JSON};charset=utf-16", json.dumps(value).encode("utf-16"), type_),
    "large json": lambda type_, value: decode(JSON, json.dumps(value).encode() + b" " * 20_000, type_),
    "msgpack": lambda type_, value: decode(MSGPACK, msgspec.msgpack.encode(value), type_),
    "any": lambda type_, value: decode(ANY, pack(value), type_),
    "plain": lambda type_, value: converter(type_)(value),
    "lax": lambda type_, value: converter(type_, is_lax=True)(value),
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("type_", "sent", "expected"), CASES, ids=lambda one: str(one)[:50])
def test_H260_a_float_without_a_fraction_is_an_integer(type_: Any, sent: Any, expected: Any, wire: str) -> None:
    """Alone and within; floats stay floats."""
    if wire == "json with an exponent" and sent == 0:
        return  # it would begin with two zeros
    found = WIRES[wire](type_, sent)
    assert found == expected
    assert type(found) is type(expected)
    if isinstance(found, Left):
        assert (type(found.n), type(found.x)) == (int, float)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("type_", "sent"),
    [(int, 2.5), (list[int], [1, 2.5]), (Left, {"n": 0.1}), (int, 1e300), (int, 2.0**54), (Level, 3.0)],
)
def test_other_floats_are_none(type_: Any, sent: Any, wire: str) -> None:
    """Those with a fraction, and those that may have been another integer."""
    if wire in ("lax", "json with an exponent") and sent == 2.0**54:
        return
    with pytest.raises((DecodeError, msgspec.ValidationError)):
        WIRES[wire](type_, sent)


def test_no_value_loses_digits() -> None:
    """A Decimal beside it is read as it was, or the whole is refused."""
    assert decode(JSON, b'{"n": 2.0, "d": 3}', Exact) == Exact(2, Decimal(3))
    assert decode(JSON, b'{"n": 2, "d": 0.12345678901234567890}', Exact).d == Decimal("0.12345678901234567890")
    with pytest.raises(DecodeError, match="Expected `int`, got `float`"):
        decode(JSON, b'{"n": 2.0, "d": 0.12345678901234567890}', Exact)


@pytest.mark.parametrize("media_type", [TEXT, OCTETS])
@pytest.mark.parametrize("type_", [int, int | None])
def test_text_spells_it_so(media_type: str, type_: Any) -> None:
    """In queries, forms and lines of text."""
    assert decode(media_type, b"2.0", type_) == 2
    for wrong in (b"2.5", b"2.0.0", b".", b"2.x"):
        with pytest.raises(DecodeError):
            decode(media_type, wrong, type_)
    assert decode(media_type, b"9007199254740993.0", int) == 9007199254740993
    assert decode(FORM, b"n=2.0", Left) == Left(2)


def test_arrays_take_them() -> None:
    """As numbers of any other list."""
    assert builtin().decoder(JSON, NDArray[np.int16])(decode_message(b"[1, 2.0]")).tolist() == [1, 2]


def decode_message(payload: bytes) -> Any:
    """A message of JSON."""
    from invoker.message import EMPTY, Message

    return Message(payload, EMPTY, JSON)


def test_what_fits_no_better_is_refused() -> None:
    """And what was refused is freed with its error, without the collector."""
    assert retried(lambda value: msgspec.convert(value, int), [2.0]) is REFUSED
    gc.collect()
    gc.disable()
    try:
        for type_, value in (
            (int, "a"),
            (Left | Right, {"n": "a"}),
            (list[int] | list[str], [1.5]),
            (Left, {"n": "a"}),
        ):
            for wire in ("json", "msgpack", "any", "plain"):
                with contextlib.suppress(DecodeError, msgspec.ValidationError):
                    WIRES[wire](type_, value)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        assert not [one for one in gc.garbage if isinstance(one, BaseException)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
