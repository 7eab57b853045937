"""Broken messages for typed methods, over gRPC, Connect and gRPC-Web: none is our fault, and good calls go on."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from base64 import b64encode

import grpc
import grpc.aio
import httpx
import msgspec
from google.protobuf import json_format

from invoker.author.prepare import prepare
from invoker.protocols.typed.calls import Call, calls_of
from invoker.protocols.typed.codec import Book
from invoker.protocols.typed.envelopes import envelope
from tests.conftest import SLOW
from tests.serving import serving

_ENTRYPOINT = "tests.protocols.typed.kitchen"
_SLOW = ("doze", "array")
_GOOD = b"\x0a\x02\x08\x07"  # of Plain: 7
_TYPES = (
    "application/proto",
    "application/json",
    "application/connect+proto",
    "application/connect+json",
    "application/grpc-web",
    "application/grpc-web-text",
    "application/grpc-web+json",
)
_LIMIT_S = 5.0 * SLOW
_OWN_FAULT = "Internal error from Core"  # of grpc.aio's client, which was still writing when the call ended
_SAMPLES = (b"\x08\x01", b"\x0a\x02\x08\x01", b"\x12\x03abc", b'{"x": 1}', b'{"value": {"a": [1, null]}}', b"")


async def fuzz(chance: random.Random, seconds: float) -> bool:
    """Whether nothing broke."""
    specs = [one.spec for one in prepare(_ENTRYPOINT)]
    calls = [one for one in calls_of(specs) if one.spec.name not in _SLOW]
    seeds = [*_SAMPLES, *_messages(specs, calls)]
    sent, faults = 0, []
    with serving(_ENTRYPOINT) as served:
        async with (
            grpc.aio.insecure_channel(served.grpc) as channel,
            httpx.AsyncClient(base_url=f"http://{served.http}", trust_env=False, timeout=_LIMIT_S) as client,
        ):
            plain = next(one for one in calls if one.spec.name == "plain")
            until = time.monotonic() + seconds  # the server has started, which takes longer than that on a busy machine
            while time.monotonic() < until:
                call = chance.choice(calls)
                frames = [_broken(chance, chance.choice(seeds)) for _ in range(chance.randint(0, 3))]
                told = await (
                    _grpc(channel, call, frames) if chance.random() < 0.5 else _http(chance, client, call, frames)
                )
                sent += 1
                if told:
                    faults.append(f"{call.method} {frames}: {told}")
                if sent % 50 == 0 and await channel.unary_unary(plain.path)(_GOOD) != b"\x08\x07":
                    faults.append("a good call was not answered")
        tracebacks = [
            line for line in served.lines if "failed inside the invoker" in line or "a session failed" in line
        ]
    faults += tracebacks
    print(
        f"typed: {sent} calls, {len(faults)} faults", *faults[:10], sep="\n", file=sys.stderr if faults else sys.stdout
    )
    return not faults


def _messages(specs: list, calls: list[Call]) -> list[bytes]:
    """A message of each method in which every field is empty but there, serialised and in JSON."""
    pages = Book(lambda: specs).pages
    found = []
    for call in calls:
        made = pages[call.spec.name].request()
        for field in made.DESCRIPTOR.fields:
            if field.message_type is not None and not field.is_repeated:
                getattr(made, field.name).SetInParent()
        found += [made.SerializeToString(), json_format.MessageToJson(made).encode()]
    return found


def _broken(chance: random.Random, frame: bytes) -> bytes:
    data = bytearray(frame)
    for _ in range(chance.randint(0, 3)):
        place = chance.randint(0, len(data))
        match chance.randint(0, 3):
            case 0:
                data[place:place] = chance.randbytes(chance.randint(1, 6))
            case 1:
                del data[place : place + chance.randint(1, 4)]
            case 2 if place < len(data):
                data[place] ^= 1 << chance.randint(0, 7)
            case _:
                data += data[:place]
    return bytes(data)


async def _grpc(channel: grpc.aio.Channel, call: Call, frames: list[bytes]) -> str:
    try:
        async with asyncio.timeout(_LIMIT_S):
            async for _ in channel.stream_stream(call.path)(iter(frames)):
                pass
    except grpc.aio.AioRpcError as error:
        is_odd = error.code() in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNAVAILABLE)
        if is_odd and error.details() != _OWN_FAULT:
            return f"{error.code()}: {error.details()}"
    except TimeoutError:
        return "no answer"
    return ""


async def _http(chance: random.Random, client: httpx.AsyncClient, call: Call, frames: list[bytes]) -> str:
    kind = chance.choice(_TYPES)
    body = b"".join(frames)
    if "connect" in kind or "web" in kind:
        body = b"".join(envelope(one, chance.choice((0, 0, 0, 1, 2, 128))) for one in frames)
        body = _broken(chance, body) if chance.random() < 0.3 else body
    if "text" in kind:
        body = b64encode(body)
    try:
        answer = await client.post(call.path, content=body, headers={"Content-Type": kind})
    except httpx.HTTPError as error:
        return f"{type(error).__name__} {error}"
    if b'"internal"' in answer.content or b"grpc-status: 13" in answer.content:
        return f"{kind}: {answer.content!r}"
    if answer.headers["content-type"] == "application/json":
        msgspec.json.decode(answer.content)
    return ""
