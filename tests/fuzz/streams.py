"""Streams over HTTP under attack: requests of all formats to functions of all shapes, cut and changed.

Good streams go on beside them. The log may show no error of ours, and nothing may be left at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.exceptions import H2Error

from invoker.testing import TestServer
from tests.attack.streams import FORM, chunk
from tests.conftest import SLOW
from tests.fuzz.ending import GRACE, end

ENTRYPOINT = "tests.attack.streaming"
LINES, EVENTS, MIXED = "application/x-ndjson", "text/event-stream", "multipart/mixed"

_PATHS = (
    *("echo", "slow", "slow_sync", "slow_pieces", "mute", "first", "total", "total_sync", "pair", "endless", "huge"),
    *("endless_sync", "state", "none", "", "echo/ws", "functions", "invocations"),
)
_TYPES = (LINES, "application/ndjson", FORM, "text/plain", "application/octet-stream", "application/json", "", "x")
_ACCEPTS = (LINES, EVENTS, MIXED, f"{EVENTS}, text/plain", "*/*", "application/json", f"{LINES};q=0", "a/b," * 500, "")
_ITEMS = (
    b"1\n",
    b'"x"\n',
    b"\n",
    b"{}\n",
    b'{"a": 1}\n',
    b'{"b": 2, "a": 1}\n',
    b"[" * 300 + b"\n",
    b"\xff\n",
    b"\r\n",
)
_PART = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
_MORE = (
    "",
    "",
    "Last-Event-ID: 3",
    "Expect: 100-continue",
    "Accept-Encoding: gzip",
    "Connection: close",
    "Origin: null",
)
_CODINGS = ("", "", "", "Content-Encoding: gzip", "Content-Encoding: br")
_QUERIES = ("", "", "?a=1", "?a=1&b=2", "?xs=1", "?" + "a=1&" * 300)
_BROKEN = re.compile(r"inside the invoker|failed|never retrieved|Traceback|\"level\": \"error\"|never awaited")
_ATTACKERS = 6
_MORE_BYTES = 150_000_000


@dataclass
class Report:
    """What happened.

    Attributes:
        attacks: By what came back.
        good: Streams beside them that were as they should be.
        slowest_s: The longest that one of these took.
        faults: What must not be.
    """

    attacks: Counter[str] = field(default_factory=Counter)
    good: int = 0
    slowest_s: float = 0.0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        ends = ", ".join(f"{name} {number}" for name, number in self.attacks.most_common(12))
        text = f"streams: {self.attacks.total()} attacks ({ends}), {self.good} good streams beside them"
        return "\n".join([f"{text}, the slowest {self.slowest_s:.2f} s", *self.faults])


async def fuzz(chance: Random, seconds: float) -> Report:
    """Attack a server for so long."""
    report = Report()
    server = TestServer(ENTRYPOINT, "--log-format", "json", *GRACE)
    try:
        until = time.monotonic() + seconds
        await _be_good(server.http, 0, report)
        before = await _held(server.http)
        seeds = [chance.getrandbits(64) for _ in range(_ATTACKERS)]
        await asyncio.gather(
            _be_good(server.http, until, report),
            *(_be_bad(server.http, Random(seed), until, report) for seed in seeds),
        )
        await _settle(server.http, before, report)
        report.faults += [f"the log says: {line}" for line in server.log().splitlines() if _BROKEN.search(line)][:10]
    except (OSError, httpx.HTTPError) as error:
        report.faults.append(f"the server does not answer: {error!r}\n{server.log()[-3000:]}")
    finally:
        ended = await asyncio.to_thread(end, server)
    if ended:
        report.faults.append(ended)
    return report


async def _held(address: str) -> dict[str, Any]:
    async with httpx.AsyncClient(base_url=f"http://{address}", trust_env=False) as client:
        found: dict[str, Any] = (await client.post("/state", content=b"1", timeout=5 * SLOW)).json()
    return found


async def _settle(address: str, before: dict[str, Any], report: Report) -> None:
    for _ in range(int(10 * SLOW)):
        found = await _held(address)
        if all(found[one] <= before[one] for one in ("running", "tasks")):
            return
        await asyncio.sleep(0.5)
    report.faults.append(f"something is left: {found['names']}, and there was {before['names']}")


async def _be_good(address: str, until: float, report: Report) -> None:
    """Streams of a few items, each read to its end."""

    async def items() -> object:
        for x in (b"20\n", b"22\n"):
            yield x
            await asyncio.sleep(0)

    headers = {"Content-Type": LINES, "Accept": LINES}
    is_first = True
    while is_first or (time.monotonic() < until and not report.faults):
        is_first = False
        for http2 in (False, True):
            began = time.monotonic()
            async with httpx.AsyncClient(
                http1=not http2, http2=http2, base_url=f"http://{address}", trust_env=False, timeout=5 * SLOW
            ) as client:
                for name in ("total", "total_sync"):
                    text = (await client.post(f"/{name}", content=items(), headers=headers)).text  # type: ignore[arg-type]  # an async iterator
                    if text != "0\n42\n":
                        report.faults.append(f"a good stream of {name} got {text!r}")
                    report.good += 1
            report.slowest_s = max(report.slowest_s, time.monotonic() - began)


async def _be_bad(address: str, chance: Random, until: float, report: Report) -> None:
    while time.monotonic() < until and not report.faults:
        attack = chance.choice((_http1, _http1, _http2))
        host, port = address.rsplit(":", 1)
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(host, int(port))
            try:
                report.attacks[await attack(reader, writer, chance)] += 1
            finally:
                writer.transport.abort()


def _body(chance: Random, content_type: str) -> list[bytes]:
    count = chance.choice((0, 1, 3, 50, 600))
    if content_type == FORM:
        parts = [_PART] * count + [b"--b--\r\n"] * chance.randrange(2)
    else:
        parts = [chance.choice(_ITEMS) for _ in range(count)]
    if chance.random() < 0.1:
        parts.append(chance.randbytes(chance.choice((10, 5000))))
    return parts


def _changed(chance: Random, data: bytes) -> bytes:
    kind = chance.random()
    if kind < 0.5 or not data:
        return data
    if kind < 0.75:
        return data[: chance.randrange(len(data))]
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 3))):
        made[chance.randrange(len(made))] = chance.randrange(256)
    return bytes(made)


async def _http1(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, chance: Random) -> str:
    """One or two requests on one connection, in pieces; the client leaves in one of several ways."""
    data = b"".join(_request(chance) for _ in range(chance.choice((1, 1, 2))))
    data = _changed(chance, data)
    at = 0
    while at < len(data):
        step = chance.choice((len(data), 1000, 17))
        writer.write(data[at : at + step])
        at += step
        await asyncio.sleep(0)
        if at > 2000:
            step = len(data)
    if chance.random() < 0.3:
        writer.write_eof()
    found = b""
    if chance.random() < 0.8:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(chance.choice((0.05, 0.7))):
                found = await reader.read(65536)
    return found[9:12].decode("latin-1") if found.startswith(b"HTTP/1.") else "nothing"


def _request(chance: Random) -> bytes:
    content_type = chance.choice(_TYPES)
    method = chance.choice(("POST", "POST", "POST", "POST", "GET", "HEAD", "OPTIONS"))
    lines = [
        f"{method} /{chance.choice(_PATHS)}{chance.choice(_QUERIES)} HTTP/1.{chance.choice('1110')}",
        "Host: localhost",
        f"Accept: {chance.choice(_ACCEPTS)}",
    ]
    lines += [f"Content-Type: {content_type}"] if content_type else []
    lines += [one for one in (chance.choice(_MORE), chance.choice(_CODINGS)) if one]
    parts = _body(chance, content_type)
    if chance.random() < 0.6 and method == "POST":
        body = b"".join(map(chunk, filter(None, parts))) + b"0\r\n\r\n"
        lines.append("Transfer-Encoding: chunked")
    else:
        body = b"".join(parts)
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def _http2(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, chance: Random) -> str:
    """Several streams on one connection, whose frames may be changed; some are reset, and windows may be tiny."""
    h2 = H2Connection(H2Configuration(client_side=True, validate_outbound_headers=False))
    h2.local_settings.initial_window_size = chance.choice((65535, 65535, 100, 0))
    h2.initiate_connection()
    for stream in range(1, 2 * chance.choice((1, 5, 30)), 2):
        content_type = chance.choice(_TYPES)
        fields = [
            (":method", chance.choice(("POST", "POST", "GET"))),
            (":path", f"/{chance.choice(_PATHS)}{chance.choice(_QUERIES)}"),
            *((":scheme", "http"), (":authority", "localhost"), ("accept", chance.choice(_ACCEPTS))),
        ]
        if content_type:
            fields.append(("content-type", content_type))
        with contextlib.suppress(H2Error):
            h2.send_headers(stream, fields)
            for part in _body(chance, content_type)[:50]:
                h2.send_data(stream, part)
            if chance.random() < 0.6:
                h2.end_stream(stream)
            if chance.random() < 0.3:
                h2.reset_stream(stream, chance.choice((0, 8)))
    data = h2.data_to_send()
    writer.write(data[:24] + _changed(chance, data[24:]))
    found = b""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(chance.choice((0.05, 0.3))):
            while more := await reader.read(65536):
                found += more
    return "frames" if found else "nothing of HTTP/2"
