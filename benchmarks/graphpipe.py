"""GraphPipe compared with a bare ASGI echo and a JSON endpoint: round trips, memory, concurrent requests, batches."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

import msgspec
import numpy as np

from benchmarks.bodies import WrongReplyError
from benchmarks.http1 import Framed, Post, rate, request
from benchmarks.measure import Samples, ratio, say
from benchmarks.models import COST_S
from benchmarks.process import forget_peak, peak_mib, resident_mib
from benchmarks.report import spread, table
from benchmarks.servers import DRIVER_CORE, PEER_PYTHON, Series, serving
from invoker.client import GraphPipe
from invoker.tensors import InferRequest, read_infer_response, read_request, write_request
from invoker.tensors.arrays import Array, to_array, to_tensor

CLIENTS = 64
LIMIT_BYTES = 80 << 20
"""A request with a tensor of 64 MiB is a few bytes larger, so both limits that are 64 MiB by default must be raised."""

_MIB = 1 << 20
_SIZES = ((1 << 10, "1 KiB", 500), (_MIB, "1 MiB", 50), (64 << 20, "64 MiB", 4))
_LIMITS = ["--graphpipe-bytes", str(LIMIT_BYTES), "--hard-bytes", str(LIMIT_BYTES)]
_TCP = ["--graphpipe-tcp", "127.0.0.1:0"]
_ALONE = ["--protocols", "http,graphpipe"]

Ask = Callable[[], Any]


@dataclass(frozen=True, slots=True, eq=False)
class ConnectionOps:
    """A server and its client, which sends a tensor; the reply has the same tensor multiplied by ``times``."""

    name: str
    label: str
    command: list[str]
    transport: str = "http"
    is_json: bool = False
    is_ours: bool = False
    times: int = 1

    def body(self, array: Array) -> bytes:
        """Return the request body that has the array."""
        if self.is_json:
            return msgspec.json.encode(array.tolist())
        return bytes(write_request(InferRequest((to_tensor(array),))))

    @contextmanager
    def asking(self, address: str, array: Array) -> Iterator[Ask]:
        """Open a connection; the block gets a function that sends one request and returns the reply."""
        if self.is_ours:
            with GraphPipe(f"http://{address}/graphpipe", limit_bytes=LIMIT_BYTES) as client:
                yield lambda: client.infer(array)
            return
        body = self.body(array)
        asker = Framed(address, body) if self.transport == "graphpipe" else Post(address, body)
        try:
            yield asker.ask
        finally:
            asker.close()

    def check(self, reply: Any, array: Array) -> None:
        """Check that a reply has the expected array.

        Raises:
            WrongReplyError: The array is not the expected one.
        """
        if self.is_ours:
            found = reply
        elif self.is_json:
            found = np.array(msgspec.json.decode(reply.body), np.float32)
        elif self.name.startswith("bare"):
            # the request is an inference
            found = to_array(read_request(bytes(reply.body), LIMIT_BYTES).tensors[0])  # type: ignore[union-attr]
        else:
            found = to_array(read_infer_response(bytes(reply.body), LIMIT_BYTES).tensors[0])
        if found.dtype != array.dtype or not np.array_equal(found, array * self.times):
            raise WrongReplyError(f"{self.name}: the reply is not the expected tensor")


def _ours(function: str, *flags: str) -> list[str]:
    command = [sys.executable, "-m", "invoker", f"benchmarks.models:{function}", "--host", "127.0.0.1"]
    return [*command, "--port", "0", "--grpc-port", "0", *_LIMITS, *flags]


def _asgi(work: str) -> list[str]:
    return [str(PEER_PYTHON), "-m", "benchmarks.asgi", work]


BARE = ConnectionOps("bare", "bare ASGI echo", _asgi("echo"))
SYNC = ConnectionOps("sync", "sync function", _ours("same", *_ALONE))
ASYNC = ConnectionOps("async", "async function", _ours("asame", *_ALONE))
TCP = ConnectionOps("tcp", "sync function, bare TCP", _ours("same", *_ALONE, *_TCP), "graphpipe")
JSON = ConnectionOps("json", "JSON endpoint", _asgi("json"), is_json=True)
WAYS = (
    BARE,
    ConnectionOps("bare-kept", "the same with its pages kept", _asgi("kept")),
    SYNC,
    ASYNC,
    ConnectionOps("all", "sync function beside riff and Evergreen", _ours("same")),
    TCP,
    ConnectionOps("tcp-async", "async function, bare TCP", _ours("asame", *_ALONE, *_TCP), "graphpipe"),
    ConnectionOps("client", "sync function, asked by our client", SYNC.command, is_ours=True),
    JSON,
    ConnectionOps("msgspec", "JSON endpoint, msgspec", _asgi("msgspec"), is_json=True),
)
_HELD = (
    BARE,
    SYNC,
    ASYNC,
    ConnectionOps("double", "sync function with a new array", _ours("double", *_ALONE), times=2),
    TCP,
    ConnectionOps(
        "tcp-double", "sync function with a new array, bare TCP", _ours("double", *_ALONE, *_TCP), "graphpipe", times=2
    ),
    JSON,
)


def graphpipe(_: Sequence[Series], *, quick: bool) -> str:
    """Make all tables except that of `batches`."""
    rounds = 1 if quick else 3
    with _on_driver_core():
        parts = [_times(size, title, max(2, count // 5) if quick else count, rounds) for size, title, count in _SIZES]
        parts += [_memory(size, title) for size, title, _ in _SIZES[1:]]
        parts.append(_beside(2 if quick else 6))
    return "\n\n".join(parts)


@contextmanager
def _on_driver_core() -> Iterator[None]:
    if not hasattr(os, "sched_setaffinity") or (os.cpu_count() or 1) < 2:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {DRIVER_CORE})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _array(size: int) -> Array:
    return np.random.default_rng(7).random((size // 1024, 256), np.float32)


# Tables.


def _times(size: int, title: str, count: int, rounds: int) -> str:
    array, took = _array(size), dict[str, list[float]]()
    slow = [way for way in WAYS if way.is_json and size > _MIB]
    with ExitStack() as stack:
        asks = {way: _opened(stack, way, array) for way in WAYS if way not in slow}
        for _ in range(rounds):
            for way, ask in asks.items():
                took.setdefault(way.name, []).extend(_seconds(ask, max(2, count // 20) if way.is_json else count))
    for way in slow:
        with serving(way.command, transport=way.transport) as (address, _), way.asking(address, array) as ask:
            began = time.perf_counter()
            reply = ask()
            took[way.name] = [time.perf_counter() - began]
            way.check(reply, array)
    rows = []
    for way in WAYS:
        values = sorted(took[way.name])
        late = values[min(len(values) - 1, len(values) * 99 // 100)]
        cells = [_ms(median(values)), _ms(late), str(len(values)), f"{ratio(values, took['bare']):.2f}"]
        rows.append([way.label, *cells])
        say(f"graphpipe {title} {way.name}: " + " ".join(cells))
    return table(f"GraphPipe: {title} of Float32 there and back", ("way", "p50, ms", "p99, ms", "n", "÷ bare"), rows)


def _opened(stack: ExitStack, way: ConnectionOps, array: Array) -> Ask:
    address, _ = stack.enter_context(serving(way.command, transport=way.transport))
    ask = stack.enter_context(way.asking(address, array))
    way.check(ask(), array)
    return ask


def _seconds(ask: Ask, count: int) -> list[float]:
    ask()
    took = []
    for _ in range(count):
        began = time.perf_counter()
        ask()
        took.append(time.perf_counter() - began)
    return took


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.2f}" if seconds < 1 else f"{seconds * 1e3:,.0f}"


def _memory(size: int, title: str) -> str:
    """Measure the peak growth of memory in a server that has answered only small requests before."""
    array, rows = _array(size), []
    for way in _HELD:
        with serving(way.command, transport=way.transport) as (address, pid):
            with way.asking(address, array[:1]) as ask:
                ask()
            before = resident_mib(pid)
            forget_peak(pid)
            with way.asking(address, array) as ask:
                reply = ask()
                growth = peak_mib(pid) - before
                way.check(reply, array)
        whole = 2 * len(way.body(array)) / _MIB
        cells = [f"{whole:,.1f}", f"{growth:,.1f}", f"{(growth - whole) * _MIB / size:.2f}"]
        say(f"graphpipe {title} memory {way.name}: " + " ".join(cells))
        rows.append([way.label, *cells])
    head = ("way", "request and response, MiB", "peak growth, MiB", "beyond them, tensors")
    return table(f"GraphPipe: memory for {title}", head, rows)


def _beside(count: int) -> str:
    """Measure 1 KiB requests alone, and while requests of 64 MiB are in flight."""
    small, large, rows = _array(1024), _array(64 << 20), []
    for way in (BARE, SYNC, ASYNC):
        with serving(way.command, transport=way.transport) as (address, _), way.asking(address, small) as ask:
            alone, took = _seconds(ask, 300), list[float]()
            with way.asking(address, large) as asks_much:
                busy = threading.Thread(target=lambda much=asks_much: [much() for _ in range(count)])
                busy.start()
                while busy.is_alive():
                    took += _seconds(ask, 1)
                busy.join()
        rows.append([way.label, _ms(median(alone)), _ms(median(took)), _ms(max(took))])
        say(f"graphpipe beside {way.name}: " + " ".join(rows[-1][1:]))
    head = ("way", "alone, p50, ms", "beside them, p50, ms", "most, ms")
    return table("GraphPipe: 1 KiB requests beside those of 64 MiB", head, rows)


def batches(_: Sequence[Series], *, quick: bool, samples: Samples) -> str:
    """Measure many clients that send single rows, for both transports; HTTP's figures are added to ``samples``."""
    with _on_driver_core():
        return _batches(10 if quick else 40, 1 if quick else 3, samples)


