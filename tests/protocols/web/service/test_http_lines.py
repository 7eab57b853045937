"""Lines of JSON for an input of a class."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest

from tests.transports.served import Served

LINES = {"Content-Type": "application/x-ndjson"}


@dataclass
class Data:
    x: int = 1


class Model(pydantic.BaseModel):
    x: int = 1


class Record(msgspec.Struct):
    x: int = 1


class Dict(TypedDict, total=False):
    x: int


def x_of(one: Any) -> int:
    plain = asdict(one) if is_dataclass(one) else one if isinstance(one, dict) else {"x": one.x}
    return int(plain["x"])


def streamed(type_: Any) -> Callable[..., Any]:
    def fn(rows: Iterator[Any], k: int = 0) -> Iterator[int]:
        for row in rows:
            yield x_of(row) + k

    fn.__annotations__["rows"] = Iterator[type_]
    return fn


def awaited(type_: Any) -> Callable[..., Any]:
    async def fn(rows: AsyncIterator[Any], k: int = 0) -> AsyncIterator[int]:
        async for row in rows:
            yield x_of(row) + k

    fn.__annotations__["rows"] = AsyncIterator[type_]
    return fn


def mapped(type_: Any) -> Callable[..., Any]:
    def fn(rows: Any, k: int = 0) -> int:
        return x_of(rows) + k

    fn.__annotations__["rows"] = type_
    return fn


@pytest.mark.parametrize("kind", [streamed, awaited, mapped])
@pytest.mark.parametrize("type_", [Data, Model, Record, Dict])
async def test_R169_a_line_gives_the_only_input_by_its_name_too(kind: Any, type_: Any) -> None:
    """As one JSON object does; and what the class would lose is refused."""
    async with Served.at(kind(type_)) as served, served.client() as client:

        async def sent(body: bytes, query: str = "") -> tuple[int, str]:
            response = await client.post(f"/fn{query}", content=body, headers=LINES)
            return response.status_code, response.text

        assert await sent(b'{"rows":{"x":5}}\n{"x":6}\n\n{"rows":{"x":7}}\n') == (200, "5\n6\n7\n")
        assert await sent(b'{"rows":{"x":5}}\n', "?k=2") == (200, "7\n")
        for lost, told in (
            (b'{"x":5,"k":3}', "line 1 has the member 'k'"),
            (b'{"rows":{"x":5},"k":3}', "line 1 has the member 'k'"),
            (b'{"rows":{"x":5},"other":3}', "line 1 has the member 'other'"),
        ):
            status, text = await sent(lost + b"\n")
            assert (status, told in text) == (400, True), (lost, status, text)
            status, text = await sent(b'{"x":6}\n' + lost + b"\n")
            assert told.replace("1", "2") in text, (lost, status, text)


@pytest.mark.parametrize("kind", [streamed, awaited])
@pytest.mark.parametrize("type_", [Data, Model, Record, Dict])
async def test_R169_parts_and_fields_give_streams_of_a_class_by_their_names(kind: Any, type_: Any) -> None:
    """Each part is an item."""
    async with Served.at(kind(type_)) as served, served.client() as client:
        parts = [("rows", (None, '{"x":5}')), ("rows", (None, '{"x":6}'))]
        response = await client.post("/fn", files=parts)
        assert (response.status_code, response.text) == (200, "5\n6\n")
        response = await client.post("/fn", data={"rows": ['{"x":5}', '{"x":6}']})
        assert (response.status_code, response.text) == (200, "5\n6\n")
