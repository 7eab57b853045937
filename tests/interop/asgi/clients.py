"""Starlette's test client and httpx's ASGI transport, on applications in this process; prints what it saw, as JSON."""

from __future__ import annotations

import asyncio
import gc
import json
import threading

import httpx
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

import invoker

STARTS: list[str] = []


def square(x: int) -> int:
    return x * x


def _load() -> None:
    STARTS.append("started")


square.init = _load  # type: ignore[attr-defined]
square.destroy = lambda: STARTS.append("stopped")  # type: ignore[attr-defined]


def main() -> None:
    """See what becomes of an application under clients of each kind."""
    functions = invoker.asgi(square)
    app = Starlette(routes=[Mount("/fn", functions)], lifespan=functions.lifespan)
    seen: dict[str, object] = {}
    with TestClient(app) as client:
        seen["entered"] = [client.post("/fn/square", json=value).text for value in range(3)]
        seen["redirected"] = client.post("/fn", json=3).text
        with client.websocket_connect("/fn/square/ws") as socket:
            socket.send_json({"data": 9})
            seen["socket"] = socket.receive_json()["data"]
    seen["starts when entered"] = [*STARTS]
    STARTS.clear()
    client = TestClient(app)
    seen["not entered"] = [client.post("/fn/square", json=value).text for value in range(3)]
    seen["starts when not entered"] = [*STARTS]
    seen["httpx"] = asyncio.run(_ask(app))
    gc.collect()
    seen["threads"] = [one.name for one in threading.enumerate() if one is not threading.main_thread()]
    print(json.dumps(seen))


async def _ask(app: Starlette) -> str:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        return (await client.post("/fn/square", json=5)).text


if __name__ == "__main__":
    main()
