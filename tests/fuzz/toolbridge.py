"""The tool bridge under attack: bad requests fail alone, good calls are answered, and memory stays bounded."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError, Message

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.client import ToolBridge, ToolCall
from invoker.testing import TestServer
from tests.conftest import SLOW
from tests.fuzz.ending import GRACE, end
from tests.fuzz.toolbridge_requests import METHODS, SERVICE, attack

ENTRYPOINTS = {"async": "functions.conformance_toolbridge", "sync": "tests.sync_toolbridge"}
_FLAGS = ("--no-http", *GRACE, "--log-format", "json", "--protocols", "riff,toolbridge")
_ATTACKERS = 4
_SLOWEST_S = 2.0 * SLOW
"""A good call takes so long at most, whatever happens beside it."""
_MORE_BYTES = 150_000_000
_SETTLES_S = 5.0 * SLOW
"""Arguments of a caller that has left are read to their end, since no thread can be stopped."""

_GIVES_BACK = {"MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "131072", "MALLOC_MMAP_THRESHOLD_": "65536"}
_BROKEN = re.compile(
    r'"level": "error"|never retrieved|Exception in callback|Task was destroyed|Fatal|was never awaited'
)
_OURS = ("bug", "internal error of the invoker", "Invoker: Internal Error")


@dataclass
class Report:
    """What happened.

    Attributes:
        attacks: Bad requests, by how they ended.
        good: Rounds of good calls.
        slowest_s: The longest that one of these took.
        faults: What must not be.
    """

    attacks: Counter[str] = field(default_factory=Counter)
    good: int = 0
    slowest_s: float = 0.0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        ends = ", ".join(f"{name} {number}" for name, number in self.attacks.most_common(12))
        text = f"toolbridge: {self.attacks.total()} attacks ({ends}), {self.good} good rounds beside them"
        return "\n".join([f"{text}, the slowest {self.slowest_s:.2f} s", *self.faults])


async def fuzz(chance: Random, seconds: float) -> Report:
    """Attack a server of each kind for half of the time."""
    report = Report()
    for entrypoint in ENTRYPOINTS.values():
        await _attacked(entrypoint, chance, seconds / len(ENTRYPOINTS), report)
    return report


async def _attacked(entrypoint: str, chance: Random, seconds: float, report: Report) -> None:
    server = _started(entrypoint)
    pid: int = server._process.pid
    try:
        async with ToolBridge(server.grpc) as bridge:
            await _round(bridge, chance, report)
            before = _resident(pid)
            until = time.monotonic() + seconds
            seeds = [chance.getrandbits(64) for _ in range(_ATTACKERS)]
            await asyncio.gather(
                _be_good(bridge, chance, until, report),
                *(_be_bad(server.grpc, Random(seed), until, report) for seed in seeds),
            )
            await _round(bridge, chance, report)
        if (held := await _held(pid, before)) > _MORE_BYTES:
            report.faults.append(f"the process holds {held:,} bytes more than before")
        report.faults += [f"the log says: {line}" for line in server.log().splitlines() if _BROKEN.search(line)][:10]
    except (grpc.RpcError, OSError) as error:
        report.faults.append(f"the server does not answer: {error!r}\n{server.log()[-3000:]}")
    finally:
        ended = await asyncio.to_thread(end, server)
    if ended:
        report.faults.append(ended)


def _started(entrypoint: str) -> TestServer:
    """A server whose memory goes back at once; glibc else keeps for long what bombs took for a moment."""
    before = dict(os.environ)
    os.environ.update(_GIVES_BACK)
    try:
        return TestServer(entrypoint, *_FLAGS)
    finally:
        os.environ.clear()
        os.environ.update(before)


async def _be_good(bridge: ToolBridge, chance: Random, until: float, report: Report) -> None:
    while time.monotonic() < until and not report.faults:
        await _round(bridge, chance, report)


async def _round(bridge: ToolBridge, chance: Random, report: Report) -> None:
    """A session with a call, a stream, a batch and a variable."""
    began = time.monotonic()
    number = chance.randrange(-1000, 1000)
    try:
        async with asyncio.timeout(4 * _SLOWEST_S), bridge.session() as session:
            found: list[Any] = [
                await session.call("add", number, b=1),
                [value async for value in session.stream("counted", 5)],
                (await session.batch([ToolCall.of("add", number), ToolCall.of("echo", "x")], parallel=True)).values(),
            ]
            await session.variables.set("x", {"a": [number]})
            found.append(await session.variables.get("x"))
    except Exception as error:
        report.faults.append(f"a good round got {error!r}")
        return
    wanted = [number + 1, [0, 1, 2, 3, 4], [number + 2, "x"], {"a": [number]}]
    took_s = time.monotonic() - began
    report.slowest_s = max(report.slowest_s, took_s)
    report.good += 1
    if found != wanted:
        report.faults.append(f"a good round got {found}, not {wanted}")
    elif took_s > _SLOWEST_S:
        report.faults.append(f"a good round took {took_s:.1f} s")


async def _be_bad(address: str, chance: Random, until: float, report: Report) -> None:
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
    while time.monotonic() < until and not report.faults:
        session = f"bad-{chance.randrange(20)}"
        async with grpc.aio.insecure_channel(address, options=options) as channel:
            for _ in range(chance.randrange(1, 20)):
                at_once = chance.choice((1, 1, 1, 10))
                await asyncio.gather(*(_one(channel, session, chance, report) for _ in range(at_once)))
                if time.monotonic() > until:
                    break


async def _one(channel: grpc.aio.Channel, session: str, chance: Random, report: Report) -> None:
    """One bad rpc, read to its end, or left in one of several ways."""
    method, request = attack(chance, session)
    make: Any = channel.unary_stream if METHODS[method].server_streaming else channel.unary_unary
    call = make(f"/{SERVICE.full_name}/{method}")(request, timeout=chance.choice((0.02, 0.3, 2, 2, 2)))
    left = chance.choice((0, 2, 50, 50))
    answers: list[bytes] = []
    with contextlib.suppress(grpc.RpcError, asyncio.CancelledError):
        if METHODS[method].server_streaming:
            while left and (got := await call.read()) is not grpc.aio.EOF:
                answers.append(got)
                left -= 1
            if not left:
                call.cancel()
        else:
            answers.append(await call)
    with contextlib.suppress(asyncio.CancelledError):
        code, text = await call.code(), await call.details() or ""
        report.attacks[f"{code.name}{_told(method, answers, report)}"] += 1
        if code is grpc.StatusCode.INTERNAL and "INTERNAL_ERROR" not in text and "from Core" not in text:
            _doubt(report, method, text)
        if code is grpc.StatusCode.UNKNOWN:
            _doubt(report, method, text)


def _told(method: str, answers: list[bytes], report: Report) -> str:
    """The type of the error in an answer, which has to be a message of the method."""
    kind: Callable[..., Message] = getattr(pb, METHODS[method].output_type.name)
    for data in answers:
        answer: Any = kind()
        try:
            answer.ParseFromString(data)
        except DecodeError as error:
            report.faults.append(f"{method} answered what cannot be read: {error}")
            return ""
        if "error" in answer.DESCRIPTOR.fields_by_name and answer.HasField("error"):
            if not answer.error.message and not answer.error.details:
                report.faults.append(f"{method} answered an error that says nothing: {answer.error}")
            if any(word in answer.error.message for word in _OURS):
                _doubt(report, method, answer.error.message)
            return f" {answer.error.type}"
    return ""


def _doubt(report: Report, method: str, text: str) -> None:
    report.faults.append(f"{method} ended by an error of ours: {text}")


async def _held(pid: int, before: int) -> int:
    """How many bytes the process holds more than before, once what its last callers have left behind is done."""
    for _ in range(round(_SETTLES_S / 0.2)):
        if _resident(pid) - before <= _MORE_BYTES:
            break
        await asyncio.sleep(0.2)
    return _resident(pid) - before


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * 4096
