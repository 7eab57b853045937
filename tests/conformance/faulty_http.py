"""A small HTTP/1.1 handler on bare sockets that can be told to be wrong; it serves echo, square and respond."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Self

JSON, TEXT, OCTETS = "application/json", "text/plain", "application/octet-stream"


class Handler:
    """``async with`` starts and stops it; ``address`` says where.

    Args:
        faults: What it does wrong; see `tests.conformance.test_http`.
    """

    def __init__(self, *faults: str) -> None:
        self.faults = frozenset(faults)
        self.address = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.address = "{}:{}".format(*self._server.sockets[0].getsockname())
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                line, *fields = head.rstrip("\r\n").split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
                body = await self._body(reader, headers)
                method, path, _ = line.split(" ")
                status, extra, content = self._answer(method, path.partition("?")[0], headers, body)
                lines = [f"{name}: {value}" for name, value in extra.items()]
                head = "\r\n".join([f"HTTP/1.1 {status} X", *lines, f"Content-Length: {len(content)}", "", ""])
                writer.write(head.encode() + content)
                if headers.get("connection") == "close" or "closes the connection" in self.faults:
                    break
        except (asyncio.IncompleteReadError, ValueError):
            pass  # the client left, or a fault of ours took a body for a request
        finally:
            writer.close()

    async def _body(self, reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked" or "ignores chunks" in self.faults:
            return await reader.readexactly(int(headers.get("content-length", "0")))
        body = b""
        while size := int(await reader.readline(), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
        return body

    def _answer(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        if path != "/" and "serves any path" not in self.faults:
            return 404, {}, b"no such path\n"
        if method != "POST":
            return 405, {} if "no Allow" in self.faults else {"Allow": "POST"}, b"POST only\n"
        media_type, accept = headers.get("content-type", OCTETS), headers.get("accept", "*/*")
        if media_type not in (JSON, OCTETS, TEXT):
            return self._error(415, "Invoker: Unsupported Media Type: no codec", accept)
        try:
            value: Any = body if media_type == OCTETS else json.loads(body)
            result, extra = self._call(headers.get("invoker-function", ""), value)
        except (ValueError, TypeError) as error:
            return self._error(500 if "500 for bad input" in self.faults else 400, f"Invoker: {error}", accept)
        if any("\n" in part for pair in extra.items() for part in pair) and "splits headers" not in self.faults:
            return self._error(500, "Invoker: Unexpected Error: a header with a line end", accept)
        status = int(extra.get("X-Http-Status", "200"))
        if "keeps the status header" not in self.faults:
            extra.pop("X-Http-Status", None)
        if "lets headers clash" not in self.faults:
            extra = {name: extra[name] for name in extra if name.startswith("X-")}
        out = OCTETS if isinstance(result, bytes) else TEXT if accept == TEXT else JSON
        content = (
            result
            if isinstance(result, bytes)
            else str(result).encode()
            if out == TEXT
            else json.dumps(result).encode()
        )
        return status, {"Content-Type": out, **extra}, content

    def _call(self, function: str, value: Any) -> tuple[Any, dict[str, str]]:
        if function == "square":
            return value * value, {}
        if function == "respond":
            return value["payload"], dict(value["headers"])
        return value, {}

    def _error(self, status: int, text: str, accept: str) -> tuple[int, dict[str, str], bytes]:
        first = max(accept.split(","), key=lambda part: float((part.partition("q=")[2] or "1").strip()))
        if first.strip().startswith(JSON) and "text errors only" not in self.faults:
            return status, {"Content-Type": JSON}, json.dumps({"error": text}).encode()
        return status, {"Content-Type": TEXT}, text.encode() + b"\n" * ("no newline" not in self.faults)
