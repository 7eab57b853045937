"""The program of a child process for isolated functions: ``python -m invoker.server.isolated FD``.

FD is the child's end of a socket to the serving process, which sends the functions to load and then one invocation
after another (see `invoker.execution.isolation`). The child opens no port, and ends with the serving process: normally
when the socket is closed, after the stop hooks, or by a signal of the kernel if the serving process is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from invoker.attach.declared import load
from invoker.author.hooks import Hooks
from invoker.author.lift import Function
from invoker.author.prepare import prepare, prepare_function
from invoker.author.spec import Bounds
from invoker.codecs import builtin, wants_arrays
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.invocation import Invocation
from invoker.core.steps import Close, Open
from invoker.errors import DeadlineExceeded, InternalError, InvocationError, StartupError
from invoker.execution.bodies.runner import Runner
from invoker.execution.driver import Driver, DriverSettings
from invoker.execution.isolation.asking import PipeScope
from invoker.execution.isolation.faults import MemoryExceeded, fault_of
from invoker.execution.isolation.frames import (
    Answer,
    Begin,
    Cut,
    Done,
    Fault,
    Frames,
    FromChild,
    Hello,
    Idle,
    Loaded,
    Ready,
    ToChild,
    framed,
)
from invoker.execution.isolation.session import WINDOW, ChildSession
from invoker.execution.loop.sessions import SessionReactor
from invoker.execution.pace.tasks import own_task
from invoker.server.surroundings import Surroundings
from invoker.telemetry import logs
from invoker.telemetry import stdout_capture as prints

log = logging.getLogger(__name__)

_PR_SET_PDEATHSIG: Final = 1
_HIGH_BYTES: Final = 256 * 1024
_SOON_S: Final = 0.02


def main(argv: list[str]) -> int:
    """Serve the process at the other end of the socket until that process closes the socket."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        with contextlib.suppress(OSError):  # else the kernel may kill the serving process first
            Path("/proc/self/oom_score_adj").write_text("500")
    pipe = socket.socket(fileno=int(argv[0]))
    pipe.setblocking(False)
    os.set_inheritable(pipe.fileno(), False)
    with asyncio.Runner() as runner:
        runner.get_loop().set_task_factory(own_task)
        runner.run(_serve(pipe))
    prints.finish()
    logging.shutdown()
    os._exit(0)  # threads of user code that do not return must not keep the process alive


async def _serve(pipe: socket.socket) -> None:
    line = _Line()
    await asyncio.get_running_loop().create_connection(lambda: line, sock=pipe)
    await line.over
    await line.stop()


