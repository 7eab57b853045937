"""`invoker.protocols.web.service.functions`: what callers of the HTTP transport are told of the functions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from invoker import function
from invoker.core.catalog import Catalog
from invoker.protocols.web.service.functions import FUNCTIONS, OPENAPI, FunctionsHandler, FunctionsService
from invoker.server.table import TABLE
from tests.attach.around import around
from tests.transports.served import Served


def square(x: int) -> int:
    """Square a number.

    Args:
        x: What is squared.
    """
    return x * x


def repeat(words: Iterator[str], counts: Iterator[int], sep: str = " ") -> Iterator[str]:
    for word, count in zip(words, counts, strict=True):
        yield sep.join([word] * count)


@function(isolation="process")
def apart(x: int) -> int:
    return x


@asynccontextmanager
async def telling(*functions: Any, **said: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a transport that tells of functions."""
    async with Served.at(*functions, **said) as served, served.client() as client:
        yield client


async def test_H060_a_function_with_a_process_of_its_own_is_marked() -> None:
    """By `isolation`, which others do not have."""
    async with telling(square, apart) as client:
        told = (await client.get("/functions")).json()["functions"]
    assert [one.get("isolation") for one in told] == [None, "process"]


async def test_H060_functions_are_listed_with_their_types() -> None:
    """Names, paths, inputs and outputs of each function, and nothing is run."""
    async with telling(square, repeat, spoken=lambda: (("riff", "localhost:1"),)) as client:
        response = await client.get("/functions")
        assert response.status_code == 200
        assert response.headers["content-type"] == "application/json"
        told = response.json()
    assert [one["name"] for one in told["functions"]] == ["square", "repeat"]
    assert told["functions"][0] == {
        "name": "square",
        "path": "/square",
        "socket": "/square/ws",
        "doc": "Square a number.",
        "isSafe": False,
        "style": "request/reply",
        "inputs": [
            {
                "name": "x",
                "type": "int",
                "schema": {"type": "integer"},
                "mediaTypes": ["text/plain", "application/json"],
                "isStream": False,
                "isRequired": True,
                "doc": "What is squared.",
            }
        ],
        "outputs": [
            {
                "name": "out",
                "type": "int",
                "schema": {"type": "integer"},
                "mediaTypes": ["application/json", "text/plain"],
                "isStream": False,
                "doc": "",
            }
        ],
        "openInputs": False,
        "openNames": False,
        "openOutputs": False,
        "examples": [],
    }
    several = told["functions"][1]
    assert several["style"] == "streaming"
    assert [(one["name"], one["isStream"], one["isRequired"]) for one in several["inputs"]] == [
        ("words", True, True),
        ("counts", True, True),
        ("sep", False, False),
    ]
    assert several["inputs"][2]["default"] == " "
    assert several["outputs"][0]["isStream"]
    assert told["protocols"] == [{"name": "riff", "address": "localhost:1"}]
    assert told["version"]


async def test_H061_a_client_that_has_the_list_is_told_so() -> None:
    """An ETag that is known gives 304 without a body; another one does not. It has to be asked for each time."""
    async with telling(square) as client:
        first = await client.get("/functions")
        tag = first.headers["etag"]
        assert first.headers["cache-control"] == "no-cache"
        for known in (tag, f'"other", {tag}', f"W/{tag}", "*"):
            again = await client.get("/functions", headers={"If-None-Match": known})
            assert (again.status_code, again.content, again.headers["etag"].removeprefix("W/")) == (304, b"", tag)
        assert (await client.get("/functions", headers={"If-None-Match": '"other"'})).status_code == 200


async def test_H061_the_tag_is_of_what_is_told() -> None:
    """A transport that opens later changes it; the same functions have the same tag in every process."""
    spoken: list[tuple[str, str]] = []
    async with telling(square, spoken=lambda: tuple(spoken)) as client:
        before = await client.get("/functions")
        spoken.append(("riff", "localhost:1"))
        after = await client.get("/functions")
        assert after.json()["protocols"] == [{"name": "riff", "address": "localhost:1"}]
        assert before.headers["etag"] != after.headers["etag"]
    async with telling(square) as client:
        assert (await client.get("/functions")).headers["etag"] == before.headers["etag"]


