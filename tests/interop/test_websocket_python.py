"""A Python client of WebSocket at /NAME/ws: `websockets` from PyPI."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.serving import Served

client = pytest.importorskip("websockets.asyncio.client", reason="pip install websockets")

pytestmark = pytest.mark.timeout(30)

END = {"end": True}


def out(data: Any) -> dict[str, Any]:
    return {"output": "out", "data": data}


@pytest.mark.parametrize("deflate", [None, "deflate"])
async def test_websockets_gets_an_answer_for_each_item(square: Served, deflate: str | None) -> None:
    """One after the other, and all at once; also where it offers to compress."""
    async with client.connect(f"ws://{square.http}/square/ws", compression=deflate, proxy=None) as socket:
        for x in range(50):
            await socket.send(json.dumps({"data": x}))
            assert json.loads(await socket.recv()) == out(x * x)
        for x in range(50):
            await socket.send(json.dumps({"data": x}))
        await socket.send([b'{"en', b'd":true}'], text=True)  # in fragments
        found = [json.loads(one) async for one in socket]
    assert (found, socket.close_code) == ([*(out(x * x) for x in range(50)), END], 1000)


async def test_websockets_pings_and_is_answered(square: Served) -> None:
    """With what it has sent, and also while nothing else is said."""
    async with client.connect(f"ws://{square.http}/square/ws", proxy=None) as socket:
        assert await (await socket.ping(b"there?")) < 5
