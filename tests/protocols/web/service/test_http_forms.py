"""Forms as browsers send them: with a field for each input, also for those that were left empty (H-237)."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Literal

import pytest

from tests.transports.served import Served


class Color(enum.Enum):
    RED = "red"


class Maybe(enum.Enum):
    NONE = ""
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


NO_TEXTS: list[tuple[Any, Any]] = [
    (int, 7), (float, 1.5), (bool, True), (Color, Color.RED), (Level, Level.LOW), (Literal["a", "b"], "a"),
    (dt.date, dt.date(2026, 1, 2)), (dt.datetime, dt.datetime(2026, 1, 2, tzinfo=dt.UTC)),
    (decimal.Decimal, decimal.Decimal(1)),
    (uuid.UUID, uuid.UUID(int=1)), (int | None, 7), (int | None, None), (float | None, 1.5), (bool | None, True),
    (Color | None, None), (dict[str, int], {"a": 1}),
]  # fmt: skip
TEXTS: list[tuple[Any, Any, Any]] = [
    (str, "x", ""), (bytes, b"x", b""), (str | None, "x", ""), (Maybe, Maybe.RED, Maybe.NONE),
    (Literal["a", ""], "a", ""), (int | str, 7, ""),
]  # fmt: skip


def mapped(type_: Any, default: Any) -> Callable[..., Any]:
    def fn(text: str, weight: Any = default) -> str:
        return repr((text, weight))

    fn.__annotations__["weight"] = type_
    return fn


def awaited(type_: Any, default: Any) -> Callable[..., Any]:
    async def fn(text: str, weight: Any = default) -> str:
        return repr((text, weight))

    fn.__annotations__["weight"] = type_
    return fn


def streamed(type_: Any, default: Any) -> Callable[..., Any]:
    def fn(text: Iterator[str], weight: Any = default) -> Iterator[str]:
        for one in text:
            yield repr((one, weight))

    fn.__annotations__["weight"] = type_
    return fn


def several(type_: Any, default: Any) -> Callable[..., Any]:
    async def fn(text: AsyncIterator[str], more: AsyncIterator[str], weight: Any = default) -> AsyncIterator[str]:
        async for one in text:
            yield repr((one, weight))

    fn.__annotations__["weight"] = type_
    return fn


def opened(type_: Any, default: Any) -> Callable[..., Any]:
    def fn(*text: str, weight: Any = default) -> str:
        return repr((*text, weight))

    fn.__annotations__["weight"] = type_
    return fn


KINDS = [mapped, awaited, streamed, several, opened]


async def told(made: Callable[..., Any]) -> list[tuple[int, str]]:
    """What a browser is told that sends `text=a&weight=`, in each way that it has."""
    async with Served.at(made) as served, served.client() as client:
        accepts = {"Accept": "text/plain"}
        answers = [
            await client.post("/fn", data={"weight": "", "text": "a"}, headers=accepts),
            await client.post("/fn", files=[("weight", (None, "")), ("text", (None, "a"))], headers=accepts),
            await client.post("/fn?weight=", data={"text": "a"}, headers=accepts),
        ]
        return [(one.status_code, one.text) for one in answers]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("type_", "default"), NO_TEXTS, ids=str)
async def test_H237_an_empty_field_is_no_value_where_it_can_be_none(kind: Any, type_: Any, default: Any) -> None:
    """The parameter keeps its default, in a form of either kind and in a query."""
    assert await told(kind(type_, default)) == [(200, repr(("a", default)))] * 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("type_", "default", "value"), TEXTS, ids=str)
async def test_H237_an_empty_text_stays_one(kind: Any, type_: Any, default: Any, value: Any) -> None:
    """Where the parameter can be it."""
    assert await told(kind(type_, default)) == [(200, repr(("a", value)))] * 3


@pytest.mark.parametrize("type_", [int, float, bool, Color, dt.date])
async def test_H237_an_empty_field_of_a_required_parameter_is_refused(type_: Any) -> None:
    """By its name; so is an empty text in JSON, which no browser makes of a form."""

    def fn(text: str, weight: Any) -> str:
        return repr((text, weight))

    fn.__annotations__["weight"] = type_
    assert [(status, "weight" in text) for status, text in await told(fn)] == [(400, True)] * 3
    async with Served.at(mapped(type_, None)) as served, served.client() as client:
        response = await client.post("/fn", json={"text": "a", "weight": ""})
        assert (response.status_code, "weight" in response.text) == (400, True)


async def test_H237_a_function_whose_only_parameter_is_left_empty_has_its_default() -> None:
    """As for no body at all."""

    def fn(weight: float = 1.5) -> float:
        return weight

    def rest(**more: int) -> int:
        return len(more)

    async with Served.at(fn) as served, served.client() as client:
        for asked in ({"data": {"weight": ""}}, {"files": [("weight", (None, ""))]}, {"params": {"weight": ""}}):
            response = await client.post("/fn", **asked)  # type: ignore[arg-type]
            assert (response.status_code, response.text.strip()) == (200, "1.5")
    async with Served.at(rest) as served, served.client() as client:
        assert (await client.post("/rest", data={"a": ""})).status_code == 400
