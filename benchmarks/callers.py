"""Runs client libraries as pinned processes: grpc.aio, grpc-js, http.client, fetch, and a plain socket.

``run`` starts a client with a plan in JSON; the client prints the seconds of each call and of all calls in JSON. Each
client compares every reply with the expected one; the gRPC clients also check that the status is OK. Usage: ``python -m
benchmarks.callers`` or ``node benchmarks/callers.js``, with the plan on stdin.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import shutil
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from http.client import HTTPConnection
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.bodies import WrongReplyError
from benchmarks.client import START_TO_WARM, summary
from benchmarks.http1 import Post
from benchmarks.servers import DRIVER_CORE, pinned

METHOD = "/streaming.Riff/Invoke"
NODE_CLIENTS = Path(__file__).parent.parent / "build" / "clients" / "node_modules"
_NODE = ("grpc-js", "fetch")

Plan = dict[str, Any]


def absences() -> dict[str, str]:
    """Return the drivers that are not installed here, each with the reason for the report."""
    missing = {}
    if shutil.which("node") is None:
        missing = dict.fromkeys(_NODE, "no rows by grpc-js and fetch: node is missing")
    elif not NODE_CLIENTS.exists():
        missing["grpc-js"] = "no rows by grpc-js: it is not installed (`make bench`)"
    return missing


def run(
    driver: str, address: str, sent: Sequence[bytes], reply: bytes, *, streams: int, calls: int, **more: Any
) -> dict[str, float]:
    """Make calls with a client library; return ``p50`` and ``p99`` of a call (microseconds), and ``seconds`` of all.

    Args:
        driver: The name of the library, such as "grpc.aio".
        address: ``host:port``.
        sent: The messages of a gRPC call, or a list with the body of an HTTP request.
        reply: The expected reply.
        streams: The number of calls in flight.
        calls: The number of all calls.
        more: ``path`` and ``headers`` of an HTTP request.

    Raises:
        WrongReplyError: A reply is not the expected one, or the client failed.
    """
    plan = {"driver": driver, "address": address, "streams": streams, "calls": calls, "method": METHOD, **more}
    plan |= {"sent": [b64encode(one).decode() for one in sent], "reply": b64encode(reply).decode()}
    command, environment = [sys.executable, "-m", "benchmarks.callers"], dict(os.environ)
    if driver in _NODE:
        command = ["node", str(Path(__file__).with_suffix(".js"))]
        environment["NODE_PATH"] = str(NODE_CLIENTS)
    done = subprocess.run(
        pinned(DRIVER_CORE, command),
        input=json.dumps(plan),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode:
        raise WrongReplyError(f"{driver}: {done.stderr.strip()[-300:]}")
    found = json.loads(done.stdout)
    took = found["took"]
    return {"seconds": found["seconds"], **summary(took[len(took) // START_TO_WARM :])}


async def _call_all(plan: Plan, sent: Sequence[bytes], reply: bytes) -> list[float]:
    """Make the calls of a plan with grpc.aio; it sends the headers, each message and the half-close separately."""
    import grpc.aio

    took: list[float] = []
    async with grpc.aio.insecure_channel(plan["address"]) as channel:
        method = channel.stream_stream(plan["method"])

        async def one_after_another(count: int) -> None:
            for _ in range(count):
                began = perf_counter()
                call = method()
                for message in sent:
                    await call.write(message)
                await call.done_writing()
                got = [message async for message in call]
                code = await call.code()
                took.append(perf_counter() - began)
                if got != [reply] or code is not grpc.StatusCode.OK:
                    raise WrongReplyError(f"{code}, {got!r:.200}")

        share = plan["calls"] // plan["streams"]
        await asyncio.gather(*(one_after_another(share) for _ in range(plan["streams"])))
    return took


def _ask_all(plan: Plan, ask: Callable[[], bytes], reply: bytes) -> list[float]:
    """Send the requests of a plan one after another."""
    took = []
    for _ in range(plan["calls"]):
        began = perf_counter()
        got = ask()
        took.append(perf_counter() - began)
        if got != reply:
            raise WrongReplyError(f"the reply is {got!r:.200}")
    return took


def _by_socket(plan: Plan, body: bytes) -> Callable[[], bytes]:
    post = Post(plan["address"], body, path=plan["path"], headers=plan["headers"])
    return lambda: bytes(post.ask().body)


def _by_http_client(plan: Plan, body: bytes) -> Callable[[], bytes]:
    connection = HTTPConnection(plan["address"])

    def ask() -> bytes:
        connection.request("POST", plan["path"], body, plan["headers"])
        response = connection.getresponse()
        data = response.read()
        if response.status != 200:
            raise WrongReplyError(f"status {response.status}: {data!r:.200}")
        return data

    return ask


def main() -> int:
    """Run the plan given on stdin, and print the times in JSON."""
    plan = json.load(sys.stdin)
    sent, reply = [b64decode(one) for one in plan["sent"]], b64decode(plan["reply"])
    gc.disable()
    began = perf_counter()
    if plan["driver"] == "grpc.aio":
        took = asyncio.run(_call_all(plan, sent, reply))
    else:
        ask = {"socket": _by_socket, "http.client": _by_http_client}[plan["driver"]](plan, sent[0])
        took = _ask_all(plan, ask, reply)
    print(json.dumps({"took": took, "seconds": perf_counter() - began}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
