"""The field ``run`` of the line of a call: how its function ran, beside async functions and without any."""

from __future__ import annotations

import json
import signal
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from invoker.client import SyncRiffClient
from tests.e2e.process import Process, started

pytestmark = pytest.mark.timeout(30)

JSON = "application/json"
SYNC = """
from collections.abc import Iterator
from invoker import Context, function

@function
def one(x: int) -> int:
    return x

@function
def many(xs: Iterator[int]) -> Iterator[int]:
    yield from xs

@function
def nested(x: int, context: Context) -> int:
    return context.call("one", x)
"""
BOTH = (
    SYNC
    + """
from collections.abc import AsyncIterator

@function
async def aone(x: int) -> int:
    return x

@function
async def amany(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    async for x in xs:
        yield x

@function(isolation="process")
def apart(x: int) -> int:
    return x
"""
)


def runs_of(process: Process, *names: str) -> dict[str, list[str]]:
    """Call the functions by riff and by HTTP; returns what the lines of their calls say, the lines of riff first."""
    grpc, http = process.ready()
    with SyncRiffClient(grpc) as client:
        for name in names:
            assert client.invoke([[7]], accept=[JSON], content_type=JSON, function=name).collect()
    for name in names:
        with closing(HTTPConnection(http, timeout=10)) as connection:
            connection.request("POST", f"/{name}", b"7", {"content-type": JSON})
            assert b"7" in connection.getresponse().read()
    process.send(signal.SIGTERM)
    assert process.exit_code() == 0
    lines = [json.loads(line) for line in process.lines if line.startswith("{")]  # warnings of gRPC's core stand beside
    ended = [one for one in lines if one["message"] == "invocation ended"]
    return {
        name: [one["run"] for one in ended if one["function"] == name and "parent" not in one] for name in names
    } | {"callees": sorted({one["run"] for one in ended if "parent" in one})}


def test_where_all_functions_are_sync(tmp_path: Path) -> None:
    """Nothing takes a hop."""
    (tmp_path / "all_sync.py").write_text(SYNC)
    with started("all_sync", cwd=tmp_path) as process:
        found = runs_of(process, "one", "many", "nested")
    assert found == {"one": ["thread"] * 2, "many": ["thread"] * 2, "nested": ["thread"] * 2, "callees": ["caller"]}


def test_where_some_functions_are_async(tmp_path: Path) -> None:
    """On gRPC the loop reads the calls, so a sync function runs in the pool."""
    (tmp_path / "of_both.py").write_text(BOTH)
    with started("of_both", cwd=tmp_path) as process:
        found = runs_of(process, "one", "many", "nested", "aone", "amany", "apart")
    assert found["one"] == found["nested"] == ["pool", "thread"]
    assert found["many"][0] == "pool"
    assert (found["aone"][1], found["amany"]) == ("task", ["loop"] * 2)
    assert found["aone"][0] in ("task", "loop")  # by when its half-close comes
    assert (found["apart"], found["callees"]) == (["process"] * 2, ["caller"])
