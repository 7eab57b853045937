"""The tool bridge compared with a bare grpc.aio bridge: calls, streams, watchers, sessions, isolation."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from statistics import median, quantiles
from typing import Any

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from google.protobuf.wrappers_pb2 import Int64Value, StringValue

from benchmarks.bare_bridge import BLOCK
from benchmarks.bodies import WrongReplyError, framed
from benchmarks.http2 import Connection
from benchmarks.load import loaded
from benchmarks.measure import FAILURES, ratio, say
from benchmarks.process import group_processor_s, resident_mib
from benchmarks.report import spread, table
from benchmarks.servers import Series, ours, serving
from invoker._pb.dspex import bridge_pb2 as pb

SERVICE = "/dspex.bridge.SnakepitBridge/"
SESSION = "bench"
WATCHERS, SESSIONS = 1000, 10_000
IN_FLIGHT = 64
_AT_ONCE = 100
_STYLES = {"sync": "benchmarks.tools", "async": "benchmarks.async_tools"}


def toolbridge(columns: Sequence[Series], *, quick: bool) -> str:
    """Make all tables, or one sentence if h2load is not installed."""
    del columns  # the columns here are the bare bridge and invoker
    if shutil.which("h2load") is None:
        return "### Tool bridge\n\nLeft out: h2load is missing (Debian: nghttp2-client)."
    parts: list[Callable[[], str]] = [
        lambda: _calls(1 if quick else 3, 1500 if quick else 6000),
        lambda: _streams(1 if quick else 3, 200 if quick else 800),
        lambda: _watchers(WATCHERS // 10 if quick else WATCHERS),
        lambda: _sessions(SESSIONS // 10 if quick else SESSIONS),
        lambda: _isolation(100 if quick else 500),
        _limits,
    ]
    return "\n\n".join(found for part in parts for found in _tried(part))


def _tried(do: Callable[[], str]) -> list[str]:
    try:
        return [do()]
    except FAILURES as error:
        say(f"toolbridge fails: {error}")
        return []


# Servers and messages.


@contextmanager
def _bare() -> Iterator[tuple[str, int]]:
    with serving([sys.executable, "-m", "benchmarks.bare_bridge"]) as served:
        yield served


@contextmanager
def _bridge(module: str) -> Iterator[tuple[str, int]]:
    """Run invoker with one session; the block gets its address and process id."""
    command = ours(f"{module}:", extra=("--protocols", "riff,toolbridge"))
    command[command.index(f"{module}:")] = module
    with serving(command) as (address, pid):
        made = ask(address, "InitializeSession", pb.InitializeSessionRequest(session_id=SESSION))
        if not pb.InitializeSessionResponse.FromString(made).success:
            raise WrongReplyError("no session")
        yield address, pid


def packed(value: Message) -> AnyMessage:
    """Pack a message into an Any."""
    made = AnyMessage()
    made.Pack(value)
    return made


def call(tool: str) -> bytes:
    """Make a framed request that calls a tool with a text of 16 bytes."""
    request = pb.ToolCallRequest(session_id=SESSION, tool_id=tool, args=[packed(StringValue(value="x" * 16))])
    return framed(request.SerializeToString())


class Asker:
    """A connection that makes one rpc after another."""

    def __init__(self, address: str, method: str) -> None:
        self.connection = Connection(address, path=SERVICE + method)

    def ask(self, body: bytes) -> bytes:
        """Send a framed request; return the reply bytes after the first 5, which are the prefix of the first message.

        Raises:
            WrongReplyError: The rpc failed.
        """
        stream = self.connection.open(body, half_close=True)
        stream.kept = bytearray()
        while not stream.ended:
            self.connection.turn(20)
        del self.connection.streams[stream.id]
        if stream.status != "0":
            raise WrongReplyError(f"status {stream.status}")
        return bytes(stream.kept)[5:]


def ask(address: str, method: str, request: Message) -> bytes:
    """Make one rpc on a new connection, and return the serialized reply."""
    asker = Asker(address, method)
    try:
        return asker.ask(framed(request.SerializeToString()))
    finally:
        asker.connection.close()


# Tables.


def _calls(number: int, calls: int) -> str:
    """Measure the rate and the processor time of many calls in flight, and latencies of calls one after another."""
    figures = ("rate", "core", "p50", "p99")
    found: dict[str, dict[str, list[float]]] = {}
    for _ in range(number):
        for name, server in _servers():
            with server as (address, pid):
                _check_echo(address)
                measured = _measured(address, pid, calls)
            say(f"toolbridge calls {name}: " + ", ".join(f"{one} {measured[one]:,.0f}" for one in figures))
            for one in figures:
                found.setdefault(name, {}).setdefault(one, []).append(measured[one])
    rows = [
        [name, *(cell for one in figures for cell in (spread(of[one]), f"{ratio(of[one], found['bare'][one]):.2f}"))]
        for name, of in found.items()
    ]
    titles = (f"calls/s, {IN_FLIGHT} in flight", "core, µs a call", "p50, µs, 1 in flight", "p99, µs, 1 in flight")
    head = ("server", *(cell for title in titles for cell in (title, "÷ bare")))
    return table("Tool bridge: ExecuteTool of an echo of 16 B", head, rows)


def _servers() -> list[tuple[str, AbstractContextManager[tuple[str, int]]]]:
    return [("bare", _bare()), *((style, _bridge(module)) for style, module in _STYLES.items())]


def _measured(address: str, pid: int, calls: int) -> dict[str, float]:
    url, body = f"http://{address}{SERVICE}ExecuteTool", call("echo")
    loaded(url, body, streams=IN_FLIGHT, calls=calls // 10)
    before = group_processor_s(pid)
    seconds, data = loaded(url, body, streams=IN_FLIGHT, calls=calls)
    core = (group_processor_s(pid) - before) / calls
    if data < calls * 16:
        raise WrongReplyError(f"{data} reply bytes for {calls} calls")
    took = _one_after_another(address, body, calls // 4)
    p50, p99 = median(took), quantiles(took, n=100)[98]
    return {"rate": calls / seconds, "core": core * 1e6, "p50": p50 * 1e6, "p99": p99 * 1e6}


def _check_echo(address: str) -> None:
    reply = pb.ToolCallResponse.FromString(ask(address, "ExecuteTool", pb.ToolCallRequest.FromString(call("echo")[5:])))
    if not reply.success or StringValue.FromString(reply.result.value).value != "x" * 16:
        raise WrongReplyError(f"the echo gives {reply}")


def _one_after_another(address: str, body: bytes, count: int) -> list[float]:
    asker = Asker(address, "ExecuteTool")
    took = []
    for _ in range(count):
        began = time.perf_counter()
        asker.ask(body)
        took.append(time.perf_counter() - began)
    asker.connection.close()
    return took[count // 10 :]


def _streams(number: int, blocks: int) -> str:
    """Measure the throughput of blocks of 64 KiB, on one stream and on eight."""
    request = pb.ToolStreamRequest(session_id=SESSION, tool_id="blocks", args=[packed(Int64Value(value=blocks))])
    request.config.backpressure_enabled = True
    body = framed(request.SerializeToString())
    rows = []
    for streams in (1, 8):
        found: dict[str, list[float]] = {}
        for _ in range(number):
            for name, server in _servers():
                with server as (address, _):
                    seconds, data = loaded(f"http://{address}{SERVICE}StreamTool", body, streams=streams, calls=streams)
                if data < streams * blocks * BLOCK:
                    raise WrongReplyError(f"{data} bytes for {streams} streams of {blocks} blocks")
                found.setdefault(name, []).append(data / seconds / 1e6)
                say(f"toolbridge stream {name} {streams}: {found[name][-1]:,.0f} MB/s")
        rows += [
            [name, str(streams), spread(each), f"{ratio(each, found['bare']):.2f}"] for name, each in found.items()
        ]
    return table("Tool bridge: StreamTool, chunks of 64 KiB", ("server", "streams", "MB/s", "÷ bare"), rows)


def _watchers(count: int) -> str:
    """Measure the time from a write until all watchers of a variable have it."""
    with _bridge(_STYLES["async"]) as (address, pid):
        before = resident_mib(pid)
        watch = framed(pb.WatchVariablesRequest(session_id=SESSION, variable_names=["x"]).SerializeToString())
        connections = [Connection(address, path=f"{SERVICE}WatchSessionVariables") for _ in range(count // _AT_ONCE)]
        streams = [each.open(watch, half_close=True) for each in connections for _ in range(_AT_ONCE)]
        for each in connections:
            each.settle()
            each.flush()
        setter = Asker(address, "SetSessionVariable")
        _seen_by_all(setter, connections, streams)  # the first write also waits until all watches have begun
        took = [_seen_by_all(setter, connections, streams) * 1e3 for _ in range(10)]
        held = resident_mib(pid) - before
        for each in (*connections, setter.connection):
            each.close()
    cells = [f"{count:,}", spread(took), f"{held * 1024 / count:.1f}"]
    return table(
        "Tool bridge: an update of one variable", ("watchers", "ms until all have seen it", "KiB a watcher"), [cells]
    )


def _seen_by_all(setter: Asker, connections: Sequence[Connection], streams: Sequence[Any]) -> float:
    """Write, and return the seconds until each stream has received more; after a second, the write is repeated."""
    request = pb.SetVariableRequest(
        session_id=SESSION, variable_name="x", value=packed(Int64Value(value=1)), create_if_missing=True
    )
    while True:
        before = [stream.received for stream in streams]
        began = time.perf_counter()
        setter.ask(framed(request.SerializeToString()))
        while time.perf_counter() - began < 1:
            for connection in connections:
                connection.drain()
                connection.flush()
            if any(stream.ended for stream in streams):
                raise WrongReplyError("a watch ended")
            if all(stream.received > was for stream, was in zip(streams, before, strict=True)):
                return time.perf_counter() - began


def _sessions(count: int) -> str:
    """Measure the memory of sessions that are not used."""
    with _bridge(_STYLES["sync"]) as (address, pid):
        before, began = resident_mib(pid), time.perf_counter()
        asker = Asker(address, "InitializeSession")
        for number in range(count - 1):  # one session exists already
            made = asker.ask(framed(pb.InitializeSessionRequest(session_id=f"bench-{number}").SerializeToString()))
            if number == 0 and not pb.InitializeSessionResponse.FromString(made).success:
                raise WrongReplyError("no session")
        took, held = time.perf_counter() - began, resident_mib(pid) - before
        asker.connection.close()
    cells = [f"{count:,}", f"{took:.1f}", f"{held:.0f}", f"{held * 1024 / count:.1f}"]
    return table("Tool bridge: idle sessions", ("sessions", "s to make", "MiB", "KiB a session"), [cells])


def _isolation(calls: int) -> str:
    """Measure calls in a child process: the first call of a server, and later ones."""
    with _bridge("benchmarks.isolated_tools") as (address, _pid):
        [cold] = _one_after_another(address, call("isolated"), 1)
        took = {tool: _one_after_another(address, call(tool), calls) for tool in ("echo", "isolated")}
    rows = [["in a child, the first call", f"{cold * 1e6:,.0f}", ""]]
    rows += [
        [label, f"{median(took[tool]) * 1e6:,.0f}", f"{quantiles(took[tool], n=100)[98] * 1e6:,.0f}"]
        for label, tool in (("in the process", "echo"), ("in a child of the warm pool", "isolated"))
    ]
    return table("Tool bridge: process isolation", ("call", "p50, µs", "p99, µs"), rows)


def _limits() -> str:
    """Measure tools that exceed a limit in a child process, and calls of an echo at the same time."""
    rows = []
    with _bridge("benchmarks.isolated_tools") as (address, _):
        for tool, label in (("spins", "spins, 0.5 s allowed"), ("eats", "takes more and more memory, 512 MiB allowed")):
            connection = Connection(address, path=f"{SERVICE}ExecuteTool")
            began = time.perf_counter()
            request = pb.ToolCallRequest(session_id=SESSION, tool_id=tool)
            stream = connection.open(framed(request.SerializeToString()), half_close=True)
            stream.kept = bytearray()
            connection.flush()
            beside: list[float] = []
            while not stream.ended and time.perf_counter() - began < 20:
                beside += _one_after_another(address, call("echo"), 1)
                connection.drain()
            took = time.perf_counter() - began
            answer = pb.ToolCallResponse.FromString(bytes(stream.kept)[5:])
            connection.close()
            told = f"{answer.error.type} {answer.error.details['code']}".strip()
            rows.append([label, f"{took:.2f}", told, f"{len(beside)}", f"{max(beside) * 1e3:,.0f}"])
    head = ("tool", "s until the caller was told", "told", "echoes meanwhile", "the slowest of them, ms")
    return table("Tool bridge: tools past their limits, in child processes", head, rows)
