"""What annotations say of values holds over every protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import httpx
import pydantic
import pytest

from invoker import Field, function
from invoker.client import CallFailed, EvergreenSession, RiffClient, SyncToolBridge, ToolExecutionError
from tests.serving import Served, serving


def _small(value: int) -> int:
    if value > 3:
        raise ValueError("it is too large")
    return value


Small = Annotated[int, pydantic.AfterValidator(_small)]


@dataclass
class Job:
    """Marks of msgspec's at a field."""

    size: Annotated[int, Field(le=3)]


@function
def one(x: Small) -> int:
    """A parameter."""
    return x


@function
def inner(x: list[Annotated[int, Field(le=3)]]) -> int:
    """Items of a list."""
    return sum(x)


@function
def job(x: Job) -> int:
    """Fields of a class."""
    return x.size


@function
def items(x: Iterator[Small]) -> Iterator[int]:
    """Items of a stream."""
    yield from x


@function
def result(x: int) -> Small:
    """A result."""
    return x


CASES = [("one", 3, 4), ("inner", [3], [4]), ("job", {"size": 3}, {"size": 4}), ("result", 3, 4)]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving("tests.e2e.test_marks") as one:
        yield one


@pytest.mark.parametrize(("name", "good", "bad"), CASES)
def test_http_and_typed(served: Served, name: str, good: object, bad: object) -> None:
    """JSON at the path of the function and of its typed method."""
    for url, wrap in (
        (f"http://{served.http}/{name}", lambda value: value),
        (f"http://{served.http}/tests.e2e.test_marks.TestMarksService/{name.capitalize()}", lambda value: {"x": value}),
    ):
        assert httpx.post(url, json=wrap(good)).status_code == 200, url
        assert httpx.post(url, json=wrap(bad)).status_code in (400, 500), url


def test_a_stream(served: Served) -> None:
    """The second item is refused."""
    headers = {"Content-Type": "application/x-ndjson", "Accept": "application/x-ndjson"}
    lines = httpx.post(f"http://{served.http}/items", content="3\n4\n", headers=headers).text.splitlines()
    assert lines[0] == "3"
    assert "too large" in json.loads(lines[1])["error"]["detail"]


@pytest.mark.parametrize(("name", "good", "bad"), [*CASES, ("items", 3, 4)])
async def test_riff_and_evergreen(served: Served, name: str, good: object, bad: object) -> None:
    """The streaming protocols."""
    async with RiffClient(served.grpc) as client:
        assert [one async for one in client.invoke([[good]], function=name)]
        with pytest.raises(CallFailed):
            _ = [one async for one in client.invoke([[bad]], function=name)]
    async with EvergreenSession(served.grpc) as session:
        assert await session.act(name, {"x": [good]}).items()
        with pytest.raises(CallFailed):
            await session.act(name, {"x": [bad]}).items()


@pytest.mark.parametrize(("name", "good", "bad"), CASES)
def test_tool_bridge(served: Served, name: str, good: object, bad: object) -> None:
    """Arguments and results of tools."""
    with SyncToolBridge(served.grpc) as bridge, bridge.session() as session:
        session.call(name, good)
        with pytest.raises(ToolExecutionError):
            session.call(name, bad)
