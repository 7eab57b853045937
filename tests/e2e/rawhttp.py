"""A client of HTTP/1.1 that writes bytes as they are, and reads one response after another."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import NamedTuple, Self

from tests.conftest import SLOW


class Response(NamedTuple):
    """One response."""

    status: int
    head: dict[str, str]
    body: bytes


def post(body: bytes | int, *lines: str, path: str = "/", length: bool = True) -> bytes:
    """A good request, with more lines."""
    body = b"%d" % body if isinstance(body, int) else body
    head = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *lines]
    if length:
        head.append(f"Content-Length: {len(body)}")
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


class RawHttp:
    """One connection.

    Args:
        address: ``host:port``.
    """

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), 5 * SLOW)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._data = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Write bytes."""
        self.socket.sendall(data)

    def half_close(self) -> None:
        """Send no more."""
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Break the connection by RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def read(self, *, is_head: bool = False) -> Response:
        """Read one response; EOFError where the connection ends instead."""
        while (end := self._data.find(b"\r\n\r\n")) < 0:
            self._more()
        first, *lines = self._data[:end].decode("latin-1").split("\r\n")
        self._data = self._data[end + 4 :]
        head = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        status = int(first.split(" ")[1])
        length = 0 if is_head or status < 200 else int(head.get("content-length", "0"))
        while len(self._data) < length:
            self._more()
        body, self._data = self._data[:length], self._data[length:]
        return Response(status, head, body)

    def ask(self, data: bytes) -> Response:
        """Send a request, and read its response."""
        self.send(data)
        return self.read()

    def rest(self) -> bytes:
        """All that comes until the server ends the connection."""
        try:
            while True:
                self._more()
        except EOFError:
            return self._data

    def _more(self) -> None:
        try:
            part = self.socket.recv(1 << 16)
        except ConnectionError as error:
            raise EOFError("the connection was reset") from error
        if not part:
            raise EOFError("the server closed the connection")
        self._data += part
