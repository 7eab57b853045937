"""``python -m tests.fuzz --seconds 60``: the process survives, and the good calls are untouched."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import sys
import time
from typing import Any

import grpc
import grpc.aio

from invoker.client import RiffClient
from invoker.testing import TestServer
from tests.fuzz import evergreen, federated, http, packed, sockets, streams, tensors, toolbridge, typed
from tests.fuzz.ending import end

WAYS = ("riff", "http", "packed", "sockets", "streams", "tensors", "toolbridge", "federated", "typed", *evergreen.WAYS)
_TELLING: dict[str, Any] = {"packed": packed, "sockets": sockets, "tensors": tensors, "typed": typed}
_REPORTING: dict[str, Any] = {"streams": streams, "toolbridge": toolbridge, "federated": federated}

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_REQUEST = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n12345"


async def main() -> int:
    """0 when nothing broke."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=60, help="for all that is attacked")
    options.add_argument("--seed", type=int, default=1, help="of what is drawn; default %(default)s")
    options.add_argument("--explore", action="store_true", help="take another seed each time")
    options.add_argument("--only", choices=WAYS, help="attack this alone")
    options.add_argument("--reference", default="", help="with http: host:port of another server of functions.square")
    args = options.parse_args()
    ways = [args.only] if args.only else WAYS
    seed = int(time.time()) if args.explore else args.seed
    print(f"seed {seed}")
    for way in ways:
        if not await _attack(way, random.Random(f"{seed} {way}"), args.seconds / len(ways), args.reference):
            return 1
    return 0


async def _attack(way: str, chance: random.Random, seconds: float, reference: str) -> bool:
    """Attack one way; whether nothing broke."""
    if way == "riff":
        return await _riff(chance, seconds)
    if way == "http":
        return await http.fuzz(chance, seconds, reference)
    if way in _TELLING:
        return await _TELLING[way].fuzz(chance, seconds)
    report: streams.Report | toolbridge.Report | federated.Report | evergreen.Report
    if way in evergreen.WAYS:
        report = await evergreen.fuzz(way, chance, seconds)
    else:
        report = await _REPORTING[way].fuzz(chance, seconds)
    print(report, file=sys.stderr if report.faults else sys.stdout)
    return not report.faults


async def _riff(chance: random.Random, seconds: float) -> bool:
    """Attack both transports of a server with riff calls; whether nothing broke."""
    server = TestServer("functions.square:square")
    until = time.monotonic() + seconds
    sent = good = 0
    try:
        async with RiffClient(server.grpc) as client:
            while time.monotonic() < until:
                host, port = chance.choice((server.grpc, server.http)).rsplit(":", 1)
                await asyncio.gather(_garbage(host, int(port), chance), _frames(server.grpc, chance))
                sent += 2
                values = [one.value async for one in client.invoke([[2, 3]])]
                if values != [4, 9]:
                    print(f"a good call got {values} after {sent} attacks", file=sys.stderr)
                    return False
                good += 1
    finally:
        ended = await asyncio.to_thread(end, server)
    print(f"riff: {sent} attacks, {good} good calls beside them, {ended or 'and a good end'}")
    return not ended


async def _garbage(host: str, port: int, chance: random.Random) -> None:
    """Bytes that are no request, nearly one, or one cut short."""
    start = chance.choice(
        (b"", _PREFACE, _PREFACE + b"\0\0\0\4\0\0\0\0\0", _REQUEST[: chance.randrange(len(_REQUEST))])
    )
    with contextlib.suppress(OSError):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(start + chance.randbytes(chance.randrange(2000)))
        await writer.drain()
        if chance.random() < 0.5:
            writer.write_eof()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    await reader.read(1000)
        writer.transport.abort()


async def _frames(address: str, chance: random.Random) -> None:
    """Messages that are no signals, on a call of its own."""
    async with grpc.aio.insecure_channel(address) as channel:
        call = channel.stream_stream("/streaming.Riff/Invoke")(timeout=5)
        with contextlib.suppress(grpc.RpcError, grpc.aio.BaseError, asyncio.InvalidStateError):
            await call.write(chance.randbytes(chance.randrange(1, 200)))
            await call.done_writing()
            await call.code()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
