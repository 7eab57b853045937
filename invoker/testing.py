"""Helps to test functions, without a server or with a real one.

`Harness` runs a function in memory through the real session, negotiation, codecs and drivers; only the sockets are
missing::

    def test_square():
        assert Harness(square).run([1, 2, 3]) == [1, 4, 9]

The fixture ``invoker_server`` starts a real server on free loopback ports; add ``pytest_plugins =
["invoker.testing"]`` to a ``conftest.py`` to have it::

    def test_served(invoker_server):
        server = invoker_server("mymod:fn")      # server.grpc, server.http: "127.0.0.1:PORT"
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Any

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.author.lift import Function
from invoker.author.prepare import prepare, prepare_function
from invoker.codecs import Registry, builtin, wants_arrays
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.errors import InvocationError
from invoker.execution.driver import Driver
from invoker.execution.loop.request import converse
from invoker.execution.nested.scope import CatalogScope
from invoker.lazy import no_attribute
from invoker.message import EMPTY, Message, as_headers
from invoker.protocols.riff.session import RiffSession

__all__ = ["Harness", "Result", "TestServer"]


@dataclass(slots=True)
class Result:
    """The outcome of one run of a function.

    Attributes:
        frames: Every message with the number of its output, in the order in which they were sent.
        error: The error with which the run ended; None for OK.
    """

    frames: list[tuple[int, Message[bytes]]] = field(default_factory=list)
    error: InvocationError | None = None
    registry: Registry = field(default_factory=lambda: builtin(entry_points=False))

    def messages(self, index: int = 0) -> list[Message[Any]]:
        """The messages of one output, with decoded payloads."""
        found = []
        for number, message in self.frames:
            if number == index:
                value = self.registry.decoder(message.media_type, Any)(message)
                found.append(Message(value, as_headers(message.headers), message.media_type))
        return found

    def values(self, index: int = 0) -> list[Any]:
        """The decoded values of one output."""
        return [message.payload for message in self.messages(index)]


class Harness:
    """Runs one function in memory, through the real session, negotiation, codecs and drivers.

    Args:
        function: A function of any shape that can be served, or its entrypoint.
        registry: The codecs; None: the built-in ones and those that the function's module registers with ``@codec``.
        check_outputs: Whether values that do not fit the function's return annotation are refused, as in a server.
        calls: The functions that `Context.call` and `Context.stream` can call, by name: real functions, or fakes.

    Raises:
        StartupError: The function cannot be loaded or understood; the text is the same as when it is served.
    """

    def __init__(
        self,
        function: Any,
        *,
        registry: Registry | None = None,
        check_outputs: bool = True,
        calls: Mapping[str, Any] | None = None,
    ) -> None:
        prepared = prepare(function)[0] if isinstance(function, str) else prepare_function(function)
        self.function = prepared.function
        spec = self.function.spec
        self.registry = registry or builtin(arrays=wants_arrays(spec.types)).belonging(spec.modules)
        self._check_outputs = check_outputs
        if calls is not None and not isinstance(calls, Mapping):
            raise TypeError(f"calls= must be a dict of functions by name, and is a {type(calls).__name__}")
        self._others = [_named(name, one) for name, one in (calls or {}).items()]

    def run(self, *inputs: Iterable[Any], accept: str | Sequence[str] | None = None) -> list[Any]:
        """Run the function once over finite inputs, and return the values of its first output.

        Args:
            inputs: For each input, an iterable of values, or of `Message`s with media type and headers. Iterables after
                those of the inputs are for the options, in the order of the signature.
            accept: The media types that the caller accepts, for each output; None: any.

        Raises:
            InvocationError: The run failed; the error is the one that a caller would get.
        """
        result = self.invoke(*inputs, accept=accept)
        if result.error is not None:
            raise result.error
        return result.values()

    def invoke(self, *inputs: Iterable[Any], accept: str | Sequence[str] | None = None) -> Result:
        """Run the function as `run` does, but return every output and the error.

        An exception of the function is in ``error``, too.
        """
        return asyncio.run(self.ainvoke(*inputs, accept=accept))

    async def ainvoke(self, *inputs: Iterable[Any], accept: str | Sequence[str] | None = None) -> Result:
        """Run the function as `invoke` does, in an async test."""
        async with contextlib.AsyncExitStack() as stack:
            for one in (self.function, *self._others):
                await one.start()
                stack.push_async_callback(one.stop)
            return await self._run(self._frames(inputs, accept))

    def frames(self, *frames: bytes) -> Result:
        """Run the function over serialised InputSignals, as they would come from a client."""
        return asyncio.run(self._run(iter(frames)))

    async def _run(self, frames: Iterator[bytes]) -> Result:
        engine = Engine(
            Catalog([self.function, *self._others]),
            self.registry,
            check_outputs=self._check_outputs,
            new_lock=threading.Lock,
        )
        driver = Driver(engine)
        driver.loop = asyncio.get_running_loop()
        engine.scope = CatalogScope(driver)
        sent: list[tuple[int, Message[bytes]]] = []

        async def read() -> bytes | None:
            await asyncio.sleep(0)  # let the bodies run between two frames
            return next(frames, None)

        def keep(frame: bytes) -> None:
            data = pb.OutputSignal.FromString(frame).data
            sent.append((data.resultIndex, Message(data.payload, dict(data.headers), data.contentType)))

        try:
            error = await converse(RiffSession(function=self.function.spec.name), driver, read, keep)
            await driver.left(driver.settings.grace_s)
        finally:
            await driver.children.stop()
            driver.threads.close()
        return Result(sent, error, self.registry)

    def _frames(self, inputs: Sequence[Iterable[Any]], accept: str | Sequence[str] | None) -> Iterator[bytes]:
        """Make a StartFrame, then the frames with the values of all inputs in turn."""
        spec = self.function.spec
        default = ["*/*"] * (len(spec.outputs) or spec.open_outputs)
        accepts = [accept] if isinstance(accept, str) else list(accept or default)
        own = len([one for one in spec.inputs if not one.is_ignored])
        names = [f"in{index}" for index in range(len(inputs))] if spec.open_inputs else []
        if (
            spec.spare and not spec.open_inputs and len(inputs) > own
        ):  # options are given by name, in the order of the signature
            names = [one.name for one in (*spec.inputs[:own], *spec.spare)][: len(inputs)]
        start = pb.StartFrame(expectedContentTypes=accepts, inputNames=names)
        yield pb.InputSignal(start=start).SerializeToString()
        waiting = dict(enumerate(iter(one) for one in inputs))
        while waiting:
            for index in list(waiting):
                try:
                    value = next(waiting[index])
                except StopIteration:
                    del waiting[index]
                else:
                    yield self._frame(index, value)

    def _frame(self, index: int, value: Any) -> bytes:
        headers, media_type = dict(EMPTY), ""
        if isinstance(value, Message):
            headers, media_type, value = dict(value.headers.items()), value.media_type, value.payload
        if isinstance(value, bytes) and media_type:
            payload = value
        else:
            accept = media_type or ("text/plain" if isinstance(value, str) else "*/*")
            offers = self.registry.offers(accept, index=index)
            made = self.registry.encoder(offers, value, index=index)(value)
            payload, media_type = made.payload, made.media_type
        frame = pb.InputFrame(payload=payload, contentType=media_type, headers=headers, argIndex=index)
        return pb.InputSignal(data=frame).SerializeToString()


def _named(name: str, function: Any) -> Function:
    """Another function of the harness, under the name by which it is called."""
    made = prepare_function(function).function
    return Function(made.hooks, replace(made.spec, name=name))


class TestServer:
    """A server in a process of its own, on free ports of the loopback interface.

    The fixture ``invoker_server`` makes them, in tests whose ``conftest.py`` has ``pytest_plugins =
    ["invoker.testing"]``.

    Args:
        entrypoint: The entrypoint to serve, as on the command line.
        flags: Flags of the command line.

    Attributes:
        grpc: The address of the gRPC port, as ``127.0.0.1:PORT``.
        http: The address of the HTTP port, as ``127.0.0.1:PORT``.
    """

    __test__ = False  # for pytest: this is no test class, despite its name

    def __init__(self, entrypoint: str, *flags: str) -> None:
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._process = self._started([entrypoint, "--host", "127.0.0.1", "--grpc-port", "0", "--port", "0", *flags])
        self.grpc, self.http = self._addresses()

    def log(self) -> str:
        """The output of the server so far."""
        # The server writes to the same open file, so a seek here would move the place of its next line.
        descriptor = self._log.fileno()
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")

    def close(self) -> int:
        """Stop the server gracefully, and return its exit code."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            return self._process.wait(timeout=40)
        finally:
            self._log.close()

    def _started(self, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "invoker", *arguments]
        return subprocess.Popen(command, stdout=self._log, stderr=self._log)  # noqa: S603

    def _addresses(self) -> tuple[str, str]:
        until = time.monotonic() + 30
        while time.monotonic() < until and self._process.poll() is None:
            found = re.search(r"grpc=([^\s\"]+)(?: http=([^\s\"]+))?", self.log())
            if found:
                return found[1], found[2] or ""
            time.sleep(0.02)
        text = self.log()
        self._process.kill()
        self.close()
        raise RuntimeError(f"the server did not start: {text.strip()}")


def _invoker_server() -> Iterator[Callable[..., TestServer]]:
    """Start servers that are stopped when the test ends: ``invoker_server("mymod:fn", "--no-http")``."""
    started: list[TestServer] = []

    def start(entrypoint: str, *flags: str) -> TestServer:
        started.append(TestServer(entrypoint, *flags))
        return started[-1]

    yield start
    for server in started:
        server.close()


def __getattr__(name: str) -> Any:
    """Make the fixture when pytest looks for it, so that other programs need not import pytest."""
    if name == "invoker_server":
        import pytest

        made = pytest.fixture(name="invoker_server")(_invoker_server)
        globals()[name] = made
        return made
    raise no_attribute(__name__, name)


def __dir__() -> list[str]:
    return [*globals(), "invoker_server"]
