"""Options of any type start; unions, Enums and unpacked TypedDicts are served over every protocol."""

from __future__ import annotations

import collections.abc
import enum
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict, Unpack

import httpx
import pytest
import typing_extensions

from invoker import function
from invoker.author.prepare import prepare_function
from invoker.client import EvergreenSession, RiffClient, SyncToolBridge, ToolExecutionError
from invoker.errors import SpecError
from tests.serving import Served, serving


class Pair(enum.Enum):
    """Values that are tuples."""

    A = (1, 2)
    B = (3, 4)


@dataclass
class Left:
    """One class."""

    x: int


@dataclass
class Right:
    """Another one."""

    y: int


class Unknown:
    """Nobody makes it."""


class Keys(TypedDict):
    """What may be given by name."""

    size: int
    word: NotRequired[str]


@function
def options(
    x: int,
    *,
    pair: Pair = Pair.A,
    several: list[Left | Right] | None = None,
    tag: Left | Right | None = None,
    unknown: Unknown | None = None,
    inner: list[Unknown] | None = None,
    call: collections.abc.Callable[[int], int] = abs,
    kind: type[int] = int,
    pattern: re.Pattern[str] = re.compile("a"),
    number: complex = 1j,
    choice: Literal[Pair.A] = Pair.A,
    lists: list[int] | list[str] | None = None,
) -> str:
    """Whatever an author writes."""
    return f"{x} {pair.name} {several} {tag} {unknown} {lists}"


@function
def keys(x: int, **more: Unpack[Keys]) -> str:
    """By the names of a TypedDict."""
    return f"{x} {sorted(more.items())}"


class OtherKeys(typing_extensions.TypedDict):
    """As pydantic asks for it before Python 3.12."""

    size: int
    word: NotRequired[str]


@function
def other_keys(x: int, **more: typing_extensions.Unpack[OtherKeys]) -> str:
    """By the names of a TypedDict of typing_extensions."""
    return keys(x, **more)


@function
def items(xs: Iterator[Left | Right], pair: Pair = Pair.A) -> Iterator[str]:
    """Items that are one of two classes."""
    for one in xs:
        yield f"{one} {pair.name}"


GIVEN = {"x": 1, "pair": "B", "several": [{"y": 2}, {"x": 3}], "tag": {"y": 4}, "lists": ["a"]}
SEEN = "1 B [Right(y=2), Left(x=3)] Right(y=4) None ['a']"


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving("tests.e2e.test_any_option") as one:
        yield one


def test_http(served: Served) -> None:
    """JSON by names, also what is wrong."""
    url = f"http://{served.http}"
    assert httpx.post(f"{url}/options", json=GIVEN).json() == SEEN
    for name in ("keys", "other_keys"):
        assert httpx.post(f"{url}/{name}", json={"x": 1, "size": 2}).json() == "1 [('size', 2)]"
        both = httpx.post(f"{url}/{name}", json={"x": 1, "size": 2, "word": "w"})
        assert both.json() == "1 [('size', 2), ('word', 'w')]"
        for wrong in ({"x": 1}, {"x": 1, "size": "a"}, {"x": 1, "size": 2, "more": 3}):
            assert httpx.post(f"{url}/{name}", json=wrong).status_code == 400, (name, wrong)
    for name, value in {"unknown": 3, "inner": [1], "pair": "C", "several": [{"z": 1}], "call": 1}.items():
        answer = httpx.post(f"{url}/options", json={"x": 1, name: value})
        assert answer.status_code == 400, name
        assert f"'{name}'" in answer.text
    schema = json.dumps(httpx.get(f"{url}/openapi.json").json())
    assert '"enum": ["A", "B", [1, 2], [3, 4]]' in schema


async def test_riff_and_evergreen(served: Served) -> None:
    """The streaming protocols."""
    async with RiffClient(served.grpc) as client:
        found = [one.value async for one in client.invoke([[{"y": 1}, {"x": 2}]], function="items")]
        assert found == ["Right(y=1) A", "Left(x=2) A"]
    async with EvergreenSession(served.grpc) as session:
        act = session.act("options", {"x": 1, "pair": "B", "tag": {"y": 4}})
        assert await act.text() == "1 B None Right(y=4) None None"


def test_tool_bridge(served: Served) -> None:
    """Tools, and an option that no caller can give."""
    with SyncToolBridge(served.grpc) as bridge, bridge.session() as session:
        assert session.call("options", **GIVEN) == SEEN
        assert session.call("options", 1) == "1 A None None None None"
        assert session.call("keys", 1, size=2) == "1 [('size', 2)]"
        assert session.call("options", 1, pair=[3, 4]) == "1 B None None None None"
        with pytest.raises(ToolExecutionError, match="must be one of A, B"):
            session.call("options", 1, pair="C")
        with pytest.raises(ToolExecutionError, match="'size'"):
            session.call("keys", 1)
        with pytest.raises(ToolExecutionError, match="'number'"):
            session.call("options", 1, number="1j")


def _unpacks(annotation: Any) -> Any:
    def take(x: int, **more: int) -> None:
        """Takes more."""

    take.__annotations__["more"] = annotation
    return take


@pytest.mark.parametrize(
    ("annotation", "words"),
    [(Unpack[tuple[int, str]], "only \\*\\*more can unpack a TypedDict"),
     (Unpack[TypedDict("Odd", {"a-b": int})], "cannot be the name of a parameter")],
)  # fmt: skip
def test_what_cannot_be_unpacked_stops_the_start(annotation: Any, words: str) -> None:
    """In one sentence with the parameter."""
    with pytest.raises(SpecError, match=words) as caught:
        prepare_function(_unpacks(annotation))
    assert "'more' of 'take'" in str(caught.value)
