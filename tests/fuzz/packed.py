"""Bodies that are packed, damaged, packed again or events, and heads that ask for codings, traces and problems.

Whatever comes, the answer is a value or a refusal, within a moment: nothing here may be a 500, a connection that is
cut, or much memory. What is packed and not damaged has the value that it has unpacked.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import httpx

from invoker.testing import TestServer
from invoker.transports.http.codings import PACKED, ZSTD, zstd_module
from tests.conftest import SLOW
from tests.fuzz.ending import end

_AT_ONCE = 8
_LIMIT_S = 20.0
_REFUSED = frozenset({400, 406, 413, 415})
_MOST_KIB = 400 * 1024
_MOST_BYTES = 3_000_000
_PACK: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress}
if ZSTD in PACKED:
    _PACK["zstd"] = lambda data: bytes(zstd_module().compress(data))
_CODINGS = (*_PACK, "identity", "br", "", "gzip;q=1", "\x7f")
_EVENT = "application/cloudevents+json"
_ACCEPTED = (
    "gzip",
    "zstd",
    "*",
    "identity;q=0",
    "identity;q=0, gzip",
    "gzip;q=0, *",
    ",,;q=",
    "gzip;q=9",
    "br, x-gzip;q=.5",
)
_ACCEPTS = (
    "*/*",
    "application/problem+json",
    _EVENT,
    f"application/x-ndjson, {_EVENT}",
    "text/event-stream",
    "image/png",
)
_TRACES = (f"00-{'a' * 32}-{'b' * 16}-01", f"ff-{'a' * 32}-{'b' * 16}-01", "00-0-0-0", f"cc-{'a' * 32}-{'b' * 16}-01-x")


def _body(chance: Random) -> tuple[bytes, dict[str, str], bool]:
    """A body for `square`, its headers, and whether it is a good one."""
    kind = chance.random()
    value: Any = 7
    if kind < 0.5:
        return json.dumps(value).encode(), {"Content-Type": "application/json"}, True
    event = {"specversion": "1.0", "id": "1", "source": "/a", "type": "b", "data": value}
    if kind < 0.7:
        return json.dumps(event).encode(), {"Content-Type": _EVENT}, True
    for _ in range(chance.randrange(1, 4)):
        name = chance.choice((*event, "time", "data_base64", "datacontenttype", "x", "A b", "dataschema"))
        event[name] = chance.choice((None, "", "MQ==", 1, 1.5, True, [], {}, "text/plain", "\x00", "ü" * 99, 2**40))
    if kind < 0.9:
        return json.dumps(event).encode(), {"Content-Type": _EVENT}, False
    batch = json.dumps([event] * chance.randrange(3)).encode()
    return batch, {"Content-Type": "application/cloudevents-batch+json"}, False


def _draw(chance: Random) -> tuple[bytes, dict[str, str], bool]:
    """A request, and whether it must be answered by 49."""
    body, headers, is_good = _body(chance)
    if chance.random() < 0.03:
        body, is_good = bytes(chance.choice((10**6, 5 * 10**6))), False  # mostly it is packed
    codings = [chance.choice(_CODINGS if chance.random() < 0.1 else tuple(_PACK)) for _ in range(chance.randrange(4))]
    for one in codings:
        body = _PACK.get(one, bytes)(body)
    is_good = is_good and all(one in _PACK or one in ("identity", "") for one in codings)
    if chance.random() < 0.4:
        at, is_good = chance.randrange(len(body) + 1), False
        body = chance.choice(
            (
                body[:at],
                body + chance.randbytes(9),
                body[:at] + chance.randbytes(1) + body[at + 1 :],
                body * chance.randrange(2, 50 if len(body) < 10_000 else 3),
                chance.randbytes(at),
            )
        )
    body = body[:_MOST_BYTES]  # the rest of a refused body that is longer is not read
    if codings:
        headers["Content-Encoding"] = ", ".join(codings)
    if chance.random() < 0.5:
        headers["Accept-Encoding"] = chance.choice(_ACCEPTED)
        is_good = is_good and headers["Accept-Encoding"] != "identity;q=0"
    if chance.random() < 0.5:
        headers["Accept"] = chance.choice(_ACCEPTS)
        is_good = is_good and headers["Accept"] == "*/*"
    if chance.random() < 0.3:
        headers["traceparent"] = chance.choice(_TRACES)
    if chance.random() < 0.2:
        headers |= {"ce-specversion": "1.0", "ce-id": chance.choice(("1", "%", "%ff", '"a')), "ce-type": "t"}
        is_good = False
    return body, headers, is_good


async def _chunks(body: bytes, chance: Random) -> Any:
    step = chance.choice((1, 100, 5000)) if len(body) < 2000 else 5000
    for at in range(0, len(body), step):
        yield body[at : at + step]


async def _one(transport: str, client: httpx.AsyncClient, chance: Random, seen: Counter[str]) -> str:
    """Send one request; what is wrong with the answer, or nothing."""
    body, headers, is_good = _draw(chance)
    headers = {name: value.strip() for name, value in headers.items() if value.isprintable()}
    told = f"{transport} {headers} {body[:80]!r} ({len(body)} bytes)"
    content = _chunks(body, chance) if chance.random() < 0.3 else body
    try:
        async with asyncio.timeout(_LIMIT_S * SLOW):
            got = await client.post("/", content=content, headers=headers)
    except (httpx.HTTPError, TimeoutError) as error:
        return f"{error!r}: {told}"
    seen[str(got.status_code)] += 1
    if is_good and (got.status_code, got.text) != (200, "49"):
        return f"{got.status_code} {got.text[:200]!r} instead of 49: {told}"
    if got.status_code != 200 and got.status_code not in _REFUSED:
        return f"{got.status_code} {got.text[:200]!r}: {told}"
    return ""


async def fuzz(chance: Random, seconds: float) -> bool:
    """Attack servers of a sync and an async function for so long; whether they survive, and answer as they should."""
    servers = [TestServer("functions.square:square"), TestServer("tests.fuzz.squares:square")]
    until, faults, seen = time.monotonic() + seconds, list[str](), Counter[str]()
    try:
        # A connection for each task: httpcore waits for ever when several uploads share one of HTTP/2.
        clients = [
            (
                f"{name} {'HTTP/2' if http2 else 'HTTP/1.1'}",
                httpx.AsyncClient(
                    http1=not http2, http2=http2, base_url=f"http://{server.http}", trust_env=False, timeout=None
                ),
            )
            for name, server in zip(("sync", "async"), servers, strict=True)
            for http2 in (False, True)
            for _ in range(_AT_ONCE)
        ]
        try:
            while time.monotonic() < until and len(faults) < 20:
                asked = [_one(transport, client, chance, seen) for transport, client in clients]
                faults += [fault for fault in await asyncio.gather(*asked) if fault]
        finally:
            for _, client in clients:
                await client.aclose()
        for server in servers:
            if (held := _resident_kib(server)) > _MOST_KIB:
                faults.append(f"a server holds {held} KiB")
    finally:
        ended = [await asyncio.to_thread(end, server) for server in servers]
    faults += filter(None, ended)
    for fault in faults:
        print(f"a packed body: {fault}", file=sys.stderr)
    print(f"packed: {sum(seen.values())} requests, {dict(seen)}, {len(faults)} faults")
    return not faults


def _resident_kib(server: TestServer) -> int:
    with Path(f"/proc/{server._process.pid}/status").open() as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
