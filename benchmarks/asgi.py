"""ASGI applications on uvicorn, without any code of invoker: GraphPipe inferences are compared with them.

Usage: ``build/peers/bin/python -m benchmarks.asgi echo|kept|json|msgspec``; prints ``http=HOST:PORT`` and serves until
it is killed. ``echo`` answers with the bytes of the request; so does ``kept``, whose process keeps freed memory pages,
as invoker does (`protocols.graphpipe.service.inferences`). The others take a tensor as nested lists in JSON, make an
array of it and answer with the array: ``json`` by Python's library, ``msgspec`` by msgspec.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

Work = Callable[[bytes], bytes]

_HEAP_BYTES = 8 << 20


def _json(body: bytes) -> bytes:
    return json.dumps(np.array(json.loads(body), np.float32).tolist()).encode()


def _msgspec(body: bytes) -> bytes:
    return msgspec.json.encode(np.array(msgspec.json.decode(body), np.float32).tolist())


def _same(body: bytes) -> bytes:
    return body


WORK: dict[str, Work] = {"echo": _same, "kept": _same, "json": _json, "msgspec": _msgspec}


def application(work: Work) -> Any:
    """Make an ASGI application that answers with ``work(body)``."""

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


def main() -> None:
    """Serve the work named on the command line, on uvloop."""
    from uvicorn import Config, Server

    if sys.argv[1] == "kept":
        bytes(_HEAP_BYTES)
    app = application(WORK[sys.argv[1]])
    config = Config(app, http="httptools", loop="uvloop", lifespan="off", log_config=None, access_log=False)
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as sock:
        print(f"ready: http=127.0.0.1:{sock.getsockname()[1]}", flush=True)
        Server(config).run(sockets=[sock])


if __name__ == "__main__":
    main()
