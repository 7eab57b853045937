"""A dataclass that came without a field is whole in the function and when it leaves, whoever calls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx
import msgspec
import pytest

from invoker import Context, function
from invoker.client import EvergreenSession, RiffClient, SyncToolBridge
from tests.serving import Served, serving


@dataclass
class Step:
    """The inner class."""

    of: str
    retries: int = 3


@dataclass
class Job:
    """The outer one."""

    name: str
    retries: int = 3
    first: Step = field(default_factory=lambda: Step("f"))
    unasked: int = field(default=7, init=False)


SENT = {"name": "a", "first": {"of": "b"}}
WHOLE = {"name": "a", "retries": 3, "first": {"of": "b", "retries": 3}, "unasked": 7}
SEEN = "['first', 'name', 'retries'] ['of', 'retries']"


@function
def same(job: Job) -> Job:
    """What leaves."""
    return job


@function
def seen(job: Job) -> str:
    """What the function sees."""
    return f"{sorted(set(vars(job)) - {'unasked'})} {sorted(vars(job.first))}"


@function
def each(jobs: Iterator[Job]) -> Iterator[Job]:
    """Item by item."""
    yield from jobs


@function
def makes(name: str) -> list[Job]:
    """Instances of its own, in a list."""
    return [Job(name, first=Step("b"))]


@function
def makes_one(name: str):  # type: ignore[no-untyped-def]
    """One of its own, without an annotation."""
    return Job(name, first=Step("b"))


@function
async def calls(job: Job, ctx: Context) -> str:
    """By another function."""
    return str(await ctx.call("seen", job))


@function(isolation="process")
def isolated(job: Job) -> Job:
    """In a process of its own."""
    assert seen(job) == SEEN, vars(job)
    return job


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving("tests.e2e.test_left_out") as one:
        yield one


@pytest.mark.parametrize("name", ["same", "isolated"])
def test_http(served: Served, name: str) -> None:
    """JSON, MessagePack, and a stream of lines."""
    url = f"http://{served.http}/{name}"
    packed = {"Content-Type": "application/msgpack", "Accept": "application/msgpack"}
    lines = {"Content-Type": "application/x-ndjson", "Accept": "application/x-ndjson"}
    assert httpx.post(url, json=SENT).json() == WHOLE
    answer = httpx.post(url, content=msgspec.msgpack.encode(SENT), headers=packed)
    assert msgspec.msgpack.decode(answer.content) == WHOLE
    answer = httpx.post(f"http://{served.http}/each", content=json.dumps(SENT), headers=lines)
    assert json.loads(answer.text) == WHOLE


def test_what_the_function_makes(served: Served) -> None:
    """A field that no constructor takes leaves, too."""
    assert httpx.post(f"http://{served.http}/makes", json="a").json() == [WHOLE]
    assert httpx.post(f"http://{served.http}/makes_one", json="a").json() == WHOLE


@pytest.mark.parametrize("name", ["seen", "calls"])
def test_what_the_function_sees(served: Served, name: str) -> None:
    """Over HTTP, the tool bridge, the typed service and when another function calls it."""
    assert httpx.post(f"http://{served.http}/{name}", json=SENT).json() == SEEN
    with SyncToolBridge(served.grpc) as bridge, bridge.session() as session:
        assert session.call(name, SENT) == SEEN


async def test_riff_and_evergreen(served: Served) -> None:
    """The streaming protocols."""
    async with RiffClient(served.grpc) as client:
        for name in ("same", "each", "isolated"):
            found = [one.value async for one in client.invoke([[SENT]], function=name)]
            assert found == [WHOLE]
    async with EvergreenSession(served.grpc) as session:
        assert await session.act("same", {"job": SENT}).items() == [WHOLE]
        assert await session.act("seen", {"job": SENT}).text() == SEEN


def test_tool_bridge(served: Served) -> None:
    """Values of the host, also as they come back."""
    with SyncToolBridge(served.grpc) as bridge, bridge.session() as session:
        assert session.call("same", SENT) == WHOLE
        assert session.call("isolated", SENT) == WHOLE
