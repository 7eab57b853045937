"""The HTTP port of a server, and what `test_reference` asks of it."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tests.conftest import SLOW
from tests.e2e.rawhttp import RawHttp

JSON, NDJSON, SSE, MIXED = "application/json", "application/x-ndjson", "text/event-stream", "multipart/mixed"


class Answer(NamedTuple):
    """A whole response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Transport:
    """The HTTP port of a server."""

    address: str

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | Iterator[bytes] | None = None,
        encode_chunked: bool = False,
        **headers: str,
    ) -> Answer:
        """Send one request; a name of a header has an underscore for each hyphen."""
        connection = http.client.HTTPConnection(self.address, timeout=10 * SLOW)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if encode_chunked:
            named["Transfer-Encoding"] = "chunked"
        connection.request(method, path, body, named, encode_chunked=encode_chunked)
        response = connection.getresponse()
        answer = Answer(
            response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        )
        connection.close()
        return answer

    def post(self, path: str, body: bytes, accept: str = NDJSON, type_: str = JSON) -> Answer:
        """Send a body whose length is told."""
        return self.ask("POST", path, body, Content_Type=type_, Accept=accept)

    def stream(self, path: str, *parts: bytes, type_: str = "") -> bytes:
        """Send a body whose length is not told: the lines that come back."""
        types = {"Content_Type": type_} if type_ else {}
        answer = self.ask("POST", path, iter(parts), encode_chunked=True, Accept=NDJSON, **types)
        assert answer.status == 200, answer
        return answer.body

    def raw(self, data: bytes) -> int:
        """The status of the answer to bytes as they are."""
        with RawHttp(self.address) as connection:
            connection.send(data)
            return connection.read().status

    def socket(self, path: str) -> bytes:
        """The head of the answer to a handshake."""
        host, _, port = self.address.rpartition(":")
        lines = (
            f"GET {path} HTTP/1.1", f"Host: localhost:{port}", "Connection: Upgrade", "Upgrade: websocket",
            "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "", "",
        )  # fmt: skip
        with socket.create_connection((host, int(port)), timeout=5 * SLOW) as sock:
            sock.sendall("\r\n".join(lines).encode())
            return sock.recv(4096).split(b"\r\n")[0]
