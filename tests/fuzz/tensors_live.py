"""A server of models under attack at all its transports.

It lives, good calls get what is right, and nothing is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import numpy as np

from invoker.client.graphpipe import AsyncGraphPipe, GraphPipeError
from invoker.testing import TestServer
from tests.conftest import SLOW
from tests.fuzz.ending import GRACE, end
from tests.fuzz.tensors_answers import Broken
from tests.fuzz.tensors_attacks import BOMBS, attack
from tests.fuzz.tensors_good import GOOD
from tests.fuzz.tensors_transports import HUNG_S, PATHS, Transports, by_http, by_socket

LIMIT_BYTES = 64 << 20
_ENTRYPOINT = "tests.fuzz.tensors_models"
_TIMEOUT_S = 2.0
_ATTACKERS = 4
LOOPS = ("auto", "asyncio", "uvloop") if importlib.util.find_spec("uvloop") else ("auto",)
"""Kinds of event loops that a server can have."""

_SLOWEST_GOOD_S = 2.5 * SLOW
_PATIENCE_S = 7.5 * SLOW
_PEAK_BYTES = 12 * LIMIT_BYTES
"""One large request at a time is held, and four times as much may be made of it; small ones may have strings of one
limit each, and glibc keeps memory for threads that are gone."""
_KEPT_BYTES = 5 * LIMIT_BYTES
_SLOW_S = 1.0
_TRIES = 3
_SLOW_RESULT_S = 6.0
"""Of a million strings, which are allowed: read, fed, given and written."""
_SLACK = {"threads": 6, "descriptors": 20, "tasks": 3, "bytes": 2**40}
"""Threads that lead and descriptors stay for a while; what is resident is looked at from outside."""
_BROKEN = re.compile(
    r'"level": "error"|inside the invoker|never retrieved|Exception in callback|Task was destroyed|Fatal|never awaited'
)


@dataclass
class Report:
    """What happened.

    Attributes:
        loop: The server's kind of event loop.
        attacks: How they ended.
        good: Calls that got what was right.
        large: Attacks of many megabytes, of all.
        slowest_s: The longest that one of these took.
        peak_bytes: The most that the server had more than at the beginning.
        slow: Attacks that took longest: time, buffer, where.
        faults: What must not be.
    """

    loop: str
    attacks: Counter[str] = field(default_factory=Counter)
    good: Counter[str] = field(default_factory=Counter)
    large: int = 0
    slowest_s: float = 0.0
    peak_bytes: int = 0
    slow: list[tuple[float, bytes, str]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"tensors, live, {self.loop}: {self.attacks.total()} attacks, {self.large} of them large",
            f"they ended so: {_listing(self.attacks)}",
            f"beside them {self.good.total()} good calls ({_listing(self.good)}), the slowest {self.slowest_s:.2f} s",
            f"the server had at most {self.peak_bytes >> 20} MiB more than at the beginning",
        ]
        return "\n".join([*lines, *self.faults])


def _listing(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counts.most_common())


async def fuzz(loop: str, chance: Random, seconds: float) -> Report:
    """Attack a server of its own, with this kind of event loop, for so long."""
    report = Report(loop)
    with tempfile.TemporaryDirectory(prefix="invoker-fuzz-") as folder:
        unix, http_unix = str(Path(folder, "models.sock")), str(Path(folder, "http.sock"))
        flags = ("--graphpipe-tcp", "127.0.0.1:0", "--graphpipe-unix", unix, "--log-format", "json")
        flags += ("--http-unix", http_unix, *GRACE, "--loop", report.loop)
        server = await asyncio.to_thread(
            TestServer,
            _ENTRYPOINT,
            *flags,
            "--graphpipe-timeout-s",
            str(_TIMEOUT_S),
            "--graphpipe-bytes",
            str(LIMIT_BYTES),
        )
        try:
            await _attacked(server, _transports(server, unix, http_unix), chance, seconds, report)
        except (GraphPipeError, OSError, TimeoutError) as error:
            report.faults.append(f"the server does not answer: {error!r}\n{server.log()[-3000:]}")
        finally:
            log = server.log()
            ended = await asyncio.to_thread(end, server)
    report.faults += [f"the log says: {line[:1000]}" for line in log.splitlines() if _BROKEN.search(line)][:10]
    if ended:
        report.faults.append(ended)
    return report


async def _attacked(server: TestServer, transports: Transports, chance: Random, seconds: float, report: Report) -> None:
    pid = server._process.pid
    base = "http://{}:{}/graphpipe/".format(*transports.http)
    before = await _state(base)
    resident = _kept(pid)
    until = time.monotonic() + seconds
    large = asyncio.Lock()
    seeds = [chance.getrandbits(64) for _ in range(_ATTACKERS)]
    urls = (
        base,
        f"unix+http://{quote(transports.http_unix, safe='')}/graphpipe/",
        "tcp://{}:{}".format(*transports.tcp),
        f"unix://{transports.unix}",
    )
    await asyncio.gather(
        *(_be_good(url, Random(chance.getrandbits(64)), until, report) for url in urls),
        *(_be_bad(transports, Random(seed), until, report, large, may_be_large=seconds > 20) for seed in seeds),
        _watch(pid, resident, until, report),
    )
    await _be_slow(transports, pid, report)
    await _settle(base, before, pid, resident, report)


# Attacks.


async def _be_bad(
    transports: Transports, chance: Random, until: float, report: Report, large: asyncio.Lock, *, may_be_large: bool
) -> None:
    while time.monotonic() < until and not report.faults:
        if may_be_large and chance.random() < 0.003 and not large.locked():
            async with large:
                size = chance.choice((60 << 20, LIMIT_BYTES - 100, 20 << 20))
                name = chance.choice(sorted(BOMBS))
                buffer = await asyncio.to_thread(BOMBS[name], size)
                await _one(transports, chance, report, lambda _, whole=buffer: whole)  # type: ignore[misc]
                report.large += 1
        else:
            await asyncio.gather(*(_one(transports, chance, report, attack) for _ in range(chance.choice((1, 1, 4)))))


async def _one(transports: Transports, chance: Random, report: Report, make: Callable[[Random], bytes]) -> None:
    sent: list[bytes] = []

    def noted(own: Random) -> bytes:
        sent.append(make(own))
        return sent[-1]

    transport = "/graphpipe/" + chance.choice(PATHS) if chance.random() < 0.6 else "socket"
    began = time.monotonic()
    try:
        ended = await (
            by_socket(transports, chance, noted)
            if transport == "socket"
            else by_http(transports, chance, noted, transport)
        )
    except TimeoutError:
        ended = "hung"
        report.faults.append(f"{transport}: no answer and no end within {HUNG_S} s: {_shown(sent)}")
    except Broken as error:
        ended = "broken"
        report.faults.append(f"{transport}: {error}: {_shown(sent)}")
    took = time.monotonic() - began
    report.attacks[ended] += 1
    if len(sent) == 1 and took > _SLOW_S / 4 and ended not in ("left", "HTTP 504/15"):
        report.slow = sorted([*report.slow, (took, sent[0], transport)], key=lambda one: -one[0])[:5]


def _shown(sent: list[bytes]) -> str:
    return ", ".join(one[:300].hex() + ("..." if len(one) > 300 else "") for one in sent[:3])


async def _be_slow(transports: Transports, pid: int, report: Report) -> None:
    """Those that took longest again, alone: a second of the server's processor time is what they may take.

    What attacks have left behind still takes its time, so only what is slow each time is slow.
    """
    for took, buffer, transport in report.slow:
        for _ in range(_TRIES):
            used, most = await _used_s(transports, pid, buffer, transport)
            if used <= most:
                break
        else:
            what = f"{len(buffer)} bytes at {transport}: {_shown([buffer])}"
            report.faults.append(f"{used:.1f} s of processor time ({took:.1f} s beside others) for {what}")


async def _used_s(transports: Transports, pid: int, buffer: bytes, transport: str) -> tuple[float, float]:
    """How many seconds of processor time the server took for a request, and how many it may take."""
    before, size = _processor_s(pid), len(buffer)
    reader, writer = await asyncio.open_connection(*(transports.tcp if transport == "socket" else transports.http))
    head = f"POST {transport} HTTP/1.1\r\nhost: x\r\ncontent-length: {size}\r\n\r\n".encode()
    writer.write((size.to_bytes(4, "little") if transport == "socket" else head) + buffer)
    begun = b""
    async with asyncio.timeout(HUNG_S):
        with contextlib.suppress(ConnectionError):  # it was refused before all of it had come
            begun = await reader.read(1000)
    used = _processor_s(pid) - before
    writer.transport.abort()
    # The function was run: a result, its failure, or of bare sockets a table of tensors alone.
    was_run = begun.startswith((b"HTTP/1.1 200", b"HTTP/1.1 500")) or begun[8:10] == b"\6\0"
    return used, (_SLOW_RESULT_S if was_run else _SLOW_S) * (1 + size / LIMIT_BYTES)


# Good calls.


async def _be_good(url: str, chance: Random, until: float, report: Report) -> None:
    """Ask all models, or where there are no names the first; compare with what numpy says."""
    kind = url.partition(":")[0]
    asks = GOOD if "http" in kind else GOOD[:1]
    async with contextlib.AsyncExitStack() as stack:
        names = [ask.__name__ if "http" in kind else "" for ask in asks]
        clients = [await stack.enter_async_context(AsyncGraphPipe(url + name, timeout_s=HUNG_S)) for name in names]
        while time.monotonic() < until and not report.faults:
            number = chance.randrange(len(asks))
            began = time.monotonic()
            try:
                wrong = await asks[number](clients[number], np.random.default_rng(chance.getrandbits(32)))
            except GraphPipeError as error:
                wrong = repr(error)
            took = time.monotonic() - began
            report.slowest_s = max(report.slowest_s, took)
            if wrong or took > _SLOWEST_GOOD_S:
                report.faults.append(f"a good call by {kind} of {asks[number].__name__} took {took:.1f} s: {wrong}")
            report.good[kind] += 1
            await asyncio.sleep(0.002)


# The server's own state.


async def _state(base: str) -> dict[str, int]:
    async with AsyncGraphPipe(base + "state", timeout_s=HUNG_S) as model:
        found: dict[str, int] = json.loads((await model.infer()).item())
    return found


async def _settle(base: str, before: dict[str, int], pid: int, resident: int, report: Report) -> None:
    """Wait until nothing is left of the attacks."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        now = await _state(base)
        kept = _kept(pid) - resident
        faults = [
            f"{number} {name} are left, before there were {before[name]}"
            for name, number in now.items()
            if number > before[name] + _SLACK.get(name, 2)
        ]
        if kept > _KEPT_BYTES:
            faults.append(f"the process keeps {kept >> 20} MiB more than at the beginning")
        if not faults:
            return
        if time.monotonic() > until:
            report.faults += faults
            return
        await asyncio.sleep(0.2)


async def _watch(pid: int, resident: int, until: float, report: Report) -> None:
    while time.monotonic() < until and not report.faults:
        report.peak_bytes = max(report.peak_bytes, _kept(pid) - resident)
        if report.peak_bytes > _PEAK_BYTES:
            report.faults.append(f"the process takes {report.peak_bytes >> 20} MiB more than at the beginning")
        await asyncio.sleep(0.02)


def _kept(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _transports(server: TestServer, unix: str, http_unix: str) -> Transports:
    found: Any = re.search(r"graphpipe=(\S+?):(\d+)", server.log())
    host, _, port = server.http.rpartition(":")
    return Transports((host, int(port)), (found[1], int(found[2])), unix, http_unix)
