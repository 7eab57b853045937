"""`Child`: a child process as the serving process sees it: frames to it, frames from it, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, Final, Protocol, cast

from invoker.execution.isolation.frames import Cut, Frames, FromChild, Hello, Idle, Ready, ToChild, framed

log = logging.getLogger(__name__)

_END_S: Final = 2.0
"""Seconds that a child may take to end after it has closed its pipe."""

_LOOK_S: Final = 0.02
_HIGH_BYTES: Final = 256 * 1024


class Tenant(Protocol):
    """The user of a child: the runner of an invocation. Called on the loop."""

    def heard(self, frame: FromChild) -> Awaitable[None] | None:
        """Act on a frame; returns what to await before the next frame is taken, or None."""

    def given(self, child: Child) -> None:
        """Take the child for which this tenant has waited."""

    def child_ended(self, how: str, *, lacked_memory: bool) -> None:
        """The child is gone.

        ``how`` says how its process ended, ``lacked_memory`` that the kernel killed it because memory ran out.
        """


class Keeper(Protocol):
    """The pool that a child belongs to."""

    def ready(self, child: Child, problem: str) -> None:
        """Note that the child has loaded its functions; if it cannot, ``problem`` is the reason, otherwise empty."""

    def left(self, child: Child, *, is_worn: bool) -> None:
        """Called when the child's invocation has left user code."""

    def ended(self, child: Child) -> None:
        """Note that the process has ended, and has been waited for."""


