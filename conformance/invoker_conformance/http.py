"""A minimal HTTP/1.1 client over a socket, which sends exactly the bytes of a scenario."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from invoker_conformance.scenario import Failure
from invoker_conformance.target import Address, Unreachable
from invoker_conformance.texts import preview

T = TypeVar("T")

_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """A response.

    Attributes:
        status: The status in the status line.
        headers: The headers in wire order; names as they came.
        body: The body without its transfer coding.
        sent: The text of the request, for reports.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    sent: str

    def header(self, name: str) -> str | None:
        """The values of a header, joined; None if the header is absent."""
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        return ", ".join(values) if values else None

    def __str__(self) -> str:
        return f"{self.status} {self.header('content-type')} {preview(self.body)}"

    def is_server_error(self) -> Answer:
        """Check that the status is from 500 to 599; returns this answer."""
        if not 500 <= self.status < 600:
            raise self.failure("a status from 500 to 599")
        return self

    def has(self, status: int, media_type: str = "", body: bytes | None = None) -> Answer:
        """Check the status, and optionally the media type (without parameters) and the body; returns this answer."""
        met_type = (self.header("content-type") or "").partition(";")[0].strip().lower()
        if self.status != status or media_type not in ("", met_type) or body not in (None, self.body):
            wanted = " ".join(filter(None, [str(status), media_type, preview(body) if body is not None else ""]))
            raise self.failure(wanted)
        return self

    def failure(self, expected: str) -> Failure:
        """A failure that quotes the request and this response."""
        return Failure(str(self), expected, self.sent)


class Transport:
    """The HTTP transport of one function.

    Args:
        address: The address of the target.
        function: The name to send as ``Invoker-Function``; empty if the address serves one function.
        timeout_s: The limit of each exchange, in seconds.
        unix: The path of a Unix socket to connect to; the Host header is still ``address``.
    """

    def __init__(self, address: Address, function: str, *, timeout_s: float, unix: str = "") -> None:
        self._address = address
        self._unix = unix
        self._function = function
        self._timeout_s = timeout_s

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """Open one connection, which is closed at the end, by a reset if unread bytes are left."""
        try:
            if self._unix:
                reader, writer = await asyncio.open_unix_connection(self._unix)
            else:
                reader, writer = await asyncio.open_connection(self._address.host, self._address.port)
        except OSError as error:
            raise Unreachable(f"nothing answers at {self._unix or self._address}: {error.strerror}") from None
        try:
            yield Connection(reader, writer, self)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def exchange(
        self, method: str, path: str, headers: Iterable[tuple[str, str]] = (), body: bytes = b""
    ) -> Answer:
        """Send one request on a new connection, and return the answer."""
        async with self.connect() as connection:
            await connection.send(method, path, (*headers, ("Connection", "close")), body)
            return await connection.answer()

    def head(self, method: str, path: str, headers: Iterable[tuple[str, str]]) -> str:
        """The head of a request, with the headers that every request needs."""
        chosen = (("Invoker-Function", self._function),) if self._function else ()
        lines = [f"{name}: {value}" for name, value in (("Host", str(self._address)), *chosen, *headers)]
        return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""])

    @property
    def timeout_s(self) -> float:
        """The limit of each exchange, in seconds."""
        return self._timeout_s


class Connection:
    """A keep-alive connection with one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, transport: Transport) -> None:
        self._reader = reader
        self._writer = writer
        self._transport = transport
        self._sent = ""

    async def send(
        self,
        method: str,
        path: str,
        headers: Iterable[tuple[str, str]],
        body: bytes | list[bytes],
        *,
        said: str = "",
    ) -> None:
        """Send a request; a body that is a list is sent in chunks. ``said``: the text for reports."""
        given = tuple(headers)
        if isinstance(body, list):
            framing = ("Transfer-Encoding", "chunked")
            content = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (*body, b""))
        else:
            framing = ("Content-Length", str(len(body)))
            content = body
        fields = ", ".join(f"{name}: {value}" for name, value in given)
        shown = preview(b"".join(body) if isinstance(body, list) else body)
        head = self._transport.head(method, path, (*given, framing)).encode("utf-8")
        await self.send_bytes(
            head + content if len(content) < _CHUNK else head, said or f"{method} {path} [{fields}] {shown}"
        )
        if len(content) >= _CHUNK:
            await self.send_bytes(content)

    async def send_bytes(self, content: bytes, said: str = "") -> None:
        """Send bytes unchanged, such as a head or a part of a body. ``said``: the text for reports."""
        self._sent = said or self._sent
        # the target may answer and close before it has read the whole body
        with suppress(ConnectionError, TimeoutError):
            for at in range(0, len(content), _CHUNK):
                self._writer.write(content[at : at + _CHUNK])
                await asyncio.wait_for(self._writer.drain(), self._transport.timeout_s)

    async def answer(self, *, is_bodiless: bool = False) -> Answer:
        """Read the response; ``is_bodiless``: it answers a HEAD, and has no body."""
        return await self._awaited(self._read(is_bodiless=is_bodiless))

    async def interim(self) -> int:
        """Read the head of a response, such as 100 Continue, and return its status."""
        return (await self._awaited(self._read_head()))[0]

    async def _awaited(self, reading: Coroutine[Any, Any, T]) -> T:
        try:
            return await asyncio.wait_for(reading, self._transport.timeout_s)
        except TimeoutError:
            raise Failure(f"no answer within {self._transport.timeout_s:g} s", "an answer", self._sent) from None
        except (asyncio.IncompleteReadError, ConnectionError, ValueError) as error:
            raise Failure(f"a broken answer: {type(error).__name__}: {error}", "an answer", self._sent) from None

    async def ends(self) -> None:
        """Check that the target closes the connection without another byte."""
        try:
            async with asyncio.timeout(self._transport.timeout_s):
                if more := await self._reader.read(64):
                    raise Failure(f"{preview(more)}", "the end of the connection", self._sent)
        except TimeoutError:
            met = f"a connection that is open for {self._transport.timeout_s:g} s"
            raise Failure(met, "the end of the connection", self._sent) from None
        except ConnectionError:
            return

    async def _read(self, *, is_bodiless: bool = False) -> Answer:
        status, headers = await self._read_head()
        while 100 <= status < 200:
            status, headers = await self._read_head()
        fields = {name.lower(): value for name, value in headers}
        if is_bodiless:
            body = b""
        elif fields.get("transfer-encoding", "").lower() == "chunked":
            body = await self._read_chunks()
        elif "content-length" in fields:
            body = await self._reader.readexactly(int(fields["content-length"]))
        else:
            body = b"" if status in (204, 304) else await self._reader.read()
        return Answer(status, headers, body, self._sent)

    async def _read_head(self) -> tuple[int, tuple[tuple[str, str], ...]]:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("utf-8", "replace")
        line, *fields = head.rstrip("\r\n").split("\r\n")
        status = int(line.split(" ")[1])
        pairs = (field.partition(":") for field in fields)
        return status, tuple((name.strip(), value.strip()) for name, _, value in pairs)

    async def _read_chunks(self) -> bytes:
        body = bytearray()
        while size := int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16):
            body += (await self._reader.readexactly(size + 2))[:-2]
        while (await self._reader.readuntil(b"\r\n")).strip():
            pass  # trailers
        return bytes(body)
