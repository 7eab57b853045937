"""A Node client of WebSocket at /NAME/ws: the one that Node brings, which is undici's."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.interop.tools import run
from tests.serving import Served

pytestmark = pytest.mark.timeout(30)

PROGRAM = Path(__file__).parent / "websocket.js"
END = {"end": True}


def node(served: Served, path: str, *frames: Any, **plan: Any) -> dict[str, Any]:
    """What Node's client tells."""
    plan |= {"url": f"ws://{served.http}{path}", "frames": frames}
    done = run("node", "--experimental-websocket", PROGRAM, stdin=json.dumps(plan))
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def out(data: Any, name: str = "out") -> dict[str, Any]:
    return {"output": name, "data": data}


def binary(data: bytes) -> dict[str, str]:
    return {"binary": base64.b64encode(data).decode()}


def test_H044_node_gets_an_answer_for_each_item(square: Served) -> None:
    """However many there are, in order, then the end and a clean close."""
    told = node(square, "/square/ws", *({"data": x} for x in range(500)), END, protocols=["invoker.v1"])
    assert told["frames"] == [*(out(x * x) for x in range(500)), END]
    assert (told["code"], told["protocol"], told["errors"]) == (1000, "invoker.v1", 0)


def test_H044_node_sends_binary_frames(square: Served, repeat: Served) -> None:
    """Announced, and for several inputs by name."""
    told = node(square, "/square/ws", {"contentType": "application/json"}, binary(b"7"), END)
    assert told["frames"] == [out(49), END]
    words = [{"input": "words", "data": "ho"}, {"input": "counts", "data": 2}]
    told = node(repeat, "/repeat/ws", *words, {"end": "words"}, {"end": "counts"})
    assert told["frames"] == [out("ho"), out("ho"), END]


def test_node_sends_and_gets_large_messages(named: Served) -> None:
    """A megabyte each way, and a message that is too long is refused with 1009."""
    text = "\u00fc" * 500_000
    told = node(named, "/echo/ws", {"data": text}, END)
    assert told["frames"] == [out(text), END]
    told = node(named, "/echo/ws", {"data": "x" * 5_000_000})
    assert told["code"] == 1009


def test_H049_node_sees_errors(square: Served) -> None:
    """The problem, the code and the text."""
    told = node(square, "/square/ws", {"data": "x"})
    assert (told["frames"][-1]["error"]["status"], told["code"]) == (400, 1008)
    assert told["reason"].startswith("Invoker: Bad Input Signal")
    assert node(square, "/other/ws", END)["errors"] == 1


def test_H048_node_closes_without_the_end(square: Served) -> None:
    """And the close is answered with its code."""
    assert node(square, "/square/ws", {"data": 1}, close=3001)["code"] == 3001
