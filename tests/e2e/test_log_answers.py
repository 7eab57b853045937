"""The line of each invocation says what its client got: the status of a response, or the code of a close frame."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import Any, NamedTuple

import httpx
import numpy as np
import pytest
from wsproto.events import CloseConnection

from invoker.client import RiffClient
from invoker.protocols.typed.envelopes import envelope
from tests.conftest import SLOW
from tests.protocols.graphpipe.asking import ask
from tests.serving import Served, serving
from tests.transports.sockets import open_peer

pytestmark = pytest.mark.timeout(30)

MODULES = {"thread": "answered_functions", "loop": "answered_functions_async"}
LONG = " " * 70_000
"""A thread answers no request of this length by itself."""

Got = int | None
"""What the client got; None: it left before there was anything."""


class Server(NamedTuple):
    served: Served
    module: str


Wire = Callable[[Server, str, str, bool], Awaitable[Got]]
_ids = itertools.count()


@pytest.fixture(scope="module", params=MODULES)
def server(request: Any) -> Iterator[Server]:
    env = {"INVOKER_HTTP_TIMEOUT_S": "1", "INVOKER_GRAPHPIPE_TIMEOUT_S": "1"}
    with serving(f"tests.e2e.{MODULES[request.param]}", "--log-format", "json", env=env) as made:
        yield Server(made, MODULES[request.param])


def http(path: str, make: Callable[[str], bytes], content_type: str, *, is_new: bool = False, **more: str) -> Wire:
    """A POST; whoever leaves does so a moment later, or behind the first bytes of the body."""

    async def call(server: Server, how: str, name: str, leaves: bool) -> Got:
        service = f"tests.e2e.{server.module}.{server.module.title().replace('_', '')}Service"
        headers = {"X-Request-Id": name, "Content-Type": content_type, **more}
        url = f"http://{server.served.http}{path.format(service)}"
        limit = httpx.Timeout(10 * SLOW, read={"waits": 0.4, "hesitates": 0.1}[how] if leaves else 10 * SLOW)
        status: Got = None
        client = httpx.AsyncClient(http1=not is_new, http2=is_new, trust_env=False, timeout=limit)
        try:
            async with client, client.stream("POST", url, content=make(how), headers=headers) as answer:
                status = answer.status_code
                async with aclosing(answer.aiter_raw()) as pieces:
                    await read(pieces)
        except (httpx.ReadTimeout, httpx.RemoteProtocolError):
            pass  # it leaves; or the response breaks off, as it should
        return status

    return call


async def read(pieces: AsyncIterator[bytes]) -> None:
    async for _ in pieces:
        pass


async def socket(server: Server, how: str, name: str, leaves: bool) -> Got:
    async with open_peer(server.served.http, "/words/ws", headers={"X-Request-Id": name}) as peer:
        await peer.text(json.dumps({"data": {} if how == "bad" else how}))
        if leaves:
            await (peer.message() if how == "waits" else asyncio.sleep(0.1))
            return None
        return await peer.closed()


async def closing_socket(server: Server, how: str, name: str, leaves: bool) -> Got:
    """It closes the connection itself."""
    async with open_peer(server.served.http, "/words/ws", headers={"X-Request-Id": name}) as peer:
        await peer.text(json.dumps({"data": "waits"}))
        await peer.message()
        await peer.send(CloseConnection(4321))
        await peer.closed()
        return 4321


def as_json(how: str) -> bytes:
    return json.dumps({"how": {} if how == "bad" else how}).encode()


def as_proto(how: str) -> bytes:
    return b"\x0a" + bytes([len(how)]) + how.encode()


def tensors(how: str) -> bytes:
    return ask(np.array(how))


WIRES: dict[str, Wire] = {
    "http": http("/whole", as_json, "application/json"),
    "http long": http("/whole", lambda how: as_json(how + LONG), "application/json"),
    "http2": http("/whole", as_json, "application/json", is_new=True),
    "stream": http("/stream", as_json, "application/json"),
    "stream long": http("/stream", lambda how: as_json(how + LONG), "application/json"),
    "stream of events": http("/stream", as_json, "application/json", Accept="text/event-stream"),
    "stream http2": http("/stream", as_json, "application/json", is_new=True),
    "connect": http("/{}/Word", as_json, "application/json"),
    "connect stream": http("/{}/Words", lambda how: envelope(as_json(how)), "application/connect+json"),
    "connect http2": http("/{}/Words", lambda how: envelope(as_json(how)), "application/connect+json", is_new=True),
    "grpc-web": http("/{}/Word", lambda how: envelope(as_proto(how)), "application/grpc-web+proto"),
    "grpc-web stream": http("/{}/Words", lambda how: envelope(as_proto(how)), "application/grpc-web+proto"),
    "socket": socket,
    "socket that closes": closing_socket,
    "graphpipe": http("/graphpipe/word", tensors, "application/octet-stream"),
    "graphpipe long": http("/graphpipe/word", lambda how: tensors(how + LONG), "application/octet-stream"),
    "graphpipe http2": http("/graphpipe/word", tensors, "application/octet-stream", is_new=True),
}


HOWS = ("ok", "bad", "fails", "breaks", "chooses", "waits", "leaves", "hesitates")
SKIPPED = {
    *(("socket", "waits"),),  # there is no time limit
    *(("socket that closes", how) for how in HOWS[1:]),
    *((wire, "bad") for wire in WIRES if wire.startswith(("graphpipe", "connect", "grpc-web"))),  # opens nothing
}


LATE = ("waits", "leaves")
"""They take half a second or more, so all wires go through them at once."""


@pytest.mark.parametrize(
    ("wire", "how"),
    [(wire, how) for wire in WIRES for how in HOWS if how not in LATE and (wire, how) not in SKIPPED],
)
async def test_the_line_tells_what_the_client_got(server: Server, wire: str, how: str) -> None:
    """Also where the function fails before or behind its first item, chooses the status, or nobody waits."""
    await told(server, wire, how)


@pytest.mark.parametrize("how", LATE)
async def test_the_line_tells_what_the_client_of_a_late_function_got(server: Server, how: str) -> None:
    """On each wire: that the time is over, or nothing, because it does not wait so long."""
    await asyncio.gather(*(told(server, wire, how) for wire in WIRES if (wire, how) not in SKIPPED))


async def told(server: Server, wire: str, how: str) -> None:
    """Call by a wire, and compare what came with the line."""
    name, leaves, is_socket = f"r{next(_ids)}", how in ("leaves", "hesitates"), wire.startswith("socket")
    got = await WIRES[wire](server, "waits" if how == "leaves" else how, name, leaves)
    line = await ending(server.served, name)
    what = f"{wire}, {how}: {line}"
    field, other = ("close_code", "http_status") if is_socket else ("http_status", "close_code")
    expected = {got or (1006 if is_socket else 499)}
    if leaves and got is None and wire.startswith("stream"):
        expected.add(200)  # it left before it read the head, which the server had written by then
    assert line[field] in expected, what
    assert other not in line, what


async def test_what_begins_over_riff_has_no_number(server: Server) -> None:
    """Nor has a nested call, or an action on a socket of sessions."""
    async with RiffClient(server.served.grpc, metadata={"x-request-id": (name := f"r{next(_ids)}")}) as client:
        await client.invoke([["ok"]], function="word", content_type="text/plain").collect()
    assert not {"http_status", "close_code"} & set(await ending(server.served, name))


async def ending(served: Served, name: str) -> dict[str, Any]:
    """The line of the invocation with this id; it has no other."""
    for _ in range(int(200 * SLOW)):
        lines = [json.loads(one) for one in served.lines if f'"{name}"' in one and '"invocation ended' in one]
        if lines:
            (line,) = lines
            return line
        await asyncio.sleep(0.02)
    raise AssertionError("".join(served.lines))