class _Line(asyncio.Protocol):
    """The pipe: a wire of one long session, on which invocations follow one another."""

    is_gone = False
    headers: tuple[tuple[str, str], ...] = ()

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.over: asyncio.Future[None] = loop.create_future()
        self._frames = Frames(ToChild)
        self._transport: asyncio.Transport | None = None
        self._room: asyncio.Future[None] | None = None
        self._early: list[ToChild] = []
        self._starting: asyncio.Task[None] | None = None
        self._child: _Host | None = None

    # The methods of `asyncio.Protocol`.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of the pipe, and bound its buffer."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transport has no class of asyncio
        self._transport.set_write_buffer_limits(_HIGH_BYTES)

    def data_received(self, data: bytes) -> None:
        """Take frames; frames that come while the functions are loaded wait."""
        try:
            frames = self._frames.feed(data)
        except Cut:
            log.exception("the serving process sent an invalid message")
            os._exit(1)
        for frame in frames:
            if isinstance(frame, Hello):
                self._starting = asyncio.get_running_loop().create_task(self._start(frame), name="start")
            elif self._child is None:
                self._early.append(frame)
            else:
                self._child.take(frame)

    def pause_writing(self) -> None:
        """Stop writing, since the serving process reads slowly, as the peer of the invocation does."""
        self._room = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """Wake the task that waits for room to write."""
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - it is over either way
        """End, since the serving process is gone or needs this child no more."""
        self.is_gone = True
        self.resume_writing()
        if not self.over.done():
            self.over.set_result(None)

    # The methods of `Wire`.

    def accepted(self) -> None:
        """Do nothing: the pipe has no headers to send."""

    def ask(self) -> None:
        """Do nothing: the pipe is always read, since the windows of the inputs bound the incoming frames."""

    def write(self, frame: FromChild) -> bool:
        """Send a frame; False when the next one should wait for `room`."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(framed(frame))
        return self._room is None

    async def room(self) -> None:
        """Wait until a frame may be written."""
        while self._room is not None:
            await asyncio.shield(self._room)

    # These methods start and stop the functions.

    async def _start(self, hello: Hello) -> None:
        try:
            child = _Host(self, hello)
            await child.start()
        except StartupError as error:
            self.write(Ready(error.detail))
            self.is_gone = True
            assert self._transport is not None
            self._transport.close()
            return
        self._child = child
        self.write(Ready())
        for frame in self._early:
            child.take(frame)
        self._early.clear()

    async def stop(self) -> None:
        """Run the stop hooks of all functions, once the start is over."""
        if self._starting is not None:
            await asyncio.wait((self._starting,))
        if self._child is not None:
            await self._child.stop()


class _Host:
    """Holds the functions, and the engine and driver that run them, as in a serving process."""

    def __init__(self, line: _Line, hello: Hello) -> None:
        told = hello.settings
        sys.path[:] = hello.path
        is_text = logs.set_up(told.get("log_level", "info"), told.get("log_format", "auto"))
        prints.print_lines(as_objects=not is_text)
        logging.getLogger("invoker.execution.loop.sessions").setLevel(
            logging.WARNING
        )  # the pipe is no session of a peer
        self._line = line
        self.functions = [_load(one, told) for one in hello.functions]
        arrays = any(wants_arrays(one.spec.types) for one in self.functions) or told.get("arrays", False)
        most = {"max_containers": told["max_containers"]} if "max_containers" in told else {}
        registry = builtin(pickle=told.get("pickle_codec", False), arrays=arrays, **most)
        for name in told.get("codecs", ()):
            load(name)(registry, lambda: (one.spec for one in self.functions), **most)
        self.engine = Engine(
            Catalog(self.functions),
            registry,
            check_outputs=told.get("check_outputs", True),
            memory_bytes=sys.maxsize,  # the serving process counts what inputs hold
            new_lock=threading.Lock,
        )
        settings = DriverSettings(told.get("threads", 256), told.get("grace_s", 5.0), debug=told.get("debug", False))
        self.driver = Driver(self.engine, settings)
        self._scope = PipeScope(line.write)
        self._waiting: set[asyncio.Task[None]] = set()
        self._base_bytes = 0
        self._is_worn = False
        self._began_ns = 0
        self._faults: dict[str, Fault | None] = {}
        self.engine.on_close += [self._closed, prints.ended]
        session = ChildSession(self._scope, _configs, self._done)
        self.reactor = _Reactor(session, line, self.driver)
        self._session = session

    async def start(self) -> None:
        """Run the start hooks of all functions, and measure the process."""
        for one in self.functions:
            await one.start()
        logs.keep()
        self._base_bytes = _address_space()
        self._surroundings = Surroundings()

    async def stop(self) -> None:
        """Run the stop hooks of all functions, the last started first."""
        self.reactor.gone()
        for one in reversed(self.functions):
            try:
                await one.stop()
            except StartupError as error:
                log.error("%s", error)

    def take(self, frame: ToChild) -> None:
        """Take a frame of the serving process."""
        if isinstance(frame, Answer):
            self._scope.heard(frame)
            return
        if isinstance(frame, Begin):
            self._is_worn = False
            self._limit(frame.memory_bytes)
            self._began_ns = time.process_time_ns()
            _forget_peak()
        self.reactor.arrived(frame)

    def _limit(self, memory_bytes: int) -> None:
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (self._base_bytes + memory_bytes if memory_bytes else hard, hard))

    def _closed(self, invocation: Invocation) -> None:
        """Keep the error of an invocation that has ended, before its tracebacks are dropped."""
        begun, error = self._session.begun, invocation.error
        if begun is not None and begun.memory_bytes and _lacked_memory(error):
            error, self._is_worn = MemoryExceeded(begun.memory_bytes), True
        self._faults[invocation.key] = fault_of(error)

    def _fault(self, error: InvocationError | None) -> Fault | None:
        """The error to report for an ending; an invocation that was not admitted was never closed."""
        begun = self._session.begun
        return self._faults.pop(begun.id if begun is not None else "", fault_of(error))

    def _done(self, error: InvocationError | None) -> None:
        done = Done(self._fault(error), max(0, time.process_time_ns() - self._began_ns), _peak_bytes())
        task = asyncio.get_running_loop().create_task(self._tell_done(done), name="idle")
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _tell_done(self, done: Done) -> None:
        """Report the ending, and that user code has returned.

        Both go in one frame if user code returns soon, as it mostly does, and the next call of the caller finds this
        child idle.
        """
        await asyncio.sleep(0)
        has_left = await self.driver.left(_SOON_S)
        self._line.write(done)
        while not has_left:
            has_left = await self.driver.left(3600.0)
        is_as_before = self._surroundings.restore()
        begun = self._session.begun
        grown = _address_space() - self._base_bytes
        bound = begun.memory_bytes if begun is not None else 0
        self._line.write(Idle(self._is_worn or not is_as_before or bool(bound and grown > bound // 2)))


class _Reactor(SessionReactor):
    """The conversation with the serving process, which gives each invocation its id."""

    def __init__(self, session: ChildSession, line: _Line, driver: Driver) -> None:
        super().__init__(session, line, driver, _closed, window=WINDOW, fetch=_no_fetch)

    def _admit(self, step: Open) -> Invocation:
        begun = self._storing.begun  # type: ignore[attr-defined]  # it is a `ChildSession`
        if begun.deadline is not None and time.monotonic() >= begun.deadline:
            raise DeadlineExceeded  # this process came to it late; the cancellation may still wait in the pipe
        invocation = super()._admit(step)
        invocation.context.invocation_id = step.id
        invocation.context.deadline = begun.deadline
        return invocation

    def _may_begin(self, runner: Runner) -> bool:
        """Return True: all values for the call came with the beginning, and options without a value are closed."""
        runner.invocation.is_settled = True
        runner.invocation.may_begin()
        return True


def _closed(close: Close) -> None:
    """Handle the end of the session: unless the pipe has ended, the child is broken and must not be used again."""
    if close.error is not None and isinstance(close.error, InternalError):
        os._exit(1)


async def _no_fetch(uri: str, most: int, deliver: Callable[[bytes], None]) -> None:  # noqa: ARG001 - see `Fetching`
    raise InternalError("a child process cannot fetch URIs")


def _load(one: Loaded, told: dict[str, Any]) -> Function:
    """Load a function for this child: without isolation, and without limits, which the serving process applies."""
    limit_s = told.get("hook_timeout_s", 10.0)
    if one.pickle:
        import cloudpickle

        prepared = prepare_function(cloudpickle.loads(one.pickle), name=one.name, hook_timeout_s=limit_s)
    else:
        (prepared,) = prepare(one.entrypoint, allow_pickle=told.get("allow_pickle", False), hook_timeout_s=limit_s)
    spec = replace(prepared.spec, name=one.name, isolation="", bounds=Bounds())
    return Function(Hooks(prepared.function.hooks.target, spec, timeout_s=limit_s), spec)


def _configs(came: list[Any]) -> tuple[Any, ...]:
    from google.protobuf import any_pb2

    return tuple(
        one if isinstance(one, dict) else load(one[2])(any_pb2.Any(type_url=one[0], value=one[1])) for one in came
    )


def _lacked_memory(error: BaseException | None) -> bool:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, MemoryError):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _forget_peak() -> None:
    """Reset the kernel's peak of resident memory; where that is impossible, the peak is that of all calls so far."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak_bytes() -> int:
    """The peak of resident memory in bytes; 0 where the system does not report it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def _address_space() -> int:
    """Bytes of address space that this process has."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
