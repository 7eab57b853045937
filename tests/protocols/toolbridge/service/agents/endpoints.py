"""An OpenAI-compatible endpoint on loopback, which answers as a test says, and notes what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


def text(**fields: Any) -> str:
    """What a model writes when it fills in fields."""
    return "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in fields.items()) + "\n\n[[ ## completed ## ]]"


def step(thought: str, tool: str, args: Any = "{}") -> str:
    """One step of a model."""
    shown = args if isinstance(args, str) else json.dumps(args)
    return text(next_thought=thought, next_tool_name=tool, next_tool_args=shown)


class Chat:
    """The endpoint.

    Args:
        answers: In turn; the last stays. Text is what the model says, a number is a status, a function answers itself.

    Attributes:
        asked: The requests, each with its path, headers and body.
        url: Its base URL.
    """

    def __init__(self, *answers: str | int | Callable[[BaseHTTPRequestHandler], object]) -> None:
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.came = threading.Event()
        self._answers = list(answers)
        chat = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                chat.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
                chat.came.set()
                chat.answer(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # peers may leave
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        given = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if callable(given):
            given(handler)
            return
        status = given if isinstance(given, int) else 200
        key = handler.headers.get("authorization", "")
        said: dict[str, Any] = {"error": {"message": f"not with {key}", "type": "x", "code": None}}
        if status == 200:
            message = {"role": "assistant", "content": given}
            said = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
            said["choices"] = [{"index": 0, "message": message, "finish_reason": "stop"}]
            said["usage"] = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        reply(handler, status, json.dumps(said).encode())

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.socket.close()


def reply(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    """Write a response, after which the connection ends."""
    handler.send_response(status)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(len(body)))
    handler.send_header("connection", "close")
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)
