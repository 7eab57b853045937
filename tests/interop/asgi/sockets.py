"""The `websockets` package as a client of a mounted function; prints what it saw, as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus


async def main(base: str, limit: int) -> None:
    """See what becomes of connections of each kind."""
    seen: dict[str, Any] = {}
    async with connect(f"{base}/double/ws", subprotocols=["invoker.v1"], proxy=None) as peer:
        seen["subprotocol"] = peer.subprotocol
        seen["answers"] = []
        for item in range(3):
            await peer.send(json.dumps({"data": item}))
            seen["answers"].append(json.loads(await peer.recv())["data"])
        await peer.send(json.dumps({"end": True}))
        seen["last"] = json.loads(await peer.recv())
        seen["close"] = await _close(peer)
    async with connect(f"{base}/square/ws", proxy=None) as peer:
        await peer.send("x" * (limit + 1))
        seen["too long"] = [sorted(json.loads(await peer.recv())), await _close(peer)]
    async with connect(f"{base}/large/ws", proxy=None, max_size=None) as peer:
        await peer.send(json.dumps({"data": 50}))
        await peer.send(json.dumps({"end": True}))
        seen["bytes"] = 0
        async for frame in peer:
            seen["bytes"] += len(frame) if isinstance(frame, bytes) else 0
    async with connect(f"{base}/silent/ws", proxy=None) as peer:
        await peer.send(json.dumps({"data": "socket " + base}))
        await peer.send(json.dumps({"end": True}))
        await asyncio.sleep(0.2)
    try:
        async with connect(f"{base}/double/ws", origin="https://evil.example", proxy=None):
            seen["evil"] = "connected"
    except InvalidStatus as error:
        seen["evil"] = error.response.status_code
    print(json.dumps(seen))


async def _close(peer: Any) -> int:
    try:
        await peer.recv()
    except ConnectionClosed as error:
        return error.rcvd.code if error.rcvd else 0
    raise AssertionError("one more frame")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
