"""A misspelt field of an object is refused on every wire, whatever runs the function (R-171)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec
import pytest

from invoker import Context, function
from invoker.client import EvergreenSession, RiffClient, ToolBridge
from invoker.protocols.evergreen.action_engine.wire import Action, Chunk, Fragment, Metadata
from tests.conftest import SLOW
from tests.serving import Served, serving
from tests.transports.sockets import open_peer

pytestmark = pytest.mark.timeout(20)

JSON = "application/json"
SERVICE = "tests.e2e.test_misspelt.TestMisspeltService"


@dataclass
class Job:
    name: str = "n"
    retries: int = 3


@function
def done(job: Job) -> str:
    return f"{job.name} {job.retries}"


@function
async def later(job: Job) -> str:
    return f"{job.name} {job.retries}"


@function(isolation="process")
def apart(job: Job) -> str:
    return f"{job.name} {job.retries}"


@function
async def each(jobs: AsyncIterator[Job]) -> AsyncIterator[str]:
    async for job in jobs:
        yield f"{job.name} {job.retries}"


@function
async def asks(given: dict[str, Any], ctx: Context) -> str:
    return str(await ctx.call("done", given))


ENV = {"INVOKER_PROTOCOLS": "riff,evergreen,http,action-engine,toolbridge,typed"}
Wire = Callable[[Served, str, dict[str, Any]], Awaitable[str]]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving("tests.e2e.test_misspelt", "--socket-path", "/actions", env=ENV) as made:
        yield made


def http(content_type: str, write: Callable[[dict[str, Any]], Any], path: str = "/{}") -> Wire:
    async def call(served: Served, function: str, given: dict[str, Any]) -> str:
        content, headers = write(given), {"Invoker-Function": function} if path == "/" else {}
        if content_type:
            headers["Content-Type"] = content_type
        async with httpx.AsyncClient(trust_env=False, timeout=10 * SLOW) as client:
            more: dict[str, Any] = {"files": content} if isinstance(content, dict) else {"content": content}
            answer = await client.post(f"http://{served.http}{path.format(function)}", headers=headers, **more)
        return answer.text

    return call


def as_json(given: dict[str, Any]) -> bytes:
    return json.dumps(given).encode()


async def socket(served: Served, function: str, given: dict[str, Any]) -> str:
    async with open_peer(served.http, f"/{function}/ws") as peer:
        await peer.text(json.dumps({"data": given}))
        return str(await peer.message())


async def riff(served: Served, function: str, given: dict[str, Any]) -> str:
    async with RiffClient(served.grpc) as client:
        found = await client.invoke([[given]], function=function, content_type=JSON).collect()
        return str([one.value for one in found])


async def evergreen(served: Served, function: str, given: dict[str, Any]) -> str:
    async with EvergreenSession(served.grpc) as session:
        return str(await session.act(function, {"job": given}).items())


async def action_engine(served: Served, function: str, given: dict[str, Any]) -> str:
    async with open_peer(served.http, "/actions") as peer:
        asked = Action("A", function, (("job", "A#job"),), (("out", "A#out"),))
        await peer.say(asked, Fragment("A#job", Chunk(as_json(given), metadata=Metadata(JSON)), 0))
        return repr(await peer.fragments())


async def tool(served: Served, function: str, given: dict[str, Any]) -> str:
    async with ToolBridge(served.grpc) as bridge, bridge.session() as session:
        return str(await session.call(function, given))


WIRES: dict[str, Wire] = {
    "json": http(JSON, as_json),
    "root": http(JSON, as_json, "/"),
    "member": http(JSON, lambda given: as_json({"job": given})),
    "msgpack": http("application/msgpack", msgspec.msgpack.encode),
    "form": http(
        "application/x-www-form-urlencoded", lambda given: "&".join(f"{k}={v}" for k, v in given.items()).encode()
    ),
    "multipart": http("", lambda given: {key: (None, str(one)) for key, one in given.items()}),
    "event": http("application/cloudevents+json", lambda given: as_json(
        {"specversion": "1.0", "id": "1", "source": "/a", "type": "t", "data": given}
    )),
    "connect": http(JSON, lambda given: as_json({"job": given}), f"/{SERVICE}/{{}}"),
    "socket": socket, "riff": riff, "evergreen": evergreen, "action-engine": action_engine,
    "tool": tool,
}  # fmt: skip
HINT = "did you mean 'name'"


@pytest.mark.parametrize("function", ["done", "later", "apart"])
@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
async def test_R171_a_misspelt_field_is_refused_on_every_wire(served: Served, wire: Wire, function: str) -> None:
    """Other keys are ignored, and what is near a field that is given."""
    name = function.title() if wire is WIRES["connect"] else function
    assert HINT in await told(wire(served, name, {"nmae": "a"}))
    for given in ({"name": "a"}, {"name": "a", "nmae": "b"}, {"name": "a", "utm_source": "x"}):
        assert "a 3" in await told(wire(served, name, given))


async def test_R171_an_item_of_a_stream(served: Served) -> None:
    """Of the lines of a body, and of riff's frames."""
    wire = http("application/x-ndjson", lambda given: as_json(given) + b"\n")
    assert HINT in await told(wire(served, "each", {"nmae": "a"}))
    assert "a 3" in await told(wire(served, "each", {"name": "a"}))
    assert HINT in await told(riff(served, "each", {"nmae": "a"}))


async def test_R171_the_argument_of_a_nested_call(served: Served) -> None:
    """A dict for a parameter with a class is an object as well."""
    assert HINT in await told(riff(served, "asks", {"nmae": "a"}))
    assert "a 3" in await told(riff(served, "asks", {"name": "a"}))


async def told(answer: Awaitable[str]) -> str:
    try:
        return await answer
    except Exception as error:
        return str(error)