def _batches(each: int, rounds: int, samples: Samples) -> str:
    array, rows = _array(1024), []
    for transport, flags in (("http", []), ("graphpipe", _TCP)):
        ways = [
            ConnectionOps(name, name, _ours(name, *_ALONE, *flags), transport, times=2)
            for name in ("costly", "batched")
        ]
        ways += [BARE] if transport == "http" else []
        found = dict[str, list[float]]()
        with ExitStack() as stack:
            served = [(way, stack.enter_context(serving(way.command, transport=transport))[0]) for way in ways]
            for _ in range(rounds):
                for way, address in served:
                    found.setdefault(way.name, []).append(_rate(way, address, array, each))
        label = "HTTP" if transport == "http" else "bare TCP"
        if transport == "http":
            samples |= {("batches", name): {"rate": values} for name, values in found.items()}
        times = f"{ratio(found['batched'], found['costly']):.1f}"
        rows.append([label, *(spread(found.get(name, [0])) for name in ("costly", "batched")), times])
        rows[-1].append(spread(found["bare"]) if transport == "http" else "")
        say(f"graphpipe batches {label}: " + " ".join(rows[-1][1:]))
    title = f"GraphPipe: {CLIENTS} clients with single rows, {COST_S * 1e3:g} ms a call, requests/s"
    return table(title, ("transport", "unbatched", "batched", "ratio", "bare ASGI echo"), rows)


def _rate(way: ConnectionOps, address: str, array: Array, each: int) -> float:
    body = way.body(array)
    whole = len(body).to_bytes(4, "little") + body if way.transport == "graphpipe" else request(address, body)
    with way.asking(address, array) as ask:
        reply = ask()
        way.check(reply, array)
    rate(address, whole, reply.reply_bytes, connections=CLIENTS, each=3)
    return rate(address, whole, reply.reply_bytes, connections=CLIENTS, each=each)