class Child(asyncio.Protocol):
    """One child process, and the pipe to it.

    Args:
        keeper: The pool.
        loop: The loop on which all methods are called.

    Attributes:
        is_ready: Whether the child has loaded its functions.
        is_gone: Whether the pipe is closed, or is about to be closed.
        served: How many invocations the child has begun.
        tenant: The runner that uses it; None: it is free.
        is_leaving: Whether its invocation is over while user code has not yet returned.
        idle_since: When it was given back, on the clock of the loop.
    """

    def __init__(self, keeper: Keeper, loop: asyncio.AbstractEventLoop) -> None:
        self.is_ready = self.is_gone = self.is_worn = self.is_leaving = False
        self.served = 0
        self.idle_since = 0.0
        self.tenant: Tenant | None = None
        self._keeper = keeper
        self._loop = loop
        self._frames = Frames(FromChild)
        self._inbox: deque[FromChild] = deque()
        self._turn: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._waiting: list[bytes] = []
        self._was_killed = False
        self._oom_kills = oom_kills()
        self._process: subprocess.Popen[bytes] | None = None
        self._connecting: asyncio.Task[Any] | None = None
        self._reaping: asyncio.Future[None] | None = None
        self._late: asyncio.TimerHandle | None = None

    def start(self, hello: Hello) -> None:
        """Start the process; it takes frames at once.

        Raises:
            OSError: The system cannot start one more.
        """
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", "invoker.server.isolated", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                process_group=0,  # signals of the terminal are for the serving process, which drains
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        self._connecting = self._loop.create_task(self._loop.create_connection(lambda: self, sock=ours))
        self.send(hello)

    @property
    def pid(self) -> int:
        """The id of the child's process."""
        assert self._process is not None
        return self._process.pid

    def send(self, frame: ToChild) -> None:
        """Send a frame; does nothing if the child is gone."""
        if self.is_gone:
            return
        data = framed(frame)
        if self._transport is None:
            self._waiting.append(data)
        else:
            self._transport.write(data)

    @property
    def has_room(self) -> bool:
        """Whether few of the sent bytes still wait in this process."""
        if self._transport is None:
            return sum(map(len, self._waiting)) < _HIGH_BYTES
        return self._transport.get_write_buffer_size() < _HIGH_BYTES

    def close(self) -> None:
        """Ask an idle child to end: it stops its functions first."""
        self.is_gone = True
        if self._transport is not None:
            self._transport.close()

    def kill(self) -> None:
        """End the process and its process group at once."""
        self._was_killed = self.is_gone = True
        assert self._process is not None
        if self._process.returncode is None:
            kill_group(self._process.pid)

    async def over(self, limit_s: float) -> None:
        """Wait until the process has ended; one that takes longer than ``limit_s`` is killed."""
        assert self._process is not None
        if self._reaping is None:
            self._reap(limit_s)
        assert self._reaping is not None
        await asyncio.wait((self._reaping,))

    # The methods of `asyncio.Protocol`.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, and send the frames that wait for it."""
        self._transport = cast("asyncio.Transport", transport)  # the transport of uvloop has no class of asyncio
        for data in self._waiting:
            self._transport.write(data)
        self._waiting.clear()
        if self.is_gone:
            self._transport.close()

    def resume_writing(self) -> None:
        """Do nothing: windows decide how much is sent."""

    def data_received(self, data: bytes) -> None:
        """Take frames; reading pauses while the peer of the invocation has no room."""
        try:
            self._inbox += self._frames.feed(data)
        except Cut as error:
            log.error("a child process is killed, because its output is not a valid message: %s", error)
            self.kill()
            return
        if self._turn is None:
            self._work()

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - the exit code says why
        """Act on the end of the pipe: the process has ended, or is about to."""
        self.is_gone = True
        if self._reaping is None:
            self._reap(_END_S)

    # Private helpers.

    def _work(self) -> None:
        while self._inbox and not self._was_killed:
            wait = self._hear(self._inbox.popleft())
            if wait is not None:
                assert self._transport is not None
                self._transport.pause_reading()
                self._turn = self._loop.create_task(self._wait(wait), name="child")
                return

    async def _wait(self, wait: Awaitable[None]) -> None:
        try:
            await wait
        except Exception:
            log.exception("an output of a child process could not be sent")
        finally:
            self._turn = None
        assert self._transport is not None
        if not self._transport.is_closing():
            self._transport.resume_reading()
        self._work()

    def _hear(self, frame: FromChild) -> Awaitable[None] | None:
        if isinstance(frame, Ready):
            self.is_ready = not frame.problem
            self._keeper.ready(self, frame.problem)
            return None
        tenant = self.tenant
        if isinstance(frame, Idle):
            self.is_worn = frame.is_worn
        return None if tenant is None else tenant.heard(frame)

    def _reap(self, limit_s: float) -> None:
        """Wait for the process, which may take a moment to end."""
        assert self._process is not None
        self._reaping = self._loop.create_future()
        self._late = self._loop.call_later(limit_s, self.kill)
        try:
            handle = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):  # not Linux, or an old version
            self._look()
        else:
            self._loop.add_reader(handle, self._ended, handle)

    def _ended(self, handle: int) -> None:
        assert self._process is not None
        self._loop.remove_reader(handle)
        os.close(handle)
        # the programs that it has started; its number is not reused until it is waited for
        kill_group(self._process.pid)
        self._look()

    def _look(self) -> None:
        """Handle the end of the process if it has ended; otherwise look again soon."""
        assert self._process is not None
        if self._process.poll() is None:
            self._loop.call_later(_LOOK_S, self._look)
            return
        if self._late is not None:
            self._late.cancel()
        self._reaped()

    def _reaped(self) -> None:
        if self._turn is not None:
            self._turn.cancel()
        if self._transport is not None:
            self._transport.close()
        assert self._process is not None
        assert self._reaping is not None
        if not self._reaping.done():
            self._reaping.set_result(None)
        tenant, self.tenant = self.tenant, None
        code = self._process.returncode
        self._keeper.ended(self)
        if tenant is not None:
            lacked = code == -signal.SIGKILL and not self._was_killed and oom_kills() > self._oom_kills
            tenant.child_ended(ended_by(code), lacked_memory=lacked)


def kill_group(number: int) -> None:
    """Kill a child that has not been waited for, and the programs it has started that are still in its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(number, signal.SIGKILL)


def oom_kills() -> int:
    """How many processes the kernel has killed because memory ran out; 0 where it does not report that."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def ended_by(code: int) -> str:
    """A text that describes how a process ended."""
    if code >= 0:
        return f"ended with the exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was ended by {name}"
