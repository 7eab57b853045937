"""The transports of HTTP beside each other: the same bytes, whole or in pieces, get the same answers from each of them.

A sync function is served by the short cut, if its request comes in one piece, and else by the server of the loop; an
async one always by the latter. A reference (``--reference HOST:PORT``) may be any other server of the same function,
for instance an older one: what it answers otherwise is printed, not judged.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import NamedTuple

from invoker.testing import TestServer
from tests.conftest import SLOW
from tests.fuzz.ending import end
from tests.fuzz.requests import SENTINEL, SENTINEL_BODY, Draw, draw

_QUIET_S = 0.4
_CONNECTIONS = 48
_MOST_DROPS = 600
"""Longer requests are not sent byte by byte."""

WAYS = ("whole", "halves", "drops")


class Answer(NamedTuple):
    """What came back on one connection."""

    responses: tuple[tuple[int, tuple[tuple[str, str], ...], bytes], ...]
    rest: bytes
    is_closed: bool

    def heads_beside(self, other: Answer) -> str:
        """The first head that another answer does not have."""
        pairs = zip(self.responses, other.responses, strict=False)
        return next((f" {mine[1]} not {theirs[1]}" for mine, theirs in pairs if mine[1] != theirs[1]), "")

    def kind(self) -> str:
        """Its statuses, and whether the connection goes on."""
        statuses = "+".join(str(one[0]) for one in self.responses) or "nothing"
        return f"{statuses} {'closed' if self.is_closed else 'open'}"

    def told(self) -> str:
        """In a few words."""
        words = [
            f"{status} {dict(head).get('content-type', '-')} {body[:40]!r}" for status, head, body in self.responses
        ]
        return f"{words}{' + ' + repr(self.rest[:60]) if self.rest else ''} {'closed' if self.is_closed else 'open'}"


async def ask(address: str, data: bytes, way: str, chance: Random, quiet_s: float) -> Answer:
    """Send bytes in one of the ways, and read until the server closes or is quiet for so long."""
    loop = asyncio.get_running_loop()
    host, port = address.rsplit(":", 1)
    found, is_closed = bytearray(), False
    with socket.socket() as sock:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await loop.sock_connect(sock, (host, int(port)))
        sending = asyncio.create_task(_send(sock, _pieces(data, way, chance), way))
        try:
            while not is_closed:
                was_sending = not sending.done()
                try:
                    async with asyncio.timeout(quiet_s):
                        part = await loop.sock_recv(sock, 65536)
                except TimeoutError:
                    if was_sending:
                        continue
                    break
                found += part
                is_closed = not part
        except ConnectionError:
            is_closed = True
        finally:
            sending.cancel()
            await asyncio.wait([sending])
    responses, rest = _parsed(bytes(found))
    return Answer(tuple(responses), rest, is_closed)


async def _send(sock: socket.socket, pieces: Sequence[bytes], way: str) -> None:
    loop = asyncio.get_running_loop()
    with suppress(ConnectionError):  # who was refused early is told so by what it reads
        for piece in pieces:
            await loop.sock_sendall(sock, piece)
            await asyncio.sleep(0.002 if way == "halves" else 0)


def _pieces(data: bytes, way: str, chance: Random) -> Sequence[bytes]:
    if way == "drops" and len(data) <= _MOST_DROPS:
        return [data[at : at + 1] for at in range(len(data))]
    if way == "whole":
        return (data,)
    at = chance.randrange(1, len(data))
    return data[:at], data[at:]


def _parsed(data: bytes) -> tuple[list[tuple[int, tuple[tuple[str, str], ...], bytes]], bytes]:
    """Responses without 1xx and without what differs from one moment to the next; and what is none."""
    responses: list[tuple[int, tuple[tuple[str, str], ...], bytes]] = []
    while (end := data.find(b"\r\n\r\n")) >= 0 and data.startswith(b"HTTP/1."):
        first, *lines = data[:end].decode("latin-1").split("\r\n")
        status = int(first.split(" ")[1])
        head = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        data = data[end + 4 :]
        if status < 200:
            continue
        length = 0 if status in (204, 304) else int(head.get("content-length", "0"))
        is_of_head = length > len(data) or data[:length].startswith(b"HTTP/1.")
        body, data = (b"", data) if is_of_head else (data[:length], data[length:])
        responses.append((status, tuple(sorted((k, v) for k, v in head.items() if k not in _MOMENTARY)), body))
    return responses, data


_MOMENTARY = ("date", "server", "x-request-id", "traceparent", "traceresponse", "ce-id", "ce-time")


class _Fuzz:
    """The servers, and what was found.

    Args:
        transports: Addresses by name; the first is that of the sync function.
        reference: Another server.
        chance: Draws.
    """

    def __init__(self, transports: dict[str, str], reference: str, chance: Random) -> None:
        self.transports, self.reference, self.chance = transports, reference, chance
        self.sent = 0
        self.faults: list[str] = []
        self.differences = Counter[str]()
        self.examples: dict[str, str] = {}

    async def one(self, drawn: Draw, quiet_s: float = _QUIET_S * SLOW / 2) -> None:
        """Send one draw in each way to each transport."""
        data, seed = drawn.data + SENTINEL, self.chance.random()
        asked = [(name, way) for name in self.transports for way in WAYS]
        answers = await asyncio.gather(*(ask(self.transports[n], data, way, Random(seed), quiet_s) for n, way in asked))
        self.sent += len(asked)
        if not all(_agree(answers[0], one) or _agree(one, answers[0]) for one in answers):
            if quiet_s < 2 * SLOW:  # a busy machine is not always quiet when nothing is to come
                await self.one(drawn, 2 * SLOW)
                return
            told = "\n".join(
                f"    {n} {way}: {one.told()}{one.heads_beside(answers[0])}"
                for (n, way), one in zip(asked, answers, strict=True)
            )
            self.faults.append(f"{drawn.label}\n    {drawn.data[:600]!r}\n{told}")
            return
        if self.reference:
            other = await ask(self.reference, data, "whole", Random(seed), quiet_s)
            if other != answers[0]:
                if quiet_s < 2 * SLOW:
                    await self.one(drawn, 2 * SLOW)
                    return
                self._differs(drawn, answers[0], other)

    def _differs(self, drawn: Draw, mine: Answer, theirs: Answer) -> None:
        kind = f"{mine.kind()}, not {theirs.kind()}" if mine.kind() != theirs.kind() else _other_heads(mine, theirs)
        self.differences[kind] += 1
        if self.differences[kind] == 1:
            self.examples[kind] = (
                f"{drawn.label}\n    {drawn.data[:400]!r}\n    here: {mine.told()}\n    there: {theirs.told()}"
            )


def _agree(one: Answer, other: Answer) -> bool:
    """Whether two answers are the same; or whether only one of them has come before a body turned out to be none.

    A request that is refused for its head (403, 405, 415 and the like) may be told so before its body is read. If the
    body then breaks the protocol, or does so at once, the connection ends; who has seen that first answers 400, or 431
    for trailers that are too long.
    """
    if one == other:
        return True
    (*before, refused), (*too, broken) = one.responses or [()], other.responses or [()]
    if not refused or not broken or before != too or not one.is_closed or not other.is_closed:
        return False
    return refused[0] > 400 and broken[0] in (400, 431) and broken[2] == b""


def _other_heads(mine: Answer, theirs: Answer) -> str:
    for one, other in zip(mine.responses, theirs.responses, strict=False):
        if one[1] != other[1]:
            more, less = set(one[1]) - set(other[1]), set(other[1]) - set(one[1])
            return f"in a head of {one[0]}: {sorted(more)}, not {sorted(less)}"
    return "bodies"


async def fuzz(chance: Random, seconds: float, reference: str = "") -> bool:
    """Attack the transports for so long; whether all agree, and survive."""
    sync, asyn = TestServer("functions.square:square"), TestServer("tests.fuzz.squares:square")
    found = _Fuzz({"sync": sync.http, "async": asyn.http}, reference, chance)
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until and len(found.faults) < 20:
            await asyncio.gather(*(found.one(draw(chance)) for _ in range(_CONNECTIONS // 6)))
            for address in found.transports.values():
                good = await ask(address, SENTINEL, "whole", chance, 5 * SLOW)
                if [one[2] for one in good.responses] != [SENTINEL_BODY]:
                    found.faults.append(f"a good call at {address} got {good.told()}")
    finally:
        ended = [await asyncio.to_thread(end, server) for server in (sync, asyn)]
    for kind, count in found.differences.most_common():
        print(f"{count} differ from the reference: {kind}\n    {found.examples[kind]}")
    found.faults += filter(None, ended)
    for fault in found.faults:
        print(f"the transports of HTTP disagree: {fault}", file=sys.stderr)
    print(f"http: {found.sent} connections, {len(found.faults)} faults")
    return not found.faults
