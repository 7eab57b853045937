"""A server on action-engine: serves two actions on a port of 127.0.0.1 until it is killed; says ``up`` first."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import actionengine as ae

TEXT = "text/plain"


async def echo(action: Any) -> None:
    """Pass each item on."""
    async for one in action["x"]:
        await action["y"].put(one)
    await action["y"].finalize()


async def concat(action: Any) -> None:
    """Join two texts."""
    left, right = await action["a"].consume(), await action["b"].consume()
    await action["y"].put_and_finalize(left + right)


async def main() -> None:
    """Serve."""
    registry = ae.ActionRegistry()
    outputs = [("y", TEXT)]
    registry.register("echo", ae.ActionSchema(name="echo", inputs=[("x", TEXT)], outputs=outputs), echo)
    registry.register(
        "concat", ae.ActionSchema(name="concat", inputs=[("a", TEXT), ("b", TEXT)], outputs=outputs), concat
    )
    service = ae.Service(registry)
    server = ae.websockets.WebsocketServer(service, "127.0.0.1", int(sys.argv[1]))
    server.run()
    print("up", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
