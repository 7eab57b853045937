"""ASGI applications on hypercorn, without any code of ours: the measure of inferences.

Usage: ``python -m benchmarks.asgi echo|kept|json|msgspec``; prints ``http=HOST:PORT`` and serves until it is killed.
``echo`` answers with the bytes of the request; so does ``kept``, whose process keeps the pages that it has had, as ours
does (`protocols.graphpipe.service.inferences`). The others take a tensor as nested lists in JSON, make an array of it
and answer with that: by the library of Python, and by msgspec.

It spares hypercorn's idle timer, which would cost two tasks a request.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config

Work = Callable[[bytes], bytes]

_HEAP_BYTES = 8 << 20


class _NoTimer:
    async def restart(self, task_group: Any, action: Any) -> None:
        pass

    async def stop(self) -> None:
        pass


def _json(body: bytes) -> bytes:
    return json.dumps(np.array(json.loads(body), np.float32).tolist()).encode()


def _msgspec(body: bytes) -> bytes:
    return msgspec.json.encode(np.array(msgspec.json.decode(body), np.float32).tolist())


def _same(body: bytes) -> bytes:
    return body


WORK: dict[str, Work] = {"echo": _same, "kept": _same, "json": _json, "msgspec": _msgspec}


def application(work: Work) -> Any:
    """Reads the body, does the work, answers."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        chunks, more = [], True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            chunks.append(message["body"])
            more = message["more_body"]
        body = work(b"".join(chunks))
        headers = [(b"content-type", b"application/octet-stream"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


async def _serve(work: str) -> None:
    config = Config()
    config.accesslog = config.errorlog = None
    config.include_server_header = False
    config.keep_alive_max_requests = 2**31 - 1
    app, context, loop = ASGIWrapper(application(WORK[work])), WorkerContext(None), asyncio.get_running_loop()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = TCPServer(app, loop, config, context, {}, reader, writer)
        server.idle_task = _NoTimer()  # type: ignore[assignment]  # it has the two methods that are called
        await server

    listener = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=1024)
    port = listener.sockets[0].getsockname()[1]
    print(f"ready: http=127.0.0.1:{port}", flush=True)
    await listener.serve_forever()


def main() -> None:
    """Serve on the loop that ours would take."""
    if sys.argv[1] == "kept":
        bytes(_HEAP_BYTES)
    factory = None
    with suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(_serve(sys.argv[1]))


if __name__ == "__main__":
    main()
