"""Host sessions and variables of the tool bridge in each store: memory, an SQLite file, and a Redis server."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import grpc
import grpc.aio

from benchmarks.measure import FAILURES, say
from benchmarks.process import resident_mib
from benchmarks.report import table
from benchmarks.servers import Series, ours, serving
from invoker._pb.dspex import bridge_pb2 as pb

_SERVICE = "/dspex.bridge.SnakepitBridge/"
_KINDS = ("memory", "sqlite", "redis")
_IN_FLIGHT = 64
_CHANNELS = 4


def stores(columns: Sequence[Series], *, quick: bool) -> str:  # noqa: ARG001 - every row of the table takes them
    """Measure watchers, sets and gets per second, and memory of sessions; the table has a row for each store."""
    rows = []
    for kind in _KINDS:
        try:
            rows.append([kind, *_figures(kind, quick=quick)])
        except FAILURES as error:
            say(f"{kind} fails: {error}")
    watchers, sessions = _sizes(quick=quick)
    head = (
        "store", f"ms until {watchers:,} watchers have seen a write", "sets/s", "gets/s", "ms a lone set",
        f"KiB a session, of {sessions:,}", "sessions made/s",
    )  # fmt: skip
    return table(f"Host sessions and variables; {_IN_FLIGHT} rpcs in flight", head, rows)


def _sizes(*, quick: bool) -> tuple[int, int]:
    return (200, 1000) if quick else (1000, 10_000)


def _figures(kind: str, *, quick: bool) -> list[str]:
    watchers, sessions = _sizes(quick=quick)
    with _served(kind) as (address, _):
        bridge = _Bridge(address)
        seen, sets, gets, lone = bridge.run(lambda: bridge.variables(watchers, 500 if quick else 5000))
    with _served(kind) as (address, pid):
        bridge = _Bridge(address)
        bridge.run(lambda: bridge.sessions(100, "warm"))
        before = resident_mib(pid)
        rate = bridge.run(lambda: bridge.sessions(sessions - 100, "many"))
        size = (resident_mib(pid) - before) * 1024 / (sessions - 100)
    return [f"{seen * 1e3:,.0f}", f"{sets:,.0f}", f"{gets:,.0f}", f"{lone * 1e3:.2f}", f"{size:.1f}", f"{rate:,.0f}"]


@contextmanager
def _served(kind: str) -> Iterator[tuple[str, int]]:
    """Run a server with an empty store; the block gets its address and process id."""
    with _place(kind) as place:
        command = ours("areply_square", extra=["--protocols", "riff,toolbridge", "--store", place])
        with serving(command) as found:
            yield found


@contextmanager
def _place(kind: str) -> Iterator[str]:
    """Make an empty store for the block, which gets the value of ``--store``."""
    with tempfile.TemporaryDirectory() as folder:
        if kind != "redis":
            yield "memory" if kind == "memory" else f"sqlite:{Path(folder, 'store.db')}"
            return
        program = shutil.which("redis-server")
        if program is None:
            raise OSError("redis-server is missing (Debian: redis-server)")
        path = Path(folder, "redis.sock")
        command = [program, "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", folder]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            next(line for line in server.stdout if "ready to accept connections" in line)
            yield f"unix://{path}"
        finally:
            server.kill()
            server.communicate()


class _Bridge:
    """A client of the tool bridge; each run has its own event loop."""

    def __init__(self, address: str) -> None:
        self._address = address

    def run(self, make: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        async def main() -> Any:
            local = [("grpc.use_local_subchannel_pool", 1)]
            self._channels = [grpc.aio.insecure_channel(self._address, options=local) for _ in range(_CHANNELS)]
            try:
                return await make()
            finally:
                for one in self._channels:
                    await one.close()

        return asyncio.run(main())

    async def variables(self, watchers: int, count: int) -> tuple[float, float, float, float]:
        """Measure seconds until all watchers have a write, sets and gets per second, and seconds of one set alone."""
        await self._begin("s1")
        await self._set(0)
        watches = [self._watch(number) for number in range(watchers)]
        await asyncio.gather(*(one.read() for one in watches))
        times = []
        for number in range(1, 4):
            began = time.perf_counter()
            await asyncio.gather(self._set(number), *(one.read() for one in watches))
            times.append(time.perf_counter() - began)
        for one in watches:
            one.cancel()
        sets = await _rate(count, self._set)
        gets = await _rate(count, self._get)
        began = time.perf_counter()
        for number in range(200):
            await self._set(number)
        return median(times), sets, gets, (time.perf_counter() - began) / 200

    async def sessions(self, count: int, name: str) -> float:
        """Make sessions with one variable each; return sessions per second."""

        async def make(number: int) -> None:
            await self._begin(f"{name}-{number}")
            await self._set(number, f"{name}-{number}")

        return await _rate(count, make)

    def _call(self, name: str, answers: Any, number: int = 0) -> Any:
        return self._channels[number % _CHANNELS].unary_unary(_SERVICE + name, response_deserializer=answers.FromString)

    def _watch(self, number: int) -> Any:
        request = pb.WatchVariablesRequest(session_id="s1", include_initial=True).SerializeToString()
        return self._channels[number % _CHANNELS].unary_stream(_SERVICE + "WatchSessionVariables")(request)

    async def _begin(self, session_id: str) -> None:
        request = pb.InitializeSessionRequest(session_id=session_id)
        made = await self._call("InitializeSession", pb.InitializeSessionResponse)(request.SerializeToString())
        assert made.success, made

    async def _set(self, number: int, session_id: str = "s1") -> None:
        request = pb.SetVariableRequest(session_id=session_id, variable_name="a", create_if_missing=True)
        request.value.type_url = "type.googleapis.com/google.protobuf.Int64Value"
        request.value.value = b"\x08\x05"
        done = await self._call("SetSessionVariable", pb.StatusResponse, number)(request.SerializeToString())
        assert done.success, done

    async def _get(self, number: int) -> None:
        request = pb.GetVariableRequest(session_id="s1", variable_name="a").SerializeToString()
        got = await self._call("GetSessionVariable", pb.VariableResponse, number)(request)
        assert got.exists, got


async def _rate(count: int, do: Callable[[int], Coroutine[Any, Any, None]]) -> float:
    """Run ``do`` for 0 to ``count - 1``, 64 at a time; return runs per second."""
    numbers = iter(range(count))

    async def some() -> None:
        for number in numbers:
            await do(number)

    began = time.perf_counter()
    await asyncio.gather(*(some() for _ in range(_IN_FLIGHT)))
    return count / (time.perf_counter() - began)
