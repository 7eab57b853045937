"""A client on action-engine: reads a plan as JSON from stdin, does it, and prints its account as JSON.

The plan is ``{"address": HOST:PORT, "path": PATH, "sessions": [[CALL, ...], ...]}``; the calls of all sessions run at
the same time. A call is ``{"name", "id", "inputs": {NAME: [ITEM, ...]}, "outputs": [NAME, ...]}`` and may have
``"dispatch"`` (wait until it is accepted), ``"turns"`` (NAME of the input whose next item is put only when an output
has come), ``"headers"``, ``"open"`` (inputs that are not ended), or ``"type"`` (media type of inputs). Items are texts,
or other JSON values.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import actionengine as ae

LIMIT_S = 10.0


def schema(call: dict[str, Any]) -> ae.ActionSchema:
    """What the client believes of an action."""
    kind = call.get("type", "text/plain")
    return ae.ActionSchema(
        name=call["name"],
        inputs=[(name, kind) for name in call["inputs"]],
        outputs=[(name, kind) for name in call["outputs"]],
    )


def said(error: BaseException) -> str:
    """An error in the account."""
    return f"{type(error).__name__}: {error}"


class Call:
    """One call of a session."""

    def __init__(self, plan: dict[str, Any], action: Any) -> None:
        self.plan = plan
        self.action = action
        self.account: dict[str, Any] = {"outputs": {name: [] for name in plan["outputs"]}, "errors": {}, "order": []}

    async def run(self) -> dict[str, Any]:
        """Put the inputs and read the outputs; what came, and how it ended."""
        for name, value in self.plan.get("headers", {}).items():
            self.action.set_header(name, value.encode())
        if self.plan.get("dispatch"):
            try:
                await self.action.call_and_wait_for_dispatch_status()
                self.account["dispatch"] = "OK"
            except Exception as error:
                self.account["dispatch"] = said(error)
        else:
            await self.action.call()
        turn = asyncio.Semaphore(0)
        readers = [self.read(name, turn) for name in self.plan["outputs"]]
        writers = [self.write(name, items, turn) for name, items in self.plan["inputs"].items()]
        await asyncio.gather(*writers, *readers, self.end())
        return self.account

    async def write(self, name: str, items: list[Any], turn: asyncio.Semaphore) -> None:
        """Put the items of an input."""
        node = self.action[name]
        for index, one in enumerate(items):
            if index and self.plan.get("turns") == name:
                await turn.acquire()
            self.account["order"].append(f"> {name} {index}")
            await node.put(one)
        if name not in self.plan.get("open", []):
            await node.finalize()

    async def read(self, name: str, turn: asyncio.Semaphore) -> None:
        """Take the items of an output."""
        node = self.action[name]
        try:
            while (item := await node.next(LIMIT_S)) is not None:
                self.account["order"].append(f"< {name} {len(self.account['outputs'][name])}")
                self.account["outputs"][name].append(item)
                turn.release()
        except Exception as error:
            self.account["errors"][name] = said(error)

    async def end(self) -> None:
        """Wait for the status."""
        try:
            async with asyncio.timeout(LIMIT_S):
                await self.action.wait_until_complete()
            self.account["status"] = "OK"
        except Exception as error:
            self.account["status"] = said(error)


async def converse(address: str, path: str, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One session."""
    host, _, port = address.rpartition(":")
    stream = ae.websockets.make_websocket_stream(host, path, int(port))
    await asyncio.to_thread(stream.start)
    registry, nodes = ae.ActionRegistry(), ae.NodeMap()
    session = ae.Session(nodes, registry)
    session.dispatch_from(stream)
    made = []
    for call in calls:
        if not registry.is_registered(call["name"]):
            registry.register(call["name"], schema(call))
        action = registry.make_action(call["name"], call["id"], node_map=nodes, stream=stream, session=session)
        made.append(Call(call, action))
    accounts = await asyncio.gather(*(one.run() for one in made))
    await asyncio.to_thread(stream.half_close)
    return accounts


async def main() -> None:
    """Do the plan."""
    plan = json.load(sys.stdin)
    # Whoever waits for an item or a status keeps a thread.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(64))
    sessions = (converse(plan["address"], plan["path"], calls) for calls in plan["sessions"])
    print(json.dumps(await asyncio.gather(*sessions)), flush=True)
    os._exit(0)  # its threads do not end with the interpreter


asyncio.run(main())
