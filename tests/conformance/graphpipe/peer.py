"""A small GraphPipe server on bare sockets that can be told to be wrong: what the GraphPipe chapters have to catch.

Without faults it is right in all that the scenarios of `test_scenarios` judge. It shares no code with the invoker but
the suite's own builder of buffers.
"""

from __future__ import annotations

import asyncio
import json
import struct
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

from invoker_conformance.graphpipe.tensors import spelled
from tests.conformance.graphpipe.flat import MALFORMED, TOO_LARGE, Infer, Reader, Refused
from tests.conformance.graphpipe.inferring import Batches, error_buffer, inferred, metadata_buffer, tensors_buffer
from tests.conformance.graphpipe.named import MODELS

STATUS = {13: 413, 14: 500, 15: 504, 16: 503, 18: 500}
TIMEOUT, OVERLOADED = 15, 16
LIMIT_BYTES = 1 << 20


class Peer:
    """A server of the named models; ``async with`` starts and stops it.

    Args:
        faults: What it does wrong; see `test_scenarios`.
        timeout_s: Its limit of an inference.
        most: Its limit of inferences at once.
    """

    def __init__(self, *faults: str, timeout_s: float = 30.0, most: int = 1000) -> None:
        self.faults = frozenset(faults)
        self.timeout_s = timeout_s
        self.most = most
        self.running = 0
        self.marks: Counter[str] = Counter()
        self.batches = Batches(self)
        self.http = self.tcp = ""
        self.kept: list[Any] = []
        self.tasks: set[asyncio.Task[Any]] = set()

    def has(self, fault: str) -> bool:
        """Whether it was told to be wrong in this way."""
        return fault in self.faults

    async def __aenter__(self) -> Self:
        self.servers = [
            await asyncio.start_server(transport, "127.0.0.1", 0) for transport in (self._http, self._socket)
        ]
        self.http, self.tcp = (f"127.0.0.1:{server.sockets[0].getsockname()[1]}" for server in self.servers)
        return self

    async def __aexit__(self, *exc: object) -> None:
        for server in self.servers:
            server.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def answer(self, name: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Code, 0 for success, and buffer."""
        try:
            request = Reader(body, self.has, LIMIT_BYTES).request()
            if request is None:
                return 0, metadata_buffer(self, name)
            return 0, tensors_buffer(self, await self._limited(name, request, headers))
        except Refused as refused:
            return refused.code, error_buffer(self, refused)

    async def _limited(self, name: str, request: Infer, headers: Mapping[str, str]) -> Any:
        if self.running >= self.most:
            raise Refused(OVERLOADED, "too many at once")
        self.running += 1
        try:
            async with asyncio.timeout(None if self.has("is never too late") else self.timeout_s):
                return await inferred(self, name, request, headers)
        except TimeoutError:
            raise Refused(TIMEOUT, "too late") from None
        finally:
            self.running -= 1

    async def _http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._owned(HttpConnection(self, reader, writer).serve(), writer)

    async def _socket(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._owned(self._messages(reader, writer), writer)

    async def _owned(self, serving: Any, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(serving)
        self.tasks.add(task)
        with suppress(asyncio.CancelledError, OSError, EOFError, struct.error, IndexError, ValueError):
            await task
        self.tasks.discard(task)
        writer.close()

    async def _messages(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A bare socket."""
        answers: list[bytes] = []
        while len(prefix := await reader.read(4)) > 0:
            prefix += await reader.readexactly(4 - len(prefix))
            (size,) = struct.unpack("<I", prefix)
            if not 0 < size <= LIMIT_BYTES and not self.has("believes lengths"):
                await self._send(writer, error_buffer(self, Refused(TOO_LARGE if size else MALFORMED, f"{size} bytes")))
                return
            try:
                body = await reader.readexactly(size)
            except asyncio.IncompleteReadError as cut:
                if not self.has("invokes what was cut"):
                    return
                body = cut.partial
            code, buffer = await self.answer("mirror", body, {})
            answers.append(buffer)
            if self.has("reads on"):
                continue
            if self.has("answers in another order") and len(answers) == 2:
                continue
            for each in reversed(answers[1:] or answers):
                await self._send(writer, each)
            del answers[1:]
            if code and self.has("closes after errors"):
                return

    async def _send(self, writer: asyncio.StreamWriter, buffer: bytes) -> None:
        writer.write((b"" if self.has("sends no lengths") else struct.pack("<I", len(buffer))) + buffer)
        await writer.drain()


class HttpConnection:
    """One connection; what comes is read ahead, so that its end is seen while a model runs."""

    def __init__(self, peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.peer = peer
        self.source = reader
        self.writer = writer
        self.reader = asyncio.StreamReader(limit=1 << 24)
        self.version = "HTTP/1.1"

    async def serve(self) -> None:
        """Answer one request after the other."""
        filling = asyncio.ensure_future(self._fill())
        try:
            while await self._request(filling):
                pass
        finally:
            filling.cancel()

    async def _fill(self) -> None:
        with suppress(OSError):
            while data := await self.source.read(1 << 16):
                self.reader.feed_data(data)
        self.reader.feed_eof()

    async def _request(self, filling: asyncio.Future[None]) -> bool:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, path, self.version = head[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:]) if name}
        is_small = int(headers.get("content-length", 0)) <= LIMIT_BYTES
        if headers.get("expect") and (is_small or self.peer.has("continues before it looks")):
            self.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await self._body(headers)
        if body is None:
            self._write(413, error_buffer(self.peer, Refused(TOO_LARGE, "a body")), TOO_LARGE, close=True)
            await filling  # closing earlier would reset the connection, and that could overtake the answer
            return False
        answering = asyncio.ensure_future(self._answer(method, path, headers, body))
        waited = {answering} if self.peer.has("does not see who leaves") else {answering, filling}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            answering.cancel()
            await asyncio.wait((answering,))
            return False
        return answering.result()

    async def _body(self, headers: Mapping[str, str]) -> bytes | None:
        """None: it is too large."""
        if headers.get("transfer-encoding") == "chunked" and not self.peer.has("knows no chunks"):
            body = b""
            while size := int(await self.reader.readuntil(b"\r\n"), 16):
                body += (await self.reader.readexactly(size + 2))[:-2]
                if len(body) > LIMIT_BYTES:
                    return None
            await self.reader.readuntil(b"\r\n")
            return body
        size = int(headers.get("content-length", 0))
        if size > LIMIT_BYTES - self.peer.has("refuses the last byte") and not self.peer.has("believes lengths"):
            return None
        return await self.reader.readexactly(size)

    async def _answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> bool:
        has = self.peer.has
        if path == "/control/is_ready" and has("is never ready"):
            return self._write(503, b"no\n", media_type="text/plain")
        if path.startswith("/control/"):
            known = {"/control/is_ready", "/control/is_alive"} | ({"/control/shutdown"} if has("shuts down") else set())
            return self._write(200 if path in known else 404, b"ok\n", media_type="text/plain")
        name = path.removeprefix("/graphpipe/")
        if path == "/" or (name not in MODELS and has("answers any path")):
            name = "mirror"
        if name not in MODELS or (path == "/" and has("has no root")):
            return self._write(404, b"no such model\n", media_type="text/plain")
        if method in ("GET", "HEAD"):
            self.peer.marks["mirror.calls"] += has("infers to describe")
            told = json.dumps(self._listed(name)).encode()
            return self._write(200, told, media_type="application/json", is_bodiless=method == "HEAD")
        if method != "POST" and not has("takes any method"):
            return self._write(405, b"", media_type="text/plain", extra="Allow: GET, HEAD, POST\r\n")
        if headers.get("content-encoding", "identity") != "identity" and not has("ignores codings"):
            return self._write(415, b"", media_type="text/plain")
        if not _accepted(headers.get("accept", "*/*")) and not has("ignores Accept"):
            return self._write(406, b"", media_type="text/plain")
        if has("wants a content type") and headers.get("content-type") != "application/octet-stream":
            return self._write(415, b"", media_type="text/plain")
        code, buffer = await self.peer.answer(name, body, headers)
        if code and has("tells errors as text"):
            return self._write(400, b"error\n", media_type="text/plain")
        is_closing = bool(code) and has("closes after errors")
        return self._write(STATUS.get(code, 400) if code else 200, buffer, code, close=is_closing)

    def _listed(self, name: str) -> dict[str, Any]:
        model = MODELS[name]
        inputs, outputs = (
            [
                {
                    "Name": port.name,
                    "Description": "",
                    "Shape": list(port.shape or ()),
                    "Type": port.type,
                    "TypeName": spelled(port.type),
                }
                for port in ports
            ]
            for ports in (model.inputs, model.outputs)
        )
        version = "2" if self.peer.has("has two versions") else ""
        told = {"Name": name, "Version": version, "Server": "peer/1", "Description": model.about}
        return {**told, "Inputs": inputs, "Outputs": outputs}

    def _write(
        self,
        status: int,
        body: bytes,
        code: int = 0,
        *,
        media_type: str = "application/octet-stream",
        extra: str = "",
        is_bodiless: bool = False,
        close: bool = False,
    ) -> bool:
        """Send a response; whether the connection goes on."""
        has = self.peer.has
        if code and has("has status 200 always"):
            status = 200
        if code and not has("has no header for codes"):
            extra += f"X-GraphPipe-Error: {code}\r\n"
        if code == OVERLOADED and not has("tells no time"):
            extra += "Retry-After: 1\r\n"
        is_chunked = has("answers in chunks") and self.version == "HTTP/1.0"
        length = "Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {len(body)}"
        close = close or self.version == "HTTP/1.0"
        if close:
            extra += "Connection: close\r\n"
        head = f"HTTP/1.1 {status} x\r\nContent-Type: {media_type}\r\n{length}\r\n{extra}\r\n"
        body = b"" if is_bodiless else body
        self.writer.write(head.encode() + (b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if is_chunked else body))
        return not close


def _accepted(accept: str) -> bool:
    ranges = [each.replace(" ", "").split(";") for each in accept.split(",")]
    if ["application/octet-stream", "q=0"] in ranges:
        return False
    return any(each[0] in ("*/*", "application/*", "application/octet-stream") and "q=0" not in each for each in ranges)
