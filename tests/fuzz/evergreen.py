"""Evergreen sessions under attack: the server lives, good sessions are answered, and nothing is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

import grpc
import grpc.aio

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.testing import TestServer
from tests.conftest import SLOW
from tests.fuzz.ending import GRACE, end
from tests.fuzz.good import PATH, act, ask, good, leaf, state
from tests.fuzz.messages import EXTENSIONS, attack

WAYS = {
    "loop": ("tests.fuzz.actions",),
    "direct": ("tests.fuzz.sync_actions",),
    "aio": ("tests.fuzz.actions", "--grpc-driver", "aio"),
}
"""Entrypoint and flags, by what moves the frames."""

_FLAGS = (
    "--no-http",
    *GRACE,
    "--session-bytes",
    "8000000",
    "--session-nodes",
    "50000",
    "--log-format",
    "json",
)
_ATTACKERS = 4
_PATIENCE_S = 5.0 * SLOW
_SLOWEST_S = 2.0 * SLOW
"""A good session takes so long at most, whatever happens beside it."""

_ENDED = (grpc.RpcError, grpc.aio.BaseError, asyncio.CancelledError, asyncio.InvalidStateError)
"""What the client raises, one time or another, when a call is over."""

_MORE_BYTES = 150_000_000
_BROKEN = re.compile(
    r'"level": "error"|never retrieved|Exception in callback|Task was destroyed|Fatal|was never awaited'
)


@dataclass
class Report:
    """What happened on one way.

    Attributes:
        way: One of `WAYS`.
        attacks: Sessions that were broken, by how they ended.
        good: Sessions that were answered.
        slowest_s: The longest that one of these took.
        faults: What must not be.
    """

    way: str
    attacks: Counter[str] = field(default_factory=Counter)
    good: int = 0
    slowest_s: float = 0.0
    faults: list[str] = field(default_factory=list)

    def ended(self, code: grpc.StatusCode, text: str) -> None:
        """A broken session was told this."""
        if code is grpc.StatusCode.INTERNAL and text == "Internal error from Core":
            self.attacks["lost by the client's library"] += 1
            return
        self.attacks[code.name] += 1
        if code is grpc.StatusCode.INTERNAL:
            self.faults.append(f"an error of ours: {text}")

    def __str__(self) -> str:
        ends = ", ".join(f"{name} {number}" for name, number in self.attacks.most_common())
        text = f"evergreen, {self.way}: {self.attacks.total()} attacks ({ends}), {self.good} good sessions beside them"
        return "\n".join([f"{text}, the slowest {self.slowest_s:.2f} s", *self.faults])


async def fuzz(way: str, chance: Random, seconds: float) -> Report:
    """Attack a server of its own for so long."""
    entrypoint, *flags = WAYS[way]
    report = Report(way)
    server = TestServer(entrypoint, *_FLAGS, *flags)
    try:
        before = await state(server.grpc)
        until = time.monotonic() + seconds
        seeds = [chance.getrandbits(64) for _ in range(_ATTACKERS)]
        await asyncio.gather(
            _be_good(server.grpc, chance, until, report),
            *(_be_bad(server.grpc, Random(seed), until, report) for seed in seeds),
        )
        await _settle(server.grpc, before, report)
        log = server.log()
        report.faults += [f"the log says: {line}" for line in log.splitlines() if _BROKEN.search(line)][:10]
    except (grpc.RpcError, TimeoutError) as error:
        report.faults.append(f"the server does not answer: {error!r}\n{server.log()[-3000:]}")
    finally:
        ended = await asyncio.to_thread(end, server)
    if ended:
        report.faults.append(ended)
    return report


async def _be_good(address: str, chance: Random, until: float, report: Report) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        while time.monotonic() < until and not report.faults:
            began = time.monotonic()
            sent, wanted = good(chance)
            try:
                found: Any = await ask(channel, sent, list(wanted), 2 * _SLOWEST_S)
            except _ENDED as error:
                found = repr(error)
            took_s = time.monotonic() - began
            report.slowest_s = max(report.slowest_s, took_s)
            if found != wanted:
                report.faults.append(f"a good session got {found}, not {wanted}; it had sent {sent}")
            elif took_s > _SLOWEST_S:
                report.faults.append(f"a good session took {took_s:.1f} s")
            report.good += 1


async def _be_bad(address: str, chance: Random, until: float, report: Report) -> None:
    """One attack after the other, several on one connection."""
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
    while time.monotonic() < until and not report.faults:
        async with grpc.aio.insecure_channel(address, options=options) as channel:
            for _ in range(chance.randrange(1, 10)):
                await asyncio.gather(*(_session(channel, chance, report) for _ in range(chance.choice((1, 1, 1, 20)))))
                if time.monotonic() > until:
                    break
            if chance.random() < 0.3:  # left open; they end with their connection
                for _ in range(5):
                    await _write(channel.stream_stream(PATH)(), attack(chance), chance)
                    report.attacks["lost"] += 1


async def _session(channel: grpc.aio.Channel, chance: Random, report: Report) -> None:
    """One broken session, from its first message to its end, which is of many kinds."""
    timeout_s = chance.choice((0.02, 0.2, 2, 2, 2, 2))
    metadata = (("evergreen-extensions", EXTENSIONS),) if chance.random() < 0.5 else ()
    call: Any = channel.stream_stream(PATH)(timeout=timeout_s, metadata=metadata)
    reads = chance.choice(("all", "all", "few", "none"))
    reader = asyncio.ensure_future(_read(call, reads))
    try:
        kind = chance.random()
        if kind < 0.1:
            await _gather(call, chance)
            call.cancel()
            report.attacks["cancelled while it gathers"] += 1
            return
        await _write(call, [b"x" * 5_000_000] if kind < 0.12 else attack(chance), chance)
        end = chance.choice(("half-close", "half-close", "cancel", "wait"))
        if end == "half-close":
            with contextlib.suppress(*_ENDED):
                await call.done_writing()
        elif end == "cancel":
            call.cancel()
        if reads != "all":
            await asyncio.sleep(chance.choice((0, 0.05, 0.2)))
            call.cancel()
        await reader
        with contextlib.suppress(asyncio.CancelledError):
            report.ended(await call.code(), await call.details())
    finally:
        reader.cancel()
        call.cancel()


async def _read(call: Any, how: str) -> None:
    left = {"all": 1000, "few": 2, "none": 0}[how]
    with contextlib.suppress(*_ENDED):
        while left and await call.read() is not grpc.aio.EOF:
            left -= 1


async def _write(call: Any, messages: list[bytes], chance: Random) -> None:
    """As far as the peer takes them."""
    with contextlib.suppress(*_ENDED, TimeoutError):
        async with asyncio.timeout(5):
            for one in messages:
                await call.write(one)
                if chance.random() < 0.05:
                    await asyncio.sleep(chance.choice((0, 0.001, 0.02)))


async def _gather(call: Any, chance: Random) -> None:
    """A function that gathers its input is cancelled, so it must not see a normal end of it (ET-79)."""
    message = pb.SessionMessage(node_fragments=[leaf("p", b"a", more=True)], actions=[act("gather", {"x": "p"}, "r")])
    await _write(call, [message.SerializeToString()], chance)
    await asyncio.sleep(chance.choice((0, 0.001, 0.01)))
    if chance.random() < 0.5:
        with contextlib.suppress(*_ENDED):
            await call.done_writing()


async def _settle(address: str, before: dict[str, int], report: Report) -> None:
    """Wait until nothing is left of the attacks."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        now = await state(address)
        faults = list(_left(before, now))
        if not faults:
            return
        if time.monotonic() > until:
            report.faults += faults
            return
        await asyncio.sleep(0.2)


def _left(before: dict[str, int], now: dict[str, int]) -> Any:
    if now["marks"]:
        yield f"{now['marks']} functions saw a normal end of an input that was cancelled"
    if now["bytes"] > before["bytes"] + _MORE_BYTES:
        yield f"the process holds {now['bytes']:,} bytes, before it held {before['bytes']:,}"
    for name, number in now.items():
        # Threads that lead and descriptors stay for a while, and the session that asks is one.
        slack = {"threads": 6, "descriptors": 20, "tasks": 3}.get(name, 2)
        if name not in ("bytes", "marks") and number > before[name] + slack:
            yield f"{number} {name} are left, before there were {before[name]}"
