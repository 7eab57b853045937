"""Opens gRPC on loopback, each kind of them, with grpc's own blocking client; for the tests of the transports."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, Self
from unittest.mock import patch

import grpc
import uvloop

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.protocols.riff.service.method import riff_method
from invoker.transports.grpc.aio import AioTransport
from invoker.transports.grpc.fast import FastTransport
from invoker.transports.grpc.queue_poller import QueuePollingLoop
from tests.execution.memory import driver_of

PATH = "/streaming.Riff/Invoke"

FAST = ("direct", "lending", "uvloop")
KINDS = ("aio", *FAST)
"""The public transport; the fast one: sync functions only, on its own loop, on another loop."""

_LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "lending": QueuePollingLoop,
    "uvloop": uvloop.new_event_loop,
    "direct-lending": QueuePollingLoop,
}
_LOCAL = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
_END = object()


def start(accept: str = "*/*", names: tuple[str, ...] = (), outputs: int = 1) -> bytes:
    frame = pb.StartFrame(expectedContentTypes=[accept] * outputs, inputNames=names)
    return pb.InputSignal(start=frame).SerializeToString()


def data(payload: bytes, index: int = 0) -> bytes:
    return pb.InputSignal(data=pb.InputFrame(payload=payload, argIndex=index)).SerializeToString()


def form(kind: str, sync: Any, asyn: Any) -> Any:
    """What a kind of transport serves: the sync form of a function for "direct", else the async one."""
    return sync if kind.startswith("direct") else asyn


def eventually(condition: Callable[[], Any], within_s: float = 10.0) -> bool:
    """Whether something becomes so; what is looked at has no event of its own."""
    until = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.001)
    return True


class Riff:
    """A transport that serves in a thread of its own, and a channel to it.

    Args:
        kind: One of ``KINDS``.
        functions: What is served; all sync for "direct".
        transport: Arguments of the transport.
        add: Is given the transport before it opens.
        settings: Arguments of the driver.
    """

    def __init__(
        self,
        kind: str,
        *functions: Any,
        transport: dict[str, Any] | None = None,
        add: Callable[[Any], Any] | None = None,
        **settings: Any,
    ) -> None:
        self.kind = kind
        self.driver = driver_of(*functions, **({"grace_s": 0.5} | settings))
        self._transport, self._add = {"methods": (riff_method(),)} | (transport or {}), add
        self._calls: list[Call] = []
        self._opened = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, name="riff-server", daemon=True)

    def __enter__(self) -> Self:
        self._idle = patch("invoker.execution.bodies.pool._IDLE_S", 0.05)  # so that no thread outlives its test
        self._idle.start()
        self._thread.start()
        self._opened.wait()
        if self._failure is not None:
            raise self._failure
        self.channel = self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        for call in self._calls:
            call.half_close()
        self.channel.close()
        self.close()
        self._idle.stop()

    def close(self, grace_s: float = 0.0) -> None:
        """Stop serving; returns when the server's thread has ended."""
        if self._thread.is_alive():
            self._grace_s = grace_s
            self.loop.call_soon_threadsafe(self._closing.set)
            self._thread.join(20)
        assert not self._thread.is_alive(), "the transport does not stop"

    def connect(self, **options: int) -> grpc.Channel:
        """Another connection; underscores after ``grpc`` stand for themselves."""
        given = [(f"grpc.{name}", value) for name, value in options.items()]
        return grpc.insecure_channel(f"127.0.0.1:{self.port}", [*_LOCAL, *given])

    def call(self, *payloads: bytes, channel: grpc.Channel | None = None, **options: Any) -> Call:
        """Begin a call and send the start frame, then ``payloads``."""
        call = self.raw(start(), channel=channel, **options)
        for payload in payloads:
            call.data(payload)
        return call

    def raw(self, *frames: bytes, channel: grpc.Channel | None = None, path: str = PATH, **options: Any) -> Call:
        """Begin a call and send frames as they are."""
        call = Call((channel or self.channel).stream_stream(path), options)
        self._calls.append(call)
        for frame in frames:
            call.send(frame)
        return call

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run something on the server's loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(20)

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=_LOOPS.get(self.kind, asyncio.SelectorEventLoop)) as runner:
            runner.run(self._main())

    async def _main(self) -> None:
        self.loop, self._closing, self._grace_s = asyncio.get_running_loop(), asyncio.Event(), 0.0
        try:
            self.transport = (AioTransport if self.kind == "aio" else FastTransport)(self.driver, **self._transport)
            if self._add is not None:
                self._add(self.transport)
            self.port = self.transport.bind("127.0.0.1:0")
            await self.transport.start()
        except BaseException as error:
            self._failure = error
            raise
        finally:
            self._opened.set()
        await self._closing.wait()
        self.driver.engine.is_draining = True
        await self.transport.stop(self._grace_s)
        await self.driver.left(5)
        self.driver.close()


class Call:
    """One call: frames are put, outputs are read; nothing waits but reading.

    Args:
        stub: Of the method.
        options: Of the call.
    """

    def __init__(self, stub: Any, options: dict[str, Any]) -> None:
        self._out: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.rpc = stub(iter(self._out.get, _END), **options)

    def send(self, frame: bytes) -> None:
        """Send one frame as it is."""
        self._out.put(frame)

    def data(self, payload: bytes, index: int = 0) -> None:
        """Send one data frame."""
        self._out.put(data(payload, index))

    def half_close(self) -> Call:
        """Send no more."""
        self._out.put(_END)
        return self

    def cancel(self) -> None:
        """Let go."""
        self.rpc.cancel()

    def read(self) -> bytes:
        """The next payload; StopIteration or ``grpc.RpcError`` at the end."""
        return bytes(pb.OutputSignal.FromString(next(self.rpc)).data.payload)

    def some(self, count: int) -> list[bytes]:
        """The next payloads."""
        return [self.read() for _ in range(count)]

    def rest(self) -> list[bytes]:
        """Half-close, and every payload up to the good end."""
        self.half_close()
        return [bytes(pb.OutputSignal.FromString(one).data.payload) for one in self.rpc]

    def ending(self) -> tuple[list[bytes], grpc.StatusCode, str]:
        """The payloads up to the end, its code, its text."""
        payloads = []
        try:
            for one in self.rpc:
                payloads.append(bytes(pb.OutputSignal.FromString(one).data.payload))
        except grpc.RpcError:
            pass
        return payloads, self.rpc.code(), self.rpc.details()

    @property
    def code(self) -> grpc.StatusCode:
        """How the call ended; what came before is skipped."""
        return self.ending()[1]
