"""Tests of `invoker.codecs.collisions`: values with one hash are refused, in every type and whatever makes it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Generic, TypeVar
from uuid import UUID

import msgspec
import pydantic
import pytest

from invoker.codecs.collisions import refuse_alike
from invoker.codecs.json import JsonCodec
from invoker.codecs.msgpack import MsgpackCodec
from invoker.codecs.typed import collisions_of, converter
from invoker.errors import DecodeError
from invoker.errors.wording import Place
from invoker.mediatypes import parse
from invoker.message import EMPTY, Message
from tests.conftest import SLOW, case_name

PRIME = sys.hash_info.modulus
MANY, SLOWLY_MADE = 2_000, 20_000
"""Values whose pairs with one hash are four times too many; and how many take seconds to become a set."""


T = TypeVar("T")
Id = TypeVar("Id", bound=UUID)
Some = TypeVar("Some", int, str)


@dataclass
class Held:
    ids: set[UUID]
    name: str = ""


class Row(msgspec.Struct):
    prices: dict[Decimal, int]


class Model(pydantic.BaseModel):
    ids: set[UUID]


@pydantic.dataclasses.dataclass
class Checked:
    ids: set[UUID]


@dataclass
class Box(Generic[T]):
    ids: T


def decimals(step: int, count: int) -> list[str]:
    return [str(1 + number * step) for number in range(count)]


def ids(step: int, count: int) -> list[str]:
    return [str(UUID(int=1 + number * step)) for number in range(count)]


def integers(step: int, count: int) -> list[int]:
    return [2**64 + 1 + number * step for number in range(count)]


def keyed(keys: list[Any]) -> dict[str, int]:
    return {str(key): 1 for key in keys}


TYPES: list[tuple[Any, Callable[[int, int], Any]]] = [
    (set[Decimal], decimals),
    (frozenset[Decimal], decimals),
    (AbstractSet[UUID], ids),
    (set[UUID], ids),
    (set[UUID] | None, ids),
    (Annotated[set[UUID], "some"], ids),
    (set[int], integers),
    (set[int | str], integers),
    (list[set[UUID]], lambda *which: [ids(*which)]),
    (set[tuple[UUID, int]], lambda *which: [[one, 1] for one in ids(*which)]),
    (dict[UUID, int], lambda *which: keyed(ids(*which))),
    (dict[Decimal, int], lambda *which: keyed(decimals(*which))),
    (dict[int, int], lambda *which: keyed(integers(*which))),
    (Held, lambda *which: {"ids": ids(*which)}),
    (dict[str, Held], lambda *which: {"a": {"ids": ids(*which)}}),
    (Row, lambda *which: {"prices": keyed(decimals(*which))}),
    (Model, lambda *which: {"ids": ids(*which)}),
    (Checked, lambda *which: {"ids": ids(*which)}),
    (list[Checked], lambda *which: [{"ids": ids(*which)}]),
    (set[Id], ids),
    (set[Some], integers),
    (Box[set[UUID]], lambda *which: {"ids": ids(*which)}),
]


def by_json(type_: Any, value: Any) -> Any:
    decode = JsonCodec().decoder(parse("application/json"), type_, Place("input"))
    return decode(Message(json.dumps(value).encode(), EMPTY, "application/json"))


def by_msgpack(type_: Any, value: Any) -> Any:
    decode = MsgpackCodec().decoder(parse("application/msgpack"), type_, Place("input"))
    return decode(Message(msgspec.msgpack.encode(value), EMPTY, "application/msgpack"))


def by_converter(type_: Any, value: Any) -> Any:
    return converter(type_)(value)


def by_lax_converter(type_: Any, value: Any) -> Any:
    return converter(type_, is_lax=True)(value)


WAYS = (by_json, by_msgpack, by_converter, by_lax_converter)


@pytest.mark.parametrize("way", WAYS, ids=case_name)
@pytest.mark.parametrize(("type_", "values"), TYPES, ids=case_name)
def test_values_with_one_hash_are_refused(type_: Any, values: Callable[[int, int], Any], way: Any) -> None:
    """As many with hashes of their own are taken, as far as the wire has them."""
    said = refusal(type_, values(PRIME, MANY), way)
    if f"{MANY} different values have one hash" not in said:
        # MessagePack has no integers beyond 64 bits.
        assert type_ in (set[int], set[int | str], set[Some]), said
        assert way is by_msgpack, said
        return
    if type_ != dict[int, int] or way in (by_json, by_lax_converter):
        assert way(type_, values(1, MANY))


def refusal(type_: Any, bad: Any, way: Any) -> str:
    try:
        way(type_, bad)
    except (ValueError, DecodeError, TypeError, OverflowError) as error:
        return str(error)
    raise AssertionError("it was taken")


@pytest.mark.parametrize("way", WAYS, ids=case_name)
@pytest.mark.parametrize("type_", [set[UUID], dict[Decimal, int], Row, Model], ids=case_name)
def test_values_with_one_hash_are_refused_at_once(type_: Any, way: Any) -> None:
    """Before they are made, which takes seconds: for each library that makes values, and for sets and dicts."""
    bad = dict(TYPES)[type_](PRIME, SLOWLY_MADE)
    began = time.thread_time()
    assert f"{SLOWLY_MADE} different values have one hash" in refusal(type_, bad, way)
    assert time.thread_time() - began < 0.7 * SLOW


@pytest.mark.parametrize("type_", [list[Decimal], dict[str, UUID], set[str], dict, Any, dict[str, Any], set[float]])
def test_other_types_are_not_looked_at(type_: Any) -> None:
    """Nothing in them is told apart by a hash that a caller can choose; so they cost nothing."""
    assert collisions_of(type_) is None


def test_what_is_the_same_value_in_other_words_is_no_collision() -> None:
    """Nor is a hundred of them, or the same value many times."""
    assert len(by_json(set[Decimal], ["1.5"] * 5000)) == 1
    assert len(by_json(set[UUID], ids(PRIME, 500))) == 500
    refuse_alike([1] * 5000 + ["text", 2.5])
    with pytest.raises(ValueError, match=f"{MANY} different values"):
        refuse_alike([UUID(one) for one in ids(PRIME, MANY)])
