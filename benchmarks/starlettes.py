"""Starlette on uvicorn with httptools, uvloop and websockets: streams as a user would write them there.

`benchmarks/peer.py` runs it. Works: ``items`` streams JSON items as events or lines by ``Accept``, and the body is
their number; ``paced`` sleeps a millisecond before each item; ``open`` sends one item and never ends; ``lines`` echoes
lines of JSON, and the messages of a WebSocket. Items have the same bytes as invoker's.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from items import SSE, item  # type: ignore[import-not-found]  # Python looks in the folder of this file first
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

END = "event: end\ndata: {}\n\n"


def _dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _events(count: int) -> Iterator[str]:
    for number in range(count):
        yield f"id: {number + 1}\ndata: {_dumps(item(number))}\n\n"
    yield END


def _lines(count: int) -> Iterator[str]:
    for number in range(count):
        yield _dumps(item(number)) + "\n"


async def _async_events(count: int) -> AsyncIterator[str]:
    for number in range(count):
        yield f"id: {number + 1}\ndata: {_dumps(item(number))}\n\n"
    yield END


async def _async_lines(count: int) -> AsyncIterator[str]:
    for number in range(count):
        yield _dumps(item(number)) + "\n"


async def _paced_events(count: int) -> AsyncIterator[str]:
    for number in range(count):
        await asyncio.sleep(0.001)
        yield f"id: {number + 1}\ndata: {_dumps(item(number))}\n\n"
    yield END


async def _open_events(_count: int) -> AsyncIterator[str]:
    yield f"id: 1\ndata: {_dumps(item(0))}\n\n"
    await asyncio.Event().wait()


class _Echo:
    """Echoes lines while the request still arrives.

    A StreamingResponse cannot do this on uvicorn: while it sends, it receives the request itself, to detect a
    disconnect.
    """

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"application/x-ndjson")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        rest = b""
        async for chunk in Request(scope, receive).stream():
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                body = (_dumps(json.loads(line)) + "\n").encode()
                await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _talk(socket: WebSocket) -> None:
    await socket.accept()
    while True:
        said = await socket.receive_json()
        if "end" in said:
            await socket.send_json({"end": True})
            await socket.close()
            return
        await socket.send_json({"output": "out", "data": said["data"]})


def application(work: str, *, is_async: bool) -> Starlette:
    """Make the application for a work."""

    async def stream(request: Request) -> StreamingResponse:
        count = json.loads(await request.body())
        if work == "paced":
            return StreamingResponse(_paced_events(count), media_type=SSE)
        if work == "open":
            return StreamingResponse(_open_events(count), media_type=SSE)
        if SSE in request.headers["accept"]:
            return StreamingResponse(_async_events(count) if is_async else _events(count), media_type=SSE)
        lines = _async_lines(count) if is_async else _lines(count)
        return StreamingResponse(lines, media_type="application/x-ndjson")

    endpoint: Any = _Echo() if work == "lines" else stream
    return Starlette(routes=[Route("/", endpoint, methods=["POST"]), WebSocketRoute("/{name}/ws", _talk)])
