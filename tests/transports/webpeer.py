"""A web server on loopback that answers exactly what a test says, and a fetcher that believes loopback to be public."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address

import pytest

from invoker.errors import InvocationError
from invoker.fetch.fetcher import Fetcher, FetchPolicy
from invoker.fetch.hosts import Address

LOOPBACK = ip_address("127.0.0.1")
MOST = 1_000_000

Answer = bytes | Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Peer:
    """What the server was asked.

    Attributes:
        port: Where it listens.
        answers: By path: bytes of a whole answer, or a function that writes it.
        requests: Heads of all requests, in order.
        connections: That were made.
        asked: Set when a request came.
        left: Set when a client is gone.
    """

    answers: Mapping[str, Answer]
    port: int = 0
    requests: list[str] = field(default_factory=list)
    connections: int = 0
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def paths(self) -> list[str]:
        return [request.split(" ")[1] for request in self.requests]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")
            self.requests.append(head)
            self.asked.set()
            answer = self.answers[head.split(" ")[1]]
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.left.set()
            writer.close()


@asynccontextmanager
async def peer(answers: Mapping[str, Answer] | Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[Peer]:
    """Serve these answers; one alone is that of the path ``/``."""
    served = Peer(answers if isinstance(answers, Mapping) else {"/": answers})
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0, ssl=tls)
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        server.close()


@asynccontextmanager
async def fetcher(
    *ports: int,
    http: str = "public",
    hosts: Mapping[str, list[str]] | None = None,
    tls: ssl.SSLContext | None = None,
    timeout_s: float = 10,
    redirects: int = 3,
) -> AsyncIterator[Fetcher]:
    """Resolves hosts by this table, or to 127.0.0.1; takes exactly that address for a public one."""

    def resolve(host: str, port: int) -> list[Address]:
        return [ip_address(text) for text in (hosts or {}).get(host, ["127.0.0.1"])]

    policy = FetchPolicy(http=http, ports=ports, timeout_s=timeout_s, redirects=redirects)
    made = Fetcher(policy, resolve=resolve, is_public=lambda address: address == LOOPBACK, tls=tls)
    try:
        yield made
    finally:
        await made.close()


async def get(fetching: Fetcher, uri: str, most: int = MOST) -> bytes:
    """The content, whole."""
    pieces: list[bytes] = []
    await fetching.fetch(uri, most, pieces.append)
    return b"".join(pieces)


async def error(fetching: Fetcher, uri: str, most: int = MOST) -> InvocationError:
    """How it failed."""
    with pytest.raises(InvocationError) as caught:
        await get(fetching, uri, most)
    return caught.value


def ok(body: bytes, *headers: str) -> bytes:
    """An answer with a length."""
    return reply(200, f"Content-Length: {len(body)}", *headers, body=body)


def reply(status: int, *headers: str, body: bytes = b"") -> bytes:
    """An answer, as it stands."""
    return "\r\n".join([f"HTTP/1.1 {status} X", *headers, "", ""]).encode() + body


def redirect(location: str, status: int = 302) -> bytes:
    """An answer that leads elsewhere, with a body that nobody reads."""
    return reply(status, f"Location: {location}", "Content-Length: 4", body=b"body")
