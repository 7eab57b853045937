"""Other frameworks that do the work of benchmarks/functions.py. They run in a Python environment of their own.

Usage: ``python benchmarks/peer.py fastapi|afastapi|uvicorn|functions|litserve square|json|echo|tensor``, or one of
``starlette|astarlette`` with a work of `benchmarks/starlettes.py`; prints ``http=HOST:PORT`` when it answers, and
serves ``/`` until it is killed. The work ``square`` returns the square of a number; ``json``, ``echo`` and ``tensor``
return the object, the text or the nested lists of the request. ``uvicorn`` is a bare ASGI application: it returns the
request body for every work. LitServe does only the works in JSON.
"""

import json
import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

HOST = "127.0.0.1"
_POLL_S = 0.02


def fastapi(work: str, port: int) -> None:
    """Serve ``def`` endpoints, which FastAPI calls in a thread pool."""
    from fastapi import Body, FastAPI
    from fastapi.responses import PlainTextResponse

    def square(x: int = Body()) -> int:
        return x * x

    def same_object(x: dict[str, Any] = Body()) -> dict[str, Any]:
        return x

    def same_lists(x: list[list[float]] = Body()) -> list[list[float]]:
        return x

    def same_text(x: str = Body(media_type="text/plain")) -> PlainTextResponse:
        return PlainTextResponse(x)

    app = FastAPI()
    app.post("/")({"square": square, "json": same_object, "tensor": same_lists, "echo": same_text}[work])
    _run_uvicorn(app, port)


def afastapi(work: str, port: int) -> None:
    """Serve ``async def`` endpoints, which FastAPI calls on its event loop."""
    from fastapi import Body, FastAPI
    from fastapi.responses import PlainTextResponse

    async def square(x: int = Body()) -> int:
        return x * x

    async def same_object(x: dict[str, Any] = Body()) -> dict[str, Any]:
        return x

    async def same_lists(x: list[list[float]] = Body()) -> list[list[float]]:
        return x

    async def same_text(x: str = Body(media_type="text/plain")) -> PlainTextResponse:
        return PlainTextResponse(x)

    app = FastAPI()
    app.post("/")({"square": square, "json": same_object, "tensor": same_lists, "echo": same_text}[work])
    _run_uvicorn(app, port)


def uvicorn(_work: str, port: int) -> None:
    """Serve an ASGI application without a framework, which returns the request body."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = [(b"content-type", b"application/octet-stream"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    _run_uvicorn(app, port)


def starlette(work: str, port: int) -> None:
    """Serve streams of sync generators, which Starlette calls in a thread pool."""
    # Python looks in the folder of this file first
    from starlettes import application  # type: ignore[import-not-found]

    _run_uvicorn(application(work, is_async=False), port)


def astarlette(work: str, port: int) -> None:
    """Serve streams of async generators, and WebSockets."""
    from starlettes import application

    _run_uvicorn(application(work, is_async=True), port)


def functions(work: str, port: int) -> None:
    """Serve by the command of functions-framework without its debug flag, which starts gunicorn with threads."""
    from functions_framework._cli import _cli

    os.environ["HOST"], os.environ["PORT"] = HOST, str(port)
    _cli(["--target", f"http_{work}", "--source", __file__])


def litserve(_work: str, port: int) -> None:
    """Serve by LitServe with one worker and one API server."""
    from lit import Api  # type: ignore[import-not-found]  # Python looks in the folder of this file first
    from litserve import LitServer

    server = LitServer(Api(api_path="/"), accelerator="cpu", workers_per_device=1)
    server.run(HOST, port, num_api_servers=1, log_level="error", generate_client_file=False, access_log=False)


def http_square(request: Any) -> Any:
    """Return the square of a number, for functions-framework."""
    return json.dumps(request.get_json() ** 2), {"content-type": "application/json"}


def http_echo(request: Any) -> Any:
    """Return the text of the request, for functions-framework."""
    return request.get_data(as_text=True), {"content-type": "text/plain"}


def _run_uvicorn(app: Any, port: int) -> None:
    from uvicorn import run

    run(app, host=HOST, port=port, http="httptools", loop="uvloop", log_level="error", access_log=False)


def _announce(port: int) -> None:
    """Print the address once the port accepts connections."""
    silence = threading.Event()
    while True:
        with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
            break
        silence.wait(_POLL_S)
    print(f"ready: http={HOST}:{port}", flush=True)


PEERS: dict[str, Callable[[str, int], None]] = {
    "fastapi": fastapi,
    "afastapi": afastapi,
    "uvicorn": uvicorn,
    "starlette": starlette,
    "astarlette": astarlette,
    "functions": functions,
    "litserve": litserve,
}


def main() -> None:
    """Serve the framework and work of the command line on a free port."""
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    threading.Thread(target=_announce, args=(port,), daemon=True).start()
    PEERS[sys.argv[1]](sys.argv[2], port)


if __name__ == "__main__":
    main()
