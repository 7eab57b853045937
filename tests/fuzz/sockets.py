"""Clients of WebSocket that send frames, half of frames and what is none, beside others who do nothing wrong."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from random import Random

from invoker.testing import TestServer
from tests.attack.sockets import framed, handshake
from tests.conftest import SLOW
from tests.fuzz.ending import end
from tests.transports.sockets import open_peer

_PATH = "/square/ws"
_TEXTS = (
    b'{"data":3}', b'{"input":"x","data":4}', b'{"end":true}', b'{"end":"x"}', b'{"base64":"Mw=="}', b'{"data":"3"}',
    b'{"contentType":"application/json"}', b'{"contentType":"text/plain","data":"3"}', b'{"data":1e999}', b"[]", b"",
    b'{"data":3,"headers":{"a":"b"}}', b"\xff", b'{"data":"\xed\xa0\x80"}', b'{"end":false}', b'{"input":7}',
)  # fmt: skip
_FIRSTS = (0x81, 0x82, 0x81, 0x82, 0x01, 0x02, 0x00, 0x80, 0x89, 0x8A, 0x88, 0x09, 0x83, 0xC1, 0x8F, 0x08)


def _draw(chance: Random) -> bytes:
    """What one client sends."""
    kind = chance.randrange(8)
    if kind == 0:
        return chance.randbytes(chance.randrange(400))
    frames = []
    for _ in range(chance.randrange(1, 12)):
        payload = chance.choice(_TEXTS) if chance.random() < 0.8 else chance.randbytes(chance.randrange(300))
        first = 0x81 if kind < 5 else chance.choice(_FIRSTS)
        lies = kind == 7 and chance.random() < 0.3
        size = chance.choice((len(payload) + 1, 1 << chance.randrange(64))) if lies else None
        frames.append(framed(first, payload, size=size, is_masked=kind < 6 or chance.random() < 0.9))
    data = b"".join(frames)
    return data[: chance.randrange(len(data) + 1)] if kind == 6 else data


async def fuzz(chance: Random, seconds: float) -> bool:
    """Attack a server; whether nothing broke."""
    server = TestServer("functions.square:square")
    until_s = time.monotonic() + seconds
    sent = good = 0
    is_good = True
    try:
        while is_good and time.monotonic() < until_s:
            drawn = [_draw(chance) for _ in range(8)]
            attacks = (_send(server.http, one, is_slow=chance.random() < 0.5) for one in drawn)
            *_, is_good = await asyncio.gather(*attacks, _good(server.http))
            sent, good = sent + len(drawn), good + 1
    finally:
        ended = await asyncio.to_thread(end, server)
    print(f"sockets: {sent} attacks, {good} good calls beside them, {ended or 'and a good end'}")
    return is_good and not ended


async def _send(address: str, data: bytes, *, is_slow: bool) -> None:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(handshake(_PATH))
        for at in range(0, len(data), 7 if is_slow else 1 << 20):
            writer.write(data[at : at + (7 if is_slow else 1 << 20)])
            await writer.drain()
            await asyncio.sleep(0)
        async with asyncio.timeout(0.3 * SLOW):
            while await reader.read(65536):
                pass
    except (TimeoutError, ConnectionError):
        pass  # it waits for more, or has gone
    finally:
        writer.transport.abort()


async def _good(address: str) -> bool:
    """A call that is right; whether its answers are."""
    async with open_peer(address, _PATH) as peer:
        for number in range(5):
            await peer.text(json.dumps({"data": number}))
        await peer.text('{"end":true}')
        found = [json.loads(one) for one in await peer.messages()]
    wanted = [*({"output": "out", "data": number * number} for number in range(5)), {"end": True}]
    if found != wanted or peer.code != 1000:
        print(f"a good call got {found} and {peer.code}", file=sys.stderr)
        return False
    return True