async def test_H060_it_is_only_read() -> None:
    """HEAD gives the head of GET; other methods are refused with those that are known."""
    async with telling(square) as client:
        got, head = await client.get("/functions"), await client.head("/functions")
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == got.headers["content-length"]
        refused = await client.post("/functions")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
    ],
)
@pytest.mark.parametrize("path", [FUNCTIONS, OPENAPI])
async def test_H063_pages_of_other_origins_do_not_read_it(path: str, headers: dict[str, str], status: int) -> None:
    """The rules of the transport hold as for any other path."""
    async with telling(square) as client:
        assert (await client.get(path, headers=headers)).status_code == status


async def test_H067_the_openapi_document_is_of_what_is_served() -> None:
    """It has a path for each function, and is read as the list is."""
    async with telling(square, repeat) as client:
        response = await client.get("/openapi.json")
        assert response.headers["content-type"] == "application/json"
        told = response.json()
        assert told["openapi"].startswith("3.1.")
        assert {"/square", "/repeat"} <= told["paths"].keys()
        known = {"If-None-Match": response.headers["etag"]}
        assert (await client.get("/openapi.json", headers=known)).status_code == 304
        assert (await client.post("/openapi.json")).status_code == 405


def test_H062_without_reflection_nothing_is_told() -> None:
    """The setting turns it off; without an HTTP transport there is nothing to be asked, either."""
    assert FunctionsService in TABLE.own(TABLE.configured())
    assert FunctionsService not in TABLE.own(TABLE.configured(reflection=False))
    assert FunctionsService not in TABLE.own(TABLE.configured(protocols=("riff",)))


def test_H060_only_its_own_paths_are_claimed() -> None:
    """Others are for functions."""
    service = FunctionsService(around(square))
    paths = ("/", FUNCTIONS, "/functions/", "/function", OPENAPI, "/openapi")
    assert [path for path in paths if service.http_handler(path)] == [FUNCTIONS, OPENAPI]


async def test_H064_nothing_is_made_before_somebody_asks() -> None:
    """The list is made once, by the first who asks; start-up does not pay for it."""
    made = []

    class Counted(Catalog):
        def __iter__(self) -> Iterator[Any]:
            made.append(1)
            return super().__iter__()

    engine = around(square).driver.engine
    engine.catalog = Counted(list(engine.catalog))
    handler = FunctionsHandler(engine, tuple, lambda _: False)
    assert made == []
    for count, path in enumerate((FUNCTIONS, OPENAPI), 1):
        assert await handler.page(path) is await handler.page(path)
        assert made == [1] * count


async def test_H060_a_name_is_written_into_a_path_as_urls_have_it() -> None:
    """Whatever the author has named the function."""

    def odd(x: int) -> int:
        return x

    odd.__name__ = "größe/1 {x}"
    async with telling(odd) as client:
        (told,) = (await client.get("/functions")).json()["functions"]
    assert (told["name"], told["path"]) == ("größe/1 {x}", "/gr%C3%B6%C3%9Fe%2F1%20%7Bx%7D")
    assert told["socket"] == f"{told['path']}/ws"


async def test_H060_a_function_without_a_path_says_so() -> None:
    """What a page or a protocol hides is listed, with its socket, and is not in the OpenAPI document."""
    async with telling(square, repeat, hides=lambda name: name == "square") as client:
        told = (await client.get("/functions")).json()["functions"]
        assert [(one["path"], one["socket"]) for one in told] == [(None, "/square/ws"), ("/repeat", "/repeat/ws")]
        assert "/square" not in (await client.get("/openapi.json")).json()["paths"]


@pytest.mark.parametrize("path", [FUNCTIONS, OPENAPI])
async def test_H064_others_get_the_loop_while_it_is_made(path: str) -> None:
    """Between any two functions, of which there may be many."""

    def named(index: int) -> Any:
        def f(x: int) -> int:
            return x

        f.__name__ = f"f{index}"
        return f

    handler = FunctionsHandler(around(*(named(index) for index in range(20))).driver.engine, tuple, lambda _: False)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await handler.page(path)
    task.cancel()
    assert turns >= 20
